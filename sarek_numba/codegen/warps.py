"""Shuffles of C-like languages: each type goes through the device's shuffle of 32-bit words.

So 64-bit values are two exchanges, and narrow ones keep all their bits, whatever the device's own
shuffle of the type would do.
"""

from __future__ import annotations

from sarek_numba.codegen.dialect import Dialect, WarpSpelling
from sarek_numba.codegen.prelude import SUFFIX
from sarek_numba.ir.nodes import SHUFFLES, WarpOp
from sarek_numba.ir.types import Kind, Scalar

_SOURCES = {
    WarpOp.SHUFFLE: "({long})lane",
    WarpOp.SHUFFLE_UP: "({long})place - ({long})lane",
    WarpOp.SHUFFLE_DOWN: "({long})place + ({long})lane",
    WarpOp.SHUFFLE_XOR: "({long})place ^ ({long})lane",
}


def shuffle_name(op: WarpOp, scalar: Scalar) -> str:
    return f"warp_{op.value}_{SUFFIX[scalar]}"


NAMES = frozenset(shuffle_name(op, scalar) for op in SHUFFLES for scalar in Scalar)


def shuffle_definition(dialect: Dialect, warp: WarpSpelling, op: WarpOp, scalar: Scalar) -> str:
    """The function that gives each lane the value of its source: `f(value, lane, width)`.

    It is given the dialect's `parameter` too.
    """
    type, word = dialect.types[scalar], dialect.types[Scalar.UINT32]
    wide, signed = dialect.types[Scalar.UINT64], dialect.types[Scalar.INT64]
    source = _SOURCES[op].format(long=wide)
    head = f"{dialect.function_head} {type} {shuffle_name(op, scalar)}".lstrip()
    given = f", {warp.parameter}" if warp.parameter else ""
    return (
        f"{head}({type} value, {signed} lane, {word} width{given}) {{\n"
        f"    {word} own = {warp.lane}, place = own & (width - 1);\n"
        f"    {wide} source = {source};\n"
        f"    {word} from = source < width ? own - place + ({word})source : own;\n"
        f"    {_exchange(dialect, warp, scalar)}\n"
        "}"
    )


def _exchange(dialect: Dialect, warp: WarpSpelling, scalar: Scalar) -> str:
    type, word = dialect.types[scalar], dialect.types[Scalar.UINT32]
    if scalar.kind is Kind.BOOL:
        return f"return {warp.shuffle.format('value ? 1u : 0u', 'from')} != 0;"
    if scalar.bits < 32:
        return f"return ({type}){warp.shuffle.format(f'({word})value', 'from')};"
    bits = Scalar.UINT32 if scalar.bits == 32 else Scalar.UINT64
    given = dialect.reinterpret[bits].format("value")
    if scalar.bits == 32:
        return f"return {dialect.reinterpret[scalar].format(warp.shuffle.format(given, 'from'))};"
    wide = dialect.types[bits]
    low = warp.shuffle.format(f"({word})bits", "from")
    high = warp.shuffle.format(f"({word})(bits >> 32)", "from")
    whole = dialect.reinterpret[scalar].format(f"(({wide}){high} << 32 | {low})")
    return f"{wide} bits = {given};\n    return {whole};"
