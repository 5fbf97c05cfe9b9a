"""Modules for devices that have more than llvmpipe, from facts alone; the tables are total."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sarek_numba import passes
from sarek_vulkan import program
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.emit import emit, target_for
from sarek_vulkan.features import ALL, FLOAT_CONTROLS, SUBGROUP_OPERATIONS
from sarek_vulkan.opcodes import ENUMERANTS
from sarek_vulkan.record import abilities_of, record_of
from sarek_vulkan.spirv import Assembler, disassemble
from tests.executors import SEED
from tests.kernels.case import Case
from tests.kernels.corpus import CASES
from tests.unit.spirv_tools import disassembly, validate
from tests.unit.vulkan_facts import NVIDIA

OPPOSITES = (("DenormPreserve", "DenormFlushToZero"), ("RoundingModeRTE", "RoundingModeRTZ"))
SOME = [case for case in CASES if not case.warps][::16]


def test_every_capability_has_a_number(tmp_path):
    """Those of features, float controls and subgroups; Khronos' disassembler has the same names."""
    named = {name for feature in ALL for name in feature.capabilities}
    named |= set(FLOAT_CONTROLS.values()) | set(SUBGROUP_OPERATIONS.values())
    assert named <= set(ENUMERANTS["Capability"])
    assert set(FLOAT_CONTROLS.values()) <= set(ENUMERANTS["ExecutionMode"])
    assembler = Assembler()
    for name in ENUMERANTS["Capability"]:
        assembler.capability(name)
    for mode in ENUMERANTS["ExecutionMode"]:
        given = (1, 1, 1) if mode == "LocalSize" else (32,)
        assembler.add(program.Section.MODES, "OpExecutionMode", 1, mode, *given)
    assembler.id()
    theirs = disassembly(assembler.words(), tmp_path).splitlines()
    assert [line.split() for line in theirs] == [
        line.split() for line in disassemble(assembler.words()).splitlines()
    ]


def _modules(abilities: Abilities, cases: list[Case] = SOME) -> list[bytes]:
    target = target_for(abilities)
    found = []
    for case in cases:
        made = case.launch(np.random.default_rng(SEED))
        kernel = passes.optimise(case.kernel.ir(*made.arguments), target)
        found.append(emit(kernel, abilities, NVIDIA.limits["maxPushConstantsSize"]).words)
    return found


def _excluding(text: str) -> list[tuple[str, int]]:
    """Modes that stand in a text beside what excludes them (SPIR-V 1.5, 3.6; no validator asks)."""
    return [
        (first, width)
        for first, second in OPPOSITES
        for width in (16, 32, 64)
        if f" {first} {width}\n" in text and f" {second} {width}\n" in text
    ]


@pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")
def test_modules_of_a_device_with_every_float_control(tmp_path):
    """One of each pair that excludes each other is asked for, of the widths in use."""
    abilities = abilities_of(NVIDIA)
    assert ("RoundingModeRTZ", 32) in abilities.float_controls
    modules = _modules(abilities)
    assert len(modules) >= 8
    assert validate(modules, tmp_path) == [""] * len(modules)
    text = "".join(map(disassemble, modules))
    assert _excluding(text) == []
    for mode in FLOAT_CONTROLS.values():
        wanted = mode in program.FLOAT_MODES
        assert (f"OpCapability {mode}\n" in text) is wanted
        assert (f" {mode} 32\n" in text) is wanted


@pytest.mark.filterwarnings("ignore::sarek_numba.errors.CompileWarning")
def test_modes_that_exclude_each_other_are_seen(monkeypatch):
    """Positive control: were all modes asked for that the device has, the check would say so."""
    monkeypatch.setattr(program, "FLOAT_MODES", frozenset(FLOAT_CONTROLS.values()))
    text = "".join(map(disassemble, _modules(abilities_of(NVIDIA), SOME[:4])))
    assert _excluding(text) == [("DenormPreserve", 32), ("RoundingModeRTE", 32)]


def test_a_record_of_facts_alone():
    """The record is made without a device, and says what the driver says."""
    record = record_of(NVIDIA, "vulkan:0")
    assert record.limits.warp_width == 32
    few = replace(NVIDIA, controls=frozenset())
    assert not abilities_of(few).float_controls
