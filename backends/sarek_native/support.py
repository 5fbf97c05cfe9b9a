"""Support functions of a module: loops over the lanes that run.

`lane_call` calls a scalar function of the C library for each lane of a mask; `scalar_loop` is the
shape of every such function, also used for atomics. Each is defined in a module once, when needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sarek_native.builder import Code
from sarek_native.masks import Mask, as_i64, text
from sarek_native.values import REGISTER, Value, memory_type
from sarek_numba.ir.types import FLOAT64, Scalar

PURE = "nounwind willreturn memory(none)"


def lane_call(
    code: Code, function: str, arguments: Sequence[Value], mask: Mask, wide: bool = False
) -> Value:
    """A C function of floats for each lane that runs; once where the arguments are uniform.

    With `wide` a float32 is computed in float64 and rounded once, as the oracle does.
    """
    type = arguments[0].type
    if all(argument.uniform for argument in arguments):
        return Value(type, _scalar_call(code, function, [a.text for a in arguments], type, wide))
    name = f"lanes.{function}.{type.value}"
    code.require(name, lambda: _lane_function(code, name, function, len(arguments), type, wide))
    vector = code.vector(REGISTER[type])
    typed = [f"{vector} {code.spread(argument)}" for argument in arguments]
    typed.append(f"{code.vector('i1')} {text(code, mask)}")
    return Value(type, code.define(f"call {vector} @{name}({', '.join(typed)})"), lanes=True)


def _scalar_call(
    code: Code, function: str, arguments: Sequence[str], type: Scalar, wide: bool
) -> str:
    """The call itself, for the type asked: `sinf` or `sin`, or `sin` between two conversions."""
    widened = wide and type is not FLOAT64
    called = FLOAT64 if widened else type
    register = REGISTER[called]
    symbol = function if called is FLOAT64 else f"{function}f"
    texts = list(arguments)
    if widened:
        texts = [code.define(f"fpext float {argument} to double") for argument in texts]
    types = ", ".join([register] * len(texts))
    code.declare(symbol, f"declare {register} @{symbol}({types}) {PURE}")
    typed = ", ".join(f"{register} {argument}" for argument in texts)
    result = code.define(f"call {register} @{symbol}({typed})")
    return code.define(f"fptrunc double {result} to float") if widened else result


def _lane_function(
    outer: Code, name: str, function: str, arity: int, type: Scalar, wide: bool
) -> str:
    vector = outer.vector(REGISTER[type])
    body = Code(outer.width)
    loop = LaneLoop(body, type, [REGISTER[type]] * arity)
    result = _scalar_call(body, function, loop.operands, type, wide)
    loop.finish(result)
    outer.declarations.update(body.declarations)
    parameters = ", ".join(f"{vector} %a{k}" for k in range(arity))
    return (
        f"define internal {vector} @{name}({parameters}, {outer.vector('i1')} %mask)"
        " noinline #0 {\nentry:\n" + "\n".join(body.allocas + body.lines) + "\n}\n"
    )


class LaneLoop:
    """A loop over the set bits of %mask, lowest first; `operands` are this lane's %a0, %a1, …

    The body is emitted between the constructor and `finish`, which stores the lane's result; lanes
    that do not run give zero.
    """

    def __init__(self, code: Code, result: Scalar, operands: Sequence[str]) -> None:
        self.code = code
        self.result = code.vector(memory_type(result))
        self.element = memory_type(result)
        integer = f"i{code.width}"
        self.integer = integer
        buffers = []
        for k, element in enumerate(operands):
            buffer = code.alloca(code.vector(element))
            code.effect(f"store {code.vector(element)} %a{k}, ptr {buffer}")
            buffers.append(buffer)
        self.output = code.alloca(self.result)
        code.effect(f"store {self.result} zeroinitializer, ptr {self.output}")
        self.rest = code.alloca(integer)
        bits = code.define(f"bitcast {code.vector('i1')} %mask to {integer}")
        code.effect(f"store {integer} {bits}, ptr {self.rest}")
        code.label("next")
        self.left = code.define(f"load {integer}, ptr {self.rest}")
        code.branch(code.define(f"icmp ne {integer} {self.left}, 0"), "lane", "done")
        code.label("lane")
        number = code.define(f"call {integer} @llvm.cttz({integer} {self.left}, i1 true)")
        self.lane = as_i64(code, number)
        self.operands = [self._load(b, e) for b, e in zip(buffers, operands, strict=True)]

    def _load(self, buffer: str, element: str) -> str:
        code = self.code
        place = code.define(f"getelementptr {element}, ptr {buffer}, i64 {self.lane}")
        return code.define(f"load {element}, ptr {place}")

    def finish(self, result: str | None) -> None:
        code = self.code
        if result is not None:
            place = code.define(f"getelementptr {self.element}, ptr {self.output}, i64 {self.lane}")
            code.effect(f"store {self.element} {result}, ptr {place}")
        less = code.define(f"sub {self.integer} {self.left}, 1")
        remaining = code.define(f"and {self.integer} {self.left}, {less}")
        code.effect(f"store {self.integer} {remaining}, ptr {self.rest}")
        code.jump("next")
        code.label("done")
        output = code.define(f"load {self.result}, ptr {self.output}")
        code.effect(f"ret {self.result} {output}")
        code.closed = True
