"""The problems of the demonstration: inputs, the launches that solve them, and what to look at.

Each problem gives the same arrays on every device; the oracle's are the reference. Problem sizes are
chosen so that the oracle, which checks every access, takes a few seconds for all of them together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sarek_numba.cli.demo import kernels

Image = npt.NDArray[Any]
BLOCK = (16, 16)


@dataclass(frozen=True)
class Problem:
    """`solve` launches on the device in use and returns the results; `picture` makes them visible.

