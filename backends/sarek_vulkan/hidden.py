"""Values into which a driver's compiler cannot look, where it is known to look wrongly.

NVIDIA's assembler has two faults with integers that become narrower and wide again, met through
OpenCL and declared in docs/devices.md: a negated int16 of -32768 is taken for 32768, and one
constant of an index for another. Through Vulkan int8 are negated as wrongly. OpenCL and CUDA narrow
by an instruction of PTX; SPIR-V has none, so what was narrowed is changed by a zero that no
compiler finds.
"""

from __future__ import annotations

from collections.abc import Callable

from sarek_numba.ir.nodes import Coordinate
from sarek_numba.ir.types import Scalar
from sarek_vulkan.code import Code, Value
from sarek_vulkan.coordinates import Coordinates


def hider(code: Code, coordinates: Coordinates) -> Callable[[Value], Value]:
    """What hides 32-bit integers of a function.

    n (n + 1) is even for every n, also modulo 2^32. Compilers know bounds of a grid's size, which
    would give zeros of the other sort away.
    """

    def hide(value: Value) -> Value:
        assert value.type.bits == 32
        count = coordinates.word(code, Coordinate.GRID_DIM, 0)
        one = code.constant(Scalar.UINT32, 1)
        zero = code.both(code.mul(count, code.add(count, one)), one)
        return code.bitwise("xor", value, Value(zero.id, value.type))

    return hide
