"""Every single capability switched off, and unknown: what needs it is refused, and nothing else.

`SWITCHES` has a kernel for each capability that a kernel can need; a test shows that none is left
out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sarek_numba.capability import (
    FEATURES,
    Capability,
    CapabilityKind,
    Fact,
    Shortfall,
    Verdict,
    capability_of,
    describe,
)
from sarek_numba.codegen.target import Target
from sarek_numba.errors import CapabilityError, DeviationWarning
from sarek_numba.execute import clear_launch_cache, counters, run_vectors
from sarek_numba.ir import build
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.needs import needs, promises
from sarek_numba.ir.nodes import (
    AtomicOp,
    Barrier,
    Expr,
    FenceScope,
    Kernel,
    MemFence,
    Print,
    Stmt,
    Warp,
    WarpOp,
    make_kernel,
)
from sarek_numba.ir.types import FLOAT32, FLOAT64, INT32, INT64, MemSpace, Scalar
from sarek_numba.runtime import promised
from sarek_numba.runtime.registry import Device
from sarek_numba.span import Span
from sarek_numba.verify.numerics import FLOAT_PROMISES, OPERATIONS
from tests.unit.fake_backend import FakeDriver, record

LINES = "def kernel(out, x):\n    something_that_needs_it(out, x)\n"
_NARROW = (Scalar.INT8, Scalar.UINT8, Scalar.INT16, Scalar.UINT16, Scalar.BOOL)
_NUMBERS = tuple(s for s in Scalar if s not in (Scalar.BOOL, Scalar.FLOAT16, Scalar.BFLOAT16))
_ATOMIC = (INT32, Scalar.UINT32, INT64, Scalar.UINT64, FLOAT32, FLOAT64)
_INTEGER_ONLY = (AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC)
_FLOATS = (FLOAT32, FLOAT64)
_INTEGERS = (INT32, Scalar.UINT32, INT64, Scalar.UINT64)
_CONVERSIONS = [
    (s, t)
    for s, t in product((*_INTEGERS, *_FLOATS), repeat=2)
    if s is not t and (s.is_float or t.is_float)
]

Make = Callable[[Span], Kernel]


# --- kernels --------------------------------------------------------------------------------------


def _on_elements(
    make: Callable[[Sequence[Expr]], Expr], source: Scalar, target: Scalar, count: int = 1
) -> Make:
    """out[0] = make(x[0], x[1], …): the kernel's line is that of the value."""

    def made(span: Span) -> Kernel:
        fresh = build.Fresh()
        out = build.array_param(fresh, "out", target, 0)
        x = build.array_param(fresh, "x", source, 1, writable=False)
        value = make([build.read(x.var, k) for k in range(count)])
        if hasattr(value, "span"):
            value = replace(value, span=span)
        return make_kernel("k", (build.store(out.var, 0, value),), params=(out, x))

    return made


def _copy(scalar: Scalar) -> Make:
    def made(span: Span) -> Kernel:
        kernel = _on_elements(lambda x: x[0], scalar, scalar)(span)
        [store] = kernel.body
        target = replace(store.target, span=span)  # type: ignore[union-attr]
        return replace(kernel, body=(replace(store, target=target, span=span),))  # type: ignore

    return made


def _statements(make: Callable[[Any, Any, Span], Sequence[Stmt]], **fields: Any) -> Make:
    """Statements on an int32 array x; out[0] = x[0] behind them."""

    def made(span: Span) -> Kernel:
        fresh = build.Fresh()
        out = build.array_param(fresh, "out", INT32, 0)
        x = build.array_param(fresh, "x", INT32, 1)
        body = (*make(fresh, x.var, span), build.store(out.var, 0, build.read(x.var, 0)))
        return make_kernel("k", body, params=(out, x), **fields)

    return made


def _shared(size: int | None) -> Make:
    def made(span: Span) -> Kernel:
        fresh = build.Fresh()
        out = build.array_param(fresh, "out", INT32, 0)
        tile = replace(build.shared_decl(fresh, "tile", INT32, size), span=span)
        body = (
            build.store(tile.var, 0, 1),
            build.store(out.var, 0, build.read(tile.var, 0)),
        )
        return make_kernel("k", body, params=(out,), locals=(tile,))

    return made


def _atomic(op: AtomicOp, scalar: Scalar, space: MemSpace) -> Make:
    def made(span: Span) -> Kernel:
        fresh = build.Fresh()
        array = build.array_param(fresh, "out", scalar, 0)
        tile = build.shared_decl(fresh, "tile", scalar, 4)
        value = None if op is AtomicOp.LOAD else 1
        compare = 0 if op is AtomicOp.CAS else None
        result = fresh("old", scalar) if op is not AtomicOp.STORE else None
        where = tile.var if space is MemSpace.SHARED else array.var
        stmt = build.atomic(op.value, where, 0, value, compare=compare, result=result)
        after = [] if result is None else [build.store(array.var, 1, result)]
        shared = (tile,) if space is MemSpace.SHARED else ()
        body = (replace(stmt, span=span), *after)
        return make_kernel("k", body, params=(array,), locals=shared)

    return made


def _warp(fresh: Any, x: Any, span: Span) -> Sequence[Stmt]:
    total = fresh("total", INT32)
    stmt = Warp(WarpOp.SUM, total, 32, build.read(x, 0), span=span)
    return [stmt, build.store(x, 0, total)]


def _operation(promise: str, scalar: Scalar) -> Make:
    letters, make, _ = OPERATIONS[FLOAT_PROMISES[promise][0]]
    return _on_elements(lambda x: make(*x[: len(letters)]), scalar, scalar, len(letters))


def _function(name: str, scalar: Scalar) -> Make:
    arity = INTRINSICS[name].arity
    return _on_elements(lambda x: build.intrinsic(name, *x), scalar, scalar, arity)


def _sum(scalar: Scalar) -> Make:
    return _on_elements(lambda x: build.add(*x), scalar, scalar, 2)


def _switches() -> dict[Capability, Make]:
    found: dict[Capability, Make] = {
        Capability("shared"): _shared(16),
        Capability("dynamic_shared"): _shared(None),
        Capability("barrier"): _statements(lambda f, x, span: [Barrier(span=span)]),
        Capability("warp"): _statements(_warp, warp_width=32),
        Capability("print"): _statements(lambda f, x, span: [Print(("hello",), span=span)]),
        Capability("wide_index"): _statements(lambda f, x, span: [], index_bits=64),
    }
    for scope in FenceScope:
        found[Capability("fence", function=scope.value)] = _statements(
            lambda f, x, span, scope=scope: [MemFence(scope, span=span)]
        )
    found |= {Capability("storage", s): _copy(s) for s in (*_NUMBERS, Scalar.BOOL)}
    found |= {Capability("store", s): _copy(s) for s in _NARROW}
    found |= {Capability("arithmetic", s): _sum(s) for s in _NUMBERS}
    for name, scalar in product([n for n, i in INTRINSICS.items() if not i.exact], _FLOATS):
        found[Capability("function", scalar, function=name)] = _function(name, scalar)
    for op, scalar, space in product(AtomicOp, _ATOMIC, (MemSpace.GLOBAL, MemSpace.SHARED)):
        if not (scalar.is_float and op in _INTEGER_ONLY):
            found[Capability("atomic", scalar, op, space)] = _atomic(op, scalar, space)
    for promise, scalar in product(FLOAT_PROMISES, _FLOATS):
        found[Capability(promise, scalar)] = _operation(promise, scalar)
    for source, target in _CONVERSIONS:
        found[Capability("conversion", source, target=target)] = _on_elements(
            lambda x, target=target: build.cast(target, x[0]), source, target
        )
    for scalar in _INTEGERS:
        found[Capability("integer_division", scalar)] = _on_elements(
            lambda x: build.floordiv(*x), scalar, scalar, 2
        )
    return found


SWITCHES: Mapping[Capability, Make] = _switches()
AVAILABLE = Fact(Verdict.AVAILABLE, CapabilityKind.OPTIONAL, "by construction of this test")
OFF = Fact(Verdict.UNAVAILABLE, CapabilityKind.OPTIONAL, "measured: it is off", "switch it on")
UNKNOWN = Fact(Verdict.UNKNOWN, CapabilityKind.TOOLCHAIN, "its probe did not link", "link it")
EVERYTHING = dict.fromkeys(SWITCHES, AVAILABLE)
_WITHOUT_PLACE = ("wide_index",)  # the kernel's own


@dataclass(frozen=True)
class Case:
    """A capability, a kernel that needs it, and where its source is."""

    capability: Capability
    kernel: Kernel
    place: str


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file in which the kernels could stand."""
    path = tmp_path_factory.mktemp("switches") / "kernels.py"
    path.write_text(LINES)
    return path


def _case(capability: Capability, path: Path) -> Case:
    span = Span(str(path), 2, 4, 2, 35)
    kernel = SWITCHES[capability](span)
    if capability.feature in _WITHOUT_PLACE:
        kernel = replace(kernel, span=span)
    wanted = {capability_of(need) for need in (*needs(kernel), *promises(kernel))}
    assert capability in wanted
    return Case(capability, kernel, f"{path}:2:5: ")


def _device(capability: Capability, fact: Fact | None, **target: Any) -> Device:
    facts = {one: known for one, known in EVERYTHING.items() if one != capability}
    if fact is not None:
        facts[capability] = fact
    driver = FakeDriver(record(facts=facts))
    driver.target = Target("fake", **target)
    return Device(driver)


def _launch(device: Device, kernel: Kernel) -> None:
    given = [
        np.zeros(4, np.dtype(param.array.element.value))  # type: ignore[union-attr]
        for param in kernel.params
        if param.array is not None
    ]
    run_vectors(device, kernel, given, 32, 1, 64 if _dynamic(kernel) else 0)


def _dynamic(kernel: Kernel) -> bool:
    return any(need.feature == "dynamic_shared" for need in needs(kernel))


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    clear_launch_cache()
    promised.forget_declared()
    counters.reset()
    yield
    promised.forget_declared()


def _name(capability: Capability) -> str:
    parts = (capability.feature, capability.scalar, capability.op, capability.space,
             capability.function, capability.target)  # fmt: skip
    return "-".join(getattr(part, "value", part) for part in parts if part is not None)


# --- tests ----------------------------------------------------------------------------------------


def test_every_feature_has_a_switch() -> None:
    """But what the host does, what depends on a block, and matrices, tested elsewhere."""
    apart = {name for name, feature in FEATURES.items() if feature.host_side}
    assert {one.feature for one in SWITCHES} == set(FEATURES) - apart - {"warp_rows", "coopmat"}


@pytest.mark.parametrize("fact", [OFF, UNKNOWN], ids=["off", "unknown"])
@pytest.mark.parametrize("capability", SWITCHES, ids=_name)
def test_switch(capability: Capability, fact: Fact, source: Path) -> None:
    """Refused by name, line, kind, evidence and remedy, with nothing counted; the others run."""
    case = _case(capability, source)
    device = _device(capability, fact)
    driver = device.driver
    assert isinstance(driver, FakeDriver)
    if FEATURES[capability.feature].shortfall is Shortfall.DECLARED:
        with pytest.warns(DeviationWarning, match="does not keep subnormal numbers"):
            _launch(device, case.kernel)
        assert counters.launches == 1
        return
    for _ in range(2):
        with pytest.raises(CapabilityError) as raised:
            _launch(device, case.kernel)
    words = {Verdict.UNAVAILABLE: "does not have", Verdict.UNKNOWN: "is not known to have"}
    evidence = fact.evidence if fact is OFF else f"quoted: {fact.evidence}"
    assert str(raised.value) == (
        f"{case.place}kernel 'k' needs {describe(capability)}, "
        f"which device 'fake:0' {words[fact.verdict]}\n"
        "  2 |     something_that_needs_it(out, x)\n"
        "    |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        f"  {fact.kind.value}: {fact.kind.explanation('fake')}\n"
        f"  {evidence}\n"
        f"  hint: {fact.remedy}"
    )
    assert (counters.launches, counters.compiles, counters.sources) == (0, 0, 0)
    assert (counters.uploads, counters.downloads) == (0, 0)
    assert driver.events == []
    _launch_other(device, capability)
    assert counters.launches == 1


def _launch_other(device: Device, capability: Capability) -> None:
    """A kernel that does not need it."""
    other = INT32 if capability.scalar is not INT32 else Scalar.UINT32
    kernel = _copy(other)(Span("other.py", 1, 0))
    wanted = {capability_of(need) for need in (*needs(kernel), *promises(kernel))}
    assert capability not in wanted
    _launch(device, kernel)


@pytest.mark.parametrize("capability", SWITCHES, ids=_name)
def test_everything_switched_on(capability: Capability, source: Path) -> None:
    """Control: the same kernel runs, and tells nothing."""
    case = _case(capability, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _launch(_device(capability, AVAILABLE), case.kernel)
    assert counters.launches == 1


@pytest.mark.parametrize(
    "capability",
    [c for c in SWITCHES if FEATURES[c.feature].coarser is None and c.feature != "wide_index"],
    ids=_name,
)
def test_without_a_fact_it_is_unknown(capability: Capability, source: Path) -> None:
    """What the record does not mention, and nothing coarser does, is refused."""
    case = _case(capability, source)
    with pytest.raises(CapabilityError) as raised:
        _launch(_device(capability, None), case.kernel)
    assert "which device 'fake:0' is not known to have" in str(raised.value)
    assert "\n  unknown: nothing is known of it on this device\n" in str(raised.value)
    assert f"\n  hint: {FEATURES[capability.feature].remedy}" in str(raised.value)
    assert counters.launches == 0


@pytest.mark.parametrize(
    "capability",
    [c for c in SWITCHES if FEATURES[c.feature].shortfall is Shortfall.EMULATED],
    ids=_name,
)
def test_backend_emulates_what_the_device_lacks(capability: Capability, source: Path) -> None:
    """Then it is no refusal."""
    case = _case(capability, source)
    emulates = frozenset({capability.feature})
    _launch(_device(capability, OFF, emulates=emulates), case.kernel)
    assert counters.launches == 1
