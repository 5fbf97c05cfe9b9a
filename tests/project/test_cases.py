"""Which tests cover which case from the field, so that no case loses one unseen.

A case is a kind of fault that users of other kernel compilers met, known by its number. `TABLE`
has those of halves, control flow, functions, arrays, shared memory, atomics and warps, names,
lifetime and diagnostics; each line names the tests that together cover all of a case.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
CONFORMANCE = "conformance/test_cases_{}.py"
CONTROL, LOOPS, FUNCTIONS, ARRAYS, BLOCKS, ATOMICS, NAMES = (
    CONFORMANCE.format(name)
    for name in ("control", "loops", "functions", "arrays", "blocks", "atomics", "names")
)
LAYOUTS, WARPS = "conformance/test_arrays.py", "conformance/test_warps.py"
PRINTING = "conformance/test_printing.py"
LIFETIME = "conformance/test_cases_lifetime.py"
DISK = "unit/test_disk_kernels.py"
HALVES = "conformance/test_cases_halves.py"

TABLE: dict[int, dict[str, str]] = {
    # halves
    43: {HALVES: "values_not_bits"},
    44: {HALVES: "comparisons_are_of_the_wider_type"},
    46: {HALVES: "products_are_rounded"},
    47: {HALVES: "ties", "conformance/test_halves.py": "test_floats_are_rounded_once"},
    49: {HALVES: "subnormal_numbers"},
    50: {HALVES: "constants_joins_choices"},
    52: {HALVES: "bytes", "conformance/test_halves.py": "test_halves_become_every_type"},
    53: {HALVES: "one_kernel_or_two"},
    # control flow
    55: {CONTROL: "continue"},
    56: {CONTROL: "store"},
    58: {CONTROL: "return"},
    59: {CONTROL: "early", LOOPS: "million"},
    61: {CONTROL: "break"},
    62: {CONTROL: "bare", LOOPS: "dead"},
    64: {CONTROL: "rebound", LOOPS: "last"},
    65: {CONTROL: "argument", LOOPS: "element"},
    67: {CONTROL: "empty", LOOPS: "types"},
    68: {CONTROL: "far", LOOPS: "ends constants"},
    70: {CONTROL: "short", LOOPS: "loops"},
    71: {CONTROL: "chain", LOOPS: "atomic"},
    73: {CONTROL: "nested", "fuzz/test_fuzz.py": "test_executors_equal_cpython"},
    74: {CONTROL: "barrier", LOOPS: "vote warp"},
    # functions, closures, globals
    76: {FUNCTIONS: "closures functions"},
    77: {FUNCTIONS: "globals", DISK: "test_edits_in_other_modules_are_noticed"},
    79: {FUNCTIONS: "late unassigned"},
    80: {FUNCTIONS: "inputs", "unit/test_disk_code.py": "test_devices_share_nothing"},
    82: {FUNCTIONS: "again processes"},
    83: {FUNCTIONS: "variants overloads literals"},
    85: {FUNCTIONS: "threads", DISK: "test_sixteen_processes_at_once"},
    86: {FUNCTIONS: "equal_names factories"},
    88: {FUNCTIONS: "tuples"},
    89: {FUNCTIONS: "keywords"},
    91: {FUNCTIONS: "value annotation"},
    # arrays
    92: {ARRAYS: "slices step step_at_run_time bounds views"},
    94: {ARRAYS: "orders", LIFETIME: "vectors"},
    95: {ARRAYS: "size_one", LAYOUTS: "test_input test_output test_in_place"},
    97: {ARRAYS: "empty one_axis no_threads reductions"},
    98: {ARRAYS: "offsets", LIFETIME: "vectors far_apart"},
    100: {ARRAYS: "records", LAYOUTS: "big_endian_is_refused"},
    101: {ARRAYS: "broadcast"},
    103: {LIFETIME: "offsets kinds"},
    104: {ARRAYS: "nested"},
    106: {ARRAYS: "offsets long_array"},
    107: {ARRAYS: "space grid"},
    109: {LAYOUTS: "same_array_twice overlapping_views test_in_place"},
    # shared memory, barriers
    110: {BLOCKS: "padding"},
    112: {BLOCKS: "leader"},
    113: {BLOCKS: "nested"},
    115: {"conformance/test_fusion.py": "writes_for_others_in_a_branch"},
    116: {BLOCKS: "reuse race"},
    118: {BLOCKS: "limit local local_limit"},
    119: {"conformance/test_window.py": "test_a_consumer_of_neighbours_comes_after_their_producer"},
    # atomics, warps
    121: {BLOCKS: "old each", ATOMICS: "multisets"},
    122: {BLOCKS: "float", ATOMICS: "125_by_cas 124_other_types"},
    124: {ATOMICS: "integers test_case_122_124_other_types"},
    125: {BLOCKS: "cas", ATOMICS: "query test_case_122_125_by_cas"},
    127: {WARPS: "test_shuffles"},
    128: {WARPS: "test_segments test_reductions"},
    # names
    148: {NAMES: "words fields same"},
    149: {NAMES: "letters distinct path"},
    # threads, processes, lifetime, memory
    151: {LIFETIME: "temporaries"},
    152: {LIFETIME: "addresses"},
    154: {FUNCTIONS: "thread"},
    155: {LIFETIME: "fork spawn"},
    157: {LIFETIME: "no_memory"},
    158: {FUNCTIONS: "leak bounded"},
    160: {LIFETIME: "neighbours"},
    161: {
        LIFETIME: "constructs",
        "unit/test_typing_inference.py": "test_case_161_containers_are_refused",
    },
    # diagnostics
    169: {"errors/test_case_169.py": "test_case_169"},
    170: {
        PRINTING: "every_type no_arguments_and_forty every_number_of_arguments complex "
        "percent_and_unicode in_divergent_code"
    },
}
NUMBERS = (
    *(43, 44, 46, 47, 49, 50, 52, 53),
    *(55, 56, 58, 59, 61, 62, 64, 65, 67, 68, 70, 71, 73, 74),
    *(76, 77, 79, 80, 82, 83, 85, 86, 88, 89, 91),
    *(92, 94, 95, 97, 98, 100, 101, 103, 104, 106, 107, 109),
    *(110, 112, 113, 115, 116, 118, 119, 121, 122, 124, 125, 127, 128, 148, 149),
    *(151, 152, 154, 155, 157, 158, 160, 161, 169, 170),
)


def covering(number: int, table: dict[int, dict[str, str]]) -> list[tuple[str, str]]:
    """The files and names of a case's tests."""
    return [
        (file, word if word.startswith("test_") else f"test_case_{number}_{word}")
        for file, words in table[number].items()
        for word in words.split()
    ]


@cache
def functions_in(file: str) -> dict[str, ast.FunctionDef]:
    """The test functions of a file."""
    tree = ast.parse((TESTS / file).read_text())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in functions if node.name.startswith("test_")}


def numbers_in(name: str) -> set[int]:
    """The cases that a test is named after."""
    found = re.match(r"test_case((?:_\d+)+)", name)
    return set(map(int, re.findall(r"\d+", found[1]))) if found else set()


def numbers_of(function: ast.FunctionDef) -> set[int]:
    """The cases that a test says to be about, in its name or its docstring."""
    found = numbers_in(function.name)
    text = ast.get_docstring(function) or ""
    for cases in re.findall(r"[Cc]ases? (\d+(?:(?:, | and )\d+)*)", text):
        found |= set(map(int, re.findall(r"\d+", cases)))
    return found


def faults(number: int, table: dict[int, dict[str, str]]) -> list[str]:
    """What is wrong with a case's line."""
    found = []
    for file, name in covering(number, table):
        function = functions_in(file).get(name)
        if function is None:
            found.append(f"case {number}: {file} has no test {name}")
        elif number not in numbers_of(function):
            found.append(f"case {number}: {file}::{name} does not say so")
        elif any("xfail" in ast.unparse(mark) for mark in function.decorator_list):
            found.append(f"case {number}: {file}::{name} is expected to fail")
    return found


def test_every_case_has_a_line():
    """None is left out, none is there twice."""
    assert sorted(TABLE) == sorted(NUMBERS)


@pytest.mark.parametrize("number", NUMBERS)
def test_case_has_its_tests(number):
    """They exist, and say which case they are about."""
    assert covering(number, TABLE)
    assert faults(number, TABLE) == []


def test_a_lost_test_is_found():
    """Positive control: a test that is missing, and one that is about something else."""
    assert faults(55, {55: {CONTROL: "gone"}}) == [
        f"case 55: {CONTROL} has no test test_case_55_gone"
    ]
    assert faults(55, {55: {CONTROL: "test_case_56_store"}}) == [
        f"case 55: {CONTROL}::test_case_56_store does not say so"
    ]


def test_no_numbered_test_is_missing_from_the_table():
    """A test named after one of these cases stands in its line."""
    for file in sorted(TESTS.rglob("test_*.py")):
        path = file.relative_to(TESTS).as_posix()
        if path.startswith(("unit/", "project/")):
            continue
        for name in functions_in(path):
            for number in numbers_in(name) & set(NUMBERS):
                assert (path, name) in covering(number, TABLE), f"case {number}: {path}::{name}"
