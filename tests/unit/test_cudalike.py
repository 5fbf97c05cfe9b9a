"""The tables of CUDA's and HIP's dialects have an entry for everything that a kernel can be."""

from __future__ import annotations

from itertools import product

import pytest

from sarek_cuda.dialect import DIALECT as CUDA
from sarek_hip.dialect import DIALECT as HIP
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.prelude import has_prelude
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import AtomicOp, Coordinate, FenceScope
from sarek_numba.ir.types import MemSpace, Scalar

HALVES = {Scalar.FLOAT16, Scalar.BFLOAT16}
FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
INTEGERS = tuple(scalar for scalar in Scalar if scalar.is_integer)
INTEGER_ONLY = {AtomicOp.AND, AtomicOp.OR, AtomicOp.XOR, AtomicOp.INC, AtomicOp.DEC}
dialects = pytest.mark.parametrize("dialect", [CUDA, HIP], ids=["cuda", "hip"])


@dialects
def test_types(dialect: Dialect) -> None:
    """Every type but the halves, which no C-like dialect has yet, with its literals."""
    types = set(Scalar) - HALVES
    assert set(dialect.types) == set(dialect.reinterpret) == types
    assert set(dialect.suffixes) == {s for s in types if s.bits >= 32 and s is not Scalar.BOOL}
    assert set(dialect.infinity) == set(dialect.nan) == set(dialect.float_functions) == set(FLOATS)
    assert set(dialect.saturate) == set(product(FLOATS, INTEGERS))


@dialects
def test_places(dialect: Dialect) -> None:
    """Every memory space, coordinate and fence."""
    assert set(dialect.pointer_space) == set(dialect.declare_space) == set(MemSpace)
    assert set(dialect.coordinates) == set(Coordinate)
    assert set(dialect.narrow_coordinates) == dialect.wide_coordinates
    assert set(dialect.fences) == set(FenceScope)


@dialects
def test_functions(dialect: Dialect) -> None:
    """Every intrinsic of every type is a function of the language or of the prelude."""
    missing = [
        (name, scalar)
        for (name, info), scalar in product(INTRINSICS.items(), set(Scalar) - HALVES)
        if scalar.kind in info.kinds
        and name != "reinterpret"
        and (name, scalar) not in dialect.functions
        and not has_prelude(name, scalar)
    ]
    assert missing == []


@dialects
def test_atomics(dialect: Dialect) -> None:
    """Every atomic operation of every type is one of the language or of the prelude."""
    scalars = [s for s in (*INTEGERS, *FLOATS) if s.bits >= 32]
    for op, scalar in product(set(AtomicOp) - {AtomicOp.LOAD}, scalars):
        if scalar.is_float and op in INTEGER_ONLY:
            continue
        family = "exch" if op is AtomicOp.STORE else op.value
        assert (op, scalar) in dialect.atomics or has_prelude(f"atomic_{family}", scalar)
    # what the loops of the prelude exchange
    for op, scalar in product((AtomicOp.CAS, AtomicOp.EXCH), (Scalar.UINT32, Scalar.UINT64)):
        assert (op, scalar) in dialect.atomics


def test_sums_of_float32_are_not_the_machines() -> None:
    """Those of CUDA take subnormal numbers for zeros in global memory."""
    assert (AtomicOp.ADD, Scalar.FLOAT32) not in CUDA.atomics
    assert (AtomicOp.ADD, Scalar.FLOAT64) in CUDA.atomics
