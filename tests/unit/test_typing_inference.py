"""Inference of whole functions: variables, joins, calls, captures, places of findings."""

from __future__ import annotations

import enum
import linecache
import math
from collections import namedtuple
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from numba.core import ir, types

from sarek_numba import errors
from sarek_numba.frontend import language as sarek
from sarek_numba.frontend.functions import function
from sarek_numba.frontend.infer import infer
from sarek_numba.frontend.typed import (
    Atomic,
    Barrier,
    Binary,
    Call,
    ConstantArray,
    CreateArray,
    Default,
    Index,
    IndexTuple,
    Typed,
)
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT, WeakInt
from sarek_numba.ir.nodes import AtomicOp, BinOp, Coordinate
from sarek_numba.ir.types import MemSpace

f32, f64, i8, u8 = types.float32, types.float64, types.int8, types.uint8
i32, u32, i64, u64, boolean = types.int32, types.uint32, types.int64, types.uint64, types.boolean


def array(element: Any, ndim: int = 1, layout: str = "C", readonly: bool = False) -> Any:
    return types.Array(element, ndim, layout, readonly=readonly)


def last(typed: Typed, name: str) -> Any:
    """The type of the last version of a variable."""
    versions = [v for v in typed.types if v == name or v.startswith(f"{name}.")]
    versions.sort(key=lambda v: [int(n) for n in v.split(".")[1:]])
    return typed.types[versions[-1]]


def operations(typed: Typed, kind: type) -> list[Any]:
    return [each for each in typed.operations.values() if isinstance(each.what, kind)]


def findings(kernel: Any, *args: Any) -> tuple[errors.Diagnostic, ...]:
    with pytest.raises(errors.CompileError) as caught:
        infer(kernel, args)
    return caught.value.diagnostics


def from_text(text: str, **names: Any) -> Any:
    """A kernel from text whose lines and columns are known."""
    file = f"<kernel {abs(hash(text))}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"sarek": sarek, "np": np, "math": math, **names}
    exec(compile(text, file, "exec"), scope)
    return scope["k"]


# --- accumulators ---------------------------------------------------------------------------------


def sum_from_float(x, n):
    acc = 0.0
    for j in range(n):
        acc += x[j]
    x[0] = acc


def sum_from_int(x, n):
    acc = 0
    for j in range(n):
        acc += x[j]
    x[0] = acc


@pytest.mark.parametrize(("element", "expected"), [(f32, f32), (f64, f64), (i32, f64)])
def test_a_float_accumulator_takes_the_type_it_meets(element: Any, expected: Any) -> None:
    assert last(infer(sum_from_float, (array(element), WEAK_INT)), "acc") == expected


@pytest.mark.parametrize("element", [i64, u8, u32, i32, f32])
def test_an_int_accumulator_takes_the_type_it_meets(element: Any) -> None:
    assert last(infer(sum_from_int, (array(element), WEAK_INT)), "acc") == element


def test_a_narrow_accumulator_is_noted() -> None:
    """Only where sums may wrap soon."""
    assert "wraps" in infer(sum_from_int, (array(u8), WEAK_INT)).notes[0].message
    assert infer(sum_from_int, (array(i32), WEAK_INT)).notes == []


def test_case_1_unsigned_with_literals_stays_unsigned() -> None:
    def k(x):
        r = x[0] + x[1]
        if r > 2305843009213693951:
            r = r - 2305843009213693951
        x[2] = r

    assert last(infer(k, (array(u64),)), "r") == u64


def test_case_2_xor_and_shift_of_an_accumulator() -> None:
    def k(x, n):
        h = 0
        for j in range(n):
            h ^= x[j]
            h <<= 1
        x[0] = h

    for element in (u32, u64):
        assert last(infer(k, (array(element), WEAK_INT)), "h") == element


def test_case_11_a_flag_stays_bool() -> None:
    def k(mask, n):
        flag = False
        for j in range(n):
            flag = flag | mask[j]
        mask[0] = flag

    assert last(infer(k, (array(boolean), WEAK_INT)), "flag") == boolean


def test_a_temporary_is_typed_again_when_its_loop_variable_turns_strong() -> None:
    """It does not keep the float64 that it had while the accumulator was weak."""

    def k(x, small, y, n):
        acc = 0.0
        for j in range(n):
            t = acc * small[j]
            acc = acc + x[j]
            y[j] = t

    typed = infer(k, (array(f32), array(i8), array(f32), WEAK_INT))
    assert last(typed, "t") == f32


def test_index_names_are_weak() -> None:
    def k(x):
        a = sarek.thread_idx.x
        b = sarek.global_thread_id
        c = len(x) + x.size + x.shape[0] + x.ndim
        d, e = sarek.grid(2)
        f = sarek.gridsize(1)
        x[0] = x[0] * a + b + c + d + e + f

    typed = infer(k, (array(f32),))
    assert typed.types["a"] == typed.types["b"] == typed.types["c"] == WEAK_INT
    assert typed.types["d"] == typed.types["f"] == WEAK_INT
    assert [each.what.coordinate for each in operations(typed, Index)] == [
        Coordinate.THREAD_IDX,
        Coordinate.GLOBAL_IDX,
        Coordinate.GRID_SIZE,
    ]
    assert operations(typed, IndexTuple)[0].what == IndexTuple(Coordinate.GLOBAL_IDX, 2)
    assert typed.notes == []


# --- joins ----------------------------------------------------------------------------------------


def test_a_refused_join_names_the_variable_and_both_lines() -> None:
    branches = "    if n > 0:\n        t = x[0]\n    else:\n        t = y[0]\n"
    text = f"def k(x, y, n):\n{branches}    x[1] = t\n"
    (finding,) = findings(from_text(text), array(i32), array(f32), WEAK_INT)
    assert finding.error is errors.TypingError
    assert finding.message.startswith("'t' holds int32 or float32")
    assert [(span.line, span.column) for span, _ in finding.notes] == [(3, 12), (5, 12)]
    assert finding.span == finding.notes[1][0]


def test_different_arrays_do_not_join() -> None:
    text = "def k(x, y, n):\n    if n > 0:\n        t = x\n    else:\n        t = y\n    t[0] = 1\n"
    (finding,) = findings(from_text(text), array(f32), array(f32), WEAK_INT)
    assert "different arrays" in finding.message


def test_alternatives_of_constants_meet_narrow_types() -> None:
    """On 3.12 the store is copied into both arms, on 3.11 it is not: the answer is one."""

    def k(x, n):
        x[0] = x[0] + (3 if n > 1 else 2)

    infer(k, (array(u8), WEAK_INT))


def test_none_arguments_prune() -> None:
    """The untaken branch need not have types."""

    def k(x, bias):
        value = x[0] if bias is None else x[0] + bias[0]
        if bias is not None:
            value = value + bias[1]
        x[0] = value

    infer(k, (array(f32), types.none))
    infer(k, (array(f32), array(f32)))


# --- unbound locals -------------------------------------------------------------------------------


def test_a_local_that_no_path_assigns_is_refused() -> None:
    text = "def k(x, n):\n    while n > 0:\n        n -= 1\n        x[0] = q\n    q = 1\n"
    (finding,) = findings(from_text(text), array(f32), WEAK_INT)
    assert finding.error is errors.UnboundLocal
    assert "'q'" in finding.message
    assert finding.span is not None
    assert finding.span.line == 4


def test_a_local_assigned_later_in_the_loop_is_taken() -> None:
    def k(x, n):
        for i in range(n):
            if i > 0:
                x[i] = t  # noqa: F821 # assigned by the pass before
            t = x[i] + 1  # noqa: F841

    typed = infer(k, (array(f32), WEAK_INT))
    assert last(typed, "t") == f32
    values = [i.value for b in typed.function_ir.blocks.values() for i in b.find_insts(ir.Assign)]
    assert all(
        getattr(value, "op", "") != "undef" for value in values if isinstance(value, ir.Expr)
    )


def test_some_paths_may_leave_a_local_unassigned() -> None:
    def k(x, n):
        if n > 0:
            t = x[0]
        x[1] = t

    typed = infer(k, (array(f32), WEAK_INT))
    incoming = [
        value
        for block in typed.function_ir.blocks.values()
        for inst in block.body
        if isinstance(inst, ir.Assign) and getattr(inst.value, "op", "") == "phi"
        for value in inst.value.incoming_values
    ]
    assert ir.UNDEFINED in incoming


# --- device functions -----------------------------------------------------------------------------


@function
def scale(value, factor=2.0, *, offset=1):
    return value * factor + offset, value


@function
def store(a, i):
    a[i] = 1


@function
def recursive(n):
    return 1 + recursive(n - 1) if n > 0 else 0


def test_calls_bind_positions_keywords_and_defaults() -> None:
    def k(x):
        p, q = scale(x[0], offset=3)
        store(x, 0)
        x[0] = p + q

    typed = infer(k, (array(f32),))
    call, stored = operations(typed, Call)
    assert call.operands == (f32, WEAK_FLOAT, WEAK_INT)
    value, factor, offset = call.arguments
    assert isinstance(value, ir.Var)
    assert isinstance(offset, ir.Var)
    assert isinstance(factor, Default)
    assert factor.value == 2.0
    assert call.result == types.UniTuple(f32, 2)
    assert stored.result == types.none
    assert [each.name for each in typed.callees] == ["scale", "store"]


def test_each_tuple_of_types_specialises_once() -> None:
    def k(x, y):
        x[0] = scale(x[0])[0] + scale(x[1])[1]
        y[0] = scale(y[0])[0]

    assert len(infer(k, (array(f32), array(f64))).callees) == 2


def test_recursion_is_refused_by_name() -> None:
    def k(x, n):
        x[0] = recursive(n)

    (finding,) = findings(k, array(f32), WEAK_INT)
    assert finding.message == "recursive() calls itself"


def test_wrong_arguments_name_the_function_and_the_parameter() -> None:
    text = "def k(x):\n    x[0] = scale()\n    x[0] = scale(1, size=2)\n"
    first, second = findings(from_text(text, scale=scale), array(f32))
    assert first.message == "scale() lacks its argument 'value'"
    assert "size" in second.message or "value" in second.message


def test_findings_in_a_device_function_are_placed_there() -> None:
    @function
    def bad(x):
        return x + 300

    def k(x):
        x[0] = bad(x[0])

    (finding,) = findings(k, array(u8))
    assert finding.span is not None
    assert finding.span.line == bad.function.__code__.co_firstlineno + 2


def test_plain_functions_are_refused_with_the_hint() -> None:
    def plain(x):
        return x

    def k(x):
        x[0] = plain(x[0])

    (finding,) = findings(k, array(f32))
    assert finding.hint == "decorate it with @sarek.function"


# --- captures -------------------------------------------------------------------------------------

TABLE = np.arange(4, dtype=np.float32)
STRONG = np.float64(2.5)
SHAPE = (4, 8)


class Colour(enum.IntEnum):
    RED = 3


Pair = namedtuple("Pair", "first second")
PAIR = Pair(2, 3.5)


def test_captured_values_are_typed_and_recorded() -> None:
    factor = 3

    def k(x):
        table = sarek.const.array_like(TABLE)
        a = STRONG
        b = x[0] * factor + SHAPE[1] + Colour.RED + PAIR.second + math.pi
        c, d = PAIR
        x[0] = table[0] + b + c + d
        x[1] = a

    typed = infer(k, (array(f32),))
    assert typed.types["a"] == f64
    assert typed.types["b"] == f32
    captured = {(each.name, each.path): each for each in typed.captures}
    assert captured["factor", ()].value == 3
    assert captured["Colour", ("RED",)].value is Colour.RED
    assert ("math", ("pi",)) not in captured
    assert all(each.is_current() for each in typed.captures)
    assert operations(typed, ConstantArray)[0].what.values.tolist() == TABLE.tolist()


def test_case_79_a_changed_cell_is_noticed() -> None:
    factor = 3

    def k(x):
        x[0] = x[0] * factor

    typed = infer(k, (array(f32),))
    factor = 4
    (capture,) = [each for each in typed.captures if each.name == "factor"]
    assert not capture.is_current()


def test_a_changed_constant_array_is_noticed() -> None:
    table = np.arange(4, dtype=np.float32)

    def k(x):
        x[0] = sarek.const.array_like(table)[0]

    typed = infer(k, (array(f32),))
    table[0] = 9
    assert [each.name for each in typed.captures if not each.is_current()] == ["table"]


def test_a_captured_array_is_refused_with_the_hint() -> None:
    def k(x):
        x[0] = TABLE[0]

    (finding,) = findings(k, array(f32))
    assert "sarek.const.array_like" in (finding.hint or "")


def test_an_unset_cell_is_an_unknown_name() -> None:
    def k(x):
        x[0] = later

    assert findings(k, array(f32))[0].error is errors.UnknownName
    later = 1  # read by the kernel's cell


# --- memory ---------------------------------------------------------------------------------------


def test_memory_spaces_are_in_the_types() -> None:
    def k(a):
        s = sarek.shared.array((16, 17), sarek.float32)
        p = sarek.local.array(4, np.int32)
        d = sarek.shared.array(0, np.float32)
        e = sarek.shared.dynamic(256, sarek.int32)
        row = s[1]
        column = s[:, 1]
        a[0] = row[0] + column[0] + p[0] + d[0] + e[0] + s.shape[1] + len(s)

    typed = infer(k, (array(f32),))
    assert typed.types["s"].space is MemSpace.SHARED
    assert typed.types["s"].extents == (16, 17)
    assert typed.types["p"].space is MemSpace.LOCAL
    assert typed.types["row"].space is MemSpace.SHARED
    assert (typed.types["row"].layout, typed.types["column"].layout) == ("C", "A")
    made = [each.what for each in operations(typed, CreateArray)]
    assert made[2:] == [
        CreateArray(MemSpace.SHARED, None, 0),
        CreateArray(MemSpace.SHARED, None, 256),
    ]


def test_layouts_of_views() -> None:
    def k(a):
        b = a[1, 2:4]
        c = a[1:3]
        d = a[:, 1:2]
        e = a[::-1]
        f = a.T
        b[0] = c[0, 0] + d[0, 0] + e[0, 0] + f[0, 0]

    typed = infer(k, (array(f32, 2),))
    assert [typed.types[name].layout for name in "bcdef"] == ["C", "C", "A", "A", "F"]


def test_read_only_arrays_cannot_be_written() -> None:
    text = "def k(x):\n    x[0] = 1\n    sarek.atomic.add(x, 0, 1)\n"
    found = findings(from_text(text), array(f32, readonly=True))
    assert [each.error for each in found] == [errors.ReadOnlyWrite] * 2


def test_a_store_converts_but_refuses_constants_that_do_not_fit() -> None:
    def converts(x, n):
        x[0] = int(n * 255.0)
        x[1] = n

    def refused(x):
        x[0] = 300

    infer(converts, (array(u8), WEAK_INT))
    assert findings(refused, array(u8))[0].error is errors.ConstantOverflow


def test_an_index_is_an_integer() -> None:
    text = "def k(x):\n    x[1.5] = 1\n    x[x[0] > 1] = 2\n    x[0, 1] = 3\n"
    found = findings(from_text(text), array(f32))
    assert [each.span.line for each in found if each.span] == [2, 3, 4]


def test_atomics_give_the_old_value() -> None:
    def k(a, b):
        old = sarek.atomic.add(a, 0, 1)
        new = sarek.atomic.cas(a, 1, old, 2)
        sarek.atomic.store(b, (0, 1), 2.5)
        a[0] = new

    typed = infer(k, (array(u32), array(f32, 2)))
    assert [each.what.op for each in operations(typed, Atomic)] == [
        AtomicOp.ADD,
        AtomicOp.CAS,
        AtomicOp.STORE,
    ]
    assert typed.types["old"] == u32


def test_atomics_on_other_types_are_refused_by_name() -> None:
    def k(a):
        sarek.atomic.add(a, 0, 1)

    assert "uint8" in findings(k, array(u8))[0].message


# --- notes ----------------------------------------------------------------------------------------


def test_float64_that_nobody_asked_for_is_noted() -> None:
    text = "def k(x, y):\n    x[0] = x[0] * y[0]\n    x[1] = x[1] * 2.0\n"
    typed = infer(from_text(text), (array(f32), array(i32)))
    (note,) = typed.notes
    assert note.span is not None
    assert (note.span.line, note.span.column, note.span.end_column) == (2, 11, 22)


# --- findings -------------------------------------------------------------------------------------


def test_all_findings_of_types_come_at_once_with_columns() -> None:
    text = (
        "def k(x, n):\n"
        "    a = x + 1\n"
        "    b = missing(3)\n"
        "    c = math.florr(x[0])\n"
        "    open(n)\n"
        "    if x:\n"
        "        pass\n"
        "    x.sum()\n"
        "    np.sqrt(x[0], out=3)\n"
        "    s = sarek.warp.shuffle(x, 1)\n"
        "    h = sarek.half_bits(x)\n"
    )
    found = findings(from_text(text), array(f32), WEAK_INT)
    places = [(each.span.line, each.span.column) for each in found if each.span]
    assert places == [(2, 8), (3, 8), (4, 8), (5, 4), (6, 7), (8, 4), (9, 4), (10, 27), (11, 8)]
    assert found[2].hint == "did you mean 'floor'?"
    assert "sarek.warp.shuffle" in found[7].message


def test_case_91_a_kernel_that_returns_a_value_is_refused() -> None:
    text = "def k(x, n):\n    if n > 1:\n        return\n    return x[0]\n"
    (finding,) = findings(from_text(text), array(f32), WEAK_INT)
    assert finding.message == "a kernel returns nothing"
    assert finding.span is not None
    assert finding.span.line == 4


def test_case_161_containers_are_refused() -> None:
    """Also where the text is missing."""
    scope: dict[str, Any] = {}
    exec("def k(x):\n    a = [1, 2]\n    x[0] = a[0]\n", scope)
    assert findings(scope["k"], array(f32))[0].error is errors.UnsupportedConstruct


def test_without_source_a_kernel_still_compiles() -> None:
    scope: dict[str, Any] = {}
    exec("def k(x, n):\n    assert n > 0, 'positive'\n    x[0] = n + 1\n", scope)
    kernel: FunctionType = scope["k"]
    typed = infer(kernel, (array(f32), WEAK_INT))
    raises = [
        block.body[-1]
        for block in typed.function_ir.blocks.values()
        if isinstance(block.body[-1], ir.StaticRaise)
    ]
    assert [each.exc_args for each in raises] == [("positive",)]


def test_membership_compares_each_item() -> None:
    def k(x, n):
        x[0] = n in (1, 2) and n not in (3, 4)

    infer(k, (array(boolean), i32))


def test_a_superstep_is_its_body_and_a_barrier() -> None:
    def k(x):
        with sarek.superstep():
            x[0] = 1
        x[1] = 2

    assert len(operations(infer(k, (array(f32),)), Barrier)) == 1


def test_operators_carry_the_operation_of_the_ir() -> None:
    def k(x, n):
        x[0] = x[0] % n

    (operation,) = operations(infer(k, (array(i32), WEAK_INT)), Binary)
    assert operation.what == Binary(BinOp.FLOORMOD)
    assert operation.operands == (i32, i32)
    assert isinstance(operation.arguments[1], ir.Var)
    assert WeakInt.of(3).value == 3
