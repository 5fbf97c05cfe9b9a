"""Options of compilers that change results which are promised exact, and who may use them.

Kinds of refusal: flag legality. An exact kernel is compiled with none of `BREAKING`; a kernel with
`accept.fastmath` only with those whose promises that grant gives up: none that assumes NaN,
infinity or signs of zeros away.
"""

from __future__ import annotations

from collections.abc import Iterable

from sarek_numba.capability.features import FEATURES
from sarek_numba.capability.gate import Refusal
from sarek_numba.capability.model import CapabilityKind, DeviceRecord, Fact, Verdict
from sarek_numba.ir.needs import Need
from sarek_numba.ir.types import Scalar

_FLUSH = ("subnormal_inputs", "subnormal_results")
_FAST = ("contraction", "division", "square_root", *_FLUSH)
_FINITE = ("nan",)
_NVRTC = "NVRTC, supported compile options"
_OPENCL = "OpenCL 1.2, section 5.6.4.3"
_CLANG = "Clang, controlling floating-point behaviour"
_METAL = "Metal, MTLCompileOptions.fastMathEnabled"

# Each option, what it breaks, and who says so.
BREAKING: dict[str, tuple[tuple[str, ...], str]] = {
    "--use_fast_math": (_FAST, _NVRTC),
    "-use_fast_math": (_FAST, _NVRTC),
    "--fmad=true": (("contraction",), _NVRTC),
    "-fmad=true": (("contraction",), _NVRTC),
    "--ftz=true": (_FLUSH, _NVRTC),
    "-ftz=true": (_FLUSH, _NVRTC),
    "--prec-div=false": (("division",), _NVRTC),
    "-prec-div=false": (("division",), _NVRTC),
    "--prec-sqrt=false": (("square_root",), _NVRTC),
    "-prec-sqrt=false": (("square_root",), _NVRTC),
    "-cl-mad-enable": (("contraction",), _OPENCL),
    "-cl-denorms-are-zero": (_FLUSH, _OPENCL),
    "-cl-no-signed-zeros": (("signed_zeros",), _OPENCL),
    "-cl-unsafe-math-optimizations": ((*_FAST, "signed_zeros"), _OPENCL),
    "-cl-finite-math-only": (_FINITE, _OPENCL),
    "-cl-fast-relaxed-math": ((*_FAST, *_FINITE, "signed_zeros"), _OPENCL),
    "-ffast-math": ((*_FAST, *_FINITE, "signed_zeros"), _CLANG),
    "-ffp-contract=fast": (("contraction",), _CLANG),
    "-ffinite-math-only": (_FINITE, _CLANG),
    "-fno-signed-zeros": (("signed_zeros",), _CLANG),
    "-freciprocal-math": (("division",), _CLANG),
    "-fgpu-flush-denormals-to-zero": (_FLUSH, _CLANG),
    "-fno-hip-fp32-correctly-rounded-divide-sqrt": (("division", "square_root"), _CLANG),
    "-ffp-contract=on": (("contraction",), _CLANG),
    "fastMathEnabled": ((*_FAST, *_FINITE, "signed_zeros"), _METAL),
}


def illegal(
    kernel: str, options: Iterable[str], record: DeviceRecord, *, fastmath: bool = False
) -> list[Refusal]:
    """What keeps a kernel from being compiled with these options; nothing where they are legal."""
    refusals = []
    for option in options:
        broken, source = BREAKING.get(option, ((), ""))
        for feature in broken:
            if fastmath and FEATURES[feature].granted:
                continue
            remedy = f"leave {option} out"
            if FEATURES[feature].granted:
                remedy += ', or grant it: @sarek.kernel(fastmath="why")'
            evidence = f"{source}: {option}"
            fact = Fact(Verdict.UNAVAILABLE, CapabilityKind.FLAG, evidence, remedy)
            need = Need(feature, Scalar.FLOAT32)
            refusals.append(Refusal(kernel, record.name, need, fact, record.backend))
    return refusals
