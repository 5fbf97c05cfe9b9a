"""Numba's IR of a function, in SSA form, ready for typing.

Comes in: a `Source` and the types of the arguments. Goes out: a `FunctionIR` as `typed` describes.
In between: Numba's interpreter of bytecode, with the offset of each bytecode as the column of its
`Loc`; pruning of what None arguments and constants decide; one copy of what CPython duplicates;
SSA. Raises `CompileError` for bytecode that is outside the kernel language.
"""

from __future__ import annotations

from typing import Any

from numba.core import bytecode, interpreter, ir, types
from numba.core.analysis import dead_branch_prune
from numba.core.bytecode import _FIXED_OFFSET
from numba.core.errors import (
    NotDefinedError,
    NumbaError,
    UnsupportedBytecodeError,
)
from numba.core.interpreter import peep_hole_delete_with_exit

from sarek_numba.errors import CompileError, Diagnostic, UnboundLocal, UnsupportedConstruct
from sarek_numba.frontend.jump_threading import drop_unread_copies, thread_jumps
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.source import Source
from sarek_numba.frontend.ssa import construct_ssa, define_nothing
from sarek_numba.frontend.tail_calls import make_loop_of_tail_calls
from sarek_numba.frontend.tails import merge_tails
from sarek_numba.span import Span


def interpret(
    source: Source, argument_types: tuple[types.Type, ...], kernel: bool = True
) -> ir.FunctionIR:
    """The IR of a kernel, or a device function, for arguments of these types."""
    identity = bytecode.FunctionIdentity.from_function(source.function)
    reader = _Interpreter(identity)
    try:
        code = bytecode.ByteCode(identity)
        code.labels = frozenset(code.labels)  # a list, in which each instruction is looked up
        function_ir = reader.interpret(code)
    except (NumbaError, NotImplementedError, UnsupportedBytecodeError) as error:
        raise _refusal(error, reader.loc, source) from None
    _define_early_reads(function_ir, reader.early_reads)
    _settle_long_calls(function_ir)
    if not kernel:
        make_loop_of_tail_calls(function_ir, source.original)
    dead_branch_prune(function_ir, argument_types)
    _define_unassigned(function_ir)
    _settle_raises(function_ir, source)
    threaded = thread_jumps(function_ir.blocks)
    merge_tails(function_ir, source.span_of)
    construct_ssa(function_ir)
    if threaded:
        drop_unread_copies(function_ir.blocks)
    _mark_undefined(function_ir)
    _order_phis(function_ir)
    return function_ir


_BEFORE_ALL = object()
# Jumps on the truth of a value; those with POP are CPython 3.11's for `and` and `or` as values.
_TESTS = ("IF_TRUE", "IF_FALSE", "IF_TRUE_OR_POP", "IF_FALSE_OR_POP")


class _Interpreter(interpreter.Interpreter):  # type: ignore[misc] # Numba ships no types
    """Numba's interpreter with exact places, and with locals that are read before they are set.

    In a loop the assignment may come later in the text and earlier in time.
    """

    def __init__(self, identity: Any) -> None:
        super().__init__(identity)
        self.early_reads: dict[str, ir.Loc] = {}
        self._pushed: Any = _BEFORE_ALL

    def _start_new_block(self, offset: int) -> None:
        if self._pushed is _BEFORE_ALL:
            self.cfa._backbone = _passed_by_all(self.cfa)
        self._pushed = None
        super()._start_new_block(offset)

    def _dispatch(self, inst: Any, kws: Any) -> Any:
        place = ir.Loc(self.loc.filename, inst.lineno, inst.offset - _FIXED_OFFSET)
        if inst.opname.endswith(_TESTS) and self._pushed is not None:
            place = self._pushed  # CPython 3.11 may give the jump the place of an earlier operand
        elif inst.opname not in ("COPY", "TO_BOOL", "NOP", "EXTENDED_ARG"):
            self._pushed = place
        self.loc: Any = place
        return super()._dispatch(inst, kws)

    def post_process(self, peepholes: list[Any], func_ir: ir.FunctionIR) -> Any:
        """Leave out what drops calls of `__exit__` where there are none: it is slow."""
        if not any(name.startswith("$setup_with_exitfn") for name in self.definitions):
            peepholes = [each for each in peepholes if each is not peep_hole_delete_with_exit]
        return super().post_process(peepholes, func_ir)

    def get(self, name: str) -> Any:
        try:
            return super().get(name)
        except NotDefinedError:
            if name not in self.code_locals:
                raise
            self.early_reads.setdefault(name, self.loc)
            return self.current_scope.get_or_define(name, loc=self.loc)


def _passed_by_all(flow: Any) -> frozenset[int]:
    """Numba's backbone, but blocks that some block further down is reached without.

    What a block of the backbone assigns gets a name that all further down read. Numba takes a block
    for one also where it leads into a loop that never ends.
    """
    dominators: dict[int, set[int]] = flow.graph.dominators()
    passed: list[int] = []
    common: set[int] | None = None
    for label in sorted(dominators, reverse=True):
        if label in flow.backbone and (common is None or label in common):
            passed.append(label)
        common = dominators[label] if common is None else common & dominators[label]
    return frozenset(passed)


def _define_early_reads(function_ir: ir.FunctionIR, names: dict[str, ir.Loc]) -> None:
    """Give such locals a definition on entry, so that SSA finds the reads that it reaches."""
    entry = function_ir.blocks[min(function_ir.blocks)]
    for name, loc in names.items():
        undefined = ir.Expr.undef(loc)
        entry.body.insert(0, ir.Assign(undefined, entry.scope.get_exact(name), loc))
        function_ir._definitions[name].append(undefined)


def _define_unassigned(function_ir: ir.FunctionIR) -> None:
    """Give a definition to the locals that only dead branches assigned."""
    assigned: set[str] = set()
    read: dict[str, ir.Var] = {}
    for block in function_ir.blocks.values():
        for statement in block.body:
            if isinstance(statement, ir.Assign):
                assigned.add(statement.target.name)
            for name in read_by_statement(statement):
                read.setdefault(name, ir.Var(block.scope, name, statement.loc))
    define_nothing(function_ir, [read[name] for name in read if name not in assigned])


def _is_phi(statement: Any) -> bool:
    return (
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Expr)
        and statement.value.op == "phi"
    )


def _order_phis(function_ir: ir.FunctionIR) -> None:
    """Phis by name and their values by block: Numba has them in the order of its sets."""
    for block in function_ir.blocks.values():
        phis = [statement for statement in block.body if _is_phi(statement)]
        if not phis:
            continue
        for statement in phis:
            expr = statement.value
            pairs = sorted(
                zip(expr.incoming_blocks, expr.incoming_values, strict=True),
                key=lambda pair: pair[0],
            )
            expr.incoming_blocks[:] = [label for label, _ in pairs]
            expr.incoming_values[:] = [value for _, value in pairs]
        rest = [statement for statement in block.body if not _is_phi(statement)]
        block.body = [*sorted(phis, key=lambda s: s.target.name), *rest]


def _mark_undefined(function_ir: ir.FunctionIR) -> None:
    """Write `ir.UNDEFINED` for variables that hold nothing, wherever a phi takes them."""
    empty = {
        statement.target.name
        for block in function_ir.blocks.values()
        for statement in block.body
        if isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Expr)
        and statement.value.op == "undef"
    }
    if not empty:
        return
    for block in function_ir.blocks.values():
        for statement in block.body:
            if _is_phi(statement):
                values = statement.value.incoming_values
                values[:] = [
                    ir.UNDEFINED if getattr(value, "name", None) in empty else value
                    for value in values
                ]


# --- calls ----------------------------------------------------------------------------------------


# the instructions, in the names of their results, that make the tuple: CPython 3.11 has one for it
_LIST_INSTRUCTIONS = ("list", "call_intrinsic_1")


def _settle_long_calls(function_ir: ir.FunctionIR) -> None:
    """The arguments one by one of calls that have more than CPython puts on its stack.

    It makes a tuple of them; `*` itself has been refused before.
    """
    for block in function_ir.blocks.values():
        made = {
            statement.target.name: statement
            for statement in block.body
            if isinstance(statement, ir.Assign)
            and isinstance(statement.value, ir.Expr)
            and statement.value.op == "build_tuple"
            and any(word in statement.target.name for word in _LIST_INSTRUCTIONS)
        }
        spread: list[Any] = []
        for statement in block.body:
            call = getattr(statement, "value", None)
            if not isinstance(call, ir.Expr) or call.op != "call" or call.vararg is None:
                continue
            whole = made.get(call.vararg.name)
            if whole is not None and not call.args:
                call.args, call.vararg = whole.value.items, None
                spread.append(whole)
        if spread:  # CPython begins with a list, which Numba has as an empty tuple
            spread += [each for each in made.values() if not each.value.items]
            block.body = [each for each in block.body if each not in spread]


# --- raise ----------------------------------------------------------------------------------------


def _settle_raises(function_ir: ir.FunctionIR, source: Source) -> None:
    """Failing assertions as `StaticRaise`; any other `raise` is refused."""
    for block in function_ir.blocks.values():
        last = block.body[-1]
        if not isinstance(last, ir.Raise):
            continue
        defined = {s.target.name: s for s in block.body if isinstance(s, ir.Assign)}
        exception = defined.get(last.exception.name) if last.exception is not None else None
        arguments = None if exception is None else _assertion(exception.value, defined)
        if exception is None or arguments is None:
            raise UnsupportedConstruct(_refused_raise(exception, defined, source.span_of(last)))
        block.body = [s for s in block.body if not _belongs(s, exception, defined)]
        block.body.append(ir.StaticRaise(AssertionError, arguments, last.loc))


def _refused_raise(
    exception: ir.Assign | None, defined: dict[str, ir.Assign], span: Span
) -> Diagnostic:
    message = "`raise` is not part of the kernel language"
    hint = "write an `assert`, which the oracle checks"
    value: Any = getattr(exception, "value", None)
    function = getattr(value, "func", None)
    if (
        getattr(function, "name", None) in defined
        and _assertion(defined[value.func.name].value, defined) == ()
    ):
        message = "the message of an `assert` is a constant string"
        hint = "write it in quotes; the oracle names the thread that failed"
    return Diagnostic(UnsupportedConstruct, message, span, hint)


def _assertion(value: Any, defined: dict[str, ir.Assign]) -> tuple[str, ...] | None:
    """The arguments of an AssertionError with at most one constant string; None for another."""
    if isinstance(value, ir.Global):
        return () if value.value is AssertionError else None
    if not (isinstance(value, ir.Expr) and value.op == "call" and value.func.name in defined):
        return None
    if _assertion(defined[value.func.name].value, defined) != () or value.kws:
        return None
    texts = [defined[arg.name].value for arg in value.args if arg.name in defined]
    if len(texts) != len(value.args) or len(texts) > 1:
        return None
    if not all(isinstance(text, ir.Const) and isinstance(text.value, str) for text in texts):
        return None
    return tuple(text.value for text in texts)


def _belongs(statement: Any, exception: ir.Assign, defined: dict[str, ir.Assign]) -> bool:
    """Whether a statement is the raise, or only makes what it raises."""
    if isinstance(statement, ir.Raise) or statement is exception:
        return True
    value = exception.value
    if not (isinstance(value, ir.Expr) and value.op == "call"):
        return False
    parts = [value.func.name, *(arg.name for arg in value.args)]
    return any(statement is defined.get(name) for name in parts)


def unbound(name: str, span: Span) -> Diagnostic:
    """The finding that a local is read and no path assigns it before."""
    return Diagnostic(
        UnboundLocal,
        f"local {name!r} is read, and nothing before assigns it",
        span,
        "assign it on a line above; a name that a function assigns is its own local",
    )


# --- what Numba refuses ---------------------------------------------------------------------------


def _refusal(error: Exception, loc: ir.Loc, source: Source) -> CompileError:
    """Numba's refusal of bytecode in this package's words."""
    place: Span = source.span_of(loc)
    if isinstance(error, NotDefinedError):
        return UnboundLocal(unbound(error.name, place))
    name = "this construct"
    if isinstance(error, (NotImplementedError, UnsupportedBytecodeError)):
        opcode = getattr(error.args[0] if error.args else None, "opname", None)
        name = f"the bytecode {opcode}" if opcode else name
    return UnsupportedConstruct(
        Diagnostic(
            UnsupportedConstruct,
            f"{name} is not part of the kernel language",
            place,
            "use assignments, arithmetic, if, while, for over range, and calls",
        )
    )
