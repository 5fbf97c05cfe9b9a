"""The Metal Shading Language as a table: what it spells, refuses, leaves to operations on bits."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_metal.dialect import (
    DIALECT,
    EMULATED,
    MISSING,
    TARGET,
    contracting,
    target_for,
)
from sarek_metal.record import Abilities, facts
from sarek_numba.capability import PROMISES, Capability, Verdict
from sarek_numba.codegen import cfamily
from sarek_numba.codegen.prelude import has_prelude
from sarek_numba.errors import InvalidIR
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import App, AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import Kind, MemSpace, Scalar
from sarek_numba.ir.walk import walk_body_exprs
from sarek_numba.passes import optimise
from sarek_numba.passes.exact import OPERATIONS
from tests.toolchains import shim
from tests.toolchains.shim import metal


def text(kernel, *arguments, target=TARGET, dialect=DIALECT):
    return cfamily.emit(optimise(kernel.ir(*arguments), target), dialect).text


def test_every_function_has_a_spelling():
    """Of float32 and of integers, or it is missing by name, or computed on the bits."""
    own = {name for name, _ in TARGET.own_operations}
    for info in INTRINSICS.values():
        if info.name == "reinterpret":
            continue
        for scalar in DIALECT.types:
            kinds = info.kinds
            if scalar.kind not in kinds or (scalar.kind is Kind.FLOAT and info.name in MISSING):
                continue
            spelled = (info.name, scalar) in DIALECT.functions or has_prelude(info.name, scalar)
            assert spelled or info.name in own, (info.name, scalar)


def test_the_tables_are_total():
    """Coordinates, fences, spaces, conversions; atomics of 32 bits, natively or by a loop."""
    assert set(DIALECT.coordinates) == set(Coordinate)
    assert set(DIALECT.fences) == set(FenceScope)
    assert set(DIALECT.pointer_space) == set(DIALECT.declare_space) == set(MemSpace)
    assert Scalar.FLOAT64 not in DIALECT.types
    integers = [scalar for scalar in DIALECT.types if scalar.is_integer]
    assert set(DIALECT.saturate) == {(Scalar.FLOAT32, scalar) for scalar in integers}
    for op in AtomicOp:
        for scalar in (Scalar.INT32, Scalar.UINT32):
            assert (op, scalar) in DIALECT.atomics or has_prelude(f"atomic_{op.value}", scalar)
    assert set(EMULATED) <= set(PROMISES)
    assert set(EMULATED.values()) <= set(OPERATIONS)


def test_facts_are_those_of_the_dialect():
    """What has no spelling has no available fact; unknown promises are those that are emulated, or
    stand on a rounding that is not known."""
    known = facts(Abilities(is_apple=True, has_scoped_fences=True))
    for capability, fact in known.items():
        if capability.scalar is Scalar.FLOAT64:
            assert fact.verdict is Verdict.UNAVAILABLE
        if capability.feature == "function":
            assert capability.function in MISSING
    unknown = {
        capability.feature for capability, f in known.items() if f.verdict is Verdict.UNKNOWN
    }
    assert unknown == {*EMULATED, "rounding", "subnormal_inputs", "subnormal_results"}
    assert all(fact.evidence for fact in known.values())


def test_devices_differ_in_warps_and_fences():
    """Other makers' SIMD-groups are not known; fences with a scope came with version 3.2."""
    known = facts(Abilities(is_apple=False, has_scoped_fences=False))
    assert known[Capability("warp")].verdict is Verdict.UNKNOWN
    fence = known[Capability("fence", function="device")]
    assert fence.verdict is Verdict.UNAVAILABLE
    assert "macOS 15" in fence.evidence


@sarek.function
def rank(bias):
    return sarek.global_idx.x * sarek.block_dim.x + bias


@sarek.function
def outer(bias):
    return rank(bias) + sarek.thread_idx.y


@sarek.kernel
def through_helpers(out):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = outer(3)


def test_helpers_are_given_the_built_in_values_that_they_use():
    """Metal has them as parameters of kernels; each helper gets what it and its callees use."""
    shown = text(through_helpers, np.zeros(4, np.int64))
    heads = dict(re.findall(r"static \w+ (rank|outer)\((.*?)\) \{", shown, re.DOTALL))
    assert set(re.findall(r"uint3 (\w+)", heads["rank"])) == {
        "thread_index",
        "group_index",
        "group_size",
    }
    assert set(re.findall(r"uint3 (\w+)", heads["outer"])) >= set(
        re.findall(r"uint3 (\w+)", heads["rank"])
    )
    assert re.search(r"rank\(bias, thread_index, group_index, group_size\)", shown)


@sarek.kernel
def arithmetic(out, x, y):
    i = sarek.global_idx.x
    out[i] = x[i] / y[i] + x[i] % y[i] + x[i] // y[i] + np.sqrt(x[i])


F = np.zeros(4, np.float32)


def test_operations_on_the_bits():
    """A rest always; a quotient and a root where the device is not known to be exact."""
    exact = text(arithmetic, F, F, F)
    assert "fmod_float32(" in exact
    assert "divide_float32" in exact, "of //, which stands on a rest and a quotient"
    assert " / " in exact
    assert "precise::sqrt(" in exact
    emulated = text(arithmetic, F, F, F, target=target_for(frozenset(EMULATED)))
    assert re.search(r"\w / \w", emulated) is None
    assert "precise::sqrt" not in emulated
    assert "sqrt_float32(" in emulated
    legal = optimise(arithmetic.ir(F, F, F), target_for(frozenset(EMULATED)))
    assert any(isinstance(expr, App) for expr in walk_body_exprs(legal.body))


def test_products_and_sums_stay_apart():
    """By a pragma, which only `accept.fastmath` takes away."""
    assert "#pragma METAL fp contract(off)" in text(arithmetic, F, F, F)
    granted = text(arithmetic, F, F, F, dialect=contracting(DIALECT))
    assert "contract(off)" not in granted
    assert granted.count("contract(on)") == 2


def test_numbers_are_one_structure():
    """Behind the buffers, each at its place; names that the language has are given away."""

    @sarek.kernel
    def named(device, thread_index, kernel: sarek.float32):
        thread_index[0] = device[0] + kernel

    shown = text(named, F, F, 1.0)
    assert "[[buffer(0)]]" in shown
    assert "[[buffer(1)]]" in shown
    assert "constant sarek_arguments &arguments [[buffer(2)]]" in shown
    assert re.search(r"float kernel_1 = arguments\.kernel_1;", shown)
    assert "device_1" in shown
    assert "thread_index_1" in shown


def test_float64_has_no_spelling():
    """What no gate has refused is refused by the printer."""
    with pytest.raises(InvalidIR, match="no spelling for the type"):
        text(arithmetic, np.zeros(4), np.zeros(4), np.zeros(4))


needs_shim = pytest.mark.skipif(bool(shim.why_not()), reason=shim.why_not() or "present")


@needs_shim
def test_measured_and_unmeasured_texts_agree():
    """Native operations of the CPU are exact: both texts give the same bits."""
    rng = np.random.default_rng(7)
    x, y = (rng.integers(0, 2**32, 256, np.uint64).astype(np.uint32).view(np.float32) for _ in "xy")
    results = []
    for promises in (frozenset(), frozenset(EMULATED)):
        language = replace(shim.LANGUAGES["shim:metal"], target=target_for(promises))
        out = np.zeros(256, np.float32)
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(shim.LANGUAGES, "shim:metal", language)
            shim.device.cache_clear()
            with sarek.use_device(shim.device("shim:metal")), np.errstate(all="ignore"):
                arithmetic[4, 64](out, x, y)
        results.append(out)
    shim.device.cache_clear()
    assert np.array_equal(*results, equal_nan=True)
    assert np.isfinite(results[0]).sum() > 50


def test_the_shim_wants_an_attribute_for_each_parameter():
    """A text whose parameter nothing fills is no program."""
    wrong = text(through_helpers, np.zeros(4, np.int64)).replace(" [[buffer(0)]]", "")
    with pytest.raises(AssertionError, match="no attribute tells"):
        metal.as_cpp(wrong, "program", "run", 16)
