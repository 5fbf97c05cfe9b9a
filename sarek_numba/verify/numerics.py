"""The self-test of numerics: which promises about numbers a device keeps, by ordinary launches.

`measure` launches kernels on the operands of `verify.operands` and compares with NumPy, with exact
rational and integer arithmetic where NumPy promises nothing; the oracle is measured as any device.
`self_test` writes what was found into the record of the device (`DeviceRecord.measured`), for this
process and later ones. A promise whose arithmetic the device does not have is left out.

A sample is no proof: it finds flushing, contraction and approximate operations, not one wrong
result among 2^64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.capability import (
    PROMISES,
    Capability,
    DeviceRecord,
    Probe,
    without_verdicts,
)
from sarek_numba.errors import CapabilityError
from sarek_numba.execute import clear_launch_cache, run_vectors
from sarek_numba.ir import build
from sarek_numba.ir.nodes import Expr, Kernel, ParamDecl, make_kernel
from sarek_numba.ir.semantics.fused import fma32, fma64
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, Scalar
from sarek_numba.runtime import promised
from sarek_numba.runtime.registry import Device
from sarek_numba.verify import operands as rows_of

Lanes = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]
Measured = dict[Capability, Probe]

_BLOCK = 64
_FLOATS = (FLOAT32, FLOAT64)
_UINT32, _UINT64 = Scalar.UINT32, Scalar.UINT64


def self_test(device: Device) -> DeviceRecord:
    """Measure a device; its record has the result from now on, in later processes too.

    Raises BackendError, OracleError.
    """
    found = measure(device)
    device.driver.record = promised.remember(device.driver.record, found)
    clear_launch_cache()  # launches were judged without it
    return device.driver.record


def measure(device: Device) -> Measured:
    """What the device does with each promise. Raises BackendError, OracleError.

    Promises of which the record knows nothing are taken for kept while they are measured; what the
    record denies and the backend emulates is measured as emulated, which is what kernels get.
    """
    driver = device.driver
    stated = driver.record
    driver.record = without_verdicts(stated, ("arithmetic", *PROMISES))
    found: Measured = {}
    try:
        fresh = Device(driver)  # nothing that was judged or prepared before is used
        for part in _parts():
            try:
                found |= part(fresh)
            except CapabilityError:
                continue  # the device has no such arithmetic
    finally:
        driver.record = stated
    return found


def _parts() -> Iterator[Callable[[Device], Measured]]:
    for scalar in _FLOATS:
        yield partial(_measure_floats, scalar=scalar)
    for pairs in CONVERSIONS:
        yield partial(_measure_conversions, pairs=pairs)
    for scalars in ((INT32, _UINT32), (INT64, _UINT64)):
        yield partial(_measure_integers, scalars=scalars)


# --- operations on floats -------------------------------------------------------------------------

# Each with the operands it has, in IR and in NumPy.
OPERATIONS: Mapping[str, tuple[str, Callable[..., Expr], Callable[..., Lanes]]] = {
    "sum": ("ab", build.add, np.add),
    "difference": ("ab", build.sub, np.subtract),
    "product": ("ab", build.mul, np.multiply),
    "quotient": ("ab", build.div, np.divide),
    "root": ("a", lambda a: build.intrinsic("sqrt", a), np.sqrt),
    "fma": ("abc", lambda *abc: build.intrinsic("fma", *abc), lambda *abc: _fma(*abc)),
    "product and sum": (
        "abc",
        lambda a, b, c: build.add(build.mul(a, b), c),
        lambda a, b, c: a * b + c,
    ),
}  # fmt: skip
# Each promise, with the operations that show it.
FLOAT_PROMISES = {
    "rounding": ("sum", "difference", "product"),
    "division": ("quotient",),
    "square_root": ("root",),
    "fma": ("fma",),
    "contraction": ("product and sum",),
    "subnormal_inputs": ("sum", "difference", "product", "quotient", "root", "fma"),
    "subnormal_results": ("sum", "difference", "product", "quotient", "fma"),
    "nan": ("sum", "difference", "product", "quotient", "root"),
    "signed_zeros": ("sum", "difference", "product", "quotient", "root"),
}
# Promises of one operation. Where it is inexact by itself, its results say nothing of the others.
OWN = ("division", "square_root", "fma", "contraction")


def _fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return fma32(a, b, c) if a.dtype == np.float32 else fma64(a, b, c)


def _measure_floats(device: Device, scalar: Scalar) -> Measured:
    with np.errstate(all="ignore"):
        given = rows_of.operands(np.dtype(scalar.value))
        columns = {"a": given.a, "b": given.b, "c": given.c}
        actual = _run(device, "float_operations", _float_results, columns, scalar, len(OPERATIONS))
        expected = {
            name: numpy(*(columns[one] for one in letters))
            for name, (letters, _, numpy) in OPERATIONS.items()
        }
        results = dict(zip(OPERATIONS, actual, strict=True))

    def probe(promise: str, names: Iterable[str]) -> Probe:
        made = []
        for name in names:
            letters = OPERATIONS[name][0]
            given = [columns[one] for one in letters]
            made.append(_Column(name, given, results[name], expected[name]).only(promise))
        return _probe(made)

    with np.errstate(all="ignore"):
        own = {one: probe(one, FLOAT_PROMISES[one]) for one in OWN}
        inexact = {FLOAT_PROMISES[one][0] for one, found in own.items() if found.wrong}
        others = {
            promise: probe(promise, [name for name in names if name not in inexact])
            for promise, names in FLOAT_PROMISES.items()
            if promise not in OWN
        }
    return {Capability(promise, scalar): found for promise, found in (own | others).items()}


def _float_results(operands: Mapping[str, Expr]) -> list[Expr]:
    return [made(*(operands[one] for one in letters)) for letters, made, _ in OPERATIONS.values()]


class _Column:
    """One operation: operands, what the device gave, what is right."""

    def __init__(self, name: str, given: list[Lanes], actual: Lanes, expected: Lanes) -> None:
        self.name, self.given, self.actual, self.expected = name, given, actual, expected
        self.rows: Mask = np.ones(expected.shape, np.bool_)

    def only(self, promise: str) -> _Column:
        """The rows that show a promise and no other one."""
        expected, given = self.expected, self.given
        finite = np.logical_and.reduce([np.isfinite(one) for one in given])
        tiny = np.logical_or.reduce([_is_subnormal(one) for one in given])
        if self.name == "product and sum":  # the product is an operand as well
            product = given[0] * given[1]
            finite, tiny = finite & np.isfinite(product), tiny | _is_subnormal(product)
            tiny |= (product == 0) & (given[0] != 0) & (given[1] != 0)
        result_tiny, zero = _is_subnormal(expected), expected == 0
        match promise:
            case "subnormal_inputs":
                self.rows = finite & tiny & ~result_tiny & ~zero
            case "subnormal_results":
                self.rows = finite & ~tiny & result_tiny
            case "nan":
                self.rows = ~tiny & (~finite | ~np.isfinite(expected))
            case "signed_zeros":
                self.rows = finite & ~tiny & zero
            case "contraction":
                self.rows = finite & ~tiny & ~result_tiny
            case _:
                self.rows = finite & ~tiny & ~result_tiny & ~zero & ~np.isnan(expected)
        return self

    def wrong(self) -> Mask:
        """The rows whose bits differ; a NaN is as good as another."""
        unsigned = np.dtype(f"u{self.expected.dtype.itemsize}")
        differs = self.actual.view(unsigned) != self.expected.view(unsigned)
        if self.expected.dtype.kind == "f":
            differs &= ~(np.isnan(self.actual) & np.isnan(self.expected))
        chosen: Mask = differs & self.rows
        return chosen

    def example(self, row: int) -> str:
        """One row in words."""
        values = ", ".join(repr(one[row].item()) for one in self.given)
        got, right = self.actual[row].item(), self.expected[row].item()
        return f"the {self.name} of {values} is {got!r} for {right!r}"


def _is_subnormal(values: Lanes) -> Mask:
    small: Mask = (values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)
    return small


def _probe(columns: Sequence[_Column]) -> Probe:
    """What some columns show together; the example is the first wrong row."""
    count = sum(int(column.rows.sum()) for column in columns)
    wrong, example = 0, ""
    for column in columns:
        found = np.flatnonzero(column.wrong())
        wrong += len(found)
        if len(found) and not example:
            example = column.example(int(found[0]))
    return Probe(count, wrong, example)


# --- conversions ----------------------------------------------------------------------------------

# Together where a device that has one has all.
CONVERSIONS = (
    *(tuple((s, t) for t in (INT32, _UINT32)) for s in _FLOATS),
    *(tuple((s, t) for t in (INT64, _UINT64)) for s in _FLOATS),
    *(tuple((s, t) for s in (INT32, _UINT32)) for t in _FLOATS),
    *(tuple((s, t) for s in (INT64, _UINT64)) for t in _FLOATS),
    ((FLOAT32, FLOAT64), (FLOAT64, FLOAT32)),
)


def _measure_conversions(device: Device, pairs: Sequence[tuple[Scalar, Scalar]]) -> Measured:
    columns = {
        f"{source.value}_{target.value}": rows_of.for_conversion(np.dtype(source.value))
        for source, target in pairs
    }
    targets = [target for _, target in pairs]
    length = max(map(len, columns.values()))
    columns = {name: np.resize(values, length) for name, values in columns.items()}

    def results(operands: Mapping[str, Expr]) -> list[Expr]:
        return [build.cast(t, one) for t, one in zip(targets, operands.values(), strict=True)]

    actual = _run(device, "conversions", results, columns, targets)
    found = {}
    for (source, target), values, got in zip(pairs, columns.values(), actual, strict=True):
        column = _Column("conversion", [values], got, converted(values, target))
        if source.is_float and target.is_float:
            tiny = _is_subnormal(values) | _is_subnormal(column.expected)
            column.rows = ~tiny & ((column.expected != 0) | (values == 0))
        found[Capability("conversion", source, target=target)] = _probe([column])
    return found


def converted(values: Lanes, target: Scalar) -> Lanes:
    """The exact conversion: truncated and saturated to integers, rounded once to floats."""
    dtype = np.dtype(target.value)
    if target.is_integer:
        return np.array([_saturated(one, target) for one in values.tolist()], dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # infinity, and NaN that signal
        if values.dtype.kind == "f":
            return values.astype(dtype)
        bits = np.finfo(dtype).nmant + 1
        return np.array([float(_rounded(one, bits)) for one in values.tolist()], dtype)


def _saturated(value: float, target: Scalar) -> int:
    if value != value:
        return 0
    if value in (np.inf, -np.inf):
        return target.maximum if value > 0 else target.minimum
    return min(max(int(value), target.minimum), target.maximum)


def _rounded(value: int, bits: int) -> int:
    """The nearest integer of so many significant bits, the even one of two."""
    size = abs(value)
    excess = size.bit_length() - bits
    if excess <= 0:
        return value
    kept, rest, half = size >> excess, size & ((1 << excess) - 1), 1 << (excess - 1)
    kept += rest > half or (rest == half and kept & 1)
    return (kept << excess) * (1 if value > 0 else -1)


# --- integers -------------------------------------------------------------------------------------


def _measure_integers(device: Device, scalars: Sequence[Scalar]) -> Measured:
    found = {}
    for scalar in scalars:
        a, b = rows_of.for_integers(np.dtype(scalar.value))
        given = {"a": a, "b": b}
        actual = _run(device, "integer_division", _divided, given, scalar, 2)
        pairs = [_floor_division(x, y, scalar) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
        expected = np.array(pairs, np.dtype(scalar.value))
        names = ("floor quotient", "floor remainder")
        columns = [
            _Column(name, [a, b], got, expected[:, k].copy())
            for k, (name, got) in enumerate(zip(names, actual, strict=True))
        ]
        found[Capability("integer_division", scalar)] = _probe(columns)
    return found


def _divided(operands: Mapping[str, Expr]) -> list[Expr]:
    return [build.floordiv(*operands.values()), build.floormod(*operands.values())]


def _floor_division(a: int, b: int, scalar: Scalar) -> tuple[int, int]:
    """Quotient and remainder with the edges of the language: x / 0 is 0, the quotient wraps."""
    if b == 0:
        return 0, 0
    quotient = a // b
    return (scalar.minimum if quotient > scalar.maximum else quotient), a % b


# --- launching ------------------------------------------------------------------------------------


def _run(
    device: Device,
    name: str,
    results: Callable[[Mapping[str, Expr]], list[Expr]],
    columns: Mapping[str, Lanes],
    types: Scalar | Sequence[Scalar],
    count: int = 1,
) -> list[Lanes]:
    """What a kernel gives that has a thread for each row and an array for each result."""
    targets = [types] * count if isinstance(types, Scalar) else list(types)
    length = len(next(iter(columns.values())))
    outputs = [np.zeros(length, np.dtype(target.value)) for target in targets]
    sources = {one: Scalar(values.dtype.name) for one, values in columns.items()}
    kernel = elementwise(name, results, sources, targets)
    given = [*outputs, *columns.values()]
    run_vectors(device, kernel, given, _BLOCK, -(-length // _BLOCK))
    return outputs


def elementwise(
    name: str,
    results: Callable[[Mapping[str, Expr]], list[Expr]],
    sources: Mapping[str, Scalar],
    targets: Sequence[Scalar],
) -> Kernel:
    """The kernel out_k[i] = result_k(a[i], …), whose arguments are the outputs, then the inputs.

    Indices are int32, for devices that have no int64.
    """
    fresh = build.Fresh()
    outputs = [build.array_param(fresh, f"out_{k}", t, k) for k, t in enumerate(targets)]
    first = len(targets)
    inputs = [
        build.array_param(fresh, one, scalar, first + k, writable=False)
        for k, (one, scalar) in enumerate(sources.items())
    ]
    length = build.length_param(fresh, "length", 0)
    i = fresh("i", INT32)
    values = {one: fresh(one, scalar) for one, scalar in sources.items()}
    loads = [
        build.let(value, build.read(param.var, i))
        for value, param in zip(values.values(), inputs, strict=True)
    ]
    made = results({one: build.expr(value) for one, value in values.items()})
    stores = [build.store(out.var, i, one) for out, one in zip(outputs, made, strict=True)]
    body = (
        build.let(i, build.coordinate("global_idx", 0, INT32)),
        build.if_(build.lt(i, length.var), [*loads, *stores]),
    )
    params: tuple[ParamDecl, ...] = (*outputs, *inputs, length)
    return make_kernel(name, body, params=params)
