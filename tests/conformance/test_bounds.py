"""Functions that no device rounds exactly stay within the bounds of docs/numerics.json."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.text import text
from tools.numerics import record
from tools.numerics.functions import FUNCTIONS, INEXACT
from tools.numerics.identity import driver, family, instruction_set
from tools.numerics.measure import TYPES, function_kernel, judge, measure
from tools.numerics.reference import Exact, exact
from tools.numerics.sample import Arguments, arguments, shorter

# float64 is meant here
pytestmark = pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")

ROWS = 600
RECORDS = record.load()
AGAIN = "measure this machine: python tools/measure_ulp.py --write"
each_function = pytest.mark.parametrize("name", FUNCTIONS)
each_type = pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)


@lru_cache
def _sample(name: str, dtype: np.dtype) -> tuple[Arguments, Exact]:
    rows = shorter(arguments(FUNCTIONS[name], dtype), dtype, ROWS)
    return rows, exact(FUNCTIONS[name], rows)


OTHER_MACHINE = 4  # ULP more: libraries choose their code by the processor and its driver


def _known(device: str) -> tuple[list[record.Record], bool]:
    """The records that hold for a device, and whether they were made with this driver and CPU."""
    key = family(device), driver(sarek.device(device).record), instruction_set()
    return record.for_machine(RECORDS, key), any(entry.key == key for entry in RECORDS)


@pytest.mark.parametrize("device", [device.name for device in sarek.devices()])
@each_type
@each_function
def test_within_its_bound(name: str, dtype: np.dtype, device: str) -> None:
    """No result is further from the mathematical value than recorded, none special but those."""
    records, this_machine = _known(device)
    recorded = [r.results[name, dtype.name] for r in records]
    assert recorded, AGAIN
    rows, expected = _sample(name, dtype)
    found = measure(device, FUNCTIONS[name], rows, expected)
    allowed = max(map(record.bound, recorded)) + (0 if this_machine else OTHER_MACHINE)
    assert found.ulp <= allowed, f"{found.ulp} ULP at {found.at}, {allowed} recorded; {AGAIN}"
    if not this_machine:
        return
    cases = {deviation.case for measured in recorded for deviation in measured.deviations}
    assert {deviation.case for deviation in found.deviations} <= cases, (found.deviations, AGAIN)


@each_type
def test_an_error_beyond_the_bound_is_found(dtype: np.dtype) -> None:
    """One result that is two places off is reported with its argument."""
    rows, expected = _sample("exp", dtype)
    right = expected.rounded
    assert judge(rows, expected, right).ulp <= 0.5
    row = int(np.flatnonzero(rows[0] == 2)[0])
    wrong = right.copy()
    wrong[row] += 2 * np.spacing(right[row])
    found = judge(rows, expected, right, wrong)
    assert 1.5 <= found.ulp <= 2.5
    assert found.at == "2.0"


@each_type
@pytest.mark.parametrize(
    ("argument", "wrong", "case"),
    [
        (-1.0, 0.0, ("-0.0", "0.0")),
        (np.inf, 0.0, ("nan", "0.0")),
        (0.5, np.nan, ("number", "nan")),
        (1.0, 1e-30, ("0.0", "number")),
    ],
)
def test_a_wrong_special_value_is_found(
    dtype: np.dtype, argument: float, wrong: float, case: tuple[str, str]
) -> None:
    """A zero of the other sign, a number for NaN, NaN for a number, a number for an exact zero."""
    rows, expected = _sample("sinpi", dtype)
    actual = np.where(rows[0] == argument, wrong, expected.rounded).astype(dtype)
    assert judge(rows, expected, expected.rounded).deviations == ()
    assert [d.case for d in judge(rows, expected, actual).deviations] == [case]


def test_every_function_is_listed() -> None:
    assert {function.intrinsic for function in FUNCTIONS.values()} == set(INEXACT)


def test_the_record_is_complete() -> None:
    """Each record has every function and type, and each family of devices present has one."""
    wanted = {(name, dtype.name) for name in FUNCTIONS for dtype in TYPES}
    for entry in RECORDS:
        assert set(entry.results) == wanted, entry.key
    assert {family(d.name) for d in sarek.devices()} <= {entry.device for entry in RECORDS}


def test_the_tables_are_those_of_the_record() -> None:
    page = record.MARKDOWN.read_text()
    assert record.with_tables(page, RECORDS) == page


@pytest.mark.parametrize("name", INEXACT)
def test_all_names_mean_one_function(name: str) -> None:
    """A function of `math`, NumPy or `sarek.math` is compiled to what was measured."""
    function = FUNCTIONS[name]
    array = np.ones(1, np.float32)
    texts = {
        text(function_kernel(spelling, function.arity).ir(*[array] * (function.arity + 1))).split(
            "{", 1
        )[1]
        for spelling in function.names
    }
    assert len(texts) == 1
    assert INTRINSICS[name].name in texts.pop()
