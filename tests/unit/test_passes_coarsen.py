"""The pass that gives a thread the work of several: what it takes, and what it leaves alone."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest

from sarek_numba.codegen.target import Target
from sarek_numba.ir import nodes as ir
from sarek_numba.ir.parse import parse
from sarek_numba.ir.text import text
from sarek_numba.ir.verify import verify
from sarek_numba.passes.coarsen import _REFUSED, _TAKEN, asked, coarsen, each_of, launched

GPU = Target("gpu", 32, coarsening=16)
HEAD = """kernel k index 32 {
  param x: vec<f32> = argument 0 array(f32, global, 1, C)
  param n: i32 = length 0
"""
LET = "  let i: i32 = global_idx.x.i32\n"
TRIPLE = "    x[i] = x[i] * 3.0f32\n"


def made(body: str, target: Target = GPU, head: str = HEAD) -> tuple[ir.Kernel, str]:
    """The kernel after the pass, and what was decided."""
    kernel = parse(head + body + "}\n")
    verify(kernel)
    with asked() as decision:
        result = coarsen(kernel, target)
    verify(result)
    assert parse(text(result)) == result
    return result, str(decision.outcome)


def test_loads_of_all_stand_before_the_stores() -> None:
    """Four of the user's threads: their reads, then their writes, and behind it the plain code."""
    kernel, told = made(f"{LET}  if i < n {{\n{TRIPLE}  }}\n")
    assert told.startswith("applied, proven: 4 elements a thread")
    assert each_of(kernel.params) == 4
    assert launched(kernel.params, (9, 2, 3)) == (3, 2, 3)
    lines = [line.strip() for line in text(kernel).splitlines()]
    first = next(k for k, line in enumerate(lines) if line.startswith("let value"))
    assert [line.split()[0] for line in lines[first : first + 4]] == ["let"] * 4
    assert [line[0] for line in lines[first + 4 : first + 8]] == ["x"] * 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("  barrier\n", "its threads meet at a barrier"),
        ("  shared t: array<f32, shared> = f32[8]\n  t[0] = 1.0f32\n", "it has shared memory"),
        ("  local t: array<f32, local> = new local f32[8]\n  t[0] = 1.0f32\n", "local arrays"),
        ("  fence device\n", "it has a fence"),
        ("  let o: f32 = atomic add(x[0], 1.0f32)\n", "it has atomic operations"),
        ('  print("a")\n', "it prints"),
        ('  assert n > 0i32, "a"\n', "it asserts"),
        ("  while n > 0i32 {\n  }\n", "it has a loop"),
        ("  for j: i32 in range(0i32, n, 1i32) {\n    x[j] = 1.0f32\n  }\n", "it has a loop"),
        ("  if n > 0i32 {\n    return\n  }\n", "it returns from within"),
        ("  x[grid_dim.x.i32] = 1.0f32\n", "it asks for the number of blocks"),
        ("  x[0] = x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7] + x[8] + x[9]\n", "36 bytes"),
        ("  x[0] = " + " + ".join(["1.0f32"] * 120) + "\n", "it is long"),
    ],
)
def test_what_is_left_alone(body: str, why: str) -> None:
    """The kernel as it was, and the reason."""
    kernel, told = made(body)
    assert kernel == parse(HEAD + body + "}\n")
    assert told.startswith("not applied: ")
    assert why in told


def test_no_array_and_wide_elements() -> None:
    """Nothing is won where nothing is waited for, or enough of it."""
    _, told = made("", head="kernel k index 32 {\n  param n: i32 = argument 0\n")
    assert told == "not applied: it uses no array"
    _, told = made(f"{LET}  if i < n {{\n{TRIPLE}  }}\n", Target("gpu", 32, coarsening=4))
    assert told == "not applied: its elements of 4 bytes are wide enough"


def test_a_target_that_cannot_is_told_nothing() -> None:
    """No decision, no change; a second run has a loop before it, and changes nothing."""
    body = f"{LET}  if i < n {{\n{TRIPLE}  }}\n"
    kernel, told = made(body, replace(GPU, coarsening=0))
    assert told == "None"
    assert each_of(kernel.params) == 1
    once, _ = made(body)
    with asked():
        assert coarsen(once, GPU) is once
    kernel = parse(HEAD + body + "}\n")
    assert coarsen(kernel, GPU) is kernel  # nobody asks


def test_a_test_that_reads_memory_is_no_guard() -> None:
    """What data decides is decided for each of the threads."""
    kernel, told = made(f"{LET}  if x[i] < 1.0f32 {{\n{TRIPLE}  }}\n")
    assert "applied" in told
    assert text(kernel).count(" < 1.0f32") == 5  # four together, one in the loop
    assert " and " not in text(kernel)


def test_every_statement_is_taken_or_refused() -> None:
    """Each has its own word, so that none slips in."""
    flat = {ir.Seq, ir.Block, ir.Empty, ir.ExprStmt}  # not there after `flatten`
    inner = {ir.Break, ir.Continue, ir.Match, ir.Native}  # of loops, records and texts
    known = set(_TAKEN) | set(_REFUSED)
    assert set(typing.get_args(ir.Stmt)) == known | flat | inner
    assert not set(_TAKEN) & set(_REFUSED)
