"""Functions that a program has of its own, written in Sarek IR.

What SPIR-V or Metal leaves inexact, or has not, is written in the text form of the IR
(`docs/ir.md`), mostly on the bits of the numbers, and emitted as any helper. `TEXTS` has a
function for each type of a kind, `function` the function of a type: `fmod_float32`. In a template
`$n` is the type's name, `$t` its name in the text, `$u` that of the unsigned integers of its width,
and the other words are the numbers of `_words`. A call `@name:type(…)` brings the function that it
calls along.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from string import Template

from sarek_numba.ir.nodes import HelperFunction
from sarek_numba.ir.parse import parse
from sarek_numba.ir.types import Scalar
from sarek_numba.passes import half_functions
from sarek_numba.passes.library_texts import FLOATS, FMA, INTEGERS, SIGNED

_FLOATS = (Scalar.FLOAT32, Scalar.FLOAT64)
_INTEGERS = tuple(s for s in Scalar if s.is_integer)
_CALL = re.compile(r"@(\w+):|call (\w+)")


def _bias(type: Scalar) -> int:
    return (1 << (type.bits - half_functions.FRACTION[type] - 2)) - 1


def _words(type: Scalar) -> dict[str, str]:
    """What stands for the words of a template in the functions of a type."""
    words: dict[str, object] = {
        "n": type.value,
        "t": f"{type.value[0]}{type.bits}",
        "u": f"u{type.bits}",
    }
    words |= {"bits": type.bits, "last": type.bits - 1}
    if type.is_float:
        fraction, bias = half_functions.FRACTION[type], _bias(type)
        exponents = (1 << (type.bits - fraction - 1)) - 1
        words |= {
            "fraction": fraction,  # bits of it
            "bias": bias,
            "exponents": exponents,  # the exponent of infinity
            "lead": type.bits - 1 - fraction,  # zero bits above a normal significand
            "hidden": 1 << fraction,
            "mask": (1 << fraction) - 1,
            "sign": 1 << (type.bits - 1),
            "magnitude": (1 << (type.bits - 1)) - 1,
            "infinity": exponents << fraction,
            "nan": f"nan.f{type.bits}({(2 * exponents + 1) << (fraction - 1):#x})",
            "root": 1 << (fraction + 1),
        }
    return {name: str(word) for name, word in words.items()}


def _texts() -> dict[str, str]:
    texts = {**half_functions.TEXTS, **FMA}
    for name, template in FLOATS.items():
        for type in _FLOATS:
            texts[f"{name}_{type.value}"] = Template(template).substitute(_words(type))
    for type in _INTEGERS:
        template = SIGNED if type.minimum else INTEGERS
        texts[f"ipow_{type.value}"] = Template(template).substitute(_words(type))
    return texts


TEXTS: Mapping[str, str] = _texts()


def has(name: str) -> bool:
    """Whether there is a function of this name."""
    return name in TEXTS


@cache
def functions_of(name: str) -> tuple[HelperFunction, ...]:
    """A function, behind all those that it calls. Raises KeyError."""
    return all_of((name,))


@cache
def all_of(names: tuple[str, ...]) -> tuple[HelperFunction, ...]:
    """Functions, each once, behind all those that it calls. Raises KeyError."""
    wanted = dict.fromkeys(each for name in names for each in _closure(name))
    text = "\n".join(TEXTS[each] for each in wanted)
    return parse(f"kernel library index 32 {{\n{text}\n}}\n").functions


def _closure(name: str) -> list[str]:
    """The names of a function and of all that it calls, these first."""
    found: list[str] = []
    for within, alone in _CALL.findall(TEXTS[name]):
        found += [each for each in _closure(within or alone) if each not in found]
    return [*found, name]


@cache
def function(name: str) -> HelperFunction:
    """A function by its name, one object for each. Raises KeyError."""
    return functions_of(name)[-1]
