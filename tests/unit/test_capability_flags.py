"""Options of compilers: an exact kernel gets none that changes results, a granted one few."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from sarek_numba.capability import FEATURES, PROMISES
from sarek_numba.capability.flags import BREAKING, illegal
from tests.unit.fake_backend import record


def test_table_names_promises_and_sources() -> None:
    """Each option breaks something that is promised, and somebody says so."""
    for option, (broken, source) in BREAKING.items():
        assert broken, option
        assert set(broken) <= set(PROMISES)
        assert source


@pytest.mark.parametrize("option", BREAKING)
def test_exact_kernels_take_none(option: str) -> None:
    """Each is refused for each promise that it breaks."""
    broken, _ = BREAKING[option]
    assert [r.need.feature for r in illegal("k", [option], record())] == list(broken)


@pytest.mark.parametrize("option", BREAKING)
def test_a_grant_allows_what_it_gives_up(option: str) -> None:
    """And nothing that assumes NaN, infinity or signs of zeros away."""
    broken, _ = BREAKING[option]
    kept = [feature for feature in broken if not FEATURES[feature].granted]
    found = illegal("k", [option], record(), fastmath=True)
    assert [r.need.feature for r in found] == kept


def test_text_of_an_illegal_flag() -> None:
    """Its kind has its own explanation."""
    [first, *_] = illegal("k", ["--std=c++17", "-cl-denorms-are-zero"], record())
    assert str(first) == (
        "kernel 'k' needs float32 subnormals as operands, which device 'fake:0' does not have\n"
        "  flag legality: a flag of the compiler would change results that are promised exact\n"
        "  quoted: OpenCL 1.2, section 5.6.4.3: -cl-denorms-are-zero\n"
        '  hint: leave -cl-denorms-are-zero out, or grant it: @sarek.kernel(fastmath="why")'
    )


def _opencl() -> tuple[Any, Any]:
    module = import_module("sarek_opencl.record")
    exact = ("-cl-std=CL1.2", "-w", module._EXACT_DIVISION)
    return exact, module.fast_options(exact)


def _cuda() -> tuple[Any, Any]:
    module = import_module("sarek_cuda.record")
    architecture = module.Architecture("sm_90", ptx=False)
    return module.options_for(architecture), module.options_for(architecture, fast=True)


def _hip() -> tuple[Any, Any]:
    module = import_module("sarek_hip.record")
    return module.options_for("gfx90a"), module.options_for("gfx90a", fast=True)


@pytest.mark.parametrize("options", [_opencl, _cuda, _hip], ids=["opencl", "cuda", "hip"])
def test_options_of_backends_are_legal(options: Any) -> None:
    """Exact ones always, fast ones under the grant, and only there."""
    exact, fast = options()
    assert illegal("k", exact, record()) == []
    assert illegal("k", fast, record(), fastmath=True) == []
    assert illegal("k", fast, record())
