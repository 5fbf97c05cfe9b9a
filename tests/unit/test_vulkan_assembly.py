"""Texts for Vulkan: what a body may say, where it goes, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sarek_numba as sarek
from sarek_numba.errors import SourceCompilationError
from sarek_vulkan.opcodes import OPERATIONS
from tests.unit.vulkan_kit import devices, driver_of

DEVICE = next(iter(devices().values()), None)
pytestmark = pytest.mark.skipif(DEVICE is None, reason="there is no Vulkan device")


def same(x):
    return x


def run(text: str, x: Any) -> Any:
    """What a text makes of each element of an array."""
    body = sarek.inline_source({"vulkan": text}, fallback=same)

    @sarek.kernel
    def each(out, x):
        i = sarek.global_idx.x
        if i < len(x):
            out[i] = body(x[i])

    out = np.full(len(x), 77, x.dtype)
    each.launch(out, x, grid=1, block=32, device=DEVICE)
    return out


def test_the_last_result_is_the_functions() -> None:
    """A comment, a constant with its own type, and nothing that returns."""
    x = np.arange(-3, 4, dtype=np.float32)
    text = """
        %number = OpTypeFloat 32      ; the module has one such type already
        %half = OpConstant %number -0.5
        %product = OpFMul $return.type $x %half
    """
    assert (run(text, x) == x * np.float32(-0.5)).all()


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_literals_of_integers(dtype: Any) -> None:
    """The ends of each type, negative or as bits."""
    info = np.iinfo(dtype)
    for number in (info.min, info.max, -1, 0x7B):
        text = f"%c = OpConstant $x.type {number}\n%r = OpBitwiseXor $x.type $x %c"
        bits = np.array([number & (2 * info.max + 1 if info.min else info.max)]).astype(np.uint64)
        assert (run(text, np.zeros(3, dtype)) == bits.astype(dtype)).all()


def test_literals_of_doubles() -> None:
    text = "%c = OpConstant $x.type 0.1\n%r = OpFAdd $x.type $x %c"
    assert (run(text, np.arange(3.0)) == np.arange(3.0) + 0.1).all()


def test_blocks_loops_and_variables() -> None:
    """How often a number can be halved, by the body's own control flow."""
    text = """
            %bool = OpTypeBool
            %pointer = OpTypePointer Function $x.type
            %zero = OpConstantNull $x.type
            %one = OpConstant $x.type 1
            %count = OpVariable %pointer Function
            %rest = OpVariable %pointer Function
            OpStore %count %zero
            OpStore %rest $x
            OpBranch %head
    %head = OpLabel
            OpLoopMerge %end %next None
            OpBranch %test
    %test = OpLabel
            %now = OpLoad $x.type %rest
            %more = OpUGreaterThan %bool %now %one
            OpBranchConditional %more %body %end
    %body = OpLabel
            %halved = OpShiftRightLogical $x.type %now %one
            OpStore %rest %halved
            %counted = OpLoad $x.type %count
            %sum = OpIAdd $x.type %counted %one
            OpStore %count %sum
            OpBranch %next
    %next = OpLabel
            OpBranch %head
     %end = OpLabel
            %result = OpLoad $x.type %count
            OpReturnValue %result
    """
    x = np.array([1, 2, 3, 4, 255, 256, 2**31], np.uint32)
    assert run(text, x).tolist() == [0, 1, 1, 2, 7, 8, 31]


def test_functions_of_the_extended_set() -> None:
    """Imported once, whoever imports it."""
    text = """
        %glsl = OpExtInstImport "GLSL.std.450"
        %sign = OpExtInst $x.type %glsl SSign $x
        %small = OpExtInst $x.type %glsl SMin %sign $x
    """
    x = np.array([-7, 0, 5], np.int32)
    assert run(text, x).tolist() == [-7, 0, 1]


def test_arrays() -> None:
    """A row points to a structure of one array without an end; parts of arrays begin later."""

    def second(row, i):
        return row[i + 1]

    at = sarek.inline_source(
        {
            "vulkan": """
                %word = OpTypeInt 32 0
                %long = OpTypeInt 64 0
                %zero = OpConstant %word 0
                %one = OpConstant %long 1
                %next = OpIAdd %long $i %one
                %pointer = OpTypePointer PhysicalStorageBuffer $row.type
                %place = OpAccessChain %pointer $row %zero %next
                %value = OpLoad $row.type %place Aligned 2
                OpReturnValue %value
            """
        },
        fallback=second,
    )

    @sarek.kernel
    def gather(out, rows):
        i = sarek.global_idx.x
        out[i] = at(rows[i], i)

    rows = np.arange(20, dtype=np.int16).reshape(4, 5) * 7
    out = np.zeros(4, np.int16)
    with sarek.use_device(DEVICE):
        gather[1, 4](out, rows)
    assert out.tolist() == [rows[i, i + 1] for i in range(4)]


def test_a_body_without_a_result() -> None:
    """It ends by itself."""

    def put(out, i, value):
        out[i] = value

    store = sarek.inline_source(
        {
            "vulkan": """
                %word = OpTypeInt 32 0
                %zero = OpConstant %word 0
                %pointer = OpTypePointer PhysicalStorageBuffer $out.type
                %place = OpAccessChain %pointer $out %zero $i
                OpStore %place $value Aligned 4
            """
        },
        fallback=put,
    )

    @sarek.kernel
    def fill(out):
        i = sarek.global_idx.x
        store(out, i, np.float32(i) * 3)

    out = np.zeros(4, np.float32)
    with sarek.use_device(DEVICE):
        fill[1, 4](out)
    assert out.tolist() == [0, 3, 6, 9]


SUM = "%r = OpFAdd $x.type $x $x"
WRONG = {
    "%r = OpFoo $x.type $x": "line 1: OpFoo is no instruction that is known here",
    "\n%r = OpFAdd $x.type $x %t": "nothing gives %t",
    "OpFAdd $x.type $x $x": "line 1: OpFAdd has a result, which needs a name",
    "%r = OpReturn": "line 1: OpReturn has no result",
    "r = OpFAdd $x.type $x $x": "line 1: r = wants a name such as %x and an instruction",
    "%c = OpConstant $x.type zz": "line 1: zz is no number of 32 bits",
    "%w = OpTypeInt 8 0\n%c = OpConstant %w 256": "line 2: 256 does not fit 8 bits",
    "%c = OpConstant %bool 1": "line 1: OpConstant wants a type of integers or of floats",
    "%r = OpFAdd $x.type $x": "line 1: OpFAdd has 4 words and takes 5",
    "%r = OpFAdd $x.type $x $x $x": "line 1: OpFAdd takes no operand",
    "%r = OpFAdd $x.type $x 3": "line 1: 3 stands where a name such as %x does",
    "%r = OpIAdd $x.type $x $x": "Expected int scalar or vector type",
    "%l = OpLabel\nOpBranch %m": "nothing gives %m",
    f"{SUM}\n%l = OpLabel": "%l begins a block and the one before has no end",
    f"OpReturnValue $x\n{SUM}": "line 2: OpFAdd stands behind the end of a block",
    f"{SUM}\n{SUM}": "line 2: %r is given twice",
    "%r = OpFNegate $x.type %c\n%c = OpConstant $x.type 1": "line 2: %c is used before it is given",
    "OpCapability Geometry": "line 1: OpCapability has no Capability named Geometry",
    "OpCapability CooperativeMatrixKHR\nOpReturnValue $x": "it needs CooperativeMatrixKHR, which",
    "OpFunctionEnd": "line 1: OpFunctionEnd is no part of a function's body",
    "%t = OpTypeInt 13 0": "line 1: types of numbers are OpTypeInt 8, 16, 32 or 64 and 0",
    "%g = OpExtInstImport GLSL": 'GLSL stands where "characters" do',
    '%g = OpExtInstImport "GLSL.std.450"\n%r = OpExtInst $x.type %g Foo $x': "Foo is no function",
    "OpName $x": "line 1: OpName has",
    "; nothing": "no instruction has a result, and the function has one",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong(text: str) -> None:
    """With the line of the text, and where it is given; nothing is written."""
    if "CooperativeMatrix" in text and driver_of(DEVICE).physical.matrices:
        pytest.skip("this device has cooperative matrices")
    if text.startswith("%r = OpIAdd"):
        pytest.importorskip("cmeel", reason="nothing here validates modules")
    with pytest.raises(SourceCompilationError) as raised:
        run(text, np.zeros(3, np.float32))
    assert "the vulkan text of 'same'" in str(raised.value)
    assert WRONG[text] in raised.value.log + str(raised.value.__cause__)


def test_shared_memory_is_refused() -> None:
    def first(row):
        return row[0]

    body = sarek.inline_source({"vulkan": "%r = OpLoad $row.type $row"}, fallback=first)

    @sarek.kernel
    def shared(out):
        tile = sarek.shared.array(4, sarek.float32)
        tile[sarek.thread_idx.x] = 1.0
        sarek.barrier()
        out[0] = body(tile)

    with pytest.raises(SourceCompilationError, match="arrays in global memory, none of a block"):
        shared.launch(np.zeros(1, np.float32), grid=1, block=4, device=DEVICE)


def test_the_text_is_what_the_module_has() -> None:
    """Read back by this project's own disassembler."""
    body = sarek.inline_source({"vulkan": "%r = OpBitReverse $return.type $x"}, fallback=same)

    @sarek.kernel
    def reverse(out):
        out[0] = body(out[0])

    text = str(reverse.source(DEVICE, np.zeros(1, np.uint32)))
    assert text.count("OpBitReverse") == 1
    assert "OpBitReverse" in OPERATIONS
