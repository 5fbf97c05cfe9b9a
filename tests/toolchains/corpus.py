"""The corpus as text of a C++-like language, many kernels to a program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache

import numpy as np

from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Kernel
from sarek_numba.passes import optimise
from sarek_numba.passes.coarsen import asked
from tests.executors import SEED
from tests.kernels.case import Case


def text_of(case: Case, dialect: Dialect, target: Target, *, coarse: bool = False) -> str:
    """What a device of the dialect would compile for a case; `coarse` for a large launch."""
    with asked() if coarse else nullcontext():
        return cfamily.emit(optimise(ir_of(case), target), dialect).text


@cache
def ir_of(case: Case) -> Kernel:
    """A case as lowered."""
    launch = case.launch(np.random.default_rng(SEED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel: Kernel = case.kernel.ir(*launch.arguments)
    return kernel


def program(texts: Iterable[str]) -> str:
    """One program that holds those of several kernels, each in a namespace and under a name."""
    return "\n".join(
        f"#define {cfamily.ENTRY} kernel_{number}\n"
        f"namespace program_{number} {{\n{text}}}\n"
        f"#undef {cfamily.ENTRY}"
        for number, text in enumerate(texts)
    )
