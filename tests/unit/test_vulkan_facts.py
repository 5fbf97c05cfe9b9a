"""Modules for devices that have more than llvmpipe, from facts alone; the tables are total."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import vulkan

import sarek_numba as sarek
from sarek_numba import passes
from sarek_numba.runtime.registry import Device
from sarek_vulkan import physical, program
from sarek_vulkan.abilities import Abilities
from sarek_vulkan.driver import make
from sarek_vulkan.emit import emit, target_for
from sarek_vulkan.features import ALL, FLOAT_CONTROLS, STRUCTURES, SUBGROUP_OPERATIONS
from sarek_vulkan.opcodes import ENUMERANTS
from sarek_vulkan.record import abilities_of, record_of
from sarek_vulkan.runtime import VulkanDriver
from sarek_vulkan.spirv import Assembler, disassemble
from tests.executors import SEED
from tests.kernels.case import Case
from tests.kernels.corpus import CASES
from tests.unit.spirv_tools import disassembly, validate
from tests.unit.vulkan_facts import NVIDIA
from tests.unit.vulkan_kit import driver_of, on_vulkan

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


@sarek.kernel
def narrowing_bytes(out, x):
    i = sarek.global_idx.x
    minus = -x[i]
    out[i, 0] = minus
    out[i, 1] = sarek.int8(sarek.int8(0) - x[i])
    out[i, 2] = abs(x[i])
    out[i, 3] = -sarek.int8(sarek.int64(x[i]) << 1)
    out[i, 4] = x[i] // sarek.int8(-1)


@sarek.kernel
def narrowing(out, x, y):
    i = sarek.global_idx.x
    minus = -x[i]
    out[i, 0] = minus
    inner = -sarek.int16(y[i])
    out[i, 1] = -inner
    out[i, 2] = sarek.int16(sarek.int16(0) - x[i])
    out[i, 3] = abs(x[i])
    out[i, 4] = sarek.int16(sarek.int32(sarek.int64(y[i]) << 20) >> 4)


def _narrowed(device: sarek.Device) -> list[list[int]]:
    x = np.array([-32768, 32767, 0, -1, 5, 300, -300, 1], np.int16)
    out = np.zeros((8, 5), np.int64)
    narrowing.launch(out, x, x.view(np.uint16), grid=1, block=8, device=device)
    found: list[list[int]] = out.tolist()
    short = np.array([-128, 127, 0, -1, 5, 64, -64, 1], np.int8)
    narrowing_bytes.launch(out, short, grid=1, block=8, device=device)
    return found + out.tolist()


@on_vulkan
def test_hidden_integers_are_the_same(device):
    """What is hidden of NVIDIA's compiler keeps its value, on whatever runs it."""
    own = VulkanDriver(driver_of(device).physical, "vulkan:hidden")
    own.abilities = replace(own.abilities, narrows_wrongly=True)
    hidden = Device(own)
    assert _narrowed(hidden) == _narrowed(sarek.device("interpreter"))
    arrays = [sarek.int64[:, :], sarek.int16[:], sarek.uint16[:]]
    assert "OpBitwiseXor" in narrowing.source(hidden, *arrays)


@pytest.mark.parametrize(
    ("kernel", "arrays"),
    [
        (narrowing, [sarek.int64[:, :], sarek.int16[:], sarek.uint16[:]]),
        (narrowing_bytes, [sarek.int64[:, :], sarek.int8[:]]),
    ],
    ids=["int16", "int8"],
)
def test_no_short_integer_is_negated_for_nvidia(kernel, arrays):
    """All are 32 bits wide, and what becomes narrower is hidden first; of others they are short."""
    bits = 16 if kernel is narrowing else 8
    found = {}
    for hides in (False, True):
        abilities = replace(abilities_of(NVIDIA), narrows_wrongly=hides)
        made = passes.optimise(kernel.ir(*arrays), target_for(abilities))
        text = disassemble(emit(made, abilities, 256).words)
        (short,) = re.findall(rf"(%\d+) = OpTypeInt {bits} 0", text)
        found[hides] = re.findall(rf"= (Op(?:SNegate|ISub)) {short} ", text)
        made = re.findall(rf"= OpSConvert {short} (%\d+)", text)
        hidden = re.findall(r"(%\d+) = OpBitwiseXor", text)
        assert set(made) <= set(hidden) or not hides
    assert abilities_of(NVIDIA).narrows_wrongly
    assert found[True] == []
    assert "OpSNegate" in found[False]


def test_a_record_of_facts_alone():
    """The record is made without a device, and says what the driver says."""
    record = record_of(NVIDIA, "vulkan:0")
    assert record.limits.warp_width == 32
    few = replace(NVIDIA, controls=frozenset())
    assert not abilities_of(few).float_controls


def test_every_structure_has_its_type():
    """Those of properties and features that some driver knows, though none here does."""
    asked = {n for n in vars(physical).values() if str(n).startswith("VkPhysical")} - {
        physical.CORE
    }
    names = [*STRUCTURES, *asked]
    for name in names:
        assert make(name).sType
    assert make("VkPhysicalDeviceShaderSMBuiltinsPropertiesNV").sType == (
        vulkan.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV
    )
