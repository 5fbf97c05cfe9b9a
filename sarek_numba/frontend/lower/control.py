"""Lowering of regions: branches, loops, flags, and the copies of phis."""

from __future__ import annotations

from numba.core import ir, types

from sarek_numba.frontend.lower.calls import numbers_in
from sarek_numba.frontend.lower.convert import int64, negated
from sarek_numba.frontend.lower.function import FunctionLowering
from sarek_numba.frontend.lower.operations import pick_value
from sarek_numba.frontend.lower.phis import copy_phis
from sarek_numba.frontend.lower.values import (
    Cell,
    IteratorValue,
    RangeValue,
    TupleValue,
    Value,
    cells_of,
)
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.regions import (
    Again,
    Copies,
    Decide,
    Fail,
    Finish,
    Leave,
    Loop,
    Node,
    Region,
    Regions,
    SetFlag,
    Straight,
    TestFlag,
)
from sarek_numba.frontend.structure import all_regions, is_for, only_leaves
from sarek_numba.frontend.weak import is_number
from sarek_numba.ir.nodes import (
    Assert,
    Body,
    Break,
    Const,
    Continue,
    Direction,
    Expr,
    For,
    If,
    Return,
    Stmt,
    TupleExpr,
    Var,
    VarRef,
    While,
    constant,
)
from sarek_numba.ir.types import BOOL, INT64, UNIT
from sarek_numba.span import Span


def lower_regions(lowering: FunctionLowering, regions: Regions) -> None:
    """Emit regions in order. Recurses over nesting."""
    for region in regions:
        _lower_region(lowering, region)


def _body(lowering: FunctionLowering, regions: Regions) -> Body:
    with lowering.emitter.body() as collected:
        lower_regions(lowering, regions)
    return tuple(collected)


def _lower_region(lowering: FunctionLowering, region: Region) -> None:
    nodes = lowering.structured.nodes
    emit = lowering.emitter.emit
    match region:
        case Straight(label):
            lowering.node(nodes[label])
        case Copies(source, target):
            copy_phis(lowering, nodes.get(target), source)
        case Decide(label, then, orelse):
            _decide(lowering, nodes[label], then, orelse)
        case Loop(label, body):
            _loop(lowering, nodes[label], body)
        case Leave():
            emit(Break())
        case Again():
            emit(Continue())
        case Finish(label):
            _finish(lowering, nodes.get(label))
        case Fail(label):
            _fail(lowering, nodes[label])
        case SetFlag(flag, value):
            lowering.emitter.assign(_flag(lowering, flag), constant(BOOL, value))
        case TestFlag(flag, value, body):
            test: Expr = VarRef(_flag(lowering, flag))
            emit_if(lowering, test if value else negated(test), _body(lowering, body), (), None)


def _flag(lowering: FunctionLowering, flag: int) -> Var:
    if flag not in lowering.flags:
        word = lowering.structured.flags[flag]
        lowering.flags[flag] = lowering.ids.var(word, BOOL, mutable=True)
    return lowering.flags[flag]


def _finish(lowering: FunctionLowering, node: Node | None) -> None:
    if node is None or lowering.result == UNIT:
        lowering.emitter.emit(Return())
        return
    variable = node.terminator.value
    value = lowering.converted(
        lowering.read(variable), lowering.type_of(variable), lowering.typed.result
    )
    numbers = numbers_in(lowering, value)
    span = lowering.span(node.terminator)
    single = is_number(lowering.typed.result)
    result = numbers[0] if single else TupleExpr(tuple(numbers), span=span)
    lowering.emitter.emit(Return(result, span=span))


def _fail(lowering: FunctionLowering, node: Node) -> None:
    arguments = getattr(node.terminator, "exc_args", None) or ()
    message = next((str(a) for a in arguments if isinstance(a, str)), "")
    span = lowering.span(node.terminator)
    lowering.emitter.emit(Assert(constant(BOOL, False), message, span=span))


# --- branches -------------------------------------------------------------------------------------


def _decide(lowering: FunctionLowering, node: Node, then: Regions, orelse: Regions) -> None:
    condition = lowering.number(node.terminator.cond, types.boolean)
    span = lowering.span(node.terminator)
    taken, other = _body(lowering, then), _body(lowering, orelse)
    emit_if(lowering, condition, taken, other, span)


def emit_if(
    lowering: FunctionLowering, condition: Expr, then: Body, orelse: Body, span: Span | None
) -> None:
    """Emit a branch the way a person writes it: guards first, assertions as such."""
    emit = lowering.emitter.emit
    if not then and not orelse:
        return
    if isinstance(condition, Const):
        _emit_all(lowering, then if condition.value else orelse)
        return
    for arm, other, holds in ((orelse, then, condition), (then, orelse, negated(condition))):
        if len(arm) == 1 and _is_failure(arm[0]):
            failure = arm[0]
            assert isinstance(failure, Assert)
            emit(Assert(holds, failure.message, span=failure.span))
            _emit_all(lowering, other)
            return
    if not then:
        emit(If(negated(condition), orelse, span=span))
    elif orelse and not completes(then):
        emit(If(condition, then, span=span))
        _emit_all(lowering, orelse)
    elif orelse and not completes(orelse):
        emit(If(negated(condition), orelse, span=span))
        _emit_all(lowering, then)
    else:
        emit(If(condition, then, orelse, span=span))


def _emit_all(lowering: FunctionLowering, body: Body) -> None:
    for statement in body:
        lowering.emitter.emit(statement)


def _is_failure(statement: Stmt) -> bool:
    return (
        isinstance(statement, Assert)
        and isinstance(statement.condition, Const)
        and not statement.condition.value
    )


def completes(body: Body) -> bool:
    """Whether control may get behind a body."""
    if not body:
        return True
    last = body[-1]
    if isinstance(last, If):
        return completes(last.then) or completes(last.orelse)
    return not isinstance(last, (Return, Break, Continue))


# --- loops ----------------------------------------------------------------------------------------


def _loop(lowering: FunctionLowering, head: Node, body: Regions) -> None:
    span = lowering.span(head.terminator)
    if is_for(head):
        _for(lowering, head, body, span)
        return
    lowered = _body(lowering, body)
    first = lowered[0] if lowered else None
    if isinstance(first, If) and not first.orelse and _is_break(first.then):
        lowering.emitter.emit(While(negated(first.condition), lowered[1:], span=span))
        return
    lowering.emitter.emit(While(constant(BOOL, True), lowered, span=span))


def _is_break(body: Body) -> bool:
    return len(body) == 1 and isinstance(body[0], Break)


def _for(lowering: FunctionLowering, head: Node, body: Regions, span: Span) -> None:
    name, iterator = _iteration(lowering, head)
    source = iterator.source
    lowering.emitter.pending.clear()
    inside = _labels(body)
    item_name, reused = _item_variable(lowering, head, inside)
    if isinstance(source, RangeValue):
        first, stop, step = source.first.expr, source.stop.expr, source.step.expr
        var = lowering.ids.var(item_name, INT64)
        item: Value = Cell(VarRef(var))
    else:
        first, stop, step = int64(0), int64(len(source.items)), int64(1)
        var = lowering.ids.var(f"{item_name}_index", INT64)
        for cell in cells_of(source):
            lowering.emitter.bind_cell(cell)
        item = _picked(source, VarRef(var), iterator)
    with lowering.emitter.body() as collected:
        if not isinstance(source, RangeValue):
            for cell in cells_of(item):
                cell.expr = lowering.emitter.store(cell.expr, item_name)
        lowering.items[name] = (item, constant(BOOL, True))
        if reused is not None:
            lowering.loop_items[reused] = item
        lower_regions(lowering, _without_test(lowering, head, body))
    lowered = tuple(collected)
    loop = For(var, first, stop, step, _direction(step), lowered, span=span)
    hints = source.hints if isinstance(source, RangeValue) else ()
    if hints:
        lowering.program.loop_hints[var.id] = hints
    lowering.emitter.emit(loop)


def _picked(source: TupleValue, index: Expr, iterator: IteratorValue) -> Value:
    if not source.items:
        return Cell(constant(iterator.item, 0))
    return pick_value(list(source.items), index, None, wrap=False)


def _direction(step: Expr) -> Direction:
    if not isinstance(step, Const):
        return Direction.RUNTIME
    return Direction.DOWNTO if int(step.value) < 0 else Direction.UPTO


def _iteration(lowering: FunctionLowering, head: Node) -> tuple[str, IteratorValue]:
    """The name of the `iternext` of a loop's head, and what it iterates over."""
    for statement in head.statements:
        if not isinstance(statement, ir.Assign):
            continue
        value = statement.value
        if isinstance(value, ir.Expr) and value.op == "iternext":
            iterator = lowering.read(value.value)
            assert isinstance(iterator, IteratorValue)
            return statement.target.name, iterator
    raise AssertionError("no iternext in the head of a for loop")


def _without_test(lowering: FunctionLowering, head: Node, body: Regions) -> Regions:
    """The body of a `for` without its head's test, whose false side only leaves the loop."""
    result: Regions = []
    for region in body:
        if isinstance(region, Decide) and region.label == head.label:
            if not only_leaves(region):
                raise lowering.refuse("this shape of a for loop", head.terminator)
            result += region.then
        else:
            result.append(region)
    return result


def _labels(regions: Regions) -> set[int]:
    """The nodes within some regions."""
    return {region.label for region in all_regions(regions) if isinstance(region, Straight)}


def _item_variable(
    lowering: FunctionLowering, head: Node, inside: set[int]
) -> tuple[str, str | None]:
    """The user's name for the item of a loop, and the version that can be the loop's variable.

    That is the case if nothing else assigns the user's variable and nothing behind the loop
    reads it.
    """
    names = {s.target.name for s in head.statements if isinstance(s, ir.Assign)}
    entry = lowering.structured.nodes.get(head.terminator.truebr)
    for statement in entry.statements if entry is not None else ():
        if not isinstance(statement, ir.Assign) or not isinstance(statement.value, ir.Var):
            continue
        target = statement.target.name
        if statement.value.name not in names or is_temporary(target):
            continue
        home = lowering.homes.get(target)
        alone = home is not None and not home.mutable
        within = lowering.homes.reads_within(target, inside, lowering.structured.nodes)
        if alone and within == lowering.homes.reads[target]:
            return user_name(target), target
        return user_name(target), None
    return "i", None
