"""Rules of cooperative matrices in IR: fragments, memory, operands, and who must reach them."""

from __future__ import annotations

import pytest

from sarek_numba.errors import DivergentBarrier, InvalidIR
from sarek_numba.ir.nodes import CoopmatConfig, Kernel
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.types import Scalar
from sarek_numba.ir.verify import check_convergence, verify
from sarek_numba.ir.warps import has_meetings, uses_warps
from tests.unit.coopmat_kernels import Product

BYTES = CoopmatConfig(8, 8, 8, Scalar.INT8, Scalar.INT8, Scalar.INT32, Scalar.INT32)
PRODUCT = Product(BYTES, 8).text()
ACC = 'fragment("result", i32, 8, 8, "subgroup")'


def changed(old: str, new: str, count: int = 1) -> Kernel:
    assert old in PRODUCT
    return parse(PRODUCT.replace(old, new, count))


@pytest.mark.parametrize("memory", ["global", "shared", "dynamic"])
def test_products_are_legal(memory):
    """The kernels of these tests are, and their text is read back node for node."""
    kernel = Product(BYTES, 8, "a", memory).kernel()
    assert parse(text(kernel)) == kernel
    assert uses_warps(kernel)
    assert has_meetings(kernel)


def test_a_result_is_added_to():
    """A fragment is `c` and `result` of a multiply-add, if these have one type, under either."""
    verify(parse(PRODUCT.replace('fragment("result", i32', 'fragment("c", i32')))
    with pytest.raises(InvalidIR, match="fragment acc is not declared so"):
        verify(changed("i8, i8, i32, i32, false", "i8, i8, u32, i32, false"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" warp 8", "", "the kernel states no width of a warp"),
        (f"load(\"acc\", {ACC}", 'load("acc", fragment("c", i32, 8, 8, "subgroup")', "acc is not"),
        ('load("b"', 'load("z"', "fragment z is not declared so"),
        ('declare("b"', 'declare("a"', "fragment a is declared twice"),
        ('"acc", "a", "b", "acc"', '"acc", "b", "a", "acc"', "fragment b is not declared so"),
        ("config(8, 8, 8,", "config(8, 8, 16,", "fragment a is not declared so"),
        (", 24, row_major", ", 2.0, row_major", "an integer"),
        ("a[row *.w 24 +.w step]", "c[row *.w 24 +.w step]", "a fragment of int8 is not in c"),
        ("array(i32, global, 1, C)", "array(i32, global, 1, C, readonly)", "out"),
    ],
)  # fmt: skip
def test_refused(old, new, said):
    with pytest.raises(InvalidIR, match=said):
        verify(changed(old, new))


def test_memory_of_a_thread_has_no_fragments():
    """All threads of the warp load one matrix."""
    kernel = changed(
        "  coopmat declare", "  local own: array<i8, local> = new local i8[64]\n  coopmat declare"
    )
    verify(kernel)
    kernel = parse(text(kernel).replace("b[step *.w 32 +.w column]", "own[0]"))
    with pytest.raises(InvalidIR, match="a fragment of int8 is not in own"):
        verify(kernel)


def test_fills_are_of_the_component():
    fill = f'  coopmat fill("acc", {ACC}, 7i32)\n  coopmat store'
    verify(changed("  coopmat store", fill))
    with pytest.raises(InvalidIR, match="what fragment acc is filled with"):
        verify(changed("  coopmat store", fill.replace("7i32", "7")))


@pytest.mark.parametrize(("condition", "refused"), [("thread_idx", True), ("block_idx", False)])
def test_every_thread_of_the_warp_takes_part(condition, refused):
    """An operation where threads of a warp part is the user's fault."""
    lines = PRODUCT.split("\n")
    first = next(k for k, line in enumerate(lines) if "coopmat load" in line)
    lines[first] = f"  if {condition}.x < 3 {{\n{lines[first]}\n  }}"
    found = check_convergence(parse("\n".join(lines)))
    assert [(each.error, each.message) for each in found] == [
        (
            DivergentBarrier,
            "coopmat.load() is reached only by threads for which `thread_idx.x < 3` holds",
        )
    ] * refused
