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
from sarek_numba.stdlib.functions import exponential, factorial
from tools.numerics import functions_ir, polynomials
from tools.numerics.functions import FUNCTIONS, INEXACT
from tools.numerics.measure import function_kernel, judge
from tools.numerics.reference import exact
from tools.numerics.sample import arguments, shorter

pytestmark = pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")

# Largest errors in ULP of float64, measured on 20,000 arguments against MPFR, rounded up.
BOUNDS = dict.fromkeys(OWN, 1.0) | {"erfc": 2.2, "gamma": 1.7}
each_function = pytest.mark.parametrize("name", sorted(OWN))
DEVICES = [d.name for d in sarek.devices() if d.name != "interpreter"]


def own_kernel(name: str):
    return functions_ir.kernel_of(name)


def test_every_inexact_function_has_one() -> None:
    assert set(OWN) == set(INEXACT)
    assert {name for name, _ in stored.functions_stored()} == set(OWN)


@each_function
def test_what_is_stored_is_the_function(name: str) -> None:
    """`python -m tools.numerics.functions_ir` was run after the last change."""
    path = functions_ir.FOLDER / f"{name}.json"
    assert path.read_text() == stored.store(functions_ir.helpers_of(name))


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"lgamma"}))
def test_within_its_bound(name: str) -> None:
    """Each is as close to MPFR's value as stated, special values included."""
    function = FUNCTIONS[name]
    rows = shorter(arguments(function, np.dtype(np.float64)), np.dtype(np.float64), 2000)
    out = np.full_like(rows[0], 7.25)
    with sarek.use_device("native"), np.errstate(all="ignore"):
        own_kernel(function.intrinsic)[-(-len(out) // 64), 64](out, *rows)
    found = judge(rows, exact(function, rows), out)
    assert found.deviations == ()
    assert found.ulp <= BOUNDS[function.intrinsic]


@each_function
def test_the_same_bits_on_every_device(name: str) -> None:
    """The oracle and all devices agree, as for everything that is exactly rounded."""
    function = FUNCTIONS[name]
    rows = shorter(arguments(function, np.dtype(np.float64)), np.dtype(np.float64), 300)
    results = {}
    for device in (*DEVICES, "interpreter"):
        out = np.full_like(rows[0], 7.25)
        with sarek.use_device(device), np.errstate(all="ignore"):
            own_kernel(name)[-(-len(out) // 64), 64](out, *rows)
        results[device] = out
    for device, out in results.items():
        np.testing.assert_array_equal(out, results["interpreter"], err_msg=device)
        same = np.signbit(out) == np.signbit(results["interpreter"])
        assert np.all(same | np.isnan(out)), device


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, np.float64) for name in sorted(OWN)]
    + [(name, np.float32) for name in ("atan2", "exp", "rsqrt", "sin")],
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
        expected = np.full(len(out), 7.25)
        wide = tuple(column.astype(np.float64) for column in rows)
        with sarek.use_device("interpreter"):
            own_kernel(name)[-(-len(out) // 64), 64](expected, *wide)
        np.testing.assert_array_equal(out, expected.astype(dtype))


def test_coefficients_are_those_of_the_script() -> None:
    """Two of the polynomials, computed anew, stand in the functions digit by digit."""
    wanted = [p for p in polynomials.polynomials() if p.name in ("exp", "stirling")]
    text = "".join(Path(module.__file__).read_text() for module in (exponential, factorial))
    with mp.workdps(80):
        for polynomial in wanted:
            for value in polynomials.coefficients(polynomial):
                assert repr(abs(value)) in text
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
