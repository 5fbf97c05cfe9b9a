"""Helpers as functions of their own, where their bodies in place of all calls would be too much.

Every call is otherwise replaced by the body of the helper, which suits LLVM best. A chain of
helpers that call the next one twice, as bounded recursion makes them, would double at each level.
`outlined(kernel)` names the helpers to keep apart, `call` emits such a call and, at its first use,
the function: it runs all lanes of a mask, its scalars are vectors, and it is given the coordinates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from sarek_native import masks
from sarek_native.builder import Code
from sarek_native.state import Binding, FunctionContext, Launch, State
from sarek_native.values import REGISTER, Place, Value
from sarek_numba.ir.nodes import (
    App,
    Barrier,
    Body,
    Call,
    HelperFunction,
    Kernel,
    LetMut,
    Warp,
    WarpBarrier,
)
from sarek_numba.ir.types import INT64, Array, Scalar, TupleType
from sarek_numba.ir.walk import expressions_of, walk_exprs, walk_stmts

_MOST_COPIES = 8  # of a helper's body, if they are large together
_MOST_NODES = 300  # in all copies of a helper's body

Emit = Callable[[State, HelperFunction], list[Value]]


def outlined(kernel: Kernel) -> frozenset[str]:
    """The helpers of which there would be too many copies, callers before callees."""
    copies = Counter(_called(kernel.body))
    found: set[str] = set()
    for helper in reversed(kernel.functions):  # callees come before their callers
        count = copies[helper.name]
        size = sum(1 for stmt in walk_stmts(helper.body) for _ in walk_exprs(*expressions_of(stmt)))
        is_large = count > _MOST_COPIES and count * size > _MOST_NODES
        if is_large and not _is_bound_to_kernel(helper):
            found.add(helper.name)
            count = 1
        for name, calls in Counter(_called(helper.body)).items():
            copies[name] += calls * count
    return frozenset(found)


def _called(body: Body) -> list[str]:
    """The helpers that a body calls, once for each call."""
    called: list[str] = []
    for stmt in walk_stmts(body):
        if isinstance(stmt, Call):
            called.append(stmt.function)
        nodes = walk_exprs(*expressions_of(stmt))
        called += [node.function for node in nodes if isinstance(node, App)]
    return called


def _is_bound_to_kernel(helper: HelperFunction) -> bool:
    """Arrays of a thread lie in the frame of the kernel; warps and blocks are met in its loops."""
    declared = [decl.var for decl in helper.locals]
    for stmt in walk_stmts(helper.body):
        if isinstance(stmt, Barrier | Warp | WarpBarrier):
            return True
        if isinstance(stmt, LetMut):
            declared.append(stmt.var)
    return any(isinstance(var.type, Array) for var in declared)


def call(state: State, node: Call | App, arguments: list[Value | Place], body: Emit) -> list[Value]:
    """Call a helper in the lanes of the mask; gives its results. `body` emits its body."""
    code = state.code
    helper = state.functions[node.function]
    places = tuple(
        (argument.space.value, argument.interleaved)
        for argument in arguments
        if isinstance(argument, Place)
    )
    number = list(state.functions).index(helper.name)
    flags = "".join(f".{space}{int(interleaved)}" for space, interleaved in places)
    name = f"helper.{number}{flags}"
    given = [_passed(code, argument) for argument in arguments]
    given += [f"i64 {value.text}" for value in _scalars(state.launch)]
    i64 = code.vector("i64")
    for axis in range(3):
        thread = state.launch.thread
        text = "zeroinitializer" if thread is None else code.spread(thread[axis])
        given.append(f"{i64} {text}")
    given.append(f"{code.vector('i1')} {masks.text(code, state.mask)}")
    code.require(name, lambda: _function(state, helper, name, arguments, body))
    types = _result_types(helper)
    result = _struct(code, types)
    if not types:
        code.effect(f"call void @{name}({', '.join(given)})")
        return []
    made = code.define(f"call {result} @{name}({', '.join(given)})")
    return [
        Value(type, code.define(f"extractvalue {result} {made}, {place}"), lanes=True)
        for place, type in enumerate(types)
    ]


def _passed(code: Code, argument: Value | Place) -> str:
    if isinstance(argument, Place):
        return f"ptr {argument.pointer}"
    return f"{code.vector(REGISTER[argument.type])} {code.spread(argument)}"


def _scalars(launch: Launch) -> tuple[Value, ...]:
    return (*launch.block, *launch.block_dim, *launch.grid_dim)


def _function(
    outer: State, helper: HelperFunction, name: str, arguments: list[Value | Place], body: Emit
) -> str:
    """The text of the function."""
    code = Code(outer.code.width, outer.code.float_flags)
    code.support, code.declarations = outer.code.support, outer.code.declarations
    parameters: list[str] = []
    bindings: dict[int, Binding] = {
        id: found
        for id, found in outer.bindings.items()
        if isinstance(found, Place) and found.pointer.startswith("@")
    }
    for k, (param, argument) in enumerate(zip(helper.params, arguments, strict=True)):
        if isinstance(argument, Place):
            bindings[param.id] = replace(argument, pointer=f"%a{k}")
            parameters.append(f"ptr %a{k}")
        else:
            bindings[param.id] = Value(argument.type, f"%a{k}", lanes=True)
            parameters.append(f"{code.vector(REGISTER[argument.type])} %a{k}")
    scalars = [Value(INT64, f"%launch{k}") for k in range(9)]
    parameters += [f"i64 {value.text}" for value in scalars]
    threads = [Value(INT64, f"%thread{axis}", lanes=True) for axis in range(3)]
    parameters += [f"{code.vector('i64')} {value.text}" for value in threads]
    parameters.append(f"{code.vector('i1')} %mask")
    launch = Launch(
        (scalars[0], scalars[1], scalars[2]),
        (scalars[3], scalars[4], scalars[5]),
        (scalars[6], scalars[7], scalars[8]),
        (threads[0], threads[1], threads[2]),
    )
    state = replace(
        outer, code=code, launch=launch, function=FunctionContext("unreachable", "%mask"),
        mask="%mask", bindings=bindings, reserved={}, defined=None, departures={},
    )  # fmt: skip
    found = body(state, helper)
    result = _struct(code, _result_types(helper))
    _return(code, result, found)
    text = "\n".join(code.allocas + code.lines)
    head = f"define internal {result} @{name}({', '.join(parameters)}) noinline #0"
    return f"{head} {{\nentry:\n{text}\n}}\n"


def _return(code: Code, result: str, found: list[Value]) -> None:
    if not found:
        code.effect("ret void")
        return
    made = "poison"
    for place, value in enumerate(found):
        vector = code.vector(REGISTER[value.type])
        made = code.define(f"insertvalue {result} {made}, {vector} {code.spread(value)}, {place}")
    code.effect(f"ret {result} {made}")


def _struct(code: Code, types: tuple[Scalar, ...]) -> str:
    fields = ", ".join(code.vector(REGISTER[type]) for type in types)
    return f"{{ {fields} }}" if types else "void"


def _result_types(helper: HelperFunction) -> tuple[Scalar, ...]:
    result = helper.result
    items = result.items if isinstance(result, TupleType) else (result,)
    return tuple(item for item in items if isinstance(item, Scalar))
