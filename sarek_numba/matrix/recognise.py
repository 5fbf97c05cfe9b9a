"""Whether a kernel is a product of matrices: from its IR as lowered to a `Product`.

What is read is the kernel as the front end gives it, before any pass but the inlining of its own
helpers. There indices are int64 and subscripts still have their extents, loops have not been
unrolled or narrowed for some device, every node has the user's place, and the content hash is the
one that other caches go by: one analysis serves all devices.
"""

from __future__ import annotations

from dataclasses import replace

from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import (
    ArrayCreate,
    ArrayRead,
    Assign,
    Atomic,
    Barrier,
    Binary,
    BinOp,
    Body,
    Coopmat,
    For,
    Intrinsic,
    Kernel,
    LElement,
    LetMut,
    LocalDecl,
    LVar,
    MemFence,
    Native,
    Print,
    SharedDecl,
    Stmt,
    Warp,
    WarpBarrier,
    While,
)
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.walk import (
    bodies_of_kernel,
    deep_recursion,
    expressions_of,
    walk_exprs,
    walk_stmts,
)
from sarek_numba.matrix.assembly import Assembly
from sarek_numba.matrix.execution import Execution
from sarek_numba.matrix.product import Product
from sarek_numba.matrix.reasons import NotAProduct, Reason, Refusal
from sarek_numba.passes.inline import inline
from sarek_numba.span import Span

_WITHOUT_CALLS = Target(name="matrix", calls=False)


def recognise(kernel: Kernel) -> Product | NotAProduct:
    """The product that a kernel is, or why it is none."""
    with deep_recursion():
        if not has_sum(kernel):
            return NotAProduct(Reason.NO_SUM, span=kernel.span, near=False)
        try:
            _refuse_special(kernel)
            flat = inline(kernel, _WITHOUT_CALLS)
            return Assembly(flat, Execution(flat)).product()
        except Refusal as refusal:
            found = refusal.found
            return found if found.span else replace(found, span=kernel.span)


def has_sum(kernel: Kernel) -> bool:
    """Whether some loop adds to something, multiplies numbers and reads two elements.

    Cheap and never wrong about a product; what it lets pass may be none.
    """
    helpers = any(body is not kernel.body for body in bodies_of_kernel(kernel))
    for body in bodies_of_kernel(kernel):
        for stmt in walk_stmts(body):
            if isinstance(stmt, For | While) and _may_sum(stmt.body, helpers):
                return True
    return False


def _may_sum(body: Body, helpers: bool) -> bool:
    adds = multiplies = False
    reads = 0
    for stmt in walk_stmts(body):
        adds = adds or _adds(stmt)
        for node in walk_exprs(*expressions_of(stmt)):
            match node:
                case Binary(op=BinOp.MUL, weak=False) | Intrinsic(name="fma"):
                    multiplies = True
                case ArrayRead():
                    reads += 1
    return adds and (multiplies or helpers) and (reads >= 2 or helpers)


def _adds(stmt: Stmt) -> bool:
    """Whether a statement may add to something: a variable, or an element that it reads."""
    match stmt:
        case Assign(target=LVar(), value=value):
            return not (isinstance(value, Binary) and value.weak)  # which counts
        case Assign(target=LElement(array=array), value=value):
            return any(
                isinstance(node, ArrayRead) and node.array == array for node in walk_exprs(value)
            )
        case Atomic():
            return True
        case _:
            return False


# --- what is refused at sight ---------------------------------------------------------------------


def _refuse_special(kernel: Kernel) -> None:
    for decl in kernel.params:
        info = decl.array
        plain = info is None or (
            isinstance(info.element, Scalar) and not info.pairs and info.record is None
        )
        if not plain or (info is not None and info.columns):
            raise Refusal(Reason.ELEMENTS, decl.var.name)
    for local in kernel.locals:
        match local:
            case SharedDecl():
                raise Refusal(Reason.TILED, f"in shared memory '{local.var.name}'", span=local.span)
            case LocalDecl(value=ArrayCreate()):
                raise Refusal(Reason.LOCAL_ARRAY, local.var.name, span=local.span)
    for body in bodies_of_kernel(kernel):
        for stmt in walk_stmts(body):
            reason = _special(stmt)
            if reason is not None:
                raise Refusal(*reason, span=_place(stmt))


def _special(stmt: Stmt) -> tuple[Reason, str] | tuple[Reason] | None:
    match stmt:
        case Barrier() | MemFence():
            return Reason.TILED, "with barriers"
        case Warp() | WarpBarrier():
            return (Reason.WARP,)
        case Coopmat():
            return (Reason.COOPMAT,)
        case Atomic():
            return (Reason.ATOMICS,)
        case Print():
            return Reason.EFFECTS, "it prints"
        case Native():
            return (Reason.NATIVE,)
        case LetMut(var=var, value=ArrayCreate()):
            return Reason.LOCAL_ARRAY, var.name
        case _:
            return None


def _place(stmt: Stmt) -> Span | None:
    span = getattr(stmt, "span", None)
    return span if isinstance(span, Span) else None


__all__ = ["has_sum", "recognise"]
