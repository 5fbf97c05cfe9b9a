"""Write a GPU kernel once, as an ordinary Python function, and run it on every device.

    import sarek_numba as sarek

    @sarek.kernel
    def saxpy(a, x, y):
        i = sarek.global_idx.x
        if i < len(y):
            y[i] += a * x[i]

    saxpy.forall(len(y))(2.0, x, y)

Public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sarek_numba import accept, execute, matrix, policy, realize, stdlib
    from sarek_numba.dispatcher import kernel
    from sarek_numba.errors import (
        ArgumentCountError,
        ArgumentTypeError,
        ArithmeticFault,
        AssertionFailed,
        BackendError,
        BarrierDivergence,
        CapabilityError,
        CompileError,
        CompileWarning,
        ConstantOverflow,
        DataRace,
        DeviationWarning,
        DeviceLost,
        Diagnostic,
        DivergentBarrier,
        GraphError,
        HiddenCopyWarning,
        InvalidArgument,
        InvalidDimensions,
        InvalidFile,
        InvalidIR,
        JitError,
        LaunchError,
        LaunchFailed,
        LengthOverflow,
        MisalignedMatrix,
        MixedDevices,
        NoProgress,
        OracleError,
        OutOfBounds,
        OutOfMemory,
        PolicyError,
        ReadOnlyWrite,
        SarekError,
        SourceCompilationError,
        StreamError,
        TransferFailed,
        TypingError,
        UnboundLocal,
        UnboundRead,
        UninitialisedRead,
        UnknownDevice,
        UnknownName,
        UnsupportedConstruct,
        UnsupportedLanguage,
        WarpDivergence,
        WeakOverflow,
    )
    from sarek_numba.frontend import mathematics as math
    from sarek_numba.frontend.functions import function
    from sarek_numba.frontend.intrinsics import register_intrinsic
    from sarek_numba.frontend.language import (
        atomic,
        barrier,
        bfloat16,
        block_dim,
        block_idx,
        bool_,
        complex64,
        complex128,
        const,
        float16,
        float32,
        float64,
        global_idx,
        global_thread_id,
        grid,
        grid_dim,
        gridsize,
        half_bits,
        half_from_bits,
        int8,
        int16,
        int32,
        int64,
        local,
        mem_fence,
        record,
        shared,
        superstep,
        thread_idx,
        uint8,
        uint16,
        uint32,
        uint64,
        unroll,
        warp,
        warp_barrier,
    )
    from sarek_numba.frontend.matrices import coopmat
    from sarek_numba.frontend.registered import register_type
    from sarek_numba.frontend.texts import inline_source
    from sarek_numba.frontend.variants import variant
    from sarek_numba.profiling import profile
    from sarek_numba.realize.captures import capture
    from sarek_numba.realize.jitted import jit
    from sarek_numba.realize.several import gather, shard
    from sarek_numba.runtime.cache import clear_launch_cache
    from sarek_numba.runtime.registry import Device, device, devices, use_device
    from sarek_numba.runtime.sharded import ShardedVector
    from sarek_numba.stdlib import block
    from sarek_numba.stdlib.collectives import all_reduce
    from sarek_numba.vectors import (
        SoAVector,
        Vector,
        arange,
        empty,
        from_dlpack,
        full,
        like,
        ones,
        soa,
        vector,
        zeros,
    )
    from sarek_numba.verify.compare import compare
    from sarek_numba.verify.coverage import coverage
    from sarek_numba.verify.emulate import emulate
    from sarek_numba.verify.sanitize import sanitize

_NAMES = {
    "sarek_numba.dispatcher": """
        kernel
    """,
    "sarek_numba.frontend.functions": """
        function
    """,
    "sarek_numba.frontend.intrinsics": """
        register_intrinsic
    """,
    "sarek_numba.frontend.registered": """
        register_type
    """,
    "sarek_numba.frontend.texts": """
        inline_source
    """,
    "sarek_numba.runtime.registry": """
        Device device devices use_device
    """,
    "sarek_numba.runtime.cache": """
        clear_launch_cache
    """,
    "sarek_numba.vectors": """
        SoAVector Vector arange empty from_dlpack full like ones soa vector zeros
    """,
    "sarek_numba.frontend.language": """
        atomic barrier bfloat16 block_dim block_idx bool_ complex64 complex128 const
        float16 float32 float64 global_idx global_thread_id grid grid_dim gridsize
        half_bits half_from_bits int8 int16 int32 int64 local mem_fence record
        shared superstep thread_idx uint8 uint16 uint32 uint64
        unroll warp warp_barrier
    """,
    "sarek_numba.frontend.matrices": """
        coopmat
    """,
    "sarek_numba.frontend.variants": """
        variant
    """,
    "sarek_numba.verify.emulate": """
        emulate
    """,
    "sarek_numba.verify.sanitize": """
        sanitize
    """,
    "sarek_numba.verify.compare": """
        compare
    """,
    "sarek_numba.verify.coverage": """
        coverage
    """,
    "sarek_numba.profiling": """
        profile
    """,
    "sarek_numba.realize.captures": """
        capture
    """,
    "sarek_numba.realize.jitted": """
        jit
    """,
    "sarek_numba.realize.several": """
        gather shard
    """,
    "sarek_numba.runtime.sharded": """
        ShardedVector
    """,
    "sarek_numba.stdlib.collectives": """
        all_reduce
    """,
    "sarek_numba.errors": """
        ArgumentCountError ArgumentTypeError ArithmeticFault AssertionFailed BackendError
        BarrierDivergence CapabilityError CompileError CompileWarning ConstantOverflow DataRace
        DeviationWarning DeviceLost Diagnostic DivergentBarrier GraphError HiddenCopyWarning
        InvalidArgument InvalidDimensions
        InvalidFile InvalidIR JitError LaunchError LaunchFailed LengthOverflow
        MisalignedMatrix MixedDevices
        NoProgress OracleError OutOfBounds OutOfMemory PolicyError ReadOnlyWrite SarekError
        SourceCompilationError StreamError TransferFailed TypingError UnboundLocal UnboundRead
        UninitialisedRead UnknownDevice UnknownName UnsupportedConstruct UnsupportedLanguage
        WarpDivergence WeakOverflow
    """,
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = {
    "accept": "sarek_numba.accept",
    "block": "sarek_numba.stdlib.block",
    "execute": "sarek_numba.execute",
    "math": "sarek_numba.frontend.mathematics",
    "matrix": "sarek_numba.matrix",
    "policy": "sarek_numba.policy",
    "realize": "sarek_numba.realize",
    "stdlib": "sarek_numba.stdlib",
}

__all__ = [
    "ArgumentCountError",
    "ArgumentTypeError",
    "ArithmeticFault",
    "AssertionFailed",
    "BackendError",
    "BarrierDivergence",
    "CapabilityError",
    "CompileError",
    "CompileWarning",
    "ConstantOverflow",
    "DataRace",
    "DeviationWarning",
    "Device",
    "DeviceLost",
    "Diagnostic",
    "DivergentBarrier",
    "GraphError",
    "HiddenCopyWarning",
    "InvalidArgument",
    "InvalidDimensions",
    "InvalidFile",
    "InvalidIR",
    "JitError",
    "LaunchError",
    "LaunchFailed",
    "LengthOverflow",
    "MisalignedMatrix",
    "MixedDevices",
    "NoProgress",
    "OracleError",
    "OutOfBounds",
    "OutOfMemory",
    "PolicyError",
    "ReadOnlyWrite",
    "SarekError",
    "ShardedVector",
    "SoAVector",
    "SourceCompilationError",
    "StreamError",
    "TransferFailed",
    "TypingError",
    "UnboundLocal",
    "UnboundRead",
    "UninitialisedRead",
    "UnknownDevice",
    "UnknownName",
    "UnsupportedConstruct",
    "UnsupportedLanguage",
    "Vector",
    "WarpDivergence",
    "WeakOverflow",
    "accept",
    "all_reduce",
    "arange",
    "atomic",
    "barrier",
    "bfloat16",
    "block",
    "block_dim",
    "block_idx",
    "bool_",
    "capture",
    "clear_launch_cache",
    "compare",
    "complex64",
    "complex128",
    "const",
    "coopmat",
    "coverage",
    "device",
    "devices",
    "empty",
    "emulate",
    "execute",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "function",
    "gather",
    "global_idx",
    "global_thread_id",
    "grid",
    "grid_dim",
    "gridsize",
    "half_bits",
    "half_from_bits",
    "inline_source",
    "int8",
    "int16",
    "int32",
    "int64",
    "jit",
    "kernel",
    "like",
    "local",
    "math",
    "matrix",
    "mem_fence",
    "ones",
    "policy",
    "profile",
    "realize",
    "record",
    "register_intrinsic",
    "register_type",
    "sanitize",
    "shard",
    "shared",
    "soa",
    "stdlib",
    "superstep",
    "thread_idx",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unroll",
    "use_device",
    "variant",
    "vector",
    "warp",
    "warp_barrier",
    "zeros",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(_MODULES[name])
    else:
        raise AttributeError(f"module 'sarek_numba' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
