"""Products that a device computes by a kernel of its own: what it is asked for, and its answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sarek_numba.ir.nodes import Kernel, ParamDecl, Var
from sarek_numba.ir.verify import verify
from sarek_numba.matrix import testing, tuned
from sarek_numba.matrix.bind import Launch, Placement
from sarek_numba.matrix.choose import Plan
from sarek_numba.matrix.product import Operand
from sarek_numba.matrix.rewrite.element import element
from sarek_numba.matrix.rewrite.form import Form
from sarek_numba.runtime.cache import Memo
from sarek_numba.runtime.device import Driver
from sarek_numba.runtime.products import Factor, MakesProducts, OwnKernel, ProductOrder

_ALIGNED = 16  # bytes

_elements: Memo[Kernel] = Memo()


def own_kernel(
    driver: Driver, plan: Plan, launch: Launch, form: Form, names: Sequence[str], arguments: int
) -> OwnKernel | str:
    """The device's own kernel for a plan, or why the one of `form` runs.

    Raises what the verifier and the device's compiler raise.
    """
    if not isinstance(driver, MakesProducts):
        return "the device has no kernels of its own for products"
    if testing.pins() or tuned.forced.get() is not None:
        return "another variant is asked for"
    product, bound = plan.product, plan.bound
    operands = (product.a.type, product.b.type)
    component = plan.lowering.component
    exact = plan.lowering.rounding is None and (
        operands == (component, component) or {type.bits for type in operands} == {component.bits}
    )
    if not exact:
        return "operands are converted before they are multiplied"
    if len(bound.batch) > 1:
        return "the batch has several axes"
    key = (plan.content, plan.kernel.name, form, arguments)
    return driver.product(
        ProductOrder(
            element=_element(key, plan, form, names, arguments),
            told=arguments + len(names),
            key=key,
            a=_factor(plan, launch, product.a, bound.a),
            b=_factor(plan, launch, product.b, bound.b),
            m=bound.m,
            n=bound.n,
            k=bound.k,
            batches=bound.batch[0] if bound.batch else 1,
            accumulator=plan.lowering.accumulator,
            any_size=testing.any_size.get(),
        )
    )


def _element(key: Hashable, plan: Plan, form: Form, names: Sequence[str], arguments: int) -> Kernel:
    def made() -> Kernel:
        kernel = element(plan.kernel, plan.product, form, names, arguments)
        verify(kernel)
        return kernel

    return _elements.get(key, made)


def _factor(plan: Plan, launch: Launch, operand: Operand, at: Placement) -> Factor:
    return Factor(
        param=_param(plan.kernel, operand.array),
        type=operand.type,
        offset=at.offset,
        row_stride=at.row_stride,
        column_stride=at.column_stride,
        batch_stride=at.batch_strides[0] if at.batch_strides else 0,
        is_aligned=launch.buffers[operand.argument][0] % _ALIGNED == 0,
    )


def _param(kernel: Kernel, array: Var) -> ParamDecl:
    return next(decl for decl in kernel.params if decl.var == array)


__all__ = ["own_kernel"]
