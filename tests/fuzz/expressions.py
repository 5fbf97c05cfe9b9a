"""Random expressions of a wanted type, whose value in CPython with NumPy scalars is their meaning.

A type is the name of an element type (a strong value), `INT`, `FLOAT` (Python numbers) or `BOOL`.
The tables hold templates: `<name>` stands for a random part, and `Expressions.part` says which.
CPython is no reference for some expressions, which are not made: Python ints stay small and their
divisors are not 0, a Python int that meets an unsigned value is not negative and does not meet 8 or
16 bits, bools are not added, the two sides of a conditional expression have one type.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

INT, FLOAT, BOOL = "int", "float", "bool"
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")

ALONE = ("v[{}]", "v[-1 - {}]", "l[{}]", "row[{}]", "d[h, {}]", "e[h, {}]", "hw[{}]", "hl[{}]")
DEEPEST = 2
_CALLED = 0.2  # how often a call stands where an expression of its type may
_PART = re.compile(r"<(\w+)>")

# Every <same> and <test> is one level deeper; the second table of a type is for the last level.
_TESTS = (
    "(<test> and <test>)", "(<test> or <test>)", "(not <test>)", "(<test> != <test>)",
    "(<test> & <test>)", "(<test> ^ <test>)", "(<test> if <test> else <test>)", "<bool>",
    "(<int> <relation> <i>)", "(<int> <relation> <int>)", "(<i> <relation> <int> <relation> <i>)",
    "(<strong> <relation> <int>)", "bool(<int>)",
)  # fmt: skip
_TEST_LEAVES = (
    "(<i> <relation> <i>)", "(<i> <relation> <digit>)", "(<i> <relation> <i> <relation> <i>)",
    "(<strong> <relation> <strong>)", "(<strong> <relation> 3)", "(<strong> <relation> 300)",
    "(<strong> <relation> -1)", "(<strong> <relation> <i>)", "(0 <= <strong> < <i>)",
    "(<i> in (1, 2, 5))", "(<i> not in (<i>, 3))", "(<w> <relation> <i>)", "(<w> > 0.5)",
    "(not <strong>)", "bool(<strong>)", "<bool>",
)  # fmt: skip
# Variables are below 1000, so that products of eight fit int64.
_WHOLES = (
    "(<int> + <int>)", "(<int> - <int>)", "(<int> * <int>)", "(<int> // <divisor>)",
    "(<int> % <divisor>)", "(<int> if <test> else <int>)", "(<int> and <int>)", "(<int> or <int>)",
    "min(<int>, <int>)", "max(<int>, <int>, 2)", "abs(<int>)", "(-<int>)", "(<int> & <int>)",
    "(<int> | <digit>)", "(<int> ^ <digit>)", "(<int> >> <i> % 4)", "int(<test>)",
    "divmod(<int>, <divisor>)[1]", "int(np.int32(<i>) % 50)",
)  # fmt: skip
_WHOLE_LEAVES = (
    "<i>", "<i>", "<i>", "<i>", "<digit>", "(-<digit>)", "<bounded>", "<bounded>", "(<i> << 2)",
    "(<i> >> 1)", "<i> ** 2", "~<i>", "int(<bool>)", "(round(<w>) % 50)",
)  # fmt: skip
_FRACTIONS = (
    "(<float> + <float>)", "(<float> - <float>)", "(<float> * 0.5)", "(<float> / 3.0)",
    "(<float> // 0.75)", "(<float> % -1.5)", "(<float> if <test> else <float>)",
    "min(<float>, <float>)", "max(<float>, <float>)", "abs(<float>)", "(-<float>)",
    "(<float> + <int>)", "(<int> / <divisor>)", "(<float> and <float>)",
)  # fmt: skip
_FRACTION_LEAVES = ("<w>", "<w>", "0.5", "1.25", "-3.0", "float(<i>)", "<i> / 8", "float(<strong>)")
_INTEGER_TEMPLATES = (
    "(<same> <arithmetic> <same>)", "(<same> <arithmetic> <constant>)", "(<constant> - <same>)",
    "(<constant> // <same>)", "(<constant> % <same>)", "(<same> // <same>)", "(<same> % <same>)",
    "(<same> // <constant>)", "(<same> % <constant>)",
    "(<same> << <same>)", "(<same> >> <same>)", "(<same> << <count>)", "(<same> >> <count>)",
    "(<same> if <test> else <same>)", "(<same> and <same>)", "(<same> or <same>)",
    "min(<same>, <same>)", "max(<same>, <same>)", "abs(<same>)", "(-<same>)", "(~<same>)",
    "(<same> ** 2)", "(<same> ** 3)", "np.<kind>(<same> <mixing> <strong>)",
    "np.<kind>(<same> <mixing> <strong>)", "np.<kind>(<test>)", "divmod(<same>, <same>)[0]",
    "np.minimum(<same>, <same>)",
)  # fmt: skip
_SIGNED = ("(<same> // -3)", "(<same> % -7)", "(<same> + -5)")
_WIDE = ("(<same> <arithmetic> <meeting>)", "(<same> // <meeting>)", "(<meeting> % <same>)")
_INTEGER_LEAVES = ("<leaf>", "<leaf>", "<leaf>", "np.<kind>(<small>)", "np.<kind>(<strong>)")
_REAL_TEMPLATES = (
    "(<same> <calculation> <same>)", "(<same> <calculation> <same>)", "(<same> // <same>)",
    "(<same> % <same>)", "(<same> <calculation> 0.5)", "(<same> <calculation> 3)",
    "(<same> <calculation> -0.1)", "(1.0 - <same>)", "(2 / <same>)", "(<same> + <int>)",
    "(<same> * <w>)", "(<same> if <test> else <same>)", "(<same> and <same>)",
    "(<same> or <same>)", "min(<same>, <same>)", "max(<same>, <same>)",
    "np.minimum(<same>, <same>)", "np.fmax(<same>, <same>)", "abs(<same>)", "(-<same>)",
    "np.floor(<same>)", "np.trunc(<same>)", "np.rint(<same>)", "np.sqrt(<same>)", "(<same> ** 2)",
    "np.copysign(<same>, <same>)", "math.fmod(<same>, <same>)",
    "np.<kind>(<same> <calculation> <strong>)",
)  # fmt: skip
_REAL_LEAVES = (
    "<leaf>", "<leaf>", "<leaf>", "np.<kind>(<strong>)", "np.<kind>(<i>)", "np.<kind>(<w>)",
)  # fmt: skip

_COMPLEX_TEMPLATES = (
    "(<same> <calculation> <same>)", "(<same> <calculation> <same>)", "(<same> + <real>)",
    "(<real> / <same>)", "(<same> * <int>)", "(<same> - <w>)", "(<same> * 2j)", "(1.5j / <same>)",
    "(1 - <same>)", "(-<same>)", "<same>.conjugate()", "np.conj(<same>)", "(<same> ** 2)",
    "(<same> ** 3)", "(<same> ** -1)", "(<same> if <test> else <same>)", "(<same> and <same>)",
    "np.where(<test>, <same>, <same>)", "sarek.<kind>(<real>, <real>)",
)  # fmt: skip
_COMPLEX_LEAVES = (
    "<leaf>", "<leaf>", "<leaf>", "np.<kind>(complex(<w>, <i>))", "np.<kind>(<real>)",
    "sarek.<kind>(<real>, 0.5)",
)  # fmt: skip

_SIGNS = {
    "relation": ("<", ">", "==", "!=", "<=", ">="),
    "arithmetic": ("+", "-", "*", "&", "|", "^"),
    "calculation": ("+", "-", "*", "/"),
    "mixing": ("+", "-", "*", "//", "%"),
    "digit": ("0", "1", "2", "3", "5", "7"),
    "constant": ("1", "2", "3", "7", "50", "127"),
    "divisor": ("3", "7", "-5", "(<i> % 6 + 1)", "(<i> % 3 - 4)"),
    "count": ("1", "3", "9", "(<i> % 5)", "(<i> % 70)"),
    "small": ("<i> % 3", "<i> % 7", "<i> % 50", "<i> % 100"),
}


def is_unsigned(kind: str) -> bool:
    """Whether a type is of unsigned integers."""
    return kind.startswith("u")


@dataclass(slots=True)
class Scope:
    """What expressions may read: variables by type, elements by element type.

    An element is its type, a template whose `{}` takes an index, and the number of its places.
    `uniform` are Python ints that all threads of a block have in common. `calls` are templates of
    expressions of a type, which may have effects. `outside` are indices for the arrays that a
    thread has alone (`ALONE`), where one out of range is moved into it.
    """

    variables: dict[str, list[str]]
    elements: list[tuple[str, str, int]] = field(default_factory=list)
    uniform: list[str] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    outside: tuple[str, ...] = ()

    @property
    def strong(self) -> list[str]:
        """The types of numbers that are neither bools nor Python's."""
        kinds = {*self.variables, *(kind for kind, _, _ in self.elements)}
        return sorted(kinds - {INT, FLOAT, BOOL, *COMPLEX})


class Expressions:
    """Random expressions over a scope."""

    def __init__(self, rng: random.Random, scope: Scope) -> None:
        self.rng = rng
        self.scope = scope

    def of(self, kind: str, depth: int = 0) -> str:
        """An expression of a type; of less depth, the deeper it stands."""
        if depth <= DEEPEST and self.rng.random() < _CALLED:
            calls = [template for k, template in self.scope.calls if k == kind]
            if calls:
                return self.expand(self.rng.choice(calls), kind, depth)
        last = depth >= DEEPEST or self.rng.random() < 0.4
        return self.expand(self.rng.choice(_templates(kind, last)), kind, depth)

    def expand(self, template: str, kind: str = INT, depth: int = 0) -> str:
        """The template with its parts made."""
        return _PART.sub(lambda part: self.part(part[1], kind, depth + 1), template)

    def part(self, name: str, kind: str, depth: int) -> str:
        """What stands for `<name>` in an expression of a type."""
        match name:
            case "same":
                return self.of(kind, depth)
            case "int" | "float":
                return self.of(name, max(depth, 1))
            case "test":
                return self.of(BOOL, max(depth, 1))
            case "i" | "w":
                return self.variable(INT if name == "i" else FLOAT)
            case "kind":
                return kind
            case "real":
                return self.of("float32" if kind == "complex64" else "float64", max(depth, 2))
            case "complex64" | "complex128" | "float32" | "float64" | "int32" | "int64" | "uint16":
                return self.of(name, max(depth, 2))
            case "leaf":
                return self.leaf(kind)
            case "bool":
                return self.leaf(BOOL)
            case "strong":
                return self.strong(kind)
            case "bounded":
                return self._bounded()
            case "meeting":  # a Python int beside a wide strong integer
                return f"({self.expand('<small>')})" if is_unsigned(kind) else self.variable(INT)
            case _:
                return self.expand(self.rng.choice(_SIGNS[name]), kind, depth)

    def condition(self) -> str:
        """What `if` and `while` take: a bool, or a number for its truth."""
        if self.rng.random() < 0.1:
            return self.rng.choice((self.variable(INT), self.strong(BOOL)))
        return self.of(BOOL)

    def variable(self, kind: str) -> str:
        """A variable of a type that has some."""
        return self.rng.choice(self.scope.variables[kind])

    def element(self, kind: str) -> str | None:
        """An element of a type, to read or write; None if there is none."""
        known = [entry for entry in self.scope.elements if entry[0] == kind]
        if not known:
            return None
        _, template, extent = self.rng.choice(known)
        index = str(self.rng.randrange(extent))
        if self.rng.random() < 0.3:
            index = self.expand(f"<i> % {extent}")
        if self.scope.outside and template in ALONE and self.rng.random() < 0.4:
            index = self.expand(self.rng.choice(self.scope.outside))
        return template.format(index)

    def leaf(self, kind: str) -> str:
        """A variable or an element of a type."""
        names = self.scope.variables.get(kind, [])
        element = self.element(kind)
        if names and (element is None or self.rng.random() < 0.5):
            return self.rng.choice(names)
        if element is None:  # no variable of this type: a cast of some number
            return f"np.{kind}({self.expand('<small>')})" if kind != BOOL else self.of(BOOL, 2)
        return element

    def strong(self, kind: str) -> str:
        """A variable or an element of a strong type other than this one."""
        kinds = [k for k in self.scope.strong if k != kind]
        kinds = kinds or [k for k in ("int32", "float64") if k != kind]
        return self.leaf(self.rng.choice(kinds))

    def _bounded(self) -> str:
        """A Python int of a strong value."""
        kind = self.rng.choice(self.scope.strong or ["int32"])
        leaf = self.leaf(kind)
        if kind in INTEGERS:
            return f"int({leaf} % 50)"
        return self.rng.choice((f"(int({leaf}) % 50)", f"(round({leaf}) % 50)"))


def _templates(kind: str, last: bool) -> tuple[str, ...]:
    match kind:
        case "int":
            return _WHOLE_LEAVES if last else _WHOLES
        case "float":
            return _FRACTION_LEAVES if last else _FRACTIONS
        case "bool":
            return _TEST_LEAVES if last else _TESTS
    if kind in COMPLEX:
        return _COMPLEX_LEAVES if last else _COMPLEX_TEMPLATES
    if kind in REALS:
        return _REAL_LEAVES if last else _REAL_TEMPLATES
    if last:
        return _INTEGER_LEAVES
    signed = () if is_unsigned(kind) else _SIGNED
    wide = () if kind.endswith(("t8", "16")) else _WIDE
    return (*_INTEGER_TEMPLATES, *signed, *wide)
