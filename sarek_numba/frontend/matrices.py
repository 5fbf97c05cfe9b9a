"""`sarek.coopmat`: matrices that the threads of a warp hold and multiply together.

Imports no Numba, and of this package only the errors and `language`, as `language` itself. Called
in plain Python the functions act on the current thread of an emulation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sarek_numba.frontend.language import DType, current

if TYPE_CHECKING:
    from sarek_numba.ir.nodes import CoopmatConfig

USES = ("a", "b", "c", "result")
LAYOUTS = ("row_major", "column_major")
SCOPES = ("subgroup", "workgroup")


@dataclass(frozen=True)
class Config:
    """One multiply-add: result[m, n] = a[m, k] @ b[k, n] + c[m, n].

    `a`, `b`, `c` and `result` are the types of the components, as `sarek.int8`, a NumPy dtype or a
    name. Sums of integers wrap, or with `saturating` each multiply-add gives the nearest number of
    the result's type. Raises TypeError and ValueError.
    """

    m: int
    n: int
    k: int
    a: Any
    b: Any
    c: Any
    result: Any
    saturating: bool = False
    scope: str = "subgroup"

    def __post_init__(self) -> None:
        for name in ("m", "n", "k"):
            given = getattr(self, name)
            if isinstance(given, bool) or not isinstance(given, (int, np.integer)):
                raise TypeError(f"{name} of sarek.coopmat.Config is a whole number, not {given!r}")
            if given < 1:
                raise ValueError(f"{name} of sarek.coopmat.Config is at least 1, not {given}")
            object.__setattr__(self, name, int(given))
        for name in USES:
            object.__setattr__(self, name, _component(name, getattr(self, name)))
        kinds = {name: "int" in getattr(self, name) for name in USES}
        if len(set(kinds.values())) > 1:
            shown = ", ".join(f"{name} {getattr(self, name)}" for name in USES)
            raise ValueError(f"sarek.coopmat.Config mixes integers and floats: {shown}")
        if self.saturating and not kinds["result"]:
            raise ValueError(f"sums of {self.result} do not saturate: only those of integers do")
        object.__setattr__(self, "saturating", bool(self.saturating))
        if self.scope not in SCOPES:
            raise ValueError(f"the scope is {' or '.join(map(repr, SCOPES))}, not {self.scope!r}")

    @property
    def configuration(self) -> CoopmatConfig:
        """The same in the IR."""
        from sarek_numba.ir.nodes import CoopmatConfig
        from sarek_numba.ir.types import Scalar

        a, b, c, result = (Scalar(getattr(self, name)) for name in USES)
        return CoopmatConfig(self.m, self.n, self.k, a, b, c, result, self.saturating, self.scope)

    def __repr__(self) -> str:
        parts = [self.m, self.n, self.k, self.a, self.b, self.c, self.result]
        ends = [f"saturating={self.saturating}"] if self.saturating else []
        ends += [f"scope={self.scope!r}"] if self.scope != "subgroup" else []
        return f"sarek.coopmat.Config({', '.join([*map(str, parts), *ends])})"


def _component(name: str, given: Any) -> str:
    """The name of a component's type. Raises TypeError."""
    from sarek_numba.ir.matrices import COMPONENTS  # here, as in `Config.configuration`

    if isinstance(given, str) and given == "bfloat16":
        import ml_dtypes  # noqa: F401 - tells NumPy of the type
    try:
        found = given.dtype.name if isinstance(given, DType) else np.dtype(given).name
    except TypeError:
        found = repr(given)
    names = tuple(each.value for each in COMPONENTS)
    if found not in names:
        raise TypeError(
            f"{name} of sarek.coopmat.Config is {found}; components are {', '.join(names)}"
        )
    return str(found)


class Matrices:
    """Fragments, and what all threads of a warp do with them together.

    `load` and `store` take the element `index` of a C- or F-contiguous array in global or shared
    memory for the fragment's first component; `stride` elements lie between the beginnings of its
    rows, or with `layout="column_major"` of its columns.
    """

    Config = Config

    def fragment(self, config: Any, use: str) -> Any:
        """A matrix of zeros: "a", "b", "c" or the "result" of a configuration."""
        return current("coopmat.fragment").fragment(config, use)

    def load(
        self, fragment: Any, array: Any, index: Any, stride: int, layout: str = "row_major"
    ) -> None:
        """Fill a fragment from memory."""
        current("coopmat.load").matrix("load", fragment, array, index, stride, layout)

    def store(
        self, fragment: Any, array: Any, index: Any, stride: int, layout: str = "row_major"
    ) -> None:
        """Write a fragment to memory."""
        current("coopmat.store").matrix("store", fragment, array, index, stride, layout)

    def muladd(self, result: Any, a: Any, b: Any, c: Any) -> None:
        """result = a @ b + c, by the configuration of the fragments; c may be the result itself."""
        current("coopmat.muladd").matrix("muladd", result, a, b, c)

    def fill(self, fragment: Any, value: Any) -> None:
        """Give every component one value."""
        current("coopmat.fill").matrix("fill", fragment, value)

    def __repr__(self) -> str:
        return "sarek.coopmat"


coopmat = Matrices()
