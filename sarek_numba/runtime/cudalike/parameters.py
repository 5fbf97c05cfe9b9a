"""What is known of a parameter of a kernel that others wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as its language spells it, and its bytes.

    `type` is as in `sarek_numba.runtime.languages.External`: None is memory, and True is not known.
    What `is_integer` is one, of whichever sign, or an address.
    """

    spelling: str
    size: int
    type: np.dtype[Any] | bool | None = True
    is_integer: bool = False
