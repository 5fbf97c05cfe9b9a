"""A kernel as LLVM IR text.

`emit(kernel, width, variant)` gives a module with one function,

    void kernel(ptr arguments, ptr launch, ptr scratch, i64 first, i64 last)

which runs the blocks numbered [first, last), x fastest. `arguments` holds 8 bytes for each
parameter (a pointer or a scalar's own bytes); `launch` eight int64: grid, block, bytes of dynamic
shared memory and the offset of the frame in `scratch`; `scratch` is 64-byte aligned memory of the
calling thread: static shared arrays, dynamic shared bytes, then the frame, `frame_bytes` for each
lane group.
"""

from __future__ import annotations

from dataclasses import dataclass

from sarek_native.builder import Code
from sarek_native.expressions import constant_size
from sarek_native.fission import Plan, has_barrier, plan
from sarek_native.groups import Frame, Variant
from sarek_native.outlined import outlined
from sarek_native.skeleton import Skeleton
from sarek_native.state import FunctionContext, State
from sarek_native.statements import inline
from sarek_native.values import Place, Value, literal, memory_type
from sarek_numba.ir.nodes import Body, Const, ConstDecl, Kernel, LetMut, LocalDecl, SharedDecl
from sarek_numba.ir.texts import has_texts
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.ir.typing import element_of
from sarek_numba.ir.uniformity import analyse
from sarek_numba.ir.walk import deep_recursion

_ATTRIBUTES = 'nounwind "prefer-vector-width"="{bits}" "no-trapping-math"="true"'


@dataclass(frozen=True, slots=True)
class Module:
    """`instructions` is a measure of size, which decides how hard LLVM should try.

    The frame holds `frame_bytes` for each lane group, or once where `frame_per_group` is False.
    `has_texts`: whether the user has written some of the text.
    """

    text: str
    static_shared_bytes: int
    frame_bytes: int
    frame_per_group: bool
    instructions: int
    has_texts: bool = False


# What `accept.fastmath` allows; no NaN, infinity or signed zero is assumed away.
_FASTMATH = " reassoc arcp contract afn"


def emit(kernel: Kernel, width: int, variant: Variant, vector_bits: int = 256) -> Module:
    """The module of a legal kernel for one class of block shapes."""
    with deep_recursion():
        return _emit(kernel, width, variant, vector_bits)


def _emit(kernel: Kernel, width: int, variant: Variant, vector_bits: int) -> Module:
    code = Code(width, _FASTMATH if kernel.fastmath else "")
    split = has_barrier(kernel.body)
    frame = Frame(code, variant, split)
    functions = {function.name: function for function in kernel.functions}
    outermost = FunctionContext("next.block", None)
    state = State(code, functions, analyse(kernel), frame.launch, outermost)
    state.local_array, state.shared_array, state.inline = (
        frame.local_array,
        frame.shared_array,
        inline,
    )
    state.group_memory = frame.group_memory
    state.outlined = outlined(kernel)
    constants = _declare(kernel, state, frame)
    apart = _restricted(kernel)
    frame.begin_blocks()
    Skeleton(state, frame, _plan(kernel, state)).emit()
    frame.end_blocks()
    text = frame.finish(_assemble(code, constants, apart, vector_bits))
    return Module(
        text, frame.static_bytes, frame.frame_bytes, split, code.size(), has_texts(kernel)
    )


def _plan(kernel: Kernel, state: State) -> Plan:
    """The kernel's locals are declared at the start of its body."""
    locals = [decl for decl in kernel.locals if isinstance(decl, LocalDecl)]
    declared: Body = tuple(LetMut(decl.var, decl.value, span=decl.span) for decl in locals)
    params = frozenset(decl.var.id for decl in kernel.params)
    return plan(declared + kernel.body, params, state.uniformity)


def _declare(kernel: Kernel, state: State, frame: Frame) -> list[str]:
    """Bind parameters, shared and constant arrays; gives the definitions of the constant ones."""
    code = state.code
    apart = _restricted(kernel)
    for position, param in enumerate(kernel.params):
        if position in apart:
            element = element_of(param.var.type)
            assert isinstance(element, Scalar)
            state.bindings[param.var.id] = Place(element, f"%p.{position}", MemSpace.GLOBAL)
            continue
        at = f"%argument{position}"
        code.allocas.append(f"  {at} = getelementptr i64, ptr %arguments, i64 {position}")
        name = f"%p.{position}"
        if param.array is not None:
            code.allocas.append(f"  {name} = load ptr, ptr {at}")
            element = param.array.element
            assert isinstance(element, Scalar)
            state.bindings[param.var.id] = Place(element, name, MemSpace.GLOBAL)
        else:
            type = param.var.type
            assert isinstance(type, Scalar)
            code.allocas.append(f"  {name} = load {memory_type(type)}, ptr {at}")
            if type is Scalar.BOOL:
                code.allocas.append(f"  {name}.truth = icmp ne i8 {name}, 0")
                name = f"{name}.truth"
            state.bindings[param.var.id] = Value(type, name)
    constants: list[str] = []
    for decl in kernel.locals:
        match decl:
            case SharedDecl(var=var, size=None, offset=offset):
                state.bindings[var.id] = frame.dynamic_array(var, offset)
            case SharedDecl(var=var, size=size) if size is not None:
                state.bindings[var.id] = frame.shared_array(var, constant_size(size))
            case ConstDecl(var=var, element=element, bits=bits):
                name = f"@constant.{len(constants)}"
                state.bindings[var.id] = Place(element, name, MemSpace.CONSTANT)
                constants.append(_constant_array(name, element, bits))
            case _:
                pass
    return constants


def _constant_array(name: str, element: Scalar, bits: tuple[int, ...]) -> str:
    type = memory_type(element)
    items = ", ".join(f"{type} {literal(Const(element, item))}" for item in bits)
    body = f"[{items}]" if bits else "zeroinitializer"
    return f"{name} = internal constant [{len(bits)} x {type}] {body}, align 64"


_PARAMETERS = "ptr noalias %arguments, ptr noalias %launch, ptr %scratch, i64 %first, i64 %last"


def _restricted(kernel: Kernel) -> list[int]:
    """The positions of arrays that share nothing with other parameters."""
    return [
        position
        for position, param in enumerate(kernel.params)
        if param.array is not None and param.array.restrict
    ]


def _wrapper(apart: list[int]) -> str:
    """The entry of a kernel whose restricted arrays are parameters: only these can be noalias."""
    lines, given = [], _PARAMETERS.replace("noalias ", "")
    for position in apart:
        lines.append(f"  %at.{position} = getelementptr i64, ptr %arguments, i64 {position}")
        lines.append(f"  %p.{position} = load ptr, ptr %at.{position}")
        given += f", ptr %p.{position}"
    lines += [f"  call void @body({given})", "  ret void"]
    return f"define void @kernel({_PARAMETERS}) #0 {{\nentry:\n" + "\n".join(lines) + "\n}"


def _assemble(code: Code, constants: list[str], apart: list[int], vector_bits: int) -> str:
    restricted = "".join(f", ptr noalias %p.{position}" for position in apart)
    head = "define internal void @body" if apart else "define void @kernel"
    header = f"{head}({_PARAMETERS}{restricted}) #0 {{\nentry:"
    body = "\n".join(code.allocas + code.lines)
    attributes = _ATTRIBUTES.format(bits=vector_bits)
    parts = [
        *constants,
        *dict.fromkeys(code.declarations.values()),
        f"{header}\n{body}\n}}",
        *([_wrapper(apart)] if apart else []),
        *code.support.values(),
        f"attributes #0 = {{ {attributes} }}",
    ]
    return "\n\n".join(parts) + "\n"
