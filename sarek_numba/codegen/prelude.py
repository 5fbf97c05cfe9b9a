"""Small functions that a program of a C-like language defines for itself.

They give operators the meaning that `ir.semantics` fixes at their edges, where the language's own
operator has none or another. A `Prelude` hands out their names and collects the definitions of
those used. Templates: `$T` is the type, `$U` its unsigned counterpart, `$W` an unsigned type of at
least 32 bits in which arithmetic of `$T` does not overflow, `$NARROW` what makes a `$T` of a `$W`,
`$C` the second type, `$S` an address space, `$F` the end of a float function's name;
`@name(arguments)` is an intrinsic of type `$T`, `@bits` and `@value` reinterpret `$T` and back.
"""

from __future__ import annotations

import re
from string import Template

from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.literals import typed_literal
from sarek_numba.ir.nodes import AtomicOp, constant
from sarek_numba.ir.types import Kind, MemSpace, Scalar

_INT = frozenset({Kind.SIGNED, Kind.UNSIGNED})
_SIGNED = frozenset({Kind.SIGNED})
_UNSIGNED = frozenset({Kind.UNSIGNED})
_FLOAT = frozenset({Kind.FLOAT})
_ANY = _INT | _FLOAT | {Kind.BOOL}

UNSIGNED = {
    Scalar.INT8: Scalar.UINT8,
    Scalar.INT16: Scalar.UINT16,
    Scalar.INT32: Scalar.UINT32,
    Scalar.INT64: Scalar.UINT64,
    Scalar.UINT32: Scalar.UINT32,
    Scalar.UINT64: Scalar.UINT64,
    Scalar.FLOAT32: Scalar.UINT32,
    Scalar.FLOAT64: Scalar.UINT64,
}

SUFFIX = {scalar: scalar.value[0] + str(scalar.bits) for scalar in Scalar} | {
    Scalar.BOOL: "bool",
    Scalar.BFLOAT16: "bf16",
}

# Integer division by zero ends the process (SIGFPE) on PoCL and Intel wherever they divide
# one element at a time, so the divisor itself is guarded, not the result alone.
# (family, kinds of its type) -> definition. A signed division is safe with the divisor 1 in place
# of 0 and of the -1 that overflows: INT_MIN // 1 and INT_MIN % 1 are what INT_MIN // -1 and % -1
# give.
_TEMPLATES: dict[tuple[str, frozenset[Kind]], str] = {
    ("div", _UNSIGNED): """\
$T $N($T a, $T b) {
    return b == 0 ? 0 : a / (b == 0 ? 1 : b);
}""",
    ("mod", _UNSIGNED): """\
$T $N($T a, $T b) {
    return b == 0 ? 0 : a % (b == 0 ? 1 : b);
}""",
    ("div", _SIGNED): """\
$T $N($T a, $T b) {
    $T d = b == 0 || (b == -1 && a == $MIN) ? 1 : b;
    return b == 0 ? 0 : a / d;
}""",
    ("mod", _SIGNED): """\
$T $N($T a, $T b) {
    $T d = b == 0 || (b == -1 && a == $MIN) ? 1 : b;
    return a % d;
}""",
    ("floor_div", _SIGNED): """\
$T $N($T a, $T b) {
    $T d = b == 0 || (b == -1 && a == $MIN) ? 1 : b;
    $T q = a / d;
    return b == 0 ? 0 : q - (a % d != 0 && (a < 0) != (d < 0));
}""",
    ("floor_mod", _SIGNED): """\
$T $N($T a, $T b) {
    $T d = b == 0 || (b == -1 && a == $MIN) ? 1 : b;
    $T m = a % d;
    return m != 0 && (m < 0) != (d < 0) ? m + d : m;
}""",
    ("floor_div_plain", _SIGNED): """\
$T $N($T a, $T b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}""",
    ("floor_mod_plain", _SIGNED): """\
$T $N($T a, $T b) {
    $T m = a % b;
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}""",
    ("floor_mod", _FLOAT): """\
$T $N($T a, $T b) {
    $T m = @fmod(a, b);
    if (m != 0 && (b < 0) != (m < 0)) m += b;
    return m == 0 ? @copysign($ZERO, b) : m;
}""",
    ("floor_div", _FLOAT): """\
$T $N($T a, $T b) {
    if (b == 0) return $QUOTIENT;
    $T m = @fmod(a, b);
    $T d = $WHOLE;
    if (m != 0 && (b < 0) != (m < 0)) d -= 1;
    $T q = @floor(d);
    if (d - q > $HALF) q += 1;
    return d == 0 ? @copysign($ZERO, $QUOTIENT) : q;
}""",
    ("shift_left", _INT): """\
$T $N($T x, $C n) {
    return n < $BITS ? ($T)(($U)x << n) : 0;
}""",
    ("shift_right", _SIGNED): """\
$T $N($T x, $C n) {
    return n < $BITS ? x >> n : x >> ($BITS - 1);
}""",
    ("shift_right", _UNSIGNED): """\
$T $N($T x, $C n) {
    return n < $BITS ? x >> n : 0;
}""",
    ("abs", _SIGNED): """\
$T $N($T x) {
    $T negated = $NARROW(0 - ($W)x);
    return x < negated ? negated : x;
}""",
    ("abs", _UNSIGNED): """\
$T $N($T x) {
    return x;
}""",
    ("ipow", _SIGNED): """\
$T $N($T base, $T exponent) {
    if (exponent < 0) return base == 1 || (base == -1 && exponent % 2 == 0) ? 1 : base == -1 ? -1 :
    0; $W result = 1, power = base; for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result *= power;
        power *= power;
    }
    return ($T)result;
}""",
    ("ipow", _UNSIGNED): """\
$T $N($T base, $T exponent) {
    $W result = 1, power = base;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1) result *= power;
        power *= power;
    }
    return ($T)result;
}""",
    ("wrap", _SIGNED): """\
$T $N($T index, $T extent) {
    return index < 0 ? index + extent : index;
}""",
    # Passes of range(first, stop, step), exact at the ends of the type; none for a step of zero.
    ("passes", _SIGNED): """\
$W $N($T first, $T stop, $T step) {
    if (step > 0) return first < stop ? ($W)(($W)stop - ($W)first - 1) / ($W)step + 1 : 0;
    if (step < 0) return first > stop ? ($W)(($W)first - ($W)stop - 1) / (0 - ($W)step) + 1 : 0;
    return 0;
}""",
    ("passes", _UNSIGNED): """\
$W $N($T first, $T stop, $T step) {
    return step != 0 && first < stop ? (($W)stop - first - 1) / step + 1 : 0;
}""",
    ("min", _ANY): """\
$T $N($T a, $T b) {
    return b < a ? b : a;
}""",
    ("max", _ANY): """\
$T $N($T a, $T b) {
    return b > a ? b : a;
}""",
    ("to", _FLOAT): """\
$C $N($T x) {
    return x != x ? 0 : @saturate(x);
}""",
    # PoCL's exp overflows early, at 709.782711, its sinh and cosh give NaN below 710.475860075.
    ("exp", _FLOAT): """\
$T $N($T x) {
    $T y = exp(x > 709 ? x / 2 : x);
    return x > 709 ? y * y : y;
}""",
    ("sinh", _FLOAT): """\
$T $N($T x) {
    bool large = fabs(x) > 709;
    $T y = sinh(large ? x / 2 : x);
    return large ? 2 * fabs(y) * y : y;
}""",
    ("cosh", _FLOAT): """\
$T $N($T x) {
    bool large = fabs(x) > 709;
    $T y = cosh(large ? x / 2 : x);
    return large ? 2 * y * y : y;
}""",
    # IEEE 754: a zero of sinpi has the argument's sign, one of cospi is positive.
    ("sinpi", _FLOAT): """\
$T $N($T x) {
    $T y = sinpi$F(x);
    return y == 0 ? @copysign($ZERO, x) : y;
}""",
    ("cospi", _FLOAT): """\
$T $N($T x) {
    return cospi$F(x) + $ZERO;
}""",
    # Functions that a language lacks, of those that it has: they are inexact all the same.
    ("hypot", _FLOAT): """\
$T $N($T a, $T b) {
    $T x = @abs(a), y = @abs(b);
    $T large = x < y ? y : x, small = x < y ? x : y;
    if (@isinf(x) || @isinf(y)) return @isinf(x) ? x : y;
    if (x != x || y != y || large == 0) return x + y;
    $T ratio = small / large;
    return large * @sqrt($ONE + ratio * ratio);
}""",
    ("cbrt", _FLOAT): """\
$T $N($T x) {
    if (x == 0 || x != x || @isinf(x)) return x;
    $T near = @exp2(@log2(@abs(x)) / 3);
    return @copysign((near + near + @abs(x) / (near * near)) / 3, x);
}""",
    # W. Kahan's: what rounding does to 1 + x, and to exp(x), it does to both sides of the quotient.
    ("log1p", _FLOAT): """\
$T $N($T x) {
    $T u = 1 + x;
    return u == 1 || (@isinf(x) && x > 0) ? x : @log(u) * (x / (u - 1));
}""",
    ("expm1", _FLOAT): """\
$T $N($T x) {
    $T u = @exp(x);
    if (u == 1) return x;
    if (u == 0) return -$ONE;
    return @isinf(u) ? u : (u - 1) * (x / @log(u));
}""",
    ("atomic_exch", _FLOAT): """\
$T $N(volatile $S$T *p, $T value) {
    volatile $S$U *bits = (volatile $S$U *)p;
    return @value(@exch(bits, @bits(value)));
}""",
    ("atomic_cas", _FLOAT): """\
$T $N(volatile $S$T *p, $T compare, $T value) {
    volatile $S$U *bits = (volatile $S$U *)p;
    $U expected = @bits(compare), seen = @cas(bits, expected, @bits(value));
    // every NaN is as good as another
    while (compare != compare && seen != expected && @value(seen) != @value(seen)) {
        expected = seen;
        seen = @cas(bits, expected, @bits(value));
    }
    return @value(seen);
}""",
}
for _name, _order, _taken in (
    ("minimum", "<=", "a"),
    ("maximum", ">=", "a"),
    ("fmin", "<=", "b"),
    ("fmax", ">=", "b"),
):
    _TEMPLATES[_name, _FLOAT] = f"""\
$T $N($T a, $T b) {{
    return a {_order} b || {_taken} != {_taken} ? a : b;
}}"""
    _TEMPLATES[_name, _INT] = f"""\
$T $N($T a, $T b) {{
    return a {_order} b ? a : b;
}}"""
# Atomics that a device lacks: a compare-and-swap of the bits until no other thread came between.
for _name, _kinds, _changed in (
    ("atomic_add", _FLOAT, "old + value"),
    ("atomic_sub", _FLOAT, "old - value"),
    ("atomic_min", _INT | _FLOAT, "@fmin(old, value)"),
    ("atomic_max", _INT | _FLOAT, "@fmax(old, value)"),
):
    _TEMPLATES[_name, _kinds] = f"""\
$T $N(volatile $S$T *p, $T value) {{
    volatile $S$U *bits = (volatile $S$U *)p;
    $U seen = *bits, expected;
    do {{
        expected = seen;
        $T old = @value(expected);
        seen = @cas(bits, expected, @bits({_changed}));
    }} while (seen != expected);
    return @value(expected);
}}"""
for _name, _changed in (
    ("atomic_and", "expected & operand"),
    ("atomic_or", "expected | operand"),
    ("atomic_xor", "expected ^ operand"),
    ("atomic_inc", "expected >= operand ? 0 : expected + 1"),
    ("atomic_dec", "expected == 0 || expected > operand ? operand : expected - 1"),
):
    _TEMPLATES[_name, _INT] = f"""\
$T $N(volatile $S$T *p, $T value) {{
    volatile $S$U *bits = (volatile $S$U *)p;
    $U operand = @bits(value), seen = *bits, expected;
    do {{
        expected = seen;
        seen = @cas(bits, expected, {_changed});
    }} while (seen != expected);
    return @value(expected);
}}"""

_BY_NAME: dict[tuple[str, Kind], str] = {
    (name, kind): text for (name, kinds), text in _TEMPLATES.items() for kind in kinds
}


def has_prelude(family: str, scalar: Scalar) -> bool:
    """Whether a function of this family exists for the type."""
    return (family, scalar.kind) in _BY_NAME


def _all_names() -> frozenset[str]:
    stems = {f"{family}_{SUFFIX[s]}" for family, _ in _BY_NAME for s in Scalar}
    spaces = {f"{stem}_{space.value}" for stem in stems for space in MemSpace}
    return frozenset(stems | spaces | {f"{stem}_{SUFFIX[s]}" for stem in stems for s in Scalar})


NAMES = _all_names()


class Prelude:
    """The prelude functions that one program uses, each after those that it calls."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._definitions: dict[str, str] = {}

    @property
    def definitions(self) -> tuple[str, ...]:
        """The definitions of all functions asked for so far."""
        return tuple(self._definitions.values())

    def define(self, name: str, definition: str) -> None:
        """Give the program a function whose text is known."""
        self._definitions[name] = definition

    def function(
        self,
        family: str,
        scalar: Scalar,
        second: Scalar | None = None,
        space: MemSpace | None = None,
    ) -> str:
        """The name of a function, whose definition the program then has.

        `second` is the type of a conversion's result or of a shift's count, `space` that of a
        pointer.
        """
        name = f"{family}_{SUFFIX[scalar]}"
        if second is not None:
            name += f"_{SUFFIX[second]}"
        if space is not None:
            name += f"_{space.value}"
        if name not in self._definitions:
            text = Template(_BY_NAME[family, scalar.kind]).safe_substitute(
                self._words(name, scalar, second, space)
            )
            # the functions that it calls are entered first
            head = f"{self._dialect.function_head} ".lstrip()
            self._definitions[name] = head + self._expand(text, scalar, second, space)
        return name

    def _words(
        self, name: str, scalar: Scalar, second: Scalar | None, space: MemSpace | None
    ) -> dict[str, str]:
        types = self._dialect.types
        unsigned = UNSIGNED.get(scalar, scalar)
        wide = Scalar.UINT32 if unsigned.bits < 32 else unsigned
        words = {
            "T": types[scalar],
            "U": types[unsigned],
            "W": types[wide],
            "N": name,
            "BITS": str(scalar.bits),
            "C": types[second] if second else "",
            "S": f"{self._dialect.pointer_space[space]} ".lstrip() if space else "",
        }
        if scalar.is_float:
            words["F"] = self._dialect.float_functions.get(scalar, "")
            words["ZERO"] = typed_literal(self._dialect, constant(scalar, 0.0))
            quotient = self._dialect.quotients.get(scalar)
            words["QUOTIENT"] = _aside(quotient.format("a", "b")) if quotient else "a / b"
            words["WHOLE"] = _aside(quotient.format("a - m", "b")) if quotient else "(a - m) / b"
            words["ONE"] = typed_literal(self._dialect, constant(scalar, 1.0))
            words["HALF"] = typed_literal(self._dialect, constant(scalar, 0.5))
        else:
            words["NARROW"] = self._dialect.narrowings.get(
                (Scalar.INT32, scalar), f"({types[scalar]})"
            )
            words["MIN"] = typed_literal(self._dialect, constant(scalar, scalar.minimum))
        return words

    def _expand(
        self, text: str, scalar: Scalar, second: Scalar | None, space: MemSpace | None
    ) -> str:
        """Replace `@name(arguments)`, innermost first, by calls."""
        word = "" if space is None else self._dialect.pointer_space[space]
        while found := _CALL.search(text):
            args = [a.strip() for a in found[2].split(",")]
            call = self._call(found[1], scalar, second, args, word)
            text = text[: found.start()] + call + text[found.end() :]
        return text.replace(_OPEN, "(").replace(_CLOSE, ")").replace(_COMMA, ",")

    def _call(
        self, name: str, scalar: Scalar, second: Scalar | None, args: list[str], space: str
    ) -> str:
        dialect = self._dialect
        match name:
            case "bits" | "value":
                target = UNSIGNED[scalar] if name == "bits" else scalar
                template = dialect.reinterpret[target]
            case "cas" | "exch":
                template = dialect.atomics[AtomicOp(name), UNSIGNED[scalar]]
            case "saturate":
                assert second is not None
                template = dialect.saturate[scalar, second]
            case _ if (name, scalar) in dialect.functions:
                template = dialect.functions[name, scalar]
            case _:
                places = ", ".join(f"{{{i}}}" for i in range(len(args)))
                template = f"{self.function(name, scalar)}({places})"
        return _aside(template.format(*args, space=space))


# Parentheses and commas of calls already expanded stand aside while the calls around them are.
_OPEN, _CLOSE, _COMMA = "\x01", "\x02", "\x03"
_CALL = re.compile(r"@(\w+)\(([^()@]*)\)")


def _aside(call: str) -> str:
    return call.replace("(", _OPEN).replace(")", _CLOSE).replace(",", _COMMA)
