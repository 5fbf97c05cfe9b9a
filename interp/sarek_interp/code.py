"""What compiling a kernel for the oracle shares: compiled pieces, and the context they are made in.

Every expression becomes one Python function of the machine that gives lanes, every statement one
that changes the machine. That is done once for a kernel, so running it costs no walk of the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sarek_interp.covering import Marks
from sarek_interp.machine import Machine, Scope, Site
from sarek_numba.errors import Diagnostic, UnsupportedConstruct
from sarek_numba.ir.nodes import HelperFunction, Kernel, SharedDecl, Var
from sarek_numba.ir.types import ElementType, Scalar
from sarek_numba.span import Span

Evaluate = Callable[[Machine], Any]
Step = Callable[[Machine], None]
Interval = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Value:
    """A compiled expression.

    `plain` means that it reads no memory and checks nothing, so it may be evaluated for lanes that
    do not need it. `interval` bounds the values of an integer.
    """

    evaluate: Evaluate
    type: Scalar
    plain: bool
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A compiled body. `leaves`: a lane may leave it by break, continue or return."""

    run: Step
    scope: Scope
    leaves: bool
    barriers: bool
    empty: bool


@dataclass(slots=True)
class Helper:
    """A compiled helper: the slots of its parameters and results, its body, the arrays it reads.

    Arrays are those that a launch makes; of every other value the helper gets what it needs.
    """

    params: tuple[int, ...]
    results: tuple[int, ...]
    run: Step
    barriers: bool
    arrays: frozenset[int]


@dataclass(slots=True)
class Loop:
    """The loop that statements being compiled stand in."""

    continued: int
    has_continue: bool = False


@dataclass(slots=True)
class Function:
    """The kernel or helper being compiled: its variables' slots, and where its results go."""

    returned: int
    results: tuple[int, ...] = ()
    is_kernel: bool = True
    slots: dict[int, int] = field(default_factory=dict)
    bound: dict[int, int] = field(default_factory=dict)  # slot of a variable → slot of "is bound"
    intervals: dict[int, Interval] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    returns: bool = False


@dataclass(slots=True)
class Collected:
    """What the body being compiled touches."""

    used: set[int] = field(default_factory=set)
    assigned: set[int] = field(default_factory=set)
    declared: set[int] = field(default_factory=set)
    leaves: bool = False
    barriers: bool = False
    returns: bool = False


@dataclass(frozen=True, slots=True)
class LocalArray:
    """An array of each thread: its slot, its Var and how many elements it has."""

    slot: int
    var: Var
    scalar: Scalar
    length: int


class Context:
    """The state of compiling one kernel."""

    def __init__(
        self,
        kernel: Kernel,
        checks: frozenset[str],
        compile_helper: Callable[[Context, HelperFunction], Helper],
        clocked: bool = False,
    ) -> None:
        self.kernel = kernel
        self.checks = checks
        self.clocked = clocked
        self.sites: list[Site] = []
        self.marks = Marks()
        self._pairs: dict[tuple[Span, int, object], int] = {}
        self._compile_helper = compile_helper
        self._functions = {function.name: function for function in kernel.functions}
        self._helpers: dict[str, Helper] = {}
        self.local_arrays: list[LocalArray] = []
        self.static_shared: list[LocalArray] = []
        self.dynamic_shared: list[tuple[int, SharedDecl]] = []
        self._slots = 0
        self.function = Function(self.new_slot())
        self.body = Collected()

    def site(self, span: Span | None) -> int:
        """A new place for findings."""
        number = len(self.sites)
        self.sites.append(Site(number, span))
        return number

    def access_site(self, span: Span | None, array: Var, part: int | None, kind: object) -> int:
        """A new place for the findings of an access, or of a subscript within it.

        Accesses of one kind to the parts of complex elements at one place are twins.
        """
        number = len(self.sites)
        twin = None
        if part is not None and span is not None:
            first = self._pairs.setdefault((span, array.id, kind), number)
            twin = None if first == number else first
        self.sites.append(Site(number, span, part, twin))
        return number

    @property
    def arrays(self) -> set[int]:
        """The slots of local and shared arrays, which a launch fills before it runs anything."""
        arrays = {array.slot for array in (*self.local_arrays, *self.static_shared)}
        return arrays | {slot for slot, _ in self.dynamic_shared}

    def new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def helper(self, name: str) -> Helper:
        """A helper, compiled where it is first called, so that places stay in program order."""
        known = self._helpers.get(name)
        if known is None:
            function, body = self.function, self.body
            self.body = Collected()
            known = self._helpers[name] = self._compile_helper(self, self._functions[name])
            self.function, self.body = function, body
        return known

    # --- variables --------------------------------------------------------------------------------

    def declare(self, var: Var) -> int:
        """The slot of a variable that comes into scope."""
        slot = self.function.slots.get(var.id)
        if slot is None:
            slot = self.function.slots[var.id] = self.new_slot()
        self.body.declared.add(slot)
        self.body.used.add(slot)
        return slot

    def use(self, var: Var) -> int:
        slot = self.function.slots[var.id]
        self.body.used.add(slot)
        return slot

    def assign(self, var: Var) -> int:
        slot = self.use(var)
        self.body.assigned.add(slot)
        return slot

    def touch(self, *slots: int) -> None:
        """Slots that the body both reads and writes."""
        self.body.used.update(slots)
        self.body.assigned.update(slots)

    # --- bodies -----------------------------------------------------------------------------------

    @contextmanager
    def nested(self) -> Iterator[Collected]:
        """Collect what a nested body touches; the enclosing body touches it too."""
        outer, inner = self.body, Collected()
        self.body = inner
        try:
            yield inner
        finally:
            self.body = outer
            outer.used |= inner.used
            outer.assigned |= inner.assigned - inner.declared
            outer.leaves |= inner.leaves
            outer.barriers |= inner.barriers
            outer.returns |= inner.returns


def scope_of(collected: Collected) -> Scope:
    assigned = collected.assigned - collected.declared
    return Scope(tuple(sorted(collected.used)), tuple(sorted(assigned)))


def refuse(what: str, span: Span | None) -> UnsupportedConstruct:
    """The error for IR that this version of the oracle does not run."""
    message = f"the interpreter does not run {what} yet"
    return UnsupportedConstruct(Diagnostic(UnsupportedConstruct, message, span))


def scalar(type: ElementType, span: Span | None) -> Scalar:
    """The scalar type of an element; records and variants are refused."""
    if isinstance(type, Scalar):
        return type
    raise refuse(f"values of type {getattr(type, 'value', type)}", span)
