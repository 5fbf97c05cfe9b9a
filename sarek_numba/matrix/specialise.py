"""From a plan to a kernel that stands in for the user's in one launch.

Kernels are kept by what they are made for: the content of the user's, the arithmetic, tiling,
width of a warp and shape of fragments, and how the matrices lie. The numbers of a launch are
arguments, so launches of many sizes share a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from sarek_numba.capability import DeviceRecord, Limits
from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.ir.types import INT64, Scalar
from sarek_numba.ir.verify import verify
from sarek_numba.matrix import testing, tuned
from sarek_numba.matrix.bind import Dimensions, Launch
from sarek_numba.matrix.choose import Plan
from sarek_numba.matrix.lowering import Lowering, evidence_for
from sarek_numba.matrix.own import own_kernel
from sarek_numba.matrix.rewrite.form import Form, Own, Tiling, Variant, variant_name
from sarek_numba.matrix.rewrite.kernel import rewritten
from sarek_numba.matrix.rewrite.numbers import index_type, values
from sarek_numba.matrix.rewrite.plan import forms_of, preferred
from sarek_numba.policy import Evidence
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.device import Driver
from sarek_numba.runtime.outcome import Original
from sarek_numba.runtime.products import OwnKernel

_ALIGNED = 16  # bytes
_WIDTHS = (32, 64)
_MOST_THREADS = 2**31 - 1  # of a launch whose kernel has 32-bit coordinates


@dataclass(frozen=True, slots=True)
class Specialised:
    """The launch runs `ir` in place of the kernel as given, on `grid` blocks of `block` threads.

    `extra` are the values of the arguments behind the user's. `evidence` says why it may. `choices`
    are the variants and tilings that fit, of which `key` finds the tuned one; `operands` are the
    positions of C, A and B. With `own` the device runs that kernel of its own, which does what `ir`
    does, with all its arguments.
    """

    ir: Kernel
    lowering: Lowering
    variant: Variant
    config: CoopmatConfig
    extra: tuple[int, ...]
    block: Dimensions
    grid: Dimensions
    via_interpreter: bool
    evidence: Evidence
    tiling: Tiling
    choices: tuple[tuned.Choice, ...]
    key: tuned.Key
    operands: tuple[int, int, int]
    own: OwnKernel | None = None

    def __str__(self) -> str:
        where = " in the interpreter" if self.via_interpreter else ""
        return f"Specialised: kernel '{self.ir.name}' runs{where} as another one, {self.evidence}"


Outcome: TypeAlias = Specialised | Original

_kernels: Memo[Kernel] = Memo()


def outcome_text(outcome: Outcome) -> str:
    """What a launch ran and why, in one line that begins with `Specialised` or `Original`."""
    return str(outcome)


def specialise(
    plan: Plan, launch: Launch, record: DeviceRecord, arguments: int, driver: Driver | None = None
) -> Outcome:
    """The kernel for a plan of a launch with so many `arguments`, or why there is none.

    A `driver` is asked for a kernel of its own. Raises what the verifier and its compiler raise:
    that is a defect here.
    """
    product, bound = plan.product, plan.bound
    width = _width(record)
    if width not in _WIDTHS:
        return Original(f"warps of '{record.name}' have {width} threads, not 32 or 64")
    aligned = _is_aligned(launch, product.a.argument), _is_aligned(launch, product.b.argument)
    forms = forms_of(
        product=product,
        bound=bound,
        lowering=plan.lowering,
        config=plan.config,
        width=width,
        index=Scalar.INT32,
        limits=record.limits,
        aligned=aligned,
    )
    if isinstance(forms, str):
        return Original(forms)
    choices = tuple((form.variant, form.tiling) for form in forms)
    key = _key(plan, forms[0], aligned, record)
    chosen = None if testing.pins() else tuned.chosen(key)
    form = forms[choices.index(chosen)] if chosen in choices else preferred(forms, bound)
    told = values(product, bound, form, launch.grid, launch.block)
    if index_type(told, bound) is INT64:
        form = replace(form, index=INT64)
    if record.is_cpu and not testing.gpus.get():
        form = replace(form, unrolled=False)
    ir = _kernel(plan, form, tuple(told), arguments)
    variant, config, own = form.variant, plan.config, None
    block, grid = (form.threads, 1, 1), (_blocks(told["work"], form.threads, record.limits), 1, 1)
    if driver is not None:
        offered = own_kernel(driver, plan, launch, form, tuple(told), arguments)
        if isinstance(offered, OwnKernel):
            m, n, k = offered.shape
            own, variant, config = offered, Own(offered.name), replace(config, m=m, n=n, k=k)
            block, grid = offered.block, offered.grid
    evidence = evidence_for(
        budget=plan.budget,
        explicit=plan.explicit,
        lowering=plan.lowering,
        variant=variant_name(variant),
        config=config,
    )
    return Specialised(
        ir=ir,
        lowering=plan.lowering,
        variant=variant,
        config=config,
        extra=tuple(told.values()),
        block=block,
        grid=grid,
        via_interpreter=record.backend == "interpreter",
        evidence=evidence,
        tiling=form.tiling,
        choices=choices,
        key=key,
        operands=(product.c.argument, product.a.argument, product.b.argument),
        own=own,
    )


def _blocks(work: int, threads: int, limits: Limits) -> int:
    """A block for each tile, as far as a grid goes: blocks take on what is left over."""
    most = min(limits.grid[0], _MOST_THREADS // threads)
    if limits.threads_per_axis is not None:
        most = min(most, limits.threads_per_axis // threads)
    return min(work, most)


def _width(record: DeviceRecord) -> int:
    """The threads of a warp; the interpreter has any, and tests choose."""
    if record.backend == "interpreter":
        return testing.width.get()
    return record.limits.warp_width_for(_WIDTHS[0])


def _is_aligned(launch: Launch, argument: int) -> bool:
    return launch.buffers[argument][0] % _ALIGNED == 0


def _key(plan: Plan, form: Form, aligned: tuple[bool, bool], record: DeviceRecord) -> tuned.Key:
    """What a choice of a tiling depends on. Sizes between two powers of two are alike."""
    bound = plan.bound
    sizes = (bound.m, bound.n, bound.k, *bound.batch)
    return (
        plan.content,
        str(plan.lowering),
        str(plan.config),
        form.width,
        *(lines.value for lines in (form.a, form.b, form.c)),
        *aligned,
        tuple(size.bit_length() for size in sizes),
        tuned.of_device(record),
    )


def _kernel(plan: Plan, form: Form, names: tuple[str, ...], arguments: int) -> Kernel:
    def made() -> Kernel:
        kernel = rewritten(plan.kernel, plan.product, form, names, arguments)
        verify(kernel)
        return kernel

    return _kernels.get((plan.content, plan.kernel.name, form, arguments), made)


__all__ = ["Outcome", "Specialised", "outcome_text", "specialise", "variant_name"]
