"""The kernels of `benchmarks.streaming_gpu`: as ours, as NumPy, and as CUDA C++ by hand.

By hand each thread has one element, as ours has it without coarsening, or 16 bytes of neighbours in
one access (`wide`). Operations are those of ours, in the same order, and none is contracted: of
float16 in float32, rounded where it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import sarek_numba as sarek

ROOT, CUBE = 0.7978845608028654, 0.044715  # of gelu


@sarek.kernel
def copy(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i]


@sarek.kernel
def scale(out, x, a):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a * x[i]


@sarek.kernel
def add(out, x, y):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] + y[i]


@sarek.kernel
def triad(out, x, y, a):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = x[i] + a * y[i]


@sarek.kernel
def saxpy(out, x, a):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = a * x[i] + out[i]


@sarek.kernel
def exp(out, x):
    i = sarek.global_idx.x
    if i < len(out):
        out[i] = np.exp(x[i])


@sarek.kernel
def gelu(out, x, half, one, root, cube):
    i = sarek.global_idx.x
    if i < len(out):
        v = x[i]
        out[i] = half * v * (one + np.tanh(root * (v + cube * v * v * v)))


@sarek.kernel
def stencil(out, x, a, b):
    i, j = sarek.grid(2)
    if 0 < i < x.shape[1] - 1 and 0 < j < x.shape[0] - 1:
        around = x[j - 1, i] + x[j + 1, i] + x[j, i - 1] + x[j, i + 1]
        out[j, i] = a * x[j, i] + b * around


def _stencil(out: Any, x: Any, y: Any, s: Any) -> None:
    around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
    out[1:-1, 1:-1] = s[0] * x[1:-1, 1:-1] + s[1] * around


def _gelu(out: Any, x: Any, y: Any, s: Any) -> None:
    v = x.astype(np.float64)
    out[:] = 0.5 * v * (1 + np.tanh(ROOT * (v + CUBE * v * v * v)))


@dataclass(frozen=True)
class Streaming:
    """One kernel.

    `inputs` arrays are read beside `out`, which is read too if it is `in_place`; `scalars` come
    behind them. `reference` writes `out` from x, y and the scalars. `exact` kernels have one
    result; of others, errors of so many `ulps` are taken, of 1 or of the result if it is larger.
    `by_hand` is the value of an element `x`, of `y` and of `o`, what `out` had.
    """

    kernel: Any
    inputs: int
    reference: Callable[[Any, Any, Any, Any], None]
    by_hand: str
    scalars: tuple[float, ...] = ()
    in_place: bool = False
    plane: bool = False
    exact: bool = True
    ulps: int = 0

    @property
    def moved(self) -> int:
        """Elements that are read and written for one of the result, each once."""
        return self.inputs + 1 + self.in_place


def _written(value: Callable[[Any, Any, Any, Any], Any]) -> Callable[[Any, Any, Any, Any], None]:
    def reference(out: Any, x: Any, y: Any, s: Any) -> None:
        out[:] = value(x, y, s, out)

    return reference


KERNELS: dict[str, Streaming] = {
    "copy": Streaming(copy, 1, _written(lambda x, y, s, o: x), "x"),
    "scale": Streaming(scale, 1, _written(lambda x, y, s, o: s[0] * x), "a * x", (1.5,)),
    "add": Streaming(add, 2, _written(lambda x, y, s, o: x + y), "x + y"),
    "triad": Streaming(
        triad, 2, _written(lambda x, y, s, o: x + s[0] * y), "x + a * y", (1.5,)
    ),
    "saxpy": Streaming(
        saxpy, 1, _written(lambda x, y, s, o: s[0] * x + o), "a * x + o", (1.5,),
        in_place=True,
    ),
    "exp": Streaming(
        exp, 1, _written(lambda x, y, s, o: np.exp(x.astype(np.float64))), "exp(x)",
        exact=False, ulps=4,
    ),
    "gelu": Streaming(gelu, 1, _gelu, "gelu(x)", (0.5, 1.0, ROOT, CUBE),
                      exact=False, ulps=16),
    "stencil": Streaming(stencil, 1, _stencil, "", (0.5, 0.125), plane=True),
}  # fmt: skip

# Of a type of elements: T, the type W in which is computed, and conversions.
_PLAIN = """
typedef {word} T;
typedef {word} W;
static __device__ W widen(T a) {{ return a; }}
static __device__ T narrow(W a) {{ return a; }}
"""
_HALF = """
typedef unsigned short T;
typedef float W;
static __device__ W widen(T a) { W r; asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(a)); return r; }
static __device__ T narrow(W a) { T r; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(a)); return r; }
"""
_GELU = """
static __device__ W gelu(W v) {
    W root = (W)0.7978845608028654, cube = (W)0.044715;
    return (W)0.5 * v * ((W)1 + tanh(root * (v + cube * v * v * v)));
}
"""
_TYPES = {
    "float32": _PLAIN.format(word="float"),
    "float64": _PLAIN.format(word="double"),
    "float16": _HALF,
}
_ONE = """
extern "C" __global__ void by_hand(T *out, const T *xs, const T *ys, W a, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {{
        W x = widen(xs[i]), y = {second}, o = {before};
        out[i] = narrow({value});
    }}
}}
"""
_WIDE = """
struct alignas(16) Wide {{ T v[{count}]; }};
extern "C" __global__ void by_hand(T *out, const T *xs, const T *ys, W a, int n) {{
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * {count};
    if (first + {count} <= n) {{
        Wide wx = *(const Wide *)(xs + first), wy, wo;
        {load_second}
        {load_before}
        #pragma unroll
        for (int k = 0; k < {count}; k++) {{
            W x = widen(wx.v[k]), y = widen(wy.v[k]), o = widen(wo.v[k]);
            wo.v[k] = narrow({value});
        }}
        *(Wide *)(out + first) = wo;
    }} else {{
        for (int i = first; i < n; i++) {{
            W x = widen(xs[i]), y = {second}, o = {before};
            out[i] = narrow({value});
        }}
    }}
}}
"""
_STENCIL = """
extern "C" __global__ void by_hand(T *out, const T *x, W a, W b, int rows, int columns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (0 < i && i < columns - 1 && 0 < j && j < rows - 1) {
        int at = j * columns + i;
        W around = widen(x[at - columns]) + widen(x[at + columns]);
        around = around + widen(x[at - 1]) + widen(x[at + 1]);
        out[at] = narrow(a * widen(x[at]) + b * around);
    }
}
"""


def by_hand(name: str, dtype: str, *, wide: bool) -> str | None:
    """CUDA C++ of a kernel, whose function is `by_hand`; None where there is no such form."""
    what = KERNELS[name]
    head = _TYPES[dtype] + (_GELU if name == "gelu" else "")
    if what.plane:
        return None if wide else head + _STENCIL
    reads = what.inputs > 1
    parts = {
        "second": "widen(ys[i])" if reads else "x",
        "before": "widen(out[i])" if what.in_place else "x",
        "value": what.by_hand,
        "count": 16 // np.dtype(dtype).itemsize,
        "load_second": "wy = *(const Wide *)(ys + first);" if reads else "wy = wx;",
        "load_before": "wo = *(const Wide *)(out + first);" if what.in_place else "wo = wx;",
    }
    return head + (_WIDE if wide else _ONE).format(**parts)
