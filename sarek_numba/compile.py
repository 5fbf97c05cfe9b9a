"""The driver: from a Python function and the types of its arguments to a verified kernel.

One straight function through the stages of the front end; a launch adds passes, emission and the
device's compiler (`runtime.launch`). `SAREK_DUMP=numba,typed,ir` prints what a stage made.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any

from sarek_numba.errors import raise_diagnostics
from sarek_numba.frontend.covering import compiling_covered
from sarek_numba.frontend.hints import NONE, Hints, compiling
from sarek_numba.frontend.infer import infer
from sarek_numba.frontend.lower import lower
from sarek_numba.frontend.typed import Typed
from sarek_numba.frontend.warps import DEFAULT_WIDTH, compiling_for
from sarek_numba.ir.convergence import check_convergence
from sarek_numba.ir.text import text
from sarek_numba.ir.verify import verify
from sarek_numba.runtime.compiled import Compiled, show_notes
from sarek_numba.runtime.dump import dump

# Numba's inference shares state between functions.
_front_end = threading.RLock()


def compile_kernel(
    function: FunctionType,
    types: Sequence[Any],
    name: str,
    index_bits: int,
    int32_arguments: frozenset[int] = frozenset(),
    hints: Hints = NONE,
    warp_width: int = DEFAULT_WIDTH,
    covered: bool = False,
) -> Compiled:
    """Compile a function for the Numba types of its arguments. Raises CompileError.

    `int32_arguments` are the positions of Python ints that fit int32. The kernel has the
    `warp_width` if anything in it depends on that. If `covered`, its statements have marks that the
    oracle counts.
    """
    with (
        _front_end,
        _paused_collector(),
        compiling(hints),
        compiling_covered(covered),
        compiling_for(warp_width) as asked,
    ):
        typed = infer(function, tuple(types))
        dump("numba", name, lambda: _numba_text(typed))
        dump("typed", name, lambda: _typed_text(typed))
        kernel = lower(typed, name=name, index_bits=index_bits, int32_arguments=int32_arguments)
    if asked.used:
        kernel = replace(kernel, warp_width=warp_width)
    dump("ir", name, lambda: text(kernel))
    verify(kernel)
    raise_diagnostics(check_convergence(kernel))
    notes = tuple(note for function in (*typed.callees, typed) for note in function.notes)
    show_notes(notes)
    return Compiled(kernel, typed.captures, notes)


@contextmanager
def _paused_collector() -> Iterator[None]:
    """No search for cyclic garbage: nearly all that the front end makes is in use until its end.

    Looking through it again and again takes a third of the time of a long kernel.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _numba_text(typed: Typed) -> str:
    lines = []
    for label, block in sorted(typed.function_ir.blocks.items()):
        lines.append(f"block {label}:")
        lines += [f"    {statement}" for statement in block.body]
    return "\n".join(lines)


def _typed_text(typed: Typed) -> str:
    variables = [f"{name}: {type_}" for name, type_ in typed.types.items()]
    operations = [
        f"{node} -> {operation.what} : {operation.result}"
        for node, operation in typed.operations.items()
    ]
    return "\n".join([*variables, *operations])
