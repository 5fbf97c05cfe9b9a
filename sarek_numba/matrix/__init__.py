"""Products of matrices: which kernels are one, and whether a rewrite may stand in for them.

`recognise` reads the IR of a kernel and gives a `Product`, or a `NotAProduct` that says why not and
where; `bind` puts a launch's numbers into one; `choose` decides; `rewrite` makes the kernel that
stands in, `specialise` what is launched. `run` asks for it, `tune` finds the fastest tiling. See
`docs/matrix.md`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sarek_numba.matrix import testing
    from sarek_numba.matrix.request import run
    from sarek_numba.matrix.specialise import Specialised, outcome_text, variant_name
    from sarek_numba.matrix.tuner import Tuned, tune

_HOME = {
    "Specialised": "specialise",
    "Tuned": "tuner",
    "outcome_text": "specialise",
    "run": "request",
    "tune": "tuner",
    "variant_name": "specialise",
}
_MODULES = ("testing",)
__all__ = ["Specialised", "Tuned", "outcome_text", "run", "testing", "tune", "variant_name"]


def __getattr__(name: str) -> Any:
    """Loaded when used: most launches need none of it."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
