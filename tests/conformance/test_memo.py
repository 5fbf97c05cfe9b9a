"""An equal kernel that is written again at other lines, as in a notebook, is compiled once; what
devices say of it names the lines of the kernel that was launched.
"""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from tests.executors import devices
from tests.unit.fake_backend import fake_device

__all__ = ["fake_device"]

DEVICES = list(devices())
COMPILING = [name for name in DEVICES if name != "interpreter"]

TEXT = """
def gather(out, x, indices):
    i = sarek.global_idx.x
    out[i] = x[indices[i]]
"""
SPREAD = TEXT.replace("x\n", "x\n\n")  # the same, a line between
LAST = {TEXT: 4, SPREAD: 5}


def written(text: str, above: int, **options: Any) -> Any:
    """The kernel of a cell with empty lines above it."""
    cell = "\n" * above + text
    file = f"<cell of {above} lines and {len(text)}>"
    linecache.cache[file] = (len(cell), None, cell.splitlines(True), file)
    names: dict[str, Any] = {"sarek": sarek, "__name__": __name__}
    exec(compile(cell, file, "exec"), names)
    return sarek.kernel(**options)(names["gather"])


def arguments() -> tuple[Any, ...]:
    return np.zeros(4, np.float32), np.arange(4, dtype=np.float32), np.array([3, 2, 1, 0])


@pytest.fixture(autouse=True)
def _fresh() -> None:
    execute.clear_launch_cache()
    execute.counters.reset()


@pytest.mark.parametrize("device", COMPILING)
@pytest.mark.parametrize("debug", [False, True])
def test_written_again_it_is_compiled_once(device: str, debug: bool) -> None:
    """One check and one compilation over 100 launches of each of three."""
    counters = execute.counters
    for text, above in ((TEXT, 0), (TEXT, 7), (SPREAD, 7)):
        kernel = written(text, above, debug=debug)
        for _ in range(100):
            out, x, indices = arguments()
            kernel.launch(out, x, indices, grid=1, block=4, device=device)
        assert out.tolist() == [3, 2, 1, 0]
    assert (counters.capability_checks, counters.compiles, counters.launches) == (1, 1, 300)


@pytest.mark.parametrize("device", COMPILING)
def test_a_debug_build_is_another_kernel(device: str) -> None:
    """The control: what differs is compiled."""
    for debug in (False, True):
        written(TEXT, 0, debug=debug).launch(*arguments(), grid=1, block=4, device=device)
    written(TEXT.replace("i]]", "i] - 1]"), 0).launch(*arguments(), grid=1, block=4, device=device)
    assert execute.counters.compiles == 3


@pytest.mark.parametrize("device", DEVICES)
def test_findings_name_the_lines_of_the_kernel_that_ran(device: str) -> None:
    """Also where the first line is the same and a later one is not."""
    for text, above in ((TEXT, 0), (TEXT, 7), (SPREAD, 7), (TEXT, 7)):
        out, x, indices = arguments()
        indices[2] = 99
        with pytest.raises(sarek.OutOfBounds) as caught:
            written(text, above, debug=True).launch(out, x, indices, grid=1, block=4, device=device)
        (finding,) = caught.value.findings
        assert finding.span.line == above + LAST[text]
        assert f":{above + LAST[text]}:" in str(caught.value)


@pytest.mark.parametrize("device", COMPILING)
def test_shown_source_names_the_line_of_its_kernel(device: str) -> None:
    """A hit is the same object."""
    for above in (0, 7):
        kernel = written(TEXT, above)
        shown = kernel.source(device, *arguments())
        assert f":{above + 2}\n" in shown or f":{above + 2}:" in shown.splitlines()[0]
        assert kernel.source(device, *arguments()) is shown
        assert written(TEXT, above).source(device, *arguments()) is shown
    assert execute.counters.sources == 2


def test_refusals_name_the_lines_of_the_kernel_that_was_launched(fake_device: Any) -> None:
    """One check, and the same text each time a kernel is refused."""
    _, x, indices = arguments()
    wide = np.zeros(4)
    for text, above in ((TEXT, 0), (TEXT, 7), (SPREAD, 7)):
        kernel = written(text, above)
        texts = set()
        for _ in range(2):
            with pytest.raises(sarek.CapabilityError) as caught:
                kernel[1, 4](wide, x.astype(np.float64), indices)
            texts.add(str(caught.value))
        assert len(texts) == 1
        assert f"{len(text)}>:{above + LAST[text]}:" in texts.pop()
    assert execute.counters.capability_checks == 1
