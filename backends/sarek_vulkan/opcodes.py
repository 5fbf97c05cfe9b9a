"""The instructions and enumerants of SPIR-V that this project uses, as tables.

Numbers and operands are those of "SPIR-V Specification, version 1.6", sections 3.2 to 3.49, of
"SPIR-V Extended Instructions for GLSL", section 2, and of SPV_KHR_cooperative_matrix. An
instruction's operands are words:

- `type`, `result`, `id`: an id; `word`: a literal of 32 bits; `string`: a literal of characters;
- a name with a capital: an enumerant of the table of that name, a mask where so marked;
- `?` behind one: it may be missing; `*`: any number of them, none included. Both stand last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_OPERANDS = """
    5 OpName id string
    10 OpExtension string
    11 OpExtInstImport result string
    12 OpExtInst type result id word id*
    14 OpMemoryModel AddressingModel MemoryModel
    15 OpEntryPoint ExecutionModel id string id*
    16 OpExecutionMode id ExecutionMode word*
    17 OpCapability Capability
    19 OpTypeVoid result
    20 OpTypeBool result
    21 OpTypeInt result word word
    22 OpTypeFloat result word
    23 OpTypeVector result id word
    28 OpTypeArray result id id
    29 OpTypeRuntimeArray result id
    30 OpTypeStruct result id*
    32 OpTypePointer result StorageClass id
    33 OpTypeFunction result id id*
    41 OpConstantTrue type result
    42 OpConstantFalse type result
    43 OpConstant type result word*
    44 OpConstantComposite type result id*
    46 OpConstantNull type result
    50 OpSpecConstant type result word*
    51 OpSpecConstantComposite type result id*
    52 OpSpecConstantOp type result Operation id*
    54 OpFunction type result FunctionControl id
    55 OpFunctionParameter type result
    56 OpFunctionEnd
    57 OpFunctionCall type result id id*
    59 OpVariable type result StorageClass id?
    61 OpLoad type result id MemoryOperands? word*
    62 OpStore id id MemoryOperands? word*
    65 OpAccessChain type result id id*
    71 OpDecorate id Decoration word*
    72 OpMemberDecorate id word Decoration word*
    77 OpVectorExtractDynamic type result id id
    78 OpVectorInsertDynamic type result id id id
    79 OpVectorShuffle type result id id word*
    80 OpCompositeConstruct type result id*
    81 OpCompositeExtract type result id word*
    82 OpCompositeInsert type result id id word*
    109 OpConvertFToU type result id
    110 OpConvertFToS type result id
    111 OpConvertSToF type result id
    112 OpConvertUToF type result id
    113 OpUConvert type result id
    114 OpSConvert type result id
    115 OpFConvert type result id
    117 OpConvertPtrToU type result id
    120 OpConvertUToPtr type result id
    124 OpBitcast type result id
    126 OpSNegate type result id
    127 OpFNegate type result id
    128 OpIAdd type result id id
    129 OpFAdd type result id id
    130 OpISub type result id id
    131 OpFSub type result id id
    132 OpIMul type result id id
    133 OpFMul type result id id
    134 OpUDiv type result id id
    135 OpSDiv type result id id
    136 OpFDiv type result id id
    137 OpUMod type result id id
    138 OpSRem type result id id
    139 OpSMod type result id id
    140 OpFRem type result id id
    141 OpFMod type result id id
    148 OpDot type result id id
    149 OpIAddCarry type result id id
    150 OpISubBorrow type result id id
    151 OpUMulExtended type result id id
    152 OpSMulExtended type result id id
    154 OpAny type result id
    155 OpAll type result id
    156 OpIsNan type result id
    157 OpIsInf type result id
    164 OpLogicalEqual type result id id
    165 OpLogicalNotEqual type result id id
    166 OpLogicalOr type result id id
    167 OpLogicalAnd type result id id
    168 OpLogicalNot type result id
    169 OpSelect type result id id id
    170 OpIEqual type result id id
    171 OpINotEqual type result id id
    172 OpUGreaterThan type result id id
    173 OpSGreaterThan type result id id
    174 OpUGreaterThanEqual type result id id
    175 OpSGreaterThanEqual type result id id
    176 OpULessThan type result id id
    177 OpSLessThan type result id id
    178 OpULessThanEqual type result id id
    179 OpSLessThanEqual type result id id
    180 OpFOrdEqual type result id id
    181 OpFUnordEqual type result id id
    182 OpFOrdNotEqual type result id id
    183 OpFUnordNotEqual type result id id
    184 OpFOrdLessThan type result id id
    185 OpFUnordLessThan type result id id
    186 OpFOrdGreaterThan type result id id
    187 OpFUnordGreaterThan type result id id
    188 OpFOrdLessThanEqual type result id id
    189 OpFUnordLessThanEqual type result id id
    190 OpFOrdGreaterThanEqual type result id id
    191 OpFUnordGreaterThanEqual type result id id
    194 OpShiftRightLogical type result id id
    195 OpShiftRightArithmetic type result id id
    196 OpShiftLeftLogical type result id id
    197 OpBitwiseOr type result id id
    198 OpBitwiseXor type result id id
    199 OpBitwiseAnd type result id id
    200 OpNot type result id
    201 OpBitFieldInsert type result id id id id
    202 OpBitFieldSExtract type result id id id
    203 OpBitFieldUExtract type result id id id
    204 OpBitReverse type result id
    205 OpBitCount type result id
    224 OpControlBarrier id id id
    225 OpMemoryBarrier id id
    227 OpAtomicLoad type result id id id
    228 OpAtomicStore id id id id
    229 OpAtomicExchange type result id id id id
    230 OpAtomicCompareExchange type result id id id id id id
    234 OpAtomicIAdd type result id id id id
    235 OpAtomicISub type result id id id id
    236 OpAtomicSMin type result id id id id
    237 OpAtomicUMin type result id id id id
    238 OpAtomicSMax type result id id id id
    239 OpAtomicUMax type result id id id id
    240 OpAtomicAnd type result id id id id
    241 OpAtomicOr type result id id id id
    242 OpAtomicXor type result id id id id
    245 OpPhi type result id*
    246 OpLoopMerge id id LoopControl word*
    247 OpSelectionMerge id SelectionControl
    248 OpLabel result
    249 OpBranch id
    250 OpBranchConditional id id id word*
    253 OpReturn
    254 OpReturnValue id
    255 OpUnreachable
    345 OpGroupNonUniformShuffle type result id id id
    4456 OpTypeCooperativeMatrixKHR result id id id id id
    4457 OpCooperativeMatrixLoadKHR type result id id id MemoryOperands? word*
    4458 OpCooperativeMatrixStoreKHR id id id id MemoryOperands? word*
    4459 OpCooperativeMatrixMulAddKHR type result id id id CooperativeMatrixOperands
    5614 OpAtomicFMinEXT type result id id id id
    5615 OpAtomicFMaxEXT type result id id id id
    6035 OpAtomicFAddEXT type result id id id id
"""


@dataclass(frozen=True, slots=True)
class Operation:
    """An instruction: its number and its operands, as the words of the module's contract."""

    name: str
    number: int
    operands: tuple[str, ...]

    @property
    def least(self) -> int:
        """The fewest words that it takes, with the first one."""
        return 1 + sum(operand[-1] not in "?*" for operand in self.operands)

    @property
    def most(self) -> int | None:
        """The most words that it takes, None where there is no bound."""
        if any(operand[-1] == "*" or operand == "string" for operand in self.operands):
            return None
        return 1 + len(self.operands)


def _operations() -> dict[str, Operation]:
    table = {}
    for line in _OPERANDS.strip().splitlines():
        number, name, *operands = line.split()
        table[name] = Operation(name, int(number), tuple(operands))
    return table


OPERATIONS: Mapping[str, Operation] = _operations()
BY_NUMBER: Mapping[int, Operation] = {o.number: o for o in OPERATIONS.values()}


def _numbers(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(number, 0) for number, name in zip(words[::2], words[1::2], strict=True)}


ENUMERANTS: Mapping[str, Mapping[str, int]] = {
    "AddressingModel": _numbers("0 Logical 5348 PhysicalStorageBuffer64"),
    "MemoryModel": _numbers("1 GLSL450 3 Vulkan"),
    "ExecutionModel": _numbers("5 GLCompute"),
    "ExecutionMode": _numbers(
        "17 LocalSize 4459 DenormPreserve 4460 DenormFlushToZero 4461 SignedZeroInfNanPreserve "
        "4462 RoundingModeRTE 4463 RoundingModeRTZ"
    ),
    "StorageClass": _numbers(
        "1 Input 4 Workgroup 6 Private 7 Function 9 PushConstant 5349 PhysicalStorageBuffer"
    ),
    "FunctionControl": _numbers("0 None 1 Inline 2 DontInline"),
    "SelectionControl": _numbers("0 None"),
    "LoopControl": _numbers("0 None 1 Unroll 256 PartialCount"),
    "Decoration": _numbers(
        "1 SpecId 2 Block 6 ArrayStride 11 BuiltIn 19 Restrict 20 Aliased 24 NonWritable 35 Offset "
        "42 NoContraction 5355 RestrictPointer 5356 AliasedPointer"
    ),
    "BuiltIn": _numbers(
        "24 NumWorkgroups 25 WorkgroupSize 26 WorkgroupId 27 LocalInvocationId "
        "28 GlobalInvocationId 36 SubgroupSize 41 SubgroupLocalInvocationId"
    ),
    "Capability": _numbers(  # all those of `features`, whether modules ever declare them or not
        """
        1 Shader 9 Float16 10 Float64 11 Int64 12 Int64Atomics 22 Int16 39 Int8 61 GroupNonUniform
        62 GroupNonUniformVote 63 GroupNonUniformArithmetic 64 GroupNonUniformBallot
        65 GroupNonUniformShuffle 66 GroupNonUniformShuffleRelative 67 GroupNonUniformClustered
        68 GroupNonUniformQuad 4428 WorkgroupMemoryExplicitLayoutKHR
        4429 WorkgroupMemoryExplicitLayout8BitAccessKHR
        4430 WorkgroupMemoryExplicitLayout16BitAccessKHR 4433 StorageBuffer16BitAccess
        4434 UniformAndStorageBuffer16BitAccess 4435 StoragePushConstant16
        4441 VariablePointersStorageBuffer 4442 VariablePointers 4448 StorageBuffer8BitAccess
        4449 UniformAndStorageBuffer8BitAccess 4450 StoragePushConstant8 4464 DenormPreserve
        4465 DenormFlushToZero 4466 SignedZeroInfNanPreserve 4467 RoundingModeRTE
        4468 RoundingModeRTZ 5345 VulkanMemoryModel 5346 VulkanMemoryModelDeviceScope
        5347 PhysicalStorageBufferAddresses 5612 AtomicFloat32MinMaxEXT
        5613 AtomicFloat64MinMaxEXT 6022 CooperativeMatrixKHR
        6033 AtomicFloat32AddEXT 6034 AtomicFloat64AddEXT
        """
    ),
    "MemoryOperands": _numbers("0 None 1 Volatile 2 Aligned 32 NonPrivatePointer"),
    "CooperativeMatrixOperands": _numbers(
        "0 NoneKHR 1 MatrixASignedComponentsKHR 2 MatrixBSignedComponentsKHR "
        "4 MatrixCSignedComponentsKHR 8 MatrixResultSignedComponentsKHR "
        "16 SaturatingAccumulationKHR"
    ),
    "Operation": {name.removeprefix("Op"): o.number for name, o in OPERATIONS.items()},
}
MASKS = frozenset(
    {
        "FunctionControl",
        "SelectionControl",
        "LoopControl",
        "MemoryOperands",
        "CooperativeMatrixOperands",
    }
)

GLSL = "GLSL.std.450"
EXTENDED: Mapping[str, int] = _numbers(
    """
    1 Round 2 RoundEven 3 Trunc 4 FAbs 5 SAbs 6 FSign 7 SSign 8 Floor 9 Ceil 10 Fract 11 Radians
    12 Degrees 13 Sin 14 Cos 15 Tan 16 Asin 17 Acos 18 Atan 19 Sinh 20 Cosh 21 Tanh 22 Asinh
    23 Acosh 24 Atanh 25 Atan2 26 Pow 27 Exp 28 Log 29 Exp2 30 Log2 31 Sqrt 32 InverseSqrt 37 FMin
    38 UMin 39 SMin 40 FMax 41 UMax 42 SMax 43 FClamp 44 UClamp 45 SClamp 46 FMix 48 Step
    49 SmoothStep 50 Fma 53 Ldexp 54 PackSnorm4x8 55 PackUnorm4x8 58 PackHalf2x16 62 UnpackHalf2x16
    66 Length 67 Distance 68 Cross 69 Normalize 73 FindILsb 74 FindSMsb 75 FindUMsb
    79 NMin 80 NMax 81 NClamp
    """
)

SCOPE = _numbers("1 Device 2 Workgroup 3 Subgroup 5 QueueFamily")
SEMANTICS = _numbers(
    "0x8 AcquireRelease 0x40 UniformMemory 0x80 SubgroupMemory 0x100 WorkgroupMemory "
    "0x2000 MakeAvailable 0x4000 MakeVisible"
)
