"""Helpers that the user has given as LLVM IR: a scalar function, called for each lane that runs.

The text is the body of the function. Its parameters are `%$0`, `%$1`, …, as references in the text
are spelled; a bool is an i1, an array a ptr. Lines that begin with `declare` stand outside of the
function. A text without `ret` ends in an instruction whose value is the result.
"""

from __future__ import annotations

import re

from sarek_native.builder import Code
from sarek_native.masks import text as mask_text
from sarek_native.state import State
from sarek_native.support import LaneLoop
from sarek_native.values import REGISTER, Place, Value, memory_type
from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.ir.texts import filled, text_of
from sarek_numba.ir.types import Array, Scalar, Vec

_DECLARED = re.compile(r"declare\b[^@]*@([\w.$-]+)")
_RETURN = re.compile(r"\s*ret\b")


def call(state: State, helper: HelperFunction, arguments: list[Value | Place]) -> list[Value]:
    """Call the text; gives its result, if it has one.

    It is called once where all lanes give it the same numbers and it has no arrays.
    """
    code = state.code
    name = f"text.{list(state.functions).index(helper.name)}"
    code.require(name, lambda: _function(code, name, helper))
    result = helper.result if isinstance(helper.result, Scalar) else None
    if all(isinstance(argument, Value) and argument.uniform for argument in arguments):
        given = ", ".join(f"{REGISTER[a.type]} {a.text}" for a in arguments if isinstance(a, Value))
        if result is None:
            code.effect(f"call void @{name}({given})")
            return []
        return [Value(result, code.define(f"call {REGISTER[result]} @{name}({given})"))]
    wide = f"{name}.lanes"
    code.require(wide, lambda: _lanes(code, name, helper))
    passed = [_passed(code, argument) for argument in arguments]
    passed.append(f"{code.vector('i1')} {mask_text(code, state.mask)}")
    vector = code.vector(memory_type(result or Scalar.INT32))
    made = code.define(f"call {vector} @{wide}({', '.join(passed)})")
    return [] if result is None else [code.from_memory(result, made, True)]


def _passed(code: Code, argument: Value | Place) -> str:
    if isinstance(argument, Place):
        return f"ptr {argument.pointer}"
    return f"{code.memory(argument.type, True)} {code.to_memory(argument, True)}"


def _function(code: Code, name: str, helper: HelperFunction) -> str:
    """The scalar function."""
    moves: dict[str, str] = {}

    def moved(base: int, offset: int) -> str:
        element = memory_type(_element(helper, base))
        place = f"%$at{base}"
        moves[place] = f"  {place} = getelementptr {element}, ptr %${base}, i64 %${offset}"
        return place

    def spelled(place: int | None) -> str:
        if place is None:
            return _result(helper)
        scalar = helper.params[place].type
        if isinstance(scalar, Scalar):
            return REGISTER[scalar]
        return memory_type(_element(helper, place))

    given = text_of(helper)
    assert given is not None
    lines = []
    for line in filled(given, lambda place: f"%${place}", moved, spelled).splitlines():
        declared = _DECLARED.match(line.strip())
        if declared:
            code.declarations.setdefault(declared[1], line.strip())
        elif line.strip():
            lines.append(f"  {line.strip()}")
    parameters = ", ".join(
        f"{'ptr' if isinstance(p.type, Vec | Array) else REGISTER[_scalar(p.type)]} %${k}"
        for k, p in enumerate(helper.params)
    )
    body = "\n".join([*moves.values(), *_ended(lines, helper)])
    return f"define internal {_result(helper)} @{name}({parameters}) #0 {{\nentry:\n{body}\n}}\n"


def _ended(lines: list[str], helper: HelperFunction) -> list[str]:
    """The instructions with the `ret` that an expression leaves out."""
    if any(map(_RETURN.match, lines)):
        return lines
    if not isinstance(helper.result, Scalar):
        return [*lines, "  ret void"]
    *before, last = lines or ["  "]
    return [*before, f"  %$return = {last.strip()}", f"  ret {_result(helper)} %$return"]


def _lanes(outer: Code, name: str, helper: HelperFunction) -> str:
    """The function of all lanes: the scalar one for each lane of the mask."""
    scalars = [p.type for p in helper.params if isinstance(p.type, Scalar)]
    numbers = iter(range(len(scalars)))
    code = Code(outer.width)
    result = helper.result if isinstance(helper.result, Scalar) else None
    loop = LaneLoop(code, result or Scalar.INT32, [memory_type(scalar) for scalar in scalars])
    parameters, given = [], []
    for k, param in enumerate(helper.params):
        if isinstance(param.type, Vec | Array):
            parameters.append(f"ptr %p{k}")
            given.append(f"ptr %p{k}")
            continue
        number = next(numbers)
        scalar = scalars[number]
        parameters.append(f"{outer.vector(memory_type(scalar))} %a{number}")
        value = code.from_memory(scalar, loop.operands[number], False)
        given.append(f"{REGISTER[scalar]} {value.text}")
    made = f"call {_result(helper)} @{name}({', '.join(given)})"
    if result is None:
        code.effect(made)
        loop.finish(None)
    else:
        loop.finish(code.to_memory(Value(result, code.define(made)), False))
    vector = outer.vector(memory_type(result or Scalar.INT32))
    head = f"define internal {vector} @{name}.lanes({', '.join(parameters)}, "
    body = "\n".join(code.allocas + code.lines)
    return f"{head}{outer.vector('i1')} %mask) noinline #0 {{\nentry:\n{body}\n}}\n"


def _result(helper: HelperFunction) -> str:
    return REGISTER[helper.result] if isinstance(helper.result, Scalar) else "void"


def _element(helper: HelperFunction, place: int) -> Scalar:
    type = helper.params[place].type
    assert isinstance(type, Vec | Array)
    return _scalar(type.element)


def _scalar(type: object) -> Scalar:
    assert isinstance(type, Scalar)
    return type
