"""Runs the regions of a structured function over Python values, for tests of structuring alone."""

from __future__ import annotations

import operator
import warnings
from types import FunctionType
from typing import Any

from numba.core import bytecode, interpreter, ir
from numba.core.errors import NumbaIRAssumptionWarning
from numba.core.ssa import reconstruct_ssa

from sarek_numba.frontend import regions as r
from sarek_numba.frontend.jump_threading import thread_jumps
from sarek_numba.frontend.structure import structure
from sarek_numba.frontend.tails import merge_tails

_PURE = {"binop", "inplace_binop", "unary", "getitem", "cast", "build_tuple"}


def function_ir(function: FunctionType) -> ir.FunctionIR:
    """Numba's IR of a function, tails merged, in SSA form."""
    identity = bytecode.FunctionIdentity.from_function(function)
    result = interpreter.Interpreter(identity).interpret(bytecode.ByteCode(identity))
    positions = list(function.__code__.co_positions())

    def position(statement: ir.Stmt) -> Any:
        offset = (
            statement.target.name.lstrip("$").split(".")[0].rstrip("abcdefghijklmnopqrstuvwxyz_")
        )
        digits = "".join(c for c in offset if c.isdigit())
        index = int(digits) // 2 - 1 if digits else len(positions)
        return positions[index] if 0 <= index < len(positions) else statement.loc.line

    thread_jumps(result.blocks)
    merge_tails(result, position)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumbaIRAssumptionWarning)
        return reconstruct_ssa(result)


def is_pure(statement: ir.Assign) -> bool:
    value = statement.value
    if isinstance(value, ir.Expr) and value.op == "call":
        return value.func.name.startswith("$bool")
    return not isinstance(value, ir.Expr) or value.op in _PURE


def structured(function: FunctionType, tree: Any = None) -> r.Structured:
    return structure(function_ir(function), is_pure, tree)


class OutOfFuel(Exception):
    """The function did not end within its steps."""


class _Leave(Exception):
    pass


class _Again(Exception):
    pass


class _Return(Exception):
    pass


UNBOUND = object()


class Runner:
    """Runs one structured function; each call of `run` starts afresh."""

    def __init__(self, structured: r.Structured, fuel: int = 20_000) -> None:
        self.structured = structured
        self.fuel = fuel

    def run(self, *arguments: Any) -> Any:
        self.arguments = arguments
        self.variables: dict[str, Any] = {}
        self.flags: dict[int, bool] = {}
        self.left = self.fuel
        try:
            self.regions(self.structured.regions)
        except _Return as finished:
            return finished.args[0]
        return None

    def read(self, variable: ir.Var) -> Any:
        value = self.variables.get(variable.name, UNBOUND)
        if value is UNBOUND:
            raise UnboundLocalError(variable.name)
        return value

    def regions(self, regions: r.Regions) -> None:
        for region in regions:
            self.region(region)

    def region(self, region: r.Region) -> None:
        nodes = self.structured.nodes
        match region:
            case r.Straight(label):
                self.left -= 1
                if self.left < 0:
                    raise OutOfFuel
                for statement in nodes[label].statements:
                    self.statement(statement)
            case r.Copies(source, target):
                self.copies(source, nodes[target])
            case r.Decide(label, then, orelse):
                taken = self.read(nodes[label].terminator.cond)
                self.regions(then if taken else orelse)
            case r.Loop(_, body):
                self.loop(body)
            case r.Leave():
                raise _Leave
            case r.Again():
                raise _Again
            case r.Finish(label):
                raise _Return(None if label < 0 else self.read(nodes[label].terminator.value))
            case r.Fail():
                raise AssertionError
            case r.SetFlag(flag, value):
                self.flags[flag] = value
            case r.TestFlag(flag, value, body):
                if self.flags[flag] is value:
                    self.regions(body)

    def loop(self, body: r.Regions) -> None:
        while True:
            try:
                self.regions(body)
            except _Leave:
                return
            except _Again:
                continue

    def copies(self, source: int, target: r.Node) -> None:
        taken = {}
        for phi in target.phis:
            variable = phi.incoming[source]
            name = variable.name if variable is not None else ""
            taken[phi.target.name] = self.variables.get(name, UNBOUND)
        self.variables.update(taken)

    def statement(self, statement: r.Statement) -> None:
        if isinstance(statement, r.Choose):
            arm = statement.then if self.read(statement.condition) else statement.orelse
            for inner in arm.statements:
                self.statement(inner)
            value = arm.value if isinstance(arm.value, bool) else self.read(arm.value)
            self.variables[statement.target.name] = value
        elif isinstance(statement, ir.Assign):
            self.assign(statement)
        elif isinstance(statement, ir.SetItem):
            self.read(statement.target)[self.read(statement.index)] = self.read(statement.value)
        else:
            raise NotImplementedError(statement)

    def assign(self, statement: ir.Assign) -> None:
        if isinstance(statement.value, ir.Var):
            # a copy of an unbound variable is unbound; only its use is an error
            value = self.variables.get(statement.value.name, UNBOUND)
        else:
            value = self.value(statement.value)
        self.variables[statement.target.name] = value

    def value(self, value: Any) -> Any:
        match value:
            case ir.Const() | ir.Global() | ir.FreeVar():
                return value.value
            case ir.Arg():
                return self.arguments[value.index]
        match value.op:
            case "binop":
                return self.binary(value.fn, value)
            case "inplace_binop":
                return self.binary(value.immutable_fn, value)
            case "unary":
                return value.fn(self.read(value.value))
            case "call":
                return self.read(value.func)(*map(self.read, value.args))
            case "getitem":
                return self.read(value.value)[self.read(value.index)]
            case "getiter":
                return iter(self.read(value.value))
            case "iternext":
                for item in self.read(value.value):
                    return item, True
                return None, False
            case "pair_first":
                return self.read(value.value)[0]
            case "pair_second":
                return self.read(value.value)[1]
            case "cast":
                return self.read(value.value)
            case "build_tuple" | "exhaust_iter":
                return tuple(map(self.read, getattr(value, "items", ())))
        raise NotImplementedError(value.op)

    def binary(self, operation: Any, value: ir.Expr) -> Any:
        left, right = self.read(value.lhs), self.read(value.rhs)
        return (
            operator.contains(left, right)
            if operation is operator.contains
            else operation(left, right)
        )
