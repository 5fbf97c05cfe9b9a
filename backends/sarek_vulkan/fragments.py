"""Fragments of cooperative matrices, as SPV_KHR_cooperative_matrix has them.

A fragment is a variable of the function whose type has its component type, shape and use; its
components are spread over the subgroup as the device likes. One that is declared is all zeros. A
row that is loaded or stored (a column, where that is the order) is contiguous in memory, and its
place is a multiple of `row_alignment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sarek_numba.errors import InvalidIR
from sarek_numba.ir.matrices import row_alignment
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Const,
    Coopmat,
    CoopmatConfig,
    Fragment,
)
from sarek_numba.ir.types import Scalar
from sarek_vulkan.code import Code, Value, signed
from sarek_vulkan.opcodes import SCOPE
from sarek_vulkan.types import Types

if TYPE_CHECKING:
    from sarek_vulkan.statements import Statements

USES: Mapping[str, int] = {"a": 0, "b": 1, "c": 2, "result": 2}
SCOPES: Mapping[str, str] = {"subgroup": "Subgroup", "workgroup": "Workgroup"}
_ROW_MAJOR, _COLUMN_MAJOR = 0, 1


def statement(emitter: Statements, stmt: Coopmat) -> None:
    """Emit one operation. Raises InvalidIR for what SPIR-V cannot say."""
    if not emitter.program.model.vulkan:
        raise InvalidIR("SPIR-V has cooperative matrices with the Vulkan memory model only")
    match stmt.op:
        case CMDecl(name=name, fragment=fragment):
            _declare(emitter, name, fragment)
        case CMFill(target=name, fragment=fragment, value=value):
            _store(emitter, name, _filled(emitter.code, fragment, emitter.expression(value)))
        case CMLoad(target=name, fragment=fragment) as op:
            place, layout, stride, operands = _place(emitter, op)
            type = matrix(emitter.code.types, fragment)
            loaded = emitter.code.do(
                "OpCooperativeMatrixLoadKHR", type, place, layout, stride, *operands
            )
            _store(emitter, name, loaded)
        case CMStore(source=name) as op:
            held = _load(emitter, name)
            place, layout, stride, operands = _place(emitter, op)
            emitter.code.effect(
                "OpCooperativeMatrixStoreKHR", place, held, layout, stride, *operands
            )
        case CMMulAdd(target=target, a=a, b=b, c=c, config=config):
            given = [_load(emitter, name) for name in (a, b, c)]
            type, words = emitter.fragments[target][1], _operands(config)
            made = emitter.code.do("OpCooperativeMatrixMulAddKHR", type, *given, words)
            _store(emitter, target, made)


def matrix(types: Types, fragment: Fragment) -> int:
    """The type of a fragment."""
    types.assembler.capability("CooperativeMatrixKHR")
    types.assembler.extension("SPV_KHR_cooperative_matrix")
    if fragment.use not in USES or fragment.scope not in SCOPES:
        raise InvalidIR(
            f"a fragment has use {fragment.use!r} and scope {fragment.scope!r}\n"
            f"  hint: uses are {', '.join(USES)}; scopes are {', '.join(SCOPES)}"
        )
    numbers = (
        SCOPE[SCOPES[fragment.scope]],
        fragment.rows,
        fragment.columns,
        USES[fragment.use],
    )
    ids = [types.number(Scalar.UINT32, number) for number in numbers]
    return types.assembler.type(
        "OpTypeCooperativeMatrixKHR", _component(types, fragment.component), *ids
    )


def _component(types: Types, component: Scalar) -> int:
    """The type of a component: a half is a number here, and not its bits."""
    if component is Scalar.FLOAT16:
        types.assembler.capability("Float16")
        return types.assembler.type("OpTypeFloat", 16)
    if component is Scalar.BFLOAT16 or component is Scalar.BOOL:
        raise InvalidIR(f"SPIR-V has no cooperative matrices of {component.value}")
    return types.scalar(component)


# --- variables ------------------------------------------------------------------------------------


def _declare(emitter: Statements, name: str, fragment: Fragment) -> None:
    code = emitter.code
    type = matrix(code.types, fragment)
    variable = code.variable(type)
    code.name(variable, name)
    emitter.fragments[name] = variable, type
    zero = code.types.zero(_component(code.types, fragment.component))
    _store(emitter, name, code.do("OpCompositeConstruct", type, zero))


def _filled(code: Code, fragment: Fragment, value: Value) -> int:
    component = value.id
    if fragment.component is Scalar.FLOAT16:  # whose values are their bits elsewhere
        component = code.do("OpBitcast", _component(code.types, fragment.component), value.id)
    return code.do("OpCompositeConstruct", matrix(code.types, fragment), component)


def _load(emitter: Statements, name: str) -> int:
    variable, type = emitter.fragments[name]
    return emitter.code.do("OpLoad", type, variable)


def _store(emitter: Statements, name: str, value: int) -> None:
    emitter.code.effect("OpStore", emitter.fragments[name][0], value)


# --- memory ---------------------------------------------------------------------------------------


def _place(
    emitter: Statements, op: CMLoad | CMStore
) -> tuple[int, int, int, tuple[int | str, ...]]:
    """Pointer, layout, stride and memory operands of a load or store."""
    code, memory = emitter.code, emitter.program.memory
    array = emitter.array(op.source if isinstance(op, CMLoad) else op.target)
    if memory.storage(array) not in ("PhysicalStorageBuffer", "Workgroup"):
        raise InvalidIR("fragments are loaded from and stored to global and shared memory")
    _check_aligned(op)
    index = emitter.expression(op.index)
    stride = code.resized(emitter.expression(op.stride), Scalar.INT32)  # Mesa takes no other
    pointer, words = memory.tile_pointer(code, array, index)
    if words > 1:
        stride = code.mul(stride, code.constant(stride.type, words))
    layout = code.types.number(Scalar.UINT32, _COLUMN_MAJOR if op.column_major else _ROW_MAJOR)
    return pointer, layout, stride.id, memory.operands(array)


def _check_aligned(op: CMLoad | CMStore) -> None:
    """Refuse a place that is known to lie where no row may begin."""
    wanted = row_alignment(op.fragment, op.column_major)
    size = wanted * op.fragment.component.bits // 8
    for word, expr in (("index", op.index), ("stride", op.stride)):
        if isinstance(expr, Const) and int(expr.value) % wanted:
            raise InvalidIR(
                f"a cooperative matrix has the {word} {int(expr.value)}, and its rows begin at "
                f"multiples of {size} bytes\n  hint: use multiples of {wanted} elements"
            )


def _operands(config: CoopmatConfig) -> str:
    """Which integers have a sign, and whether sums saturate."""
    parts = (
        ("MatrixASignedComponentsKHR", signed(config.a)),
        ("MatrixBSignedComponentsKHR", signed(config.b)),
        ("MatrixCSignedComponentsKHR", signed(config.c)),
        ("MatrixResultSignedComponentsKHR", signed(config.result)),
        ("SaturatingAccumulationKHR", config.saturating),
    )
    return "|".join(name for name, wanted in parts if wanted) or "NoneKHR"
