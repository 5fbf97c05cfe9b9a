"""Cooperative matrices: a fragment lies row by row in the memory of its lane group, a warp.

Each kind of operation is a function of the module, of plain loops: the inner ones go along rows, so
LLVM makes vectors of them. A multiply-add keeps the sums of a row apart, in the type in which they
are exact (integers) or as the oracle has them (float64), and converts once.
"""

from __future__ import annotations

from sarek_native import half_components
from sarek_native.expressions import emit
from sarek_native.operators import cast
from sarek_native.state import State
from sarek_native.values import memory_type, signed
from sarek_numba.ir.matrices import in_memory, sums_fit
from sarek_numba.ir.nodes import (
    CMDecl,
    CMFill,
    CMLoad,
    CMMulAdd,
    CMStore,
    Coopmat,
    CoopmatConfig,
    Fragment,
)
from sarek_numba.ir.types import HALVES, INT64, Scalar


def emit_matrix(state: State, stmt: Coopmat) -> None:
    """Emit one operation; all lanes of the group run."""
    code = state.code
    match stmt.op:
        case CMDecl(name=name, fragment=fragment):
            assert state.group_memory is not None
            if name not in state.fragments:
                state.fragments[name] = state.group_memory(_bytes(fragment))
            place = state.fragments[name]()
            code.effect(f"call void @llvm.memset(ptr {place}, i8 0, i64 {_bytes(fragment)}, i1 0)")
        case CMFill(target=name, fragment=fragment, value=value):
            component = in_memory(fragment.component)
            given = state.scalar(cast(code, emit(state, value), component))
            type = memory_type(component)
            function = code.require(
                f"matrix.fill.{type}.{fragment.rows * fragment.columns}",
                lambda: _fill(type, fragment.rows * fragment.columns),
            )
            code.effect(f"call void {function}(ptr {state.fragments[name]()}, {type} {given.text})")
        case CMLoad(target=name) as load:
            _move(state, load, name, "load")
        case CMStore(source=name) as store:
            _move(state, store, name, "store")
        case CMMulAdd(target=target, a=a, b=b, c=c, config=config):
            function = code.require(_name(config), lambda: _multiply_add(config))
            places = ", ".join(f"ptr {state.fragments[name]()}" for name in (target, a, b, c))
            code.effect(f"call void {function}({places})")


def _bytes(fragment: Fragment) -> int:
    return fragment.rows * fragment.columns * fragment.component.bits // 8


def _move(state: State, op: CMLoad | CMStore, name: str, word: str) -> None:
    code, fragment = state.code, op.fragment
    array = state.place_of(op.source if isinstance(op, CMLoad) else op.target)
    index = state.scalar(cast(code, emit(state, op.index), INT64))
    stride = state.scalar(cast(code, emit(state, op.stride), INT64))
    type = memory_type(in_memory(fragment.component))
    place = code.define(f"getelementptr {type}, ptr {array.pointer}, i64 {index.text}")
    order = "columns" if op.column_major else "rows"
    function = code.require(
        f"matrix.{word}.{order}.{type}.{fragment.rows}x{fragment.columns}",
        lambda: _mover(word, order, type, fragment.rows, fragment.columns),
    )
    held = state.fragments[name]()
    code.effect(f"call void {function}(ptr {held}, ptr {place}, i64 {stride.text})")


# --- functions ------------------------------------------------------------------------------------


def _function(name: str, parameters: str, body: str) -> str:
    lines = body.strip("\n")
    return f"define internal void @{name}({parameters}) noinline #0 {{\nentry:\n{lines}\n}}\n"


def _loop(word: str, count: int, before: str, body: str, after: str, inner: str = "") -> str:
    """Instructions of `for word in range(count)`; `inner` is the block in which the body ends."""
    return f"""
  br label %{word}.loop
{word}.loop:
  %{word} = phi i64 [ 0, %{before} ], [ %{word}.next, %{inner or f"{word}.loop"} ]
{body.strip(chr(10))}
  %{word}.next = add nuw nsw i64 %{word}, 1
  %{word}.more = icmp ult i64 %{word}.next, {count}
  br i1 %{word}.more, label %{word}.loop, label %{after}
{after}:
"""


def _fill(type: str, count: int) -> str:
    body = f"""
  %p = getelementptr {type}, ptr %f, i64 %i
  store {type} %value, ptr %p"""
    loop = _loop("i", count, "entry", body, "end")
    name = f"matrix.fill.{type}.{count}"
    return _function(name, f"ptr %f, {type} %value", f"{loop}  ret void")


def _mover(word: str, order: str, type: str, rows: int, columns: int) -> str:
    """Copy between a fragment and memory, whose rows (columns) begin `stride` elements apart."""
    outer, inner = ("%r", "%c") if order == "rows" else ("%c", "%r")
    source, target = ("%q", "%p") if word == "load" else ("%p", "%q")
    body = f"""
  %line = mul i64 {outer}, %stride
  %at = add i64 %line, {inner}
  %q = getelementptr {type}, ptr %memory, i64 %at
  %own = mul i64 %r, {columns}
  %place = add i64 %own, %c
  %p = getelementptr {type}, ptr %f, i64 %place
  %value = load {type}, ptr {source}
  store {type} %value, ptr {target}"""
    within = _loop("c", columns, "r.loop", body, "r.end")
    whole = _loop("r", rows, "entry", within, "end", "r.end")
    name = f"matrix.{word}.{order}.{type}.{rows}x{columns}"
    return _function(name, "ptr %f, ptr %memory, i64 %stride", f"{whole}  ret void")


def _name(config: CoopmatConfig) -> str:
    types = ".".join(each.value for each in (config.a, config.b, config.c, config.result))
    ending = ".saturating" if config.saturating else ""
    return f"matrix.muladd.{config.m}x{config.n}x{config.k}.{types}{ending}"


def sum_type(config: CoopmatConfig) -> str:
    """The LLVM type that holds the sums of a row."""
    if not config.accumulation_is_exact:
        return "double"
    if not config.saturating:
        return memory_type(config.result)  # sums modulo 2^n are of any sums modulo 2^n
    return "i64" if sums_fit(config, 64) else "i128"


def _multiply_add(config: CoopmatConfig) -> str:
    total, result = sum_type(config), memory_type(in_memory(config.result))
    word = ("fmul", "fadd") if total == "double" else ("mul", "add")
    begin = f"""
{_widened("c", config.c, total, "%i.n, %j0", "c")}
  %s0 = getelementptr {total}, ptr %sums, i64 %j0
  store {total} %c.wide, ptr %s0"""
    inside = f"""
{_widened("b", config.b, total, "%k.n, %j1", "b")}
  %s1 = getelementptr {total}, ptr %sums, i64 %j1
  %old = load {total}, ptr %s1
  %product = {word[0]} {total} %a.wide, %b.wide
  %new = {word[1]} {total} %old, %product
  store {total} %new, ptr %s1"""
    along = f"""
  %k.n = mul i64 %k, {config.n}
{_widened("a", config.a, total, "%i.k, %k", "a")}
{_loop("j1", config.n, "k.loop", inside, "k.end")}"""
    finish = f"""
  %s2 = getelementptr {total}, ptr %sums, i64 %j2
  %sum = load {total}, ptr %s2
{_narrowed(config, total)}
  %d.at = add i64 %i.n, %j2
  %d.place = getelementptr {result}, ptr %d, i64 %d.at
  store {result} %result, ptr %d.place"""
    row = f"""
  %i.n = mul i64 %i, {config.n}
  %i.k = mul i64 %i, {config.k}
{_loop("j0", config.n, "i.loop", begin, "summing")}
{_loop("k", config.k, "summing", along, "finish", "k.end")}
{_loop("j2", config.n, "finish", finish, "i.end")}"""
    whole = _loop("i", config.m, "entry", row, "end", "i.end")
    sums = f"  %sums = alloca [{config.n} x {total}], align 64\n"
    body = f"{sums}{whole}  ret void"
    return _function(_name(config), "ptr %d, ptr %a, ptr %b, ptr %c", body)


def _widened(array: str, type: Scalar, total: str, place: str, name: str) -> str:
    """Load a component and convert it to the type of the sums."""
    memory = memory_type(in_memory(type))
    load = f"""
  %{name}.at = add i64 {place}
  %{name}.place = getelementptr {memory}, ptr %{array}, i64 %{name}.at
  %{name}.value = load {memory}, ptr %{name}.place"""
    if memory == total:
        return f"{load}\n  %{name}.wide = bitcast {memory} %{name}.value to {total}"
    if type in HALVES:
        return f"{load}\n{half_components.widened(type, f'%{name}.value', f'%{name}.wide', name)}"
    if type.is_float:
        word = "fpext"
    elif int(memory[1:]) > int(total[1:]):
        word = "trunc"
    else:
        word = "sext" if signed(type) else "zext"
    return f"{load}\n  %{name}.wide = {word} {memory} %{name}.value to {total}"


def _narrowed(config: CoopmatConfig, total: str) -> str:
    """The sum as the result's type: rounded once, or the nearest that it holds."""
    if config.result in HALVES:
        return half_components.narrowed(config.result, "%sum", "%result")
    result = memory_type(config.result)
    if total == result:
        return f"  %result = bitcast {total} %sum to {result}"
    if total == "double":
        return f"  %result = fptrunc double %sum to {result}"
    low, high = config.result.minimum, config.result.maximum
    return f"""
  %small = icmp slt {total} %sum, {low}
  %least = select i1 %small, {total} {low}, {total} %sum
  %large = icmp sgt {total} %least, {high}
  %within = select i1 %large, {total} {high}, {total} %least
  %result = trunc {total} %within to {result}"""
