"""Which kernels Intel's compiler is kept from laying out lane by lane, and what is printed then."""

from __future__ import annotations

import pytest

import sarek_numba as sarek
from sarek_numba.codegen import cfamily
from sarek_opencl import intel
from sarek_opencl.dialect import DIALECT
from tests.unit.lower_kit import INT32, kernel_of

APART = {}
TOGETHER = {}


def _in(table):
    def register(function):
        table[function.__name__] = function
        return function

    return register


@sarek.function
def one_of_two(values, k, x):
    if x > 0:
        return values[k]
    return values[k + 1]


@sarek.function
def element(values, k):
    return values[k]


@sarek.function
def sign(x):
    if x < 0:
        return -1
    return 1


@_in(APART)
def in_a_helper(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    out[i] = one_of_two(v, 2, x[i])


@_in(APART)
def in_arms(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    if x[i] > 0:
        out[i] = v[x[0]]
    else:
        out[i] = v[x[1]]


@_in(APART)
def written_in_arms(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    if x[i] > 0:
        v[x[0]] = 1
    else:
        v[x[1]] = 2
    for k in range(4):
        out[i] += v[k]


@_in(APART)
def in_a_conditional_expression(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    out[i] = v[x[0]] if x[i] > 0 else v[x[1]]


@_in(APART)
def in_a_short_circuit(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    out[i] = v[x[0]]
    if x[i] > 0 and v[x[1]] > 0:
        out[i] += 1


@_in(APART)
def by_an_index_of_the_thread(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    out[i] = v[x[i] & 3]


@_in(APART)
def written_by_an_index_of_the_thread(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    v[x[i] & 3] = 1
    out[i] = v[1]


@_in(APART)
def in_a_loop_left_apart(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    last = v[x[0]]
    for _ in range(x[i]):
        last = v[x[1]]
    out[i] = last


@_in(APART)
def in_each_pass(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    for k in range(4):
        if x[i] > k:
            out[i] = v[k]


@_in(APART)
def before_and_behind_a_way_out(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    out[i] = v[x[0]]
    if x[i] > 0:
        return
    out[i] = v[x[1]]


@_in(APART)
def until_a_way_out(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    for k in range(4):
        out[i] = v[k]
        if x[i] > k:
            break


@_in(APART)
def by_calls_in_arms(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    if x[i] > 0:
        out[i] = element(v, x[0])
    else:
        out[i] = element(v, x[1])


@_in(TOGETHER)
def in_step(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    if i < len(x):
        for k in range(4):
            v[k] = x[i] * k
        for k in range(4):
            out[i] += v[k] * v[3 - k]


@_in(APART)
def where_all_go_one_way(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = x[i] * k
    out[i] = v[x[0]] if x[2] > 0 else v[x[1]]


@_in(APART)
def where_all_take_one_branch(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    if x[2] > 0:
        out[i] = v[x[0]]
    else:
        out[i] = v[x[1]]


@_in(TOGETHER)
def where_all_make_equal_passes(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = k
    last = v[x[0]]
    for k in range(x[1]):
        last = v[k]
    out[i] = last


@_in(TOGETHER)
def beside_a_helper_that_leaves_early(out, x):
    v = sarek.local.array(4, sarek.int32)
    i = sarek.global_idx.x
    for k in range(4):
        v[k] = sign(x[i])
    out[i] = v[x[0]] + v[x[1]]


@_in(TOGETHER)
def without_an_array(out, x):
    i = sarek.global_idx.x
    out[i] = x[i] if x[i] > 0 else sign(x[i])


def _printed(function):
    kernel = kernel_of(function, INT32, INT32)
    return cfamily.emit(kernel, intel.dialect_for(kernel, DIALECT)).text


@pytest.mark.parametrize("name", APART)
def test_threads_that_may_choose_keep_the_common_layout(name: str) -> None:
    """The array is a field of a structure."""
    text = _printed(APART[name])
    assert "    struct { int elements[4]; } v_holder;\n    int *v = v_holder.elements;\n" in text
    assert "int v[4];" not in text


@pytest.mark.parametrize("name", TOGETHER)
def test_threads_in_step_keep_the_fast_layout(name: str) -> None:
    """Nothing is printed otherwise than for other devices."""
    assert "struct" not in _printed(TOGETHER[name])


def test_an_array_of_the_block_is_named_once():
    """All places of the kernel go by a pointer that the array's declaration hands on."""

    def reversed_block(out, x):
        tile = sarek.shared.array(4, sarek.int32)
        t = sarek.thread_idx.x
        tile[t] = x[t]
        sarek.barrier()
        out[t] = tile[3 - t]

    text = _printed(reversed_block)
    start = "tile_holder + (get_group_id(0) >> 63)"
    assert f"    local int tile_holder[4];\n    local int *tile = {start};\n" in text
    assert text.count("tile_holder") == 2
