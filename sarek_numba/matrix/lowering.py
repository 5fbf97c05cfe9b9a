"""Which arithmetic a rewrite of a product may use: what is granted, and what that is evidence of.

Integers are summed modulo 2^32 whatever the order, so a rewrite is proven. Floats are summed in
another order (`relaxed_accumulation`, which `choose` asks for with the device), a float32 is also
rounded to what matrix units multiply (`operand_rounding`), and a rewrite that nobody asked for by
name needs `automatic_float_rewrite`.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import Scalar
from sarek_numba.matrix.product import Case
from sarek_numba.policy import Budget, Consent, Evidence, Grant, Granted, Proof

_AUTOMATIC_ROUNDINGS = ("float16", "bfloat16", "tf32")  # the first that is granted
_EXACT = {Case.INT8, Case.INT32}
_NAMES = {
    "float16": Scalar.FLOAT16,
    "bfloat16": Scalar.BFLOAT16,
    "tf32": Scalar.FLOAT32,
    "bf16x3": Scalar.BFLOAT16,
}
_COMPONENTS = {
    Case.INT8: Scalar.INT8,
    Case.INT32: Scalar.INT8,  # four digits of eight bits each
    Case.FLOAT16: Scalar.FLOAT16,
    Case.BFLOAT16: Scalar.BFLOAT16,
}
PROOF = "sums of integers modulo 2^32 do not depend on their order"


@dataclass(frozen=True, slots=True)
class Lowering:
    """How a product is computed: `component` is what matrix units multiply, `accumulator` what they
    add up in; `rounding` is what operands of float32 are rounded to, None where they are exact.
    """

    case: Case
    component: Scalar
    accumulator: Scalar
    rounding: str | None = None

    @property
    def is_exact(self) -> bool:
        return self.case in _EXACT

    def __str__(self) -> str:
        rounded = "" if self.rounding is None else f" rounded to {self.rounding}"
        return f"{self.case.value}{rounded}, summed in {self.accumulator.value}"


def lowering_for(
    *, budget: Budget, explicit: bool, case: Case, precision: str | None
) -> Lowering | str:
    """The arithmetic that the grants allow for a case, or why there is none.

    `precision` is the rounding of float32 that is asked for, `explicit` says that the caller asked
    for a rewrite.
    """
    if precision is not None and case is not Case.FLOAT32 and precision != case.value:
        return f"precision {precision!r} is for operands of float32, and these are {case.value}"
    if case in _EXACT:
        return Lowering(case, _COMPONENTS[case], Scalar.INT32)
    rounding = None
    if case is Case.FLOAT32:
        wanted = _AUTOMATIC_ROUNDINGS if precision is None else (precision,)
        rounding = next((one for one in wanted if _rounding(budget, one)), None)
        if rounding is None:
            return _no_rounding(budget, precision)
    if not explicit and not budget.of(Consent.AUTOMATIC_FLOAT_REWRITE):
        return budget.why_not(Consent.AUTOMATIC_FLOAT_REWRITE)
    component = _COMPONENTS[case] if rounding is None else _NAMES[rounding]
    return Lowering(case, component, Scalar.FLOAT32, rounding)


def _rounding(budget: Budget, to: str) -> tuple[Grant, ...]:
    return budget.of(Consent.OPERAND_ROUNDING, to)


def _no_rounding(budget: Budget, precision: str | None) -> str:
    reason = budget.why_not(Consent.OPERAND_ROUNDING)
    if precision is not None:
        return f"{reason} to {precision}"
    if budget.of(Consent.OPERAND_ROUNDING):
        return "bf16x3 is granted, which is slower and used only where precision asks for it"
    return f"{reason} to float16, bfloat16 or tf32"


def missing_accumulation(budget: Budget, lowering: Lowering) -> str | None:
    """Why sums may not be added up in another order; None if they may."""
    if lowering.is_exact or budget.of(Consent.RELAXED_ACCUMULATION):
        return None
    return budget.why_not(Consent.RELAXED_ACCUMULATION)


def evidence_for(
    *, budget: Budget, explicit: bool, lowering: Lowering, variant: str, config: CoopmatConfig
) -> Evidence:
    """What justifies a rewrite, with the text "<lowering>, <variant>, <config>"."""
    text = f"{lowering}, {variant}, {config_text(config)}"
    if lowering.is_exact:
        return Proof(f"{PROOF}; {text}")
    grants: list[Grant] = []
    if not explicit:
        grants += budget.of(Consent.AUTOMATIC_FLOAT_REWRITE)
    grants += budget.of(Consent.RELAXED_ACCUMULATION)
    if lowering.rounding is not None:
        grants += budget.of(Consent.OPERAND_ROUNDING, lowering.rounding)
    return Granted(tuple(dict.fromkeys(grants)), text)


def config_text(config: CoopmatConfig) -> str:
    shape = f"{config.m}x{config.n}x{config.k}"
    return f"{shape} {config.a.value} to {config.result.value}"
