"""The names a kernel may use beside Python's own: indices, memory, barriers, atomics, mathematics.

Imports no Numba, and of this package only the errors, since every `import sarek_numba` pays for it:
the enumerations of `ir.nodes` are met by name, where they are needed.

The compiler recognises these objects by identity. Called in plain Python they act on the current
thread of an emulation: `emulating(context)` installs a `ThreadContext` for the operating-system
thread (or greenlet) that runs a kernel's function; outside of one they raise.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sarek_numba.errors import SarekError

if TYPE_CHECKING:
    from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope, WarpOp
    from sarek_numba.ir.types import Scalar


class ThreadContext(Protocol):
    """What one thread of an emulated launch does for the functions of this module."""

    def coordinate(self, coordinate: Coordinate, axis: int) -> int:
        """A coordinate of this thread along an axis (0 is x)."""

    def barrier(self) -> None:
        """Wait for all threads of the block."""

    def mem_fence(self, scope: FenceScope) -> None:
        """Order this thread's accesses before and after."""

    def shared_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array of the block: all its threads get the same one where they call alike."""

    def dynamic_shared(self, offset: int, dtype: np.dtype[Any]) -> Any:
        """A view of the dynamic shared region from `offset` bytes on."""

    def local_array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """An array of this thread alone."""

    def constant_array(self, array: Any) -> Any:
        """A read-only copy of a constant array."""

    def agree(self, value: Any) -> Any:
        """The value at the element type that the threads of the block give it together."""

    def atomic(self, op: AtomicOp, array: Any, index: Any, value: Any, compare: Any) -> Any:
        """Do an atomic operation and give the old element."""

    def fragment(self, config: Any, use: str) -> Any:
        """A matrix of zeros that the warp holds; `config` is a `sarek.coopmat.Config`."""

    def matrix(self, operation: str, *operands: Any) -> None:
        """Do an operation of `sarek.coopmat` together with the other threads of the warp."""

    def warp_size(self) -> int:
        """The number of threads of a warp."""

    def warp_lane(self) -> int:
        """This thread's place in its warp."""

    def warp(self, op: WarpOp, value: Any, lane: Any, width: Any) -> Any:
        """Take part in a collective of the warp."""

    def warp_barrier(self) -> None:
        """Wait for all threads of the warp."""

    def record(self, array: Any) -> Any:
        """A record of its own, from an array without axes."""

    def read(self, value: Any) -> Any:
        """A number from memory as a value: a half is a float32."""

    def number(self, value: Any, dtype: np.dtype[Any]) -> Any:
        """A number converted as a store converts it."""

    def print(self, text: str) -> None:
        """Write text; that of all threads appears in thread order when the launch ends."""


_context: ContextVar[ThreadContext | None] = ContextVar("sarek_thread", default=None)


@contextlib.contextmanager
def emulating(context: ThreadContext) -> Iterator[None]:
    """Let this module's functions act on `context`, in this thread or greenlet."""
    token = _context.set(context)
    try:
        yield
    finally:
        _context.reset(token)


def active() -> ThreadContext | None:
    """The current thread of an emulation, if there is one."""
    return _context.get()


def current(name: str) -> ThreadContext:
    """The current thread of an emulation; `name` is what needed it."""
    context = _context.get()
    if context is None:
        raise SarekError(
            f"sarek.{name} has a meaning only inside a kernel; launch it, or emulate it"
        )
    return context


# --- a thread's place -----------------------------------------------------------------------------


class Axes:
    """A coordinate with `.x`, `.y`, `.z`: Python ints."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def coordinate(self) -> Coordinate:
        """The coordinate of the same name."""
        from sarek_numba.ir.nodes import Coordinate

        return Coordinate(self.name)

    @property
    def x(self) -> int:
        return self._along(0)

    @property
    def y(self) -> int:
        return self._along(1)

    @property
    def z(self) -> int:
        return self._along(2)

    def _along(self, axis: int) -> int:
        return current(self.name).coordinate(self.coordinate, axis)

    def __repr__(self) -> str:
        return f"sarek.{self.name}"


thread_idx = Axes("thread_idx")
block_idx = Axes("block_idx")
block_dim = Axes("block_dim")
grid_dim = Axes("grid_dim")
global_idx = Axes("global_idx")


def _binary(operation: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: operation(int(self), other)


def _reflected(operation: Callable[[Any, Any], Any]) -> Any:
    return lambda self, other: operation(other, int(self))


class GlobalThreadId:
    """`global_idx.x` as one object that behaves as that Python int."""

    __array_ufunc__ = None  # NumPy leaves the operators to this class
    __hash__ = None  # type: ignore[assignment] # its value changes from thread to thread

    def __index__(self) -> int:
        return global_idx.x

    def __bool__(self) -> bool:
        return global_idx.x != 0

    def __int__(self) -> int:
        return global_idx.x

    def __float__(self) -> float:
        return float(global_idx.x)

    def __neg__(self) -> int:
        return -global_idx.x

    def __invert__(self) -> int:
        return ~global_idx.x

    def __repr__(self) -> str:
        return "sarek.global_thread_id"

    __add__, __radd__ = _binary(operator.add), _reflected(operator.add)
    __sub__, __rsub__ = _binary(operator.sub), _reflected(operator.sub)
    __mul__, __rmul__ = _binary(operator.mul), _reflected(operator.mul)
    __truediv__, __rtruediv__ = _binary(operator.truediv), _reflected(operator.truediv)
    __floordiv__, __rfloordiv__ = _binary(operator.floordiv), _reflected(operator.floordiv)
    __mod__, __rmod__ = _binary(operator.mod), _reflected(operator.mod)
    __divmod__, __rdivmod__ = _binary(divmod), _reflected(divmod)
    __pow__, __rpow__ = _binary(operator.pow), _reflected(operator.pow)
    __lshift__, __rlshift__ = _binary(operator.lshift), _reflected(operator.lshift)
    __rshift__, __rrshift__ = _binary(operator.rshift), _reflected(operator.rshift)
    __and__, __rand__ = _binary(operator.and_), _reflected(operator.and_)
    __or__, __ror__ = _binary(operator.or_), _reflected(operator.or_)
    __xor__, __rxor__ = _binary(operator.xor), _reflected(operator.xor)
    __lt__, __le__ = _binary(operator.lt), _binary(operator.le)
    __gt__, __ge__ = _binary(operator.gt), _binary(operator.ge)
    __eq__, __ne__ = _binary(operator.eq), _binary(operator.ne)


global_thread_id = GlobalThreadId()


def grid(ndim: int) -> Any:
    """The thread's place in the launch along 1, 2 or 3 axes, as Numba users write it."""
    return _along_axes("grid", "global_idx", ndim)


def gridsize(ndim: int) -> Any:
    """The number of threads of the launch along 1, 2 or 3 axes."""
    return _along_axes("gridsize", "grid_size", ndim)


def _along_axes(name: str, coordinate: str, ndim: int) -> int | tuple[int, ...]:
    from sarek_numba.ir.nodes import Coordinate

    context = current(name)
    values = tuple(context.coordinate(Coordinate(coordinate), axis) for axis in range(ndim))
    return values[0] if ndim == 1 else values


# --- synchronisation ------------------------------------------------------------------------------


def barrier() -> None:
    """Wait for all threads of the block; orders their shared and global memory."""
    current("barrier").barrier()


def mem_fence(scope: str = "device") -> None:
    """Order this thread's memory accesses, as seen by its block or by the device."""
    from sarek_numba.ir.nodes import FenceScope

    current("mem_fence").mem_fence(FenceScope(scope))


class Superstep:
    """`with sarek.superstep():` runs its body, then a barrier."""

    def __call__(self) -> contextlib.AbstractContextManager[None]:
        return self._step()

    @contextlib.contextmanager
    def _step(self) -> Iterator[None]:
        yield
        barrier()

    barrier = staticmethod(barrier)

    def __repr__(self) -> str:
        return "sarek.superstep"


superstep = Superstep()


# --- element types --------------------------------------------------------------------------------


class ArrayAnnotation:
    """`sarek.float32[:, ::1]`: element type, number of axes, and "C", "F" or any layout "A"."""

    def __init__(self, element: DType, ndim: int, layout: str) -> None:
        self.element = element
        self.ndim = ndim
        self.layout = layout

    def __repr__(self) -> str:
        axes = [":"] * self.ndim
        if self.layout != "A":
            axes[-1 if self.layout == "C" else 0] = "::1"
        return f"{self.element!r}[{', '.join(axes)}]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArrayAnnotation) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


class DType:
    """A scalar type: an annotation, a constructor, an element type of arrays.

    NumPy takes it for a dtype: `np.zeros(3, sarek.float32)`.
    """

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name)

    @property
    def scalar(self) -> Scalar:
        """The IR type of the same name; complex types have none."""
        from sarek_numba.ir.types import Scalar

        return Scalar(self.dtype.name)

    def __call__(self, *value: Any) -> Any:
        """The value as a NumPy scalar of this type; a complex one may be given by its parts."""
        return self.dtype.type(*value)

    def __getitem__(self, axes: slice | tuple[slice, ...]) -> ArrayAnnotation:
        """The annotation of an array: `[:]`, `[:, :]`, `[:, ::1]` (C), `[::1, :]` (Fortran)."""
        parts = axes if isinstance(axes, tuple) else (axes,)
        plain, unit = slice(None), slice(None, None, 1)
        if not parts or any(part not in (plain, unit) for part in parts):
            raise TypeError(f"{self!r}[...] takes `:` and one `::1`, as in {self!r}[:, ::1]")
        units = [axis for axis, part in enumerate(parts) if part == unit]
        if not units:
            return ArrayAnnotation(self, len(parts), "A")
        if units not in ([len(parts) - 1], [0]):
            raise TypeError(f"{self!r}[...] takes one `::1`, at the last or the first axis")
        return ArrayAnnotation(self, len(parts), "C" if units == [len(parts) - 1] else "F")

    def __repr__(self) -> str:
        return f"sarek.{self.dtype.name}"


class HalfType(DType):
    """A half: elements, fields and arguments may be of it; a value of a kernel is a float32."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override] # looked up late: an import
        if self.name == "bfloat16":
            import ml_dtypes  # noqa: F401 - tells NumPy of the type
        return np.dtype(self.name)

    def __call__(self, *value: Any) -> Any:
        """The nearest half to a number, rounded once, as a NumPy scalar."""
        from sarek_numba.ir.semantics import half_of

        return half_of(value[0], self.scalar) if len(value) == 1 else self.dtype.type(*value)


bool_ = DType("bool")
int8 = DType("int8")
int16 = DType("int16")
int32 = DType("int32")
int64 = DType("int64")
uint8 = DType("uint8")
uint16 = DType("uint16")
uint32 = DType("uint32")
uint64 = DType("uint64")
float16 = HalfType("float16")
bfloat16 = HalfType("bfloat16")
float32 = DType("float32")
float64 = DType("float64")
complex64 = DType("complex64")
complex128 = DType("complex128")


def half_bits(x: Any, dtype: Any = float16) -> np.uint16:
    """The bits of the half nearest to a number: of a float16, or of the type that is named.

    On the host of an array too, as those of `half_from_bits` may be. Raises TypeError for what is
    no real number.
    """
    from sarek_numba.ir.semantics import half_of

    found: np.uint16 = half_of(x, _half_named(dtype)).view(np.uint16)
    return found


def half_from_bits(bits: Any, dtype: Any = float16) -> np.float32:
    """The value that the bits of a half name, as a float32.

    Raises TypeError for what is no integer, OverflowError for one that a uint16 does not hold.
    """
    from sarek_numba.ir.semantics import dtype_of

    if np.asarray(bits).dtype.kind not in "iu":
        raise TypeError(f"sarek.half_from_bits() takes integers, not {type(bits).__name__}")
    if not np.all((np.asarray(bits) >= 0) & (np.asarray(bits) < 1 << 16)):
        raise OverflowError(f"sarek.half_from_bits() takes 0 to 65535, not {bits}")
    found: np.float32 = np.uint16(bits).view(dtype_of(_half_named(dtype))).astype(np.float32)
    return found


def _half_named(dtype: Any) -> Scalar:
    kind = np.dtype(dtype)
    if kind.name not in ("float16", "bfloat16"):
        raise TypeError(f"{kind} is no half: write sarek.float16 or sarek.bfloat16")
    from sarek_numba.ir.types import Scalar

    return Scalar(kind.name)


class RecordConstructor(DType):
    """A record type: `sarek.record(dtype)`. Called, it makes a record of the fields' values.

    It is an annotation (`Particle[:]`), an element type of arrays, and NumPy takes it for a dtype.
    """

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self.dtype = dtype

    @property
    def scalar(self) -> Any:
        """The IR type."""
        from sarek_numba.ir.records import record_of

        return record_of(self.dtype)

    def __call__(self, *values: Any, **named: Any) -> Any:
        """A record with these fields, those left out zero; positions are those of the fields."""
        made = np.zeros((), np.dtype((np.record, self.dtype)))
        for name, value in self.given(values, named).items():
            made[name][...] = value
        return made[()]

    def given(self, values: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """What a call gives each field. Raises TypeError."""
        names = self.dtype.names or ()
        if len(values) > len(names):
            raise TypeError(f"{self!r} has {len(names)} fields, and {len(values)} are given")
        fields = dict(zip(names, values, strict=False))
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"{self!r} has no field {name!r}")
            if name in fields:
                raise TypeError(f"{self!r} is given its field {name!r} twice")
            fields[name] = value
        return fields

    def __repr__(self) -> str:
        return f"sarek.record({', '.join(self.dtype.names or ())})"


_record_types: dict[np.dtype[Any], RecordConstructor] = {}


def record(dtype: Any) -> RecordConstructor:
    """The record type of a structured dtype, `sarek.record(dtype)(x=1, y=2)` a record of it."""
    kind = np.dtype(dtype)
    if kind.names is None:
        raise TypeError(f"sarek.record() takes a structured dtype, not {kind}")
    known = _record_types.get(kind)
    return known if known is not None else _record_types.setdefault(kind, RecordConstructor(kind))


# --- memory ---------------------------------------------------------------------------------------


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


class Shared:
    """Arrays of a block."""

    def __repr__(self) -> str:
        return "sarek.shared"

    def array(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array of constant shape, or with shape 0 the region whose size the launch gives."""
        context = current("shared.array")
        if shape == 0:
            return context.dynamic_shared(0, np.dtype(dtype))
        return context.shared_array(_shape(shape), np.dtype(dtype))

    def dynamic(self, offset: int, dtype: Any) -> Any:
        """A 1-D view of the dynamic region from `offset` bytes to its end."""
        return current("shared.dynamic").dynamic_shared(offset, np.dtype(dtype))


class Local:
    """Arrays of a thread."""

    def __repr__(self) -> str:
        return "sarek.local"

    def array(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """An array of constant shape."""
        return current("local.array").local_array(_shape(shape), np.dtype(dtype))


class Constants:
    """Constant arrays."""

    def __repr__(self) -> str:
        return "sarek.const"

    def array_like(self, array: Any) -> Any:
        """A read-only copy of a captured array, as it is when the kernel is launched."""
        return current("const.array_like").constant_array(array)


shared = Shared()
local = Local()
const = Constants()


class Atomics:
    """Atomic operations on an element; each but `store` gives the value that was there before.

    `index` is an int, or a tuple of ints for an array of more axes.
    """

    def __repr__(self) -> str:
        return "sarek.atomic"

    def load(self, array: Any, index: Any) -> Any:
        return self._do("load", array, index)

    def store(self, array: Any, index: Any, value: Any) -> None:
        self._do("store", array, index, value)

    def add(self, array: Any, index: Any, value: Any) -> Any:
        return self._do("add", array, index, value)

    def sub(self, array: Any, index: Any, value: Any) -> Any:
        return self._do("sub", array, index, value)

    def min(self, array: Any, index: Any, value: Any) -> Any:
        """Floats as `np.fmin`."""
        return self._do("min", array, index, value)

    def max(self, array: Any, index: Any, value: Any) -> Any:
        """Floats as `np.fmax`."""
        return self._do("max", array, index, value)

    def and_(self, array: Any, index: Any, value: Any) -> Any:
        return self._do("and", array, index, value)

    def or_(self, array: Any, index: Any, value: Any) -> Any:
        return self._do("or", array, index, value)

    def xor(self, array: Any, index: Any, value: Any) -> Any:
        return self._do("xor", array, index, value)

    def inc(self, array: Any, index: Any, value: Any = None) -> Any:
        """Add one; with a value: 0 from that value on (compared as unsigned integers)."""
        if value is None:
            return self._do("add", array, index, 1)
        return self._do("inc", array, index, value)

    def dec(self, array: Any, index: Any, value: Any = None) -> Any:
        """Subtract one; with a value: that value from 0 and from above it (as unsigned)."""
        if value is None:
            return self._do("sub", array, index, 1)
        return self._do("dec", array, index, value)

    def exch(self, array: Any, index: Any, value: Any) -> Any:
        """Store a value and give the old one."""
        return self._do("exch", array, index, value)

    def cas(self, array: Any, index: Any, old: Any, new: Any) -> Any:
        """Store `new` if the element has the bits of `old`."""
        return self._do("cas", array, index, new, old)

    def _do(self, op: str, array: Any, index: Any, value: Any = None, compare: Any = None) -> Any:
        from sarek_numba.ir.nodes import AtomicOp

        return current(f"atomic.{op}").atomic(AtomicOp(op), array, index, value, compare)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"sarek.atomic has no {name!r}")


class Warps:
    """What the threads of a warp do together; all of them must reach it.

    A shuffle works within segments of `width` lanes, by default the whole warp; a source outside of
    the segment gives the lane's own value.
    """

    def __repr__(self) -> str:
        return "sarek.warp"

    @property
    def size(self) -> int:
        """The number of threads of a warp."""
        width: int = current("warp.size").warp_size()
        return width

    @property
    def lane(self) -> int:
        """This thread's place in its warp: its linear index in the block modulo the size."""
        lane: int = current("warp.lane").warp_lane()
        return lane

    def shuffle(self, value: Any, lane: int, width: int | None = None) -> Any:
        """The value of another lane, counted within the segment."""
        return self._do("shuffle", value, lane, width)

    def shuffle_up(self, value: Any, delta: int, width: int | None = None) -> Any:
        """The value of the lane `delta` below."""
        return self._do("shuffle_up", value, delta, width)

    def shuffle_down(self, value: Any, delta: int, width: int | None = None) -> Any:
        """The value of the lane `delta` above."""
        return self._do("shuffle_down", value, delta, width)

    def shuffle_xor(self, value: Any, mask: int, width: int | None = None) -> Any:
        """The value of the lane whose number differs in the bits of `mask`."""
        return self._do("shuffle_xor", value, mask, width)

    def all(self, condition: Any) -> bool:
        """Whether the condition holds for every lane."""
        return bool(self._do("all", condition))

    def any(self, condition: Any) -> bool:
        """Whether the condition holds for some lane."""
        return bool(self._do("any", condition))

    def ballot(self, condition: Any) -> Any:
        """The lanes where the condition holds, as bits: a uint32 up to a size of 32, or uint64."""
        return self._do("ballot", condition)

    def active_mask(self) -> Any:
        """The lanes that exist, as bits."""
        return self._do("active_mask")

    def sum(self, value: Any) -> Any:
        """The sum over the warp, added up as a tree: the upper half to the lower half first."""
        return self._do("sum", value)

    def min(self, value: Any) -> Any:
        """The smallest value of the warp; floats as `np.fmin`."""
        return self._do("min", value)

    def max(self, value: Any) -> Any:
        """The largest value of the warp; floats as `np.fmax`."""
        return self._do("max", value)

    def _do(self, op: str, value: Any = None, lane: Any = None, width: Any = None) -> Any:
        from sarek_numba.ir.nodes import WarpOp

        return current(f"warp.{op}").warp(WarpOp(op), value, lane, width)


def warp_barrier() -> None:
    """Wait for all threads of the warp; orders their shared and global memory."""
    current("warp_barrier").warp_barrier()


def unroll(loop: range, count: int | None = None) -> range:
    """The range itself; compiled, `count` passes of its loop become one, or all without it."""
    if not isinstance(loop, range):
        raise TypeError(f"sarek.unroll() takes a range, not {type(loop).__name__}")
    return loop


atomic = Atomics()
warp = Warps()
