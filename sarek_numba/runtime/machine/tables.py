"""Plans of launches as tables for the machine code of `launch_ir`.

A table is an array of int64. Its head: how many guards, arguments and parameters there are; five
words for the device's `run`; the address of the counter of launches; whether arrays must be apart;
where the lists of arrays and of vectors begin; whether vectors need not be ready; and from 16 on
eight more words for `run`. Behind the head come 4 words for each guard, 8 for each argument, 4 for
each parameter, then the two lists, each behind its length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from sarek_numba.ir.types import Scalar
from sarek_numba.runtime.cache import compiled_launches
from sarek_numba.runtime.machine import driver
from sarek_numba.runtime.machine.checks_ir import OBJECTS
from sarek_numba.runtime.machine.launch_ir import text_of
from sarek_numba.runtime.plans import (
    ABSENT,
    ArrayCheck,
    BoolCheck,
    Check,
    ComplexCheck,
    Extent,
    Fill,
    Fixed,
    FloatCheck,
    Guard,
    IntCheck,
    Length,
    Memory,
    NoneCheck,
    Number,
    Offset,
    PairCheck,
    Part,
    Place,
    Plan,
    ScalarCheck,
    Stride,
)
from sarek_numba.runtime.storage import HOST, Access
from sarek_numba.runtime.vector import Vector

_HEAD = 24
_RUN = 5
_MORE = 16
_RECORD = 6  # words that the launcher keeps of an argument
_C, _F, _WRITABLE = 1, 2, 0x400  # flags of NumPy's arrays
_WRITTEN = 1 << 32  # beside them: no two indices may stand for one element

Words = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things stand in objects of CPython and NumPy, in bytes from their address."""

    type: int = 8
    scalar: int = 16
    parts: int = 16  # of a complex
    data: int = 16
    ndim: int = 24
    extents: int = 32
    strides: int = 40
    dtype: int = 56
    flags: int = 64

    def is_true(self, read: Callable[[int], int]) -> bool:
        """Whether objects of this process are laid out so; `read` gives the word at an address."""
        return (
            all(map(self._describes, _arrays(), [read] * 5))
            and all(
                read(id(value) + self.type) == id(type(value))
                and read(id(value) + self.scalar).to_bytes(8, "little", signed=True)[:size]
                == value.tobytes()
                for value, size in _scalars()
            )
            and self._has_parts(1.5 - 2.5j, read)
        )

    def _has_parts(self, value: complex, read: Callable[[int], int]) -> bool:
        """Whether the parts of a Python complex stand one behind the other."""
        words = [read(id(value) + self.parts + 8 * k) for k in range(2)]
        expected: list[int] = np.array([value.real, value.imag]).view(np.int64).tolist()
        return words == expected

    def _describes(self, array: npt.NDArray[Any], read: Callable[[int], int]) -> bool:
        at = id(array)
        extents, strides = read(at + self.extents), read(at + self.strides)
        flags = array.flags
        wanted = _C * flags.c_contiguous | _F * flags.f_contiguous | _WRITABLE * flags.writeable
        return (
            read(at + self.type) == id(np.ndarray)
            and read(at + self.data) == array.ctypes.data
            and read(at + self.ndim) & 0xFFFFFFFF == array.ndim
            and tuple(read(extents + 8 * k) for k in range(array.ndim)) == array.shape
            and tuple(read(strides + 8 * k) for k in range(array.ndim)) == array.strides
            and read(at + self.dtype) == id(array.dtype)
            and read(at + self.flags) & (_C | _F | _WRITABLE) == wanted
        )


def _arrays() -> list[npt.NDArray[Any]]:
    fixed = np.zeros((2, 3), np.int16)
    fixed.flags.writeable = False
    whole = np.zeros((3, 5, 7), np.float32)
    return [whole, whole.T, whole[:, 1:3], fixed, np.zeros((), np.complex128)]


def _scalars() -> list[tuple[np.generic, int]]:
    types = [np.dtype(s.value) for s in Scalar if s not in (Scalar.FLOAT16, Scalar.BFLOAT16)]
    return [(np.ones(1, dtype)[0], dtype.itemsize) for dtype in types]


class Launchers:
    """Makes functions of plans. There are none where objects are laid out in another way.

    `run` is the text of the device's part.
    """

    def __init__(self, run: str) -> None:
        layout = Layout()
        self._code: driver.Code | None = None
        if driver.is_usual() and layout.is_true(driver.word):
            code = driver.Code(_text(layout, run), OBJECTS)
            self._code = code if code.ready else None

    def function(
        self,
        plan: Plan,
        run: Sequence[int] = (),
        more: Sequence[int] = (),
        ready: Mapping[Any, Any] | None = None,
        kept: Sequence[Any] = (),
    ) -> Callable[..., Any] | None:
        """A function of the arguments of a launch; None where there is none.

        It gives None after the launch, False where it did nothing, and else the bytes of all
        parameters, eight for each, memory being the host's address, and behind them eight for each
        vector: what its storage has `ready` under the key that belongs to its access, or 0; then
        the eight that `run` may have written. The locks of the vectors' storages are held then,
        and the launch is counted. Without `ready` the keys are those of the host, and vectors that
        are not ready are refused.

        `run` and `more` are words for the device's part; what is `kept` lives as long.
        """
        if self._code is None:
            return None
        holder = _table(plan, run, more, ready).view(_Table)
        holder.kept = (self._code, plan, tuple((ready or HOST).values()), kept)
        return self._code.function(holder)


class _Table(np.ndarray[Any, Any]):
    """A table, and what it has addresses of."""

    kept: Any = ()


def _text(layout: Layout, run: str) -> str:
    return Template(text_of(run)).substitute(
        TYPE=layout.type,
        SCALAR=layout.scalar,
        COMPLEX=layout.parts,
        DATA=layout.data,
        NDIM=layout.ndim,
        EXTENTS=layout.extents,
        STRIDES=layout.strides,
        DTYPE=layout.dtype,
        FLAGS=layout.flags,
        CONTIGUOUS=_C | _F,
        FLAG_MASK=_C | _F | _WRITABLE,
        CLOCK=driver.CLOCK,
    )


# --- tables ---------------------------------------------------------------------------------------


def vectors_of(plan: Plan) -> list[int]:
    """The positions of the vectors among the arguments."""
    return [k for k, c in enumerate(plan.checks) if isinstance(c, ArrayCheck) and c.vector]


def _table(
    plan: Plan, run: Sequence[int], more: Sequence[int], ready: Mapping[Any, Any] | None
) -> Words:
    arrays = [k for k, check in enumerate(plan.checks) if isinstance(check, ArrayCheck)]
    body: list[int] = []
    for guard in plan.guards:
        body += _guard(guard)
    for check in plan.checks:
        body += _check(check)
    for fill in plan.fills:
        body += _fill(fill, plan.checks)
    at_arrays = _HEAD + len(body)
    at_vectors = at_arrays + 1 + len(arrays)
    vectors = [
        (k, id((HOST if ready is None else ready)[getattr(plan.checks[k], "access", None)]))
        for k in vectors_of(plan)
    ]
    assert len(run) <= _RUN, "what else a device needs is `more`"
    head = [len(plan.guards), len(plan.checks), len(plan.fills), *run, *[0] * (_RUN - len(run))]
    head += [compiled_launches.ctypes.data, plan.apart, at_arrays, at_vectors]
    head += [ready is not None]
    head += [0] * (_MORE - len(head)) + list(more)
    head += [0] * (_HEAD - len(head))
    lists = [len(arrays), *(_RECORD * k for k in arrays)]
    lists += [len(vectors), *(word for entry in vectors for word in entry)]
    return np.array([*head, *body, *lists], np.int64)


def _guard(guard: Guard) -> list[int]:
    """An absent item is found as NULL; the answer of a function is True."""
    expected = True if guard.place is Place.CALL else guard.expected
    address = 0 if expected is ABSENT else id(expected)
    return [guard.place.value, id(guard.container), id(guard.key), address]


def _check(check: Check) -> list[int]:
    match check:
        case ArrayCheck():
            c, f = check.contiguous
            written = check.access is Access.WRITE
            words = [
                int(check.vector),
                id(Vector if check.vector else np.ndarray),
                id(check.dtype),
                check.ndim,
                _C * c | _F * f | _WRITABLE * check.writable | _WRITTEN * written,
                check.alignment - 1,
                check.most_bytes,
                check.dtype.itemsize,
            ]
        case IntCheck(least=least, most=most):
            words = [2, id(int), least, most]
        case FloatCheck(narrow=narrow):
            words = [3, id(float), narrow]
        case ScalarCheck(type=type):
            words = [4, id(type)]
        case ComplexCheck(narrow=narrow):
            words = [7, id(complex), narrow]
        case PairCheck(type=type, part=part):
            words = [8 if part is Scalar.FLOAT32 else 9, id(type)]
        case NoneCheck():
            words = [5, id(None)]
        case BoolCheck():
            words = [6, id(bool)]
        case _:
            assert_never(check)
    return words + [0] * (8 - len(words))


def _fill(fill: Fill, checks: Sequence[Check]) -> list[int]:
    match fill:
        case Memory(argument=k):
            return [0, _RECORD * k, 0, 0]
        case Number(argument=k, type=type):
            return [_conversion(type, checks[k]), _RECORD * k, 0, 0]
        case Part(argument=k, part=part, type=type):
            is_python = isinstance(checks[k], ComplexCheck)
            kind = 3 if is_python and type is Scalar.FLOAT32 else 0
            return [kind, _RECORD * k + part, 0, 0]
        case Offset(argument=k):
            return [8, _RECORD * k, 0, _itemsize(checks[k])]
        case Length(argument=k):
            return [4, _RECORD * k, 0, 0]
        case Extent(argument=k, axis=axis):
            return [5, _RECORD * k, axis, 0]
        case Stride(argument=k, axis=axis):
            return [6, _RECORD * k, axis, _itemsize(checks[k])]
        case Fixed(value=value):
            return [7, 0, 0, value]
        case _:
            assert_never(fill)


def _itemsize(check: Check) -> int:
    assert isinstance(check, ArrayCheck)
    return check.dtype.itemsize


def _conversion(type: Scalar, check: Check) -> int:
    """The kind of parameter: as it is, or a Python number as a float."""
    if isinstance(check, IntCheck) and type.is_float:
        return 1 if type is Scalar.FLOAT32 else 2
    if isinstance(check, FloatCheck) and type is Scalar.FLOAT32:
        return 3
    return 0
