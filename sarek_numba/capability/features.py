"""Every feature that a device may have or lack, as one table.

A feature that refines another one (`coarser`) has the other's fact where it has none of its own: a
record says "float32 arithmetic" once, and names the functions that are missing from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from sarek_numba.capability.model import Capability
from sarek_numba.ir.needs import Need
from sarek_numba.ir.nodes import CoopmatConfig
from sarek_numba.ir.types import HALVES, Scalar


class Shortfall(Enum):
    """What becomes of a kernel that needs a promise about numbers which the device breaks."""

    REFUSED = "refused"
    DECLARED = "declared"  # it runs; one diagnostic says what differs
    EMULATED = "emulated"  # exactly, where the backend can (`Target.emulates`); refused elsewhere


@dataclass(frozen=True, slots=True)
class Feature:
    """`words` with the places {scalar}, {op}, {space}, {function}, {target}, {configuration}, of
    which `fields` are those that it has.

    `shortfall` is given for a promise about numbers: kernels are judged by `ir.needs.promises` of
    it. `granted` tells whether `accept.fastmath` gives the promise up. Host-side features are no
    need of a kernel.
    """

    words: str
    remedy: str
    fields: tuple[str, ...] = ()
    coarser: str | None = None
    shortfall: Shortfall | None = None
    granted: bool = False
    host_side: bool = False


ELSEWHERE = "launch on another device, such as 'native'"
_SCALAR = ("scalar",)


def _promise(
    words: str, remedy: str, shortfall: Shortfall, *, granted: bool = False, target: bool = False
) -> Feature:
    fields = ("scalar", "target") if target else _SCALAR
    return Feature(words, remedy, fields, "arithmetic", shortfall, granted)


FEATURES = {
    "storage": Feature("{scalar} in memory", f"use another element type, or {ELSEWHERE}", _SCALAR),
    "store": Feature(
        "stores of single {scalar} elements",
        f"write 32-bit elements, or {ELSEWHERE}",
        _SCALAR,
        "storage",
    ),
    "arithmetic": Feature("{scalar} arithmetic", f"cast to another type, or {ELSEWHERE}", _SCALAR),
    "function": Feature(
        "{function} of {scalar}",
        f"compute it in another type, or {ELSEWHERE}",
        ("scalar", "function"),
        "arithmetic",
    ),
    "atomic": Feature(
        "atomic {op} on {scalar} in {space} memory",
        f"use another type or operation, or {ELSEWHERE}",
        ("scalar", "op", "space"),
    ),
    "shared": Feature("shared memory", ELSEWHERE),
    "dynamic_shared": Feature(
        "dynamic shared memory", f"give the array a constant size, or {ELSEWHERE}"
    ),
    "barrier": Feature("block barriers", f"split the kernel in two, or {ELSEWHERE}"),
    "fence": Feature(
        "memory fences of scope {function}",
        f"hand over by another launch, or {ELSEWHERE}",
        ("function",),
        "barrier",
    ),
    "warp": Feature("warp operations", f"exchange through shared memory, or {ELSEWHERE}"),
    "warp_rows": Feature("warps that span rows of a block", "use a block that is wider along x"),
    "print": Feature("printing", f"write to an array, or {ELSEWHERE}"),
    "wide_index": Feature(
        "64-bit indices", f"launch on parts of fewer than 2**31 elements, or {ELSEWHERE}"
    ),
    "coopmat": Feature(
        "cooperative matrices {configuration}",
        "use a configuration that the device lists",
        ("configuration",),
    ),
    # --- promises about numbers
    "subnormal_inputs": _promise(
        "{scalar} subnormals as operands",
        "scale the data into the normal range",
        Shortfall.DECLARED,
        granted=True,
    ),
    "subnormal_results": _promise(
        "{scalar} subnormals as results",
        "scale the data into the normal range",
        Shortfall.DECLARED,
        granted=True,
    ),
    "rounding": _promise("{scalar} rounding to nearest even", ELSEWHERE, Shortfall.REFUSED),
    "division": _promise(
        "correctly rounded {scalar} division",
        f"grant it with sarek.accept.fastmath, or {ELSEWHERE}",
        Shortfall.EMULATED,
        granted=True,
    ),
    "square_root": _promise(
        "correctly rounded {scalar} square roots",
        f"grant it with sarek.accept.fastmath, or {ELSEWHERE}",
        Shortfall.EMULATED,
        granted=True,
    ),
    "fma": _promise("fma of {scalar} with one rounding", ELSEWHERE, Shortfall.EMULATED),
    "contraction": _promise(
        "{scalar} products and sums that are not contracted",
        f"grant it with sarek.accept.fastmath, or {ELSEWHERE}",
        Shortfall.REFUSED,
        granted=True,
    ),
    "nan": _promise("{scalar} NaN and infinity", ELSEWHERE, Shortfall.REFUSED),
    "signed_zeros": _promise("signs of {scalar} zeros", ELSEWHERE, Shortfall.REFUSED),
    "conversion": _promise(
        "exact conversion from {scalar} to {target}", ELSEWHERE, Shortfall.EMULATED, target=True
    ),
    "integer_division": _promise(
        "{scalar} division with all its edges", ELSEWHERE, Shortfall.EMULATED
    ),
    # --- what the host does
    "streams": Feature("streams", "leave the stream out", host_side=True),
    "events": Feature("events", "time on the host", host_side=True),
    "fusion": Feature("launches as one", "window.configure(fuse=True)", host_side=True),
    "graphs": Feature("launch graphs", "launch one by one", host_side=True),
    "peer_copies": Feature("copies from device to device", "copy by the host", host_side=True),
}
PROMISES = tuple(name for name, feature in FEATURES.items() if feature.shortfall is not None)


def capability_of(need: Need) -> Capability:
    """The capability that a need asks for: the need without its place."""
    return Capability(
        need.feature,
        need.scalar,
        need.op,
        need.space,
        need.function,
        need.target,
        need.configuration,
    )


def describe(wanted: Need | Capability) -> str:
    """A need or capability in words, such as "float64 arithmetic"."""
    feature = FEATURES.get(wanted.feature)
    config = wanted.configuration
    return (
        (wanted.feature if feature is None else feature.words)
        .format(
            scalar=wanted.scalar.value if wanted.scalar else "",
            op=wanted.op.value if wanted.op else "",
            space=wanted.space.value if wanted.space else "global",
            function=wanted.function or "",
            target=wanted.target.value if wanted.target else "",
            configuration="" if config is None else configuration_text(config),
        )
        .rstrip()
    )


def configuration_text(config: CoopmatConfig) -> str:
    """A configuration in words: shape and types."""
    return f"{_shape(config)} {_components(config)}"


def _shape(config: CoopmatConfig) -> str:
    return f"{config.m}x{config.n}x{config.k}"


def _operands(config: CoopmatConfig) -> str:
    return f"{config.a.value} * {config.b.value}"


def _components(config: CoopmatConfig) -> str:
    saturating = ", saturating" if config.saturating else ""
    return f"{_operands(config)} + {config.c.value} -> {config.result.value}{saturating}"


def configurations_near(config: CoopmatConfig | None, listed: Sequence[CoopmatConfig]) -> str:
    """What there is of a list instead of a configuration: the shapes of its components, else the
    results of its operands, else all operands.
    """

    def each(words: Callable[[CoopmatConfig], str], of: Sequence[CoopmatConfig]) -> list[str]:
        return list(dict.fromkeys(map(words, of)))

    if not listed:
        return "none"
    if config is not None:
        alike = [one for one in listed if _components(one) == _components(config)]
        if alike:
            return f"{', '.join(each(_shape, alike))} of {_components(config)}"
        alike = [one for one in listed if _operands(one) == _operands(config)]
        if alike:
            return "; ".join(each(_components, alike))
    return ", ".join(each(_operands, listed))


def coarser(capability: Capability) -> Capability | None:
    """The capability whose fact holds for one that has none of its own."""
    if capability.feature == "wide_index":
        return Capability("arithmetic", Scalar.INT64)
    if capability.scalar in HALVES and capability.feature in ("storage", "store"):
        return Capability(capability.feature, Scalar.UINT16)  # which holds their bits
    if capability.configuration is not None:
        return Capability("coopmat")
    feature = FEATURES.get(capability.feature)
    if feature is None or feature.coarser is None:
        return None
    kept = FEATURES[feature.coarser].fields
    return Capability(feature.coarser, capability.scalar if "scalar" in kept else None)
