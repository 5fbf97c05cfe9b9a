"""The variables of SSA mapped back to the user's.

All versions of one user variable that are held in one type share one IR variable: they were one
variable before SSA, so each phi of them is nothing to do. A version that is a constant needs a
place only where a phi reads it, and then takes the phi's; so does one that only phis of another
type read.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from numba.core import ir, types

from sarek_numba.frontend.lower.emitter import Ids
from sarek_numba.frontend.names import is_temporary, user_name
from sarek_numba.frontend.reads import read_by_statement
from sarek_numba.frontend.regions import Choose, Node, Phi, Statement
from sarek_numba.frontend.weak import constant_of, generalise, is_number, scalar_of
from sarek_numba.ir.nodes import Var
from sarek_numba.ir.types import Scalar


class Homes:
    """Where each SSA name that is stored is stored, and how often it is read and assigned."""

    def __init__(self, nodes: dict[int, Node], typing: dict[str, types.Type], ids: Ids) -> None:
        self.typing = typing
        self.ids = ids
        self.reads: Counter[str] = Counter()
        self.phi_reads: Counter[str] = Counter()
        self.definitions: Counter[str] = Counter()
        self.copies: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.iterated: set[str] = set()
        self.phis: dict[str, Phi] = {}
        self.extra: dict[str, types.Type] = {}
        self.unsettled: set[str] = set()
        for node in nodes.values():
            self._count(node)
        self.unsettled = _unsettled(self.phis)
        self.homes: dict[str, Var] = {}
        self._assign()

    def type_of(self, name: str) -> types.Type:
        """The type of a name. A constant that some path leaves unassigned is read as a variable."""
        found = self.typing.get(name)
        if found is None:
            return self.extra[name]
        return generalise(found) if name in self.unsettled else found

    def get(self, name: str) -> Var | None:
        """The variable that holds this version, or None if nothing does."""
        return self.homes.get(name)

    def reads_within(self, name: str, labels: set[int], nodes: dict[int, Node]) -> int:
        """How often the statements and terminators of some nodes read a name."""
        counted = 0
        for label in labels:
            for statement in (*nodes[label].statements, nodes[label].terminator):
                counted += _reads_of(name, statement)
        return counted

    # --- counting ---------------------------------------------------------------------------------

    def _count(self, node: Node) -> None:
        for phi in node.phis:
            self.phis[phi.target.name] = phi
            for value in phi.incoming.values():
                if value is not None:
                    self.reads[value.name] += 1
                    self.phi_reads[value.name] += 1
        for statement in node.statements:
            self._count_statement(statement)
        self.reads.update(read_by(node.terminator))

    def _count_statement(self, statement: Statement) -> None:
        self.reads.update(read_by(statement))
        if isinstance(statement, Choose):
            like = statement.like
            name = statement.target.name
            self.extra[name] = types.boolean if like is None else self.typing[like.name]
            for arm in (statement.then, statement.orelse):
                for inner in arm.statements:
                    self._count_statement(inner)
        elif isinstance(statement, ir.Assign):
            self.definitions[statement.target.name] += 1
            if isinstance(statement.value, ir.Var):
                self.copies[statement.value.name] = statement.target.name
                self.sources[statement.target.name] = statement.value.name
            elif isinstance(statement.value, ir.Expr) and statement.value.op == "pair_first":
                self.iterated.add(statement.target.name)

    # --- homes ------------------------------------------------------------------------------------

    def _assign(self) -> None:
        groups: dict[tuple[str, Scalar, str], list[str]] = defaultdict(list)
        stored = [*self.definitions, *self.phis]
        for name in dict.fromkeys(stored):
            if self._is_stored(name):
                apart = name if self._is_loop_item(name) else ""
                groups[user_name(name), self._scalar(name), apart].append(name)
        for (name, scalar, _), versions in groups.items():
            if is_temporary(name):
                for version in versions:
                    self.homes[version] = self.ids.var("t", scalar, mutable=True)
                continue
            var = self.ids.var(name, scalar, mutable=len(versions) > 1)
            for version in versions:
                self.homes[version] = var
        for name in dict.fromkeys(stored):
            self._share_with_phi(name)

    def _is_loop_item(self, name: str) -> bool:
        """Whether a version is the item of a `for` and meets no other version of its variable.

        Two loops over one name then have a variable each, that of the loop.
        """
        source = self.sources.get(name)
        while source is not None and source not in self.iterated:
            source = self.sources.get(source)
        return source is not None and not self.phi_reads[name]

    def _scalar(self, name: str) -> Scalar:
        return scalar_of(self.type_of(name))

    def _is_stored(self, name: str) -> bool:
        type = self.type_of(name)
        if not is_number(type):
            return False
        if name in self.phis:
            return self.reads[name] > 0 and constant_of(type) is None
        if is_temporary(name):
            return False
        return constant_of(type) is None and not self._is_read_by_other_phis(name)

    def _is_read_by_other_phis(self, name: str) -> bool:
        """Whether only phis of the variable read a version, all in another type."""
        if not self.reads[name] or self.phi_reads[name] != self.reads[name]:
            return False
        readers = self._readers(name)
        return bool(readers) and all(
            user_name(phi) == user_name(name) and self._scalar(phi) is not self._scalar(name)
            for phi in readers
        )

    def _readers(self, name: str) -> list[str]:
        if not hasattr(self, "_by_source"):
            self._by_source: dict[str, list[str]] = defaultdict(list)
            for target, phi in self.phis.items():
                for value in phi.incoming.values():
                    if value is not None and is_number(self.type_of(target)):
                        self._by_source[value.name].append(target)
        return self._by_source.get(name, [])

    def _share_with_phi(self, name: str) -> None:
        """Give a version that has no place of its own that of a phi of the variable."""
        if name in self.homes or is_temporary(name) or not is_number(self.type_of(name)):
            return
        for phi in self._readers(name):
            if user_name(phi) == user_name(name) and phi in self.homes:
                self.homes[name] = self.homes[phi]
                return


def _unsettled(phis: dict[str, Phi]) -> set[str]:
    """The phis that hold nothing on some path."""
    found = {name for name, phi in phis.items() if any(v is None for v in phi.incoming.values())}
    changed = bool(found)
    while changed:
        changed = False
        for name, phi in phis.items():
            if name not in found and any(
                value is not None and value.name in found for value in phi.incoming.values()
            ):
                found.add(name)
                changed = True
    return found


def read_by(statement: Statement) -> list[str]:
    """The names that a statement reads, once for each time; not those within arms."""
    if isinstance(statement, Choose):
        arms = (statement.then, statement.orelse)
        values = [arm.value.name for arm in arms if isinstance(arm.value, ir.Var)]
        return [statement.condition.name, *values]
    return read_by_statement(statement)


def _reads_of(name: str, statement: Statement) -> int:
    count = read_by(statement).count(name)
    if isinstance(statement, Choose):
        for arm in (statement.then, statement.orelse):
            count += sum(_reads_of(name, inner) for inner in arm.statements)
    return count
