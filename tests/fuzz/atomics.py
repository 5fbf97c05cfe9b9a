"""Atomics in generated programs whose result does not depend on the order of threads.

What a thread does to elements of its own may use every operation and its old value. The cells that
the threads of a group share, in global and in shared memory, have a role each: the operations that
a role allows commute, and their old values are not used. The old values of the tickets of a counter
are used for places that all get the same.
"""

from __future__ import annotations

import random

from tests.fuzz.expressions import INT, REALS, Expressions, Scope, is_unsigned
from tests.fuzz.modes import PLAIN, Mode
from tests.fuzz.programs import Statement
from tests.fuzz.statements import Maker

KINDS = ("int32", "uint32", "int64", "uint64", "float32", "float64")
CELLS = 8
_TICKETS, _TAKEN = 0, 4  # the cell of the counter, the first cell of its places
_ROLES = {
    "sum": ("add", "sub", "inc", "dec"),
    "min": ("min",),
    "max": ("max",),
    "and": ("and_",),
    "or": ("or_",),
    "xor": ("xor",),
    "ring": ("inc",),
    "drop": ("dec",),
    "flag": ("exch", "store"),
}
_REAL_ROLES = ("sum", "min", "max", "flag")
_OWN = ("add", "sub", "min", "max", "exch", "and_", "or_", "xor")
_OWN_REAL = ("add", "sub", "min", "max", "exch")


class Atomics:
    """Atomics of one program, on cells of one type and on elements of its threads."""

    def __init__(
        self,
        rng: random.Random,
        scope: Scope,
        elements: tuple[str, str, str],
        has_barriers: bool,
        mode: Mode = PLAIN,
        shared: float = 0.4,
    ) -> None:
        self.rng = rng
        self.mode = mode
        self.shared = shared  # how often a cell is one of shared memory
        self.make = Expressions(rng, scope)
        self.kind = rng.choice(KINDS)
        self.array = f"cells_{self.kind}"
        self.has_shared = has_barriers
        roles = _REAL_ROLES if self.kind in REALS else tuple(_ROLES)
        self.roles = [rng.choice(roles) for _ in range(CELLS)]
        self.has_tickets = self.kind not in REALS and rng.random() < 0.5
        if self.has_tickets:
            self.roles[_TAKEN:] = ["sum"] * (CELLS - _TAKEN)
        own = [pair for pair in zip(elements, "xuf", strict=True) if pair[0] in KINDS]
        self.own = own
        for kind, array in own:
            scope.calls += [(kind, each) for each in self._old_values(kind, array)]

    @property
    def arrays(self) -> list[tuple[str, str]]:
        """Parameters and their arrays."""
        return [("cells", self.array)]

    def attach(self, maker: Maker) -> None:
        """Let a program's statements use them."""
        maker.simples.append(self.simple)
        if self.has_shared:
            maker.hand_overs.append(self.hand_over)

    def prologue(self) -> tuple[str, ...]:
        first = f"oc = sarek.block_idx.x // {self.mode.grid} * {CELLS}"
        if not self.has_shared:
            return (first,)
        return (
            first,
            f"sc = sarek.shared.array({CELLS}, np.{self.kind})",
            f"for k in range(t, {CELLS}, {self.mode.block}): sc[k] = {self._cast('k')}",
            "sarek.barrier()",
        )

    def epilogue(self) -> tuple[str, ...]:
        if not self.has_shared:
            return ()
        return ("sarek.barrier()", f"d[h, 0] ^= np.int32(sc[{self._place(0)}] % 99)")

    def _cast(self, whole: str) -> str:
        """A Python int as a store takes it."""
        return f"np.{self.kind}({whole})" if self.mode.strict else whole

    def _place(self, odd: int) -> str:
        """A shared cell of each thread."""
        place = f"t * 2 + {odd}" if odd else "t * 2"
        return place if self.mode.block * 2 <= CELLS else f"({place}) % {CELLS}"

    def simple(self) -> str:
        """A statement with an atomic."""
        if self.own and self.rng.random() < 0.4:
            kind, array = self.rng.choice(self.own)
            return self._on_own(kind, array)
        memory = "sc" if self.has_shared and self.rng.random() < self.shared else "cells"
        base = "oc + " if memory == "cells" else ""
        if self.has_tickets and self.rng.random() < 0.3:
            ticket = f"int(sarek.atomic.add({memory}, {base}{_TICKETS}, 1) % 4)"
            return f"sarek.atomic.add({memory}, {base}{_TAKEN} + {ticket}, 3)"
        cell = self.rng.randrange(1 if self.has_tickets else 0, CELLS)
        role = self.roles[cell]
        operation = self.rng.choice(_ROLES[role])
        if self.kind in REALS and operation in ("inc", "dec"):
            operation = "add"
        given = self._value(role, operation, cell)
        return f"sarek.atomic.{operation}({memory}, {base}{cell}{given})"

    def _value(self, role: str, operation: str, cell: int) -> str:
        """What follows the index: a value that the role allows."""
        small = f"np.{self.kind}({self.make.expand('<small>')})"
        if role in ("ring", "drop"):
            return f", {cell * 5 + 3}"
        if role == "flag":
            return f", {cell + 11}"
        if operation in ("inc", "dec"):
            return ""
        known = self.kind in self.make.scope.strong
        if self.kind in REALS:  # small whole numbers add exactly, and no zero is negative
            wide = known and role in ("min", "max")
            return f", {self.make.of(self.kind, 1)} + 0.0" if wide else f", {small}"
        return f", {self.make.of(self.kind, 1) if known else small}"

    def _old_values(self, kind: str, array: str) -> list[str]:
        """Templates of expressions that change an element of a thread and have its old value."""
        integer = kind not in REALS
        place = f"{array}, o + {self.rng.randrange(7)}"
        element = f"{array}[{place.split(', ')[1]}]"
        operation = self.rng.choice(_OWN if integer else _OWN_REAL)
        made = [
            f"sarek.atomic.{operation}({place}, <same>)",
            f"sarek.atomic.cas({place}, {self.rng.choice([element, '<leaf>'])}, <same>)",
            f"sarek.atomic.load({place})",
        ]
        if integer:
            step = self.rng.choice(("inc", "dec"))
            made.append(f"sarek.atomic.{step}({place}{self.rng.choice(['', ', <same>'])})")
        return made

    def _on_own(self, kind: str, array: str) -> str:
        """An atomic on an element of the thread alone."""
        where = f"{array}, o + {self.make.variable(INT)} % 8"
        if array == "x":
            where = self.rng.choice((where, f"v, {self.rng.randrange(4)}"))
        value = self.make.of(kind, 1)
        if kind not in REALS and not is_unsigned(kind) and self.rng.random() < 0.2:
            value = self.make.variable(INT)
            value = f"np.{kind}({value})" if self.mode.strict else value
        operation = self.rng.choice((*(_OWN_REAL if kind in REALS else _OWN), "store"))
        call = f"sarek.atomic.{operation}({where}, {value})"
        if operation != "store" and self.rng.random() < 0.5:
            return f"{dict(zip('xuf', 'pqr', strict=True))[array]} = {call}"
        return call

    def hand_over(self) -> list[Statement]:
        """Read a shared cell between barriers."""
        if not self.has_shared:
            return []
        read = f"d[h, 1] ^= np.int32(sc[{self._place(1)}] % 99)"
        lines = ("sarek.barrier()", read, "sarek.barrier()")
        return [Statement(line) for line in lines]
