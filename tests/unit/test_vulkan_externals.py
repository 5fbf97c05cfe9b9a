"""SPIR-V and GLSL of others on Vulkan devices: which parameters arguments fill, and refusals."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba import execute
from sarek_numba.errors import (
    ArgumentCountError,
    ArgumentTypeError,
    InvalidArgument,
    InvalidDimensions,
    SourceCompilationError,
    UnsupportedLanguage,
)
from sarek_numba.execute import Language
from tests.unit.vulkan_kit import on_every_vulkan, on_vulkan

needs_compiler = pytest.mark.skipif(
    shutil.which("glslangValidator") is None and shutil.which("glslc") is None,
    reason="no compiler of GLSL is installed",
)

GLSL = """#version 450
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(std430, set = 0, binding = 1) buffer Y { float v[]; } y;
layout(std430, set = 1, binding = 0) readonly buffer X { float v[]; } x;
layout(push_constant) uniform Numbers { int yn; int xn; float a; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.yn && i < p.xn) y.v[i] += p.a * x.v[i];
}
"""
REFERENCES = """#version 450
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(push_constant) uniform Numbers { Floats y; Floats x; int n; float a; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) p.y.v[i] += p.a * p.x.v[i];
}
"""
ADD_ONE = """
OpCapability Shader
OpMemoryModel Logical GLSL450
OpEntryPoint GLCompute %main "add_one" %id
OpExecutionMode %main LocalSize 4 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %array ArrayStride 4
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %data DescriptorSet 0
OpDecorate %data Binding 0
%void = OpTypeVoid
%function = OpTypeFunction %void
%uint = OpTypeInt 32 0
%int = OpTypeInt 32 1
%vector = OpTypeVector %uint 3
%input = OpTypePointer Input %vector
%id = OpVariable %input Input
%array = OpTypeRuntimeArray %int
%block = OpTypeStruct %array
%buffer = OpTypePointer StorageBuffer %block
%element = OpTypePointer StorageBuffer %int
%data = OpVariable %buffer StorageBuffer
%zero = OpConstant %int 0
%one = OpConstant %int 1
%main = OpFunction %void None %function
%start = OpLabel
%where = OpLoad %vector %id
%x = OpCompositeExtract %uint %where 0
%place = OpAccessChain %element %data %zero %x
%old = OpLoad %int %place
%new = OpIAdd %int %old %one
OpStore %place %new
OpReturn
OpFunctionEnd
"""


def assembled(tmp_path: Path, text: str = ADD_ONE) -> bytes:
    """SPIR-V words of a text."""
    tool = shutil.which("spirv-as") or pytest.skip("spirv-as is not installed")
    source, made = tmp_path / "kernel.spvasm", tmp_path / "kernel.spv"
    source.write_text(text)
    subprocess.run([tool, "--target-env", "spv1.3", str(source), "-o", str(made)], check=True)
    return made.read_bytes()


@pytest.fixture
def words(tmp_path):
    return assembled(tmp_path)


@needs_compiler
@on_every_vulkan
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_glsl_with_bindings(device, make):
    """Arrays fill storage buffers by set and binding, numbers the push constants."""
    y, x = make(np.ones(100, np.float32)), make(np.arange(100, dtype=np.float32))
    for _ in range(2):
        execute.run_source(device, GLSL, Language.GLSL, "main", [y, x, 2], 64, 2)
    assert (y == 1 + 4 * np.arange(100)).all()


@needs_compiler
@on_every_vulkan
def test_glsl_with_buffer_references(device):
    """A reference in the push constants takes an array, wherever a part of it begins."""
    y, x = sarek.ones(100, np.float32), sarek.vector(np.arange(100, dtype=np.float32))
    arguments = [y[3:50], x[1:48], np.int32(47), 3.0]
    execute.run_source(
        device, REFERENCES, Language.GLSL, "main", arguments, 32, 2, inject_lengths=False
    )
    expected = np.ones(100, np.float32)
    expected[3:50] += 3 * np.arange(1, 48)
    assert (y == expected).all()


@on_every_vulkan
@pytest.mark.parametrize("make", [np.array, sarek.vector])
def test_spirv_on_parts_that_no_descriptor_can_begin_at(device, make, words):
    """Bytes at no multiple of the device's alignment are copied and brought back."""
    data = make(np.arange(64, dtype=np.int32))
    for first in (0, 1, 7, 32):
        part = data[first : first + 8]
        execute.run_source(
            device, words, Language.SPIRV, "add_one", [part], 4, 2, inject_lengths=False
        )
    expected = np.arange(64)
    for first in (0, 1, 7, 32):
        expected[first : first + 8] += 1
    assert (data == expected).all()


@on_every_vulkan
def test_on_a_stream(device, words):
    """Launches on a stream are in order."""
    stream, data = device.stream(), sarek.zeros(8, np.int32)
    for _ in range(50):
        execute.run_source(
            device, words, Language.SPIRV, "add_one", [data], 4, 2, inject_lengths=False,
            stream=stream,
        )  # fmt: skip
    stream.synchronize()
    assert (data == 50).all()


@on_vulkan
def test_what_is_no_module_is_refused(device, words):
    """Length, magic number, byte order, version, capability: each by name; then it works."""
    number = len(words) // 4
    swapped = struct.pack(f">{number}I", *struct.unpack(f"<{number}I", words))
    newer = words[:4] + struct.pack("<I", 0x00010900) + words[8:]
    kernel = words[:24] + struct.pack("<I", 6) + words[28:]  # OpCapability Kernel
    unknown = words[:24] + struct.pack("<I", 54321) + words[28:]
    cut = words[: 4 * 10] + struct.pack("<I", 0xFFFF << 16 | 71)
    x = np.zeros(8, np.int32)
    for module, why in (
        (b"\x03\x02", "2 bytes are no whole words"),
        (b"\0" * 24, "begins with 0x00000000"),
        (swapped, "big-endian"),
        (newer, r"SPIR-V 1\.9, and vulkan:\d takes up to"),
        (kernel, r"needs Kernel, which vulkan:\d does not have"),
        (unknown, "needs capability 54321"),
        (cut, "the instruction at word 10 has 65535 words"),
    ):
        with pytest.raises(SourceCompilationError, match=why):
            execute.run_source(
                device, module, Language.SPIRV, "add_one", [x], 4, 2, inject_lengths=False
            )
    execute.run_source(device, words, Language.SPIRV, "add_one", [x], 4, 2, inject_lengths=False)
    assert (x == 1).all()


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="spirv-val is not installed")
@on_vulkan
def test_what_the_validator_rejects(device, tmp_path):
    """An invalid module is refused with the validator's log, before any driver sees it."""
    broken = assembled(tmp_path, ADD_ONE.replace("OpIAdd %int %old", "OpFAdd %int %old"))
    with pytest.raises(SourceCompilationError, match="spirv-val rejects it") as caught:
        execute.run_source(
            device, broken, Language.SPIRV, "add_one", [np.zeros(8, np.int32)], 4, 2,
            inject_lengths=False,
        )  # fmt: skip
    assert "FAdd" in str(caught.value.log)


@on_vulkan
def test_launches_that_do_not_fit_the_module(device, words):
    """Names, counts, blocks and shared bytes are refused by what the module says of itself."""
    x = np.zeros(8, np.int32)

    def launch(name="add_one", arguments=(x,), block=4, shared=0):
        execute.run_source(
            device, words, Language.SPIRV, name, list(arguments), block, 2, shared,
            inject_lengths=False,
        )  # fmt: skip

    with pytest.raises(InvalidArgument, match="no kernel 'other'\n  hint: it has add_one"):
        launch("other")
    with pytest.raises(ArgumentCountError, match="1 buffers and 0 numbers, and the arguments are"):
        launch(arguments=(x, 2))
    with pytest.raises(InvalidDimensions, match=r"states blocks of \(4, 1, 1\)"):
        launch(block=8)
    with pytest.raises(InvalidArgument, match="no dynamic shared memory"):
        launch(shared=64)
    assert not x.any()


@needs_compiler
@on_vulkan
def test_numbers_of_another_type(device):
    """A NumPy number is of the type of its push constant."""
    x = np.zeros(8, np.float32)
    with pytest.raises(ArgumentTypeError, match="its parameter is float32"):
        execute.run_source(device, GLSL, Language.GLSL, "main", [x, x.copy(), np.int64(2)], 8, 1)


@needs_compiler
@on_vulkan
def test_glsl_that_does_not_compile(device):
    """The compiler's log names the line; a kernel is called main."""
    with pytest.raises(SourceCompilationError, match="rejects the program") as caught:
        execute.run_source(device, "#version 450\nvoid main() { x; }", Language.GLSL, "main", [],
                           1, 1)  # fmt: skip
    assert "kernel.comp:2" in caught.value.log
    with pytest.raises(InvalidArgument, match="a kernel in GLSL is called main"):
        execute.run_source(device, GLSL, Language.GLSL, "saxpy", [], 1, 1)


@on_vulkan
def test_glsl_without_a_compiler(device, monkeypatch):
    """What to install is said."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UnsupportedLanguage, match="apt-get install glslang-tools"):
        execute.run_source(device, GLSL + "// not seen before", Language.GLSL, "main", [], 1, 1)
