"""Operators, coordinates, directions and scopes of Sarek IR; see `ir.nodes`."""

from __future__ import annotations

from enum import Enum


class BinOp(Enum):
    """Binary operators. Div and Mod truncate (C); FloorDiv and FloorMod floor (Python)."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    MOD = "%"
    FLOORDIV = "//"
    FLOORMOD = "%%"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    AND = "and"
    OR = "or"
    SHL = "<<"
    SHR = ">>"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"


COMPARISONS = frozenset({BinOp.EQ, BinOp.NE, BinOp.LT, BinOp.LE, BinOp.GT, BinOp.GE})
LOGICAL = frozenset({BinOp.AND, BinOp.OR})
SHIFTS = frozenset({BinOp.SHL, BinOp.SHR})


class UnOp(Enum):
    """Unary operators. BITNOT of a bool is logical."""

    NEG = "-"
    NOT = "not"
    BITNOT = "~"


class Coordinate(Enum):
    """A thread's place in the launch. GLOBAL_IDX is block_idx * block_dim + thread_idx."""

    THREAD_IDX = "thread_idx"
    BLOCK_IDX = "block_idx"
    BLOCK_DIM = "block_dim"
    GRID_DIM = "grid_dim"
    GLOBAL_IDX = "global_idx"
    GRID_SIZE = "grid_size"  # block_dim * grid_dim of the axis: threads in the launch along it


class Direction(Enum):
    """Sign of a loop's step; RUNTIME when only the launch knows it."""

    UPTO = "upto"
    DOWNTO = "downto"
    RUNTIME = "runtime"


class AtomicOp(Enum):
    """Atomic operations; each but STORE may give the old value."""

    LOAD = "load"
    STORE = "store"
    ADD = "add"
    SUB = "sub"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    EXCH = "exch"
    CAS = "cas"
    INC = "inc"
    DEC = "dec"


class WarpOp(Enum):
    """Collectives of a warp. Reductions combine as a tree: lane l with lane l + width / 2 first."""

    SHUFFLE = "shuffle"
    SHUFFLE_UP = "shuffle_up"
    SHUFFLE_DOWN = "shuffle_down"
    SHUFFLE_XOR = "shuffle_xor"
    ALL = "all"
    ANY = "any"
    BALLOT = "ballot"
    ACTIVE_MASK = "active_mask"
    SUM = "sum"
    MIN = "min"
    MAX = "max"


SHUFFLES = frozenset({WarpOp.SHUFFLE, WarpOp.SHUFFLE_UP, WarpOp.SHUFFLE_DOWN, WarpOp.SHUFFLE_XOR})
VOTES = frozenset({WarpOp.ALL, WarpOp.ANY, WarpOp.BALLOT})
REDUCTIONS = frozenset({WarpOp.SUM, WarpOp.MIN, WarpOp.MAX})


class FenceScope(Enum):
    BLOCK = "block"
    DEVICE = "device"
