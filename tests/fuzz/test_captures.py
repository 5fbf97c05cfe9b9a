"""Random programs, captured and replayed, on devices with a mechanism and without one.

2,000 of each kind are in `docs/results`; these are the first of them.
"""

from __future__ import annotations

import pytest

import sarek_numba as sarek
from sarek_cuda import graphs as cuda
from sarek_numba.runtime import recorded
from sarek_opencl import graphs as opencl
from sarek_vulkan import graphs as vulkan
from tests.fuzz import captures, schedules

PROGRAMS = {
    "native": 60,
    "cuda:fake": 25,
    "vulkan:0": 30,
    "opencl:intel:0": 20,
    "opencl:pocl:0": 12,
    "interpreter": 3,
}
KINDS = [captures, schedules]


def opened(name):
    try:
        return captures.opened(name)
    except sarek.UnknownDevice:
        pytest.skip(f"there is no {name} here")


def differences(kind, name, count):
    """What is wrong with the first programs, in words."""
    device = opened(name)
    programs = map(kind.generate, range(count))
    return [f"{found}\n{p}" for p in programs if (found := kind.difference(p, device))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_replays_do_what_direct_execution_does(kind, name):
    """Whatever is replaced, written or shared in between."""
    found = differences(kind, name, PROGRAMS[name])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("kind", KINDS)
def test_programs_are_the_same_each_time(kind):
    """A seed is a program."""
    assert str(kind.generate(7)) == str(kind.generate(7))


def test_programs_differ_in_what_they_do():
    """All operations and kinds of memory are met, and replays in which something is other."""
    programs = [captures.generate(seed) for seed in range(100)]
    assert len({each.what for p in programs for each in p.operations}) == 9
    assert len({memory.kind for p in programs for memory in p.memories}) == 4
    replays = [replay for p in programs for replay in p.replays]
    assert sum(bool(r.others) for r in replays) > 100
    assert sum(bool(r.writes) for r in replays) > 100


@pytest.mark.parametrize("fault", ["edges", "pattern", "changes", "cuda", "vulkan", "opencl"])
def test_faults_are_found(fault, monkeypatch):
    """Positive control: dependencies that are lost, or kept too long, and updates that are lost."""
    kind, name = schedules, "cuda:fake"
    match fault:
        case "edges":
            monkeypatch.setattr(recorded, "dependencies_of", lambda uses: [frozenset()] * len(uses))
        case "pattern":
            monkeypatch.setattr(recorded, "pattern_of", lambda uses: ())
        case "changes":
            kind, name = captures, "native"
            monkeypatch.setattr(recorded.RecordedGraph, "_change", lambda self, fresh: None)
        case "cuda":
            monkeypatch.setattr(cuda.CudaGraph, "update", lambda self, changed: True)
        case "vulkan":
            kind, name = captures, "vulkan:0"
            monkeypatch.setattr(vulkan.VulkanGraph, "update", lambda self, changed: True)
        case _:
            kind, name = captures, "opencl:intel:0"
            monkeypatch.setattr(opencl.Calls, "change", lambda self, buffer, changes: None)
    assert differences(kind, name, 20)
