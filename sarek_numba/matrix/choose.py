"""Whether a launch of a kernel may run as another one on matrix units: the decision.

`choose` gives `Original`, with the reason, or a `Plan`: all that a rewriter needs to make the
kernel that stands in. It never raises. What the kernel is was found once, by its content; the
device and the grants are looked at in every launch, the launch's numbers only where all else
agrees. Each decision on a kernel that adds up products is a record in `sarek.policy.report()`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from sarek_numba import policy
from sarek_numba.capability import DeviceRecord
from sarek_numba.ir.hash import content_hash
from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.matrix import kinds, testing
from sarek_numba.matrix.bind import Bound, Launch, aliased, numbers
from sarek_numba.matrix.lowering import Lowering, lowering_for, missing_accumulation
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.reasons import NotAProduct, Reason
from sarek_numba.matrix.recognise import recognise
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.outcome import Original

NAME = "matrix_rewrite"
_MOST_KERNELS = 512


class HasRecord(Protocol):
    """A device, as far as a decision needs one."""

    @property
    def record(self) -> DeviceRecord: ...


@dataclass(frozen=True, slots=True)
class Plan:
    """A rewrite that is allowed, before it is made.

    The rewriter makes a kernel that does what `product` says, with the numbers of `bound`, on
    fragments of `config` with the arithmetic of `lowering`; `budget` and `explicit` are what its
    evidence is made from (`lowering.evidence_for`). `kernel` has the variables that the product is
    written in, `content` is its hash.
    """

    kernel: Kernel
    content: str
    product: Product
    bound: Bound
    lowering: Lowering
    config: CoopmatConfig
    budget: policy.Budget
    explicit: bool


Choice: TypeAlias = Original | Plan


@dataclass(frozen=True, slots=True)
class _Known:
    """What a kernel is, as long as there is that kernel. `kernel` is the one that was looked at:
    another one of its content may have other ids for its variables.
    """

    given: weakref.ref[Kernel]
    kernel: Kernel
    content: str
    found: Product | NotAProduct


_found: Memo[tuple[Kernel, Product | NotAProduct]] = Memo()
_sized: dict[tuple[object, ...], tuple[Product, Bound | NotAProduct]] = {}
_recent: dict[int, _Known] = {}


def choose(
    *,
    device: HasRecord,
    ir: Kernel,
    launch: Callable[[], Launch | None],
    precision: str | None = None,
    explicit: bool = False,
    stream: bool = False,
    grants: tuple[policy.Grant, ...] = (),
) -> Choice:
    """What a launch runs.

    `launch` gives the facts of the launch, or None; it is called only where they decide. `grants`
    are the kernel's own. `explicit` says that the caller asked for a rewrite, `precision` what the
    operands of a float32 product may be rounded to, `stream` that the launch is on a stream.
    """
    record = device.record
    if record.backend not in kinds.RULES:
        return Original(f"backend '{record.backend}' has no rewrite of products")
    try:
        known = _known(ir)
        found = known.found
        if isinstance(found, NotAProduct) and not found.near:
            return Original(str(found))
        request = _Request(
            record, known, launch, precision, explicit, stream, policy.budget(grants)
        )
        choice = request.decided(found)
    except Exception as error:  # a launch must not fail by what would only have made it faster
        return _kept(ir, record, f"the analysis failed: {type(error).__name__}: {error}")
    return choice if isinstance(choice, Plan) else _kept(ir, record, choice)


def _kept(ir: Kernel, record: DeviceRecord, reason: str) -> Original:
    policy.record_once(ir.name, record.name, NAME, policy.Refused(reason))
    return Original(reason)


def product_of(ir: Kernel) -> Product | NotAProduct:
    """What a kernel is, found once for all kernels of its content."""
    return _known(ir).found


def _known(ir: Kernel) -> _Known:
    known = _recent.get(id(ir))
    if known is not None and known.given() is ir:
        return known
    content = content_hash(ir)
    kernel, found = _found.get(content, lambda: (ir, _analysed(ir)))
    if len(_recent) >= _MOST_KERNELS:
        _recent.clear()
    named = kernel if kernel.name == ir.name else replace(kernel, name=ir.name)
    place = id(ir)

    def forget(gone: weakref.ref[Kernel]) -> None:
        if _recent.get(place) is known:
            _recent.pop(place, None)

    known = _recent[place] = _Known(weakref.ref(ir, forget), named, content, found)
    return known


def _analysed(ir: Kernel) -> Product | NotAProduct:
    if testing.failing.get():
        raise RuntimeError("a fault that a test asked for")
    return recognise(ir)


def _bound(kernel: Kernel, product: Product, launch: Launch) -> Bound | NotAProduct:
    """`bind`, with the numbers of launches of equal sizes found once."""
    key = (id(product), launch.grid, launch.block, tuple(launch.values.items()))
    known = _sized.get(key)
    if known is None or known[0] is not product:
        if len(_sized) >= _MOST_KERNELS:
            _sized.clear()
        known = _sized[key] = product, numbers(kernel, product, launch)
    found = known[1]
    return found if isinstance(found, NotAProduct) else aliased(product, found, launch) or found


@dataclass(frozen=True, slots=True)
class _Request:
    record: DeviceRecord
    known: _Known
    launch: Callable[[], Launch | None]
    precision: str | None
    explicit: bool
    stream: bool
    budget: policy.Budget

    def decided(self, found: Product | NotAProduct) -> Plan | str:
        """The plan, or why there is none, cheap questions first."""
        if isinstance(found, NotAProduct):
            return str(found)
        if policy.disabled(NAME):
            return f"SAREK_OPT_DISABLE revokes {NAME}"
        if self.stream and self.record.backend == "interpreter":
            return "the interpreter rewrites no launches on streams"
        lowering = lowering_for(
            budget=self.budget,
            explicit=self.explicit,
            case=found.case,
            precision=self.precision,
        )
        if isinstance(lowering, str):
            return lowering
        never = kinds.why_never(self.record, lowering)
        if never is not None:
            return never
        missing = missing_accumulation(self.budget, lowering)
        if missing is not None:
            return missing
        config = kinds.configuration(self.record, lowering, found)
        if config is None:
            return kinds.missing_configuration(self.record, lowering)
        return self._planned(found, lowering, config)

    def _planned(self, product: Product, lowering: Lowering, config: CoopmatConfig) -> Plan | str:
        facts = self.launch()
        if facts is None:
            return NotAProduct(Reason.UNKNOWN).text
        bound = _bound(self.known.kernel, product, facts)
        if isinstance(bound, NotAProduct):
            return str(bound)
        size = bound.m * bound.n * bound.k
        for count in bound.batch:
            size *= count
        if not self.explicit:
            why = kinds.why_not_automatic(self.record, lowering, size)
            if why is not None:
                return why
        return Plan(
            kernel=self.known.kernel,
            content=self.known.content,
            product=product,
            bound=bound,
            lowering=lowering,
            config=config,
            budget=self.budget,
            explicit=self.explicit,
        )
