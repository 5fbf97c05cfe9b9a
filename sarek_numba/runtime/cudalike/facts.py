"""What every device has that a compiler of CUDA's form compiles for, with the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from sarek_numba.capability import Capability, CapabilityKind, Fact, Verdict, host_facts
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.nodes import AtomicOp
from sarek_numba.ir.types import MemSpace, Scalar

_INTEGERS = "C++17 integers of this width; what C++ leaves open is guarded, by construction"
_OTHER_FLOATS = "computed in float32 and rounded once, by construction"
_INTEGER_ONLY = frozenset({AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC})
_ATOMIC_SCALARS = (
    Scalar.INT32,
    Scalar.UINT32,
    Scalar.INT64,
    Scalar.UINT64,
    Scalar.FLOAT32,
    Scalar.FLOAT64,
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Who says so: of features by name, float types, atomics of the language and by a loop."""

    features: Mapping[str, str]
    streams: str
    floats: Mapping[Scalar, str]
    atomic: str
    atomic_loop: str


def facts(dialect: Dialect, evidence: Evidence) -> dict[Capability, Fact]:
    """All facts; nothing of them depends on the device."""

    def known(text: str) -> Fact:
        return Fact(Verdict.AVAILABLE, CapabilityKind.STRUCTURAL, text)

    found = {Capability(feature): known(text) for feature, text in evidence.features.items()}
    for scalar in dialect.types:
        text = evidence.floats.get(scalar, _OTHER_FLOATS) if scalar.is_float else _INTEGERS
        for feature in ("storage", "arithmetic"):
            found[Capability(feature, scalar)] = known(text)
    for op, scalar in product(AtomicOp, _ATOMIC_SCALARS):
        if scalar.is_float and op in _INTEGER_ONLY:
            continue
        native = (op, scalar) in dialect.atomics or op is AtomicOp.LOAD
        text = evidence.atomic if native else evidence.atomic_loop
        for space in (MemSpace.GLOBAL, MemSpace.SHARED):
            found[Capability("atomic", scalar, op, space)] = known(text)
    return found | host_facts(known(evidence.streams))
