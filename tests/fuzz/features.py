"""What generated programs use: features by name, each found in the text of a program.

A text is what is compiled, so a feature counts only where it stands in the program or in a device
function that the program reaches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tests.fuzz.programs import Program
from tests.fuzz.records import SHAPES

_PATTERNS = {
    "loops": r"\b(for|while) ",
    "else of loops": r"(?m)^( *)(?:for|while)\b.*:\n(?:\1 .*\n)+\1else:",
    "break or continue": r"\b(break|continue)\b",
    "early return": r"(?m)^ {8,}return\b",
    "barriers": r"sarek\.(barrier|superstep)\(\)",
    "match": r"\bmatch ",
    "unroll": r"sarek\.unroll",
    "local arrays": r"sarek\.local\.array",
    "device functions": r"(?<!def )\b(u_f\d|f\d|helper|changed)_\d+\(",
    "functions as arguments": r"\bf\d_\d+\((u_f\d_\d+|abs|np\.\w+), |\bg=u_f",
    "bounded recursion": r"inline_depth",
    "tail recursion": r"def f\d_\d+\(p, k, total\)",
    "tuples as results": r"(?<!def )\b(helper|changed)_\d+\(",
    "keyword arguments": r"\bf\d_\d+\((a|p|total)=|\bhelper_\d+\(.*\bk=",
    "inlined functions": r"inline=True",
    "records": r"\brecs\[",
    "records through functions": r"(?<!def )\bchanged_\d+\(",
    "record constructors": r"\bR\d+(_f\d)?\(",
    "local arrays of records": r"\brl\[",
    "shared arrays of records": r"\brt\[",
    "complex numbers": r"\bzs\b",
    "variants": r"\bvs\b",
    "variants matched": r"(?m)^ +case .*\bU\d+\.C\d",
    "nested patterns of variants": r"(?m)^ +case .*\bU\d+\.C\d\(.*\bU\d+\.C\d\(.*:$",
    "guards of variants": r"(?m)^ +case .*\bU\d+\.C\d.* if .*:$",
    "variants as arguments": r"(?<!def )\b(score|turned)_\d+\(",
    "variants as results": r"(?<!def )\bturned_\d+\(",
    "variants in local memory": r"\bvl\[",
    "variants in shared memory": r"\bvt\[",
    "variants in records": r"\b(vh\[h\]|vr)\.",
    "records in variants": r"\bP\d+\(",
    "loops over tuples": r"(?m)^ +for \(?\w+(, \w+\)?)? in ([A-Z]+|\(.*\)):$",
    "functions in tuples": r"(?m)^ +for .*\bg\d+ in ",
    "arrays in tuples": r"(?m)^ +for w\d+ in \(",
    "warps": r"sarek\.warp\.",
    "shuffles": r"sarek\.warp\.shuffle",
    "shuffles of segments": r"sarek\.warp\.shuffle.*width=",
    "votes": r"sarek\.warp\.(any|all)\(",
    "ballots": r"sarek\.warp\.(ballot|active_mask)\(",
    "reductions of warps": r"sarek\.warp\.(sum|min|max)\(",
    "memory between warp barriers": r"sarek\.warp_barrier\(\)",
    "flow of warps": r"(?m)^ +(if|elif|while) .*sarek\.warp\.",
    "warps through functions": r"(?<!def )\bwarped_\d+\(",
    "halves": r"\bhs\[",
    "halves made": r"\b(np\.float16|sarek\.b?float16)\(",
    "bits of halves": r"sarek\.half_(bits|from_bits)\(",
    "halves in local memory": r"\bhl\[",
    "halves in shared memory": r"\bht\[",
    "atomics": r"sarek\.atomic\.",
    "atomics on cells of a group": r"sarek\.atomic\.\w+\((cells|sc),",
    "atomics in shared memory": r"sarek\.atomic\.\w+\(sc,",
    "old values of atomics": r"[=(,*+\-/%&|^] ?sarek\.atomic\.",
    "compare-and-swap": r"sarek\.atomic\.cas",
}
_COMPILED = {name: re.compile(text) for name, text in _PATTERNS.items()}
_OTHERS = ("functions that call functions", "nested records", "packed records")
_HINTS = ("wraparound=False", 'bounds="clamp"', "strict=True")
FEATURES = (*_PATTERNS, *_OTHERS, *_HINTS)


def features(program: Program) -> set[str]:
    """The features that a program uses."""
    reached = program.reached()
    text = program.text(helpers=reached)
    found = {name for name, pattern in _COMPILED.items() if pattern.search(text)}
    bodies = ["\n".join(helper.lines) for helper in reached]
    calls = [(one, body) for k, body in enumerate(bodies) for one in reached[:k]]
    if any(f"{one.name}(" in body for one, body in calls):
        found.add("functions that call functions")
    mode = program.mode
    held = (not mode.wraparound, mode.bounds == "clamp", mode.strict)
    found |= {hint for hint, holds in zip(_HINTS, held, strict=True) if holds}
    for shape in SHAPES:
        if ("recs", f"records_{shape.name}") in program.extras:
            found |= {"nested records"} if shape.nested else set()
            found |= set() if shape.is_aligned else {"packed records"}
    return found


def count(programs: Iterable[Program]) -> Counter[str]:
    """How many of the programs use each feature."""
    return Counter(name for program in programs for name in features(program))


def shares(counted: Counter[str], programs: int) -> list[str]:
    """Lines with the share of programs that use each feature."""
    return [f"{counted[name] / max(programs, 1):6.1%} {name}" for name in FEATURES]
