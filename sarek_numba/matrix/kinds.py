"""Which kinds of devices run products otherwise, and when: one table, by backend and case.

What is "quoted" is said by the seed of its authors' devices and was not measured here.
"""

from __future__ import annotations

from enum import Enum

from sarek_numba.capability import CoopmatRule, DeviceRecord
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.matrix import testing
from sarek_numba.matrix.lowering import Lowering
from sarek_numba.matrix.product import Case, Product


class When(Enum):
    """When a product is rewritten; an explicit request counts for all but NEVER."""

    MEASURED = "where it was measured not to be slower"
    QUOTED = "always: quoted as faster"
    GFX11 = "on gfx11, where it is quoted as faster"
    ASKED = "only when asked for"
    NEVER = "never"


_ALL = tuple(Case)
_METAL = {
    case: When.QUOTED if case is Case.FLOAT16 else When.NEVER for case in _ALL
}  # simdgroup_matrix takes no integers, and products of float32 gain nothing
RULES: dict[str, dict[Case, When]] = {
    "cuda": dict.fromkeys(_ALL, When.MEASURED),
    "vulkan": dict.fromkeys(_ALL, When.MEASURED),
    "hip": dict.fromkeys(_ALL, When.GFX11),
    "metal": _METAL,
    "interpreter": dict.fromkeys(_ALL, When.ASKED),
    "native": dict.fromkeys(_ALL, When.ASKED),
}
_TF32_BACKENDS = {"cuda"}

# The least m * n * k from which a rewrite is not slower, by backend, device and case: what a tuner
# measured (benchmarks). Empty where nothing was.
MEASURED: dict[tuple[str, str, Case], int] = {}

# Shapes (m, n, k) that are tried where a device computes matrices by a rule, best first.
_SHAPES = ((16, 16, 16), (16, 8, 16), (8, 8, 8), (16, 16, 32), (16, 8, 32), (16, 8, 8))


def why_not_automatic(record: DeviceRecord, lowering: Lowering, size: int) -> str | None:
    """Why nobody's request is needed and still not enough; None if the rewrite is automatic."""
    match RULES[record.backend][lowering.case]:
        case When.MEASURED:
            least = MEASURED.get((record.backend, record.description, lowering.case))
            if least is None:
                return f"nothing was measured of {lowering.case.value} on '{record.name}'"
            if size < least:
                return f"m * n * k is {size}, and a rewrite is not slower from {least} on"
        case When.GFX11 if "gfx11" not in record.description:
            return "on HIP it is automatic on gfx11 alone; ask for it by sarek.matrix.run"
        case When.ASKED:
            return f"on '{record.backend}' it is only done when asked for, by sarek.matrix.run"
        case _:
            pass
    return None


def may_be_automatic(record: DeviceRecord, case: Case) -> bool:
    """Whether launches of some size may be rewritten without a request."""
    match RULES[record.backend][case]:
        case When.MEASURED:
            return (record.backend, record.description, case) in MEASURED
        case When.GFX11:
            return "gfx11" in record.description
        case rule:
            return rule is When.QUOTED


def why_never(record: DeviceRecord, lowering: Lowering) -> str | None:
    """Why even a request is not enough on this kind of device; None if it is."""
    if RULES[record.backend][lowering.case] is When.NEVER:
        return f"matrix units of '{record.backend}' take no products of {lowering.case.value}"
    if lowering.rounding == "tf32" and record.backend not in _TF32_BACKENDS:
        return f"'{record.backend}' has no tf32"
    return None


def configuration(
    record: DeviceRecord, lowering: Lowering, product: Product
) -> CoopmatConfig | None:
    """The configuration of the device that a lowering runs on; None if it has none.

    Operands of eight bits have the signs that the product's have.
    """
    left, right = lowering.component, lowering.component
    if lowering.case is Case.INT8:
        left, right = product.a.type, product.b.type
    wanted = (left, right, lowering.accumulator, lowering.accumulator)
    match record.coopmat:
        case None:
            return None
        case CoopmatRule(permits=permits):
            tried: tuple[tuple[int, int, int], ...] = _SHAPES
            if record.backend == "interpreter":
                tried = ((testing.edge.get(), testing.edge.get(), testing.edge.get()),)
            shapes = [CoopmatConfig(*shape, *wanted) for shape in tried]
            return next((one for one in shapes if permits(one)), None)
        case listed:
            fitting = [one for one in listed if (one.a, one.b, one.c, one.result) == wanted]
            fitting = [one for one in fitting if not one.saturating and one.scope == "subgroup"]
            return max(fitting, key=_preference, default=None)


def _preference(config: CoopmatConfig) -> tuple[bool, int]:
    """Sixteen rows where offered, then the largest."""
    return config.m == 16, config.m * config.n * config.k


def missing_configuration(record: DeviceRecord, lowering: Lowering) -> str:
    what = f"{lowering.component.value} to {lowering.accumulator.value}"
    if record.coopmat is None:
        return f"'{record.name}' tells of no cooperative matrices"
    return f"'{record.name}' has no cooperative matrix of {what}"
