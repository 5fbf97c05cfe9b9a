"""The corpus as text of a C++-like language, many kernels to a program."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import cache

import numpy as np

from sarek_numba.codegen import cfamily
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.codegen.target import Target
from sarek_numba.ir.nodes import Kernel
from sarek_numba.passes import optimise
from tests.executors import SEED
from tests.kernels.case import Case


def text_of(case: Case, dialect: Dialect, target: Target) -> str:
    """What a device of the dialect would compile for a case."""
    return cfamily.emit(optimise(_ir(case), target), dialect).text


@cache
def _ir(case: Case) -> Kernel:
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
