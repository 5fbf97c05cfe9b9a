"""The functions of float64 made of exact operations: stored, called, the same everywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.execute import run_interpreter_vectors
from sarek_numba.ir.intrinsics import INTRINSICS
from sarek_numba.ir.nodes import App, Intrinsic
from sarek_numba.ir.types import FLOAT32, FLOAT64
from sarek_numba.ir.verify import verify
from sarek_numba.ir.walk import bodies_of_kernel, walk_body_exprs
from sarek_numba.passes import functions as stored
from sarek_numba.passes import optimise
from sarek_numba.runtime import registry
from sarek_numba.stdlib.functions import FUNCTIONS as OWN
from sarek_numba.stdlib.functions import SINGLE, exponential, factorial, single
from tools.numerics import functions_ir, polynomials
from tools.numerics.functions import FUNCTIONS, INEXACT
from tools.numerics.measure import function_kernel, judge
from tools.numerics.reference import exact
from tools.numerics.sample import arguments, shorter

pytestmark = pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")

# Largest errors in ULP of float64, measured on 20,000 arguments against MPFR, rounded up.
BOUNDS = dict.fromkeys(OWN, 1.0) | {"erfc": 2.2, "gamma": 1.7}
each_typed = pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in sorted(OWN)] + [(name, np.float32) for name in sorted(SINGLE)],
)
DEVICES = [d.name for d in sarek.devices() if d.name != "interpreter"]


def own_kernel(name: str, dtype: type = np.float64):
    return functions_ir.kernel_of(name, dtype)


def test_every_inexact_function_has_one() -> None:
    assert set(OWN) == set(INEXACT)
    assert {name for name, _ in stored.functions_stored()} == set(OWN)
    assert stored.singles_stored() == set(SINGLE)


@each_typed
def test_what_is_stored_is_the_function(name: str, dtype: type) -> None:
    """`python -m tools.numerics.functions_ir` was run after the last change."""
    folder = functions_ir.SINGLES if dtype is np.float32 else functions_ir.FOLDER
    text = stored.store(functions_ir.helpers_of(name, dtype))
    assert (folder / f"{name}.json").read_text() == text


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in sorted(set(FUNCTIONS) - {"lgamma"})]
    + [(name, np.float32) for name in sorted(SINGLE)],
)
def test_within_its_bound(name: str, dtype: type) -> None:
    """Each is as close to MPFR's value as stated, special values included."""
    function = FUNCTIONS[name]
    rows = shorter(arguments(function, np.dtype(dtype)), np.dtype(dtype), 2000)
    out = np.full_like(rows[0], 7.25)
    with sarek.use_device("native"), np.errstate(all="ignore"):
        own_kernel(function.intrinsic, dtype)[-(-len(out) // 64), 64](out, *rows)
    found = judge(rows, exact(function, rows), out)
    assert found.deviations == ()
    assert found.ulp <= (2.3 if dtype is np.float32 else BOUNDS[function.intrinsic])


@each_typed
def test_the_same_bits_on_every_device(name: str, dtype: type) -> None:
    """The oracle and all devices agree, as for everything that is exactly rounded."""
    function = FUNCTIONS[name]
    rows = shorter(arguments(function, np.dtype(dtype)), np.dtype(dtype), 300)
    results = {}
    for device in (*DEVICES, "interpreter"):
        out = np.full_like(rows[0], 7.25)
        with sarek.use_device(device), np.errstate(all="ignore"):
            own_kernel(name, dtype)[-(-len(out) // 64), 64](out, *rows)
        results[device] = out
    for device, out in results.items():
        np.testing.assert_array_equal(out, results["interpreter"], err_msg=device)
        same = np.signbit(out) == np.signbit(results["interpreter"])
        assert np.all(same | np.isnan(out)), device


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in sorted(OWN)]
    + [(name, np.float32) for name in ("atan2", "exp", "rsqrt", "sin", "tanh")],
)
def test_a_target_that_lacks_a_function_computes_it(name: str, dtype: type) -> None:
    """The intrinsic is gone, the kernel is legal, and the result is that of the function."""
    function = FUNCTIONS[name]
    made = function_kernel(function.names[0], function.arity)
    rows = shorter(arguments(function, np.dtype(dtype)), np.dtype(dtype), 200)
    out = np.full_like(rows[0], 7.25)
    kernel = made.ir(out, *rows)
    driver = registry.device("native").driver
    target = replace(driver.target, own_functions=stored.functions_stored())
    replaced = stored.own_functions(kernel, target)
    verify(replaced)
    left = [e for b in bodies_of_kernel(replaced) for e in walk_body_exprs(b)]
    assert not [e for e in left if isinstance(e, Intrinsic) and not INTRINSICS[e.name].exact]
    assert any(isinstance(e, App) for e in left)
    verify(optimise(kernel, target))
    with np.errstate(all="ignore"):
        run_interpreter_vectors(replaced, [out, *rows], 64, -(-len(out) // 64))
        through = dtype if (name in SINGLE) else np.float64
        expected = np.full(len(out), 7.25, through)
        given = tuple(column.astype(through) for column in rows)
        with sarek.use_device("interpreter"):
            own_kernel(name, through)[-(-len(out) // 64), 64](expected, *given)
        np.testing.assert_array_equal(out, expected.astype(dtype))


def test_coefficients_are_those_of_the_script() -> None:
    """Some of the polynomials, computed anew, stand in the functions digit by digit."""
    text = "".join(Path(module.__file__).read_text() for module in (exponential, factorial))
    texts = {float: text, np.float32: Path(single.__file__).read_text()}
    wanted = [
        p
        for p in polynomials.polynomials()
        if p.type is np.float32 or p.name in ("exp", "stirling")
    ]
    with mp.workdps(80):
        for polynomial in wanted:
            for value in polynomials.coefficients(polynomial):
                digits = str(abs(value))
                assert digits in texts[polynomial.type] or digits == "0.5"
    assert repr(1.6084831332283697e-10) not in text


def test_names_that_are_taken_are_left_alone() -> None:
    """A user's device function of the same name stays what it is."""

    @sarek.function
    def exp(x):
        return x + 1.0

    @sarek.kernel
    def both(out, x):
        i = sarek.global_idx.x
        out[i] = exp(x[i]) + np.exp(x[i])

    x = np.array([0.5, 1.0])
    kernel = both.ir(x, x)
    target = replace(
        registry.device("native").driver.target, own_functions=stored.functions_stored()
    )
    replaced = stored.own_functions(kernel, target)
    verify(replaced)
    names = [helper.name for helper in replaced.functions]
    assert len(set(names)) == len(names)
    assert "exp" in names


def test_only_what_is_asked_for_is_replaced() -> None:
    x = np.ones(4, np.float32)
    kernel = function_kernel("np.exp(x) + np.sin(x)", 1).ir(x, x)
    target = registry.device("native").driver.target
    assert stored.own_functions(kernel, target) is kernel
    only = replace(target, own_functions=frozenset({("sin", FLOAT32), ("exp", FLOAT64)}))
    replaced = stored.own_functions(kernel, only)
    names = {e.name for e in walk_body_exprs(replaced.body) if isinstance(e, Intrinsic)}
    assert names == {"exp"}
