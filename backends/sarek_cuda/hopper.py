"""The text of a matrix product for Hopper: `wgmma`, bulk tensor copies, warps with roles.

One block computes a tile of C at a time. Its first warpgroup copies tiles of A and B into a ring of
stages in shared memory; each of the others multiplies 64 rows of them, with accumulators in
registers. A stage holds 128 bytes of each row or column along k, which is one atom of the 128-byte
swizzle (PTX ISA, "Asynchronous warpgroup level matrix instructions" and "Tensor copies"); what lies
beyond the ends of A and B is filled with zeros by the copy. Blocks of a cluster share the tile of
B: each copies a part of it to all.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sarek_numba.codegen.cfamily import DYNAMIC_SHARED
from sarek_numba.ir.types import Scalar

ATOM_BYTES: Final = 128  # of the swizzle
_ATOM_ROWS: Final = 8
_WARPGROUP: Final = 128
_ROWS: Final = 64  # of one instruction
_STEP_BYTES: Final = 32  # along k, of one instruction
_REGISTERS: Final = {1: (56, 256 - 16), 2: (24, 240), 3: (32, 160)}  # by consumers; multiples of 8
MAP_BYTES: Final = 128  # CUtensorMap
SHARED_BYTES: Final = 227 * 1024  # a block's, on compute capability 9.0 (Programming Guide)

_WORDS: Final = {
    Scalar.FLOAT16: "f16",
    Scalar.BFLOAT16: "bf16",
    Scalar.INT8: "s8",
    Scalar.UINT8: "u8",
}


class Major(Enum):
    """Along which dimension the elements of an operand lie side by side."""

    K = "k"
    OUTER = "outer"  # m of A, n of B


@dataclass(frozen=True)
class Tiling:
    """One kernel: operands, and how its blocks share the work.

    `consumers` warpgroups have 64 rows each, a tile has `columns` (a multiple of 8 up to 256; of 64
    where B is side by side along n; of 16, 24 or 8 for integers). `group` rows of tiles
    are computed before the next columns, so that blocks that run at the same time meet in the
    cache. Raises ValueError.
    """

    a: Scalar
    b: Scalar
    a_major: Major = Major.K
    b_major: Major = Major.OUTER
    consumers: int = 2
    columns: int = 256
    stages: int = 4
    cluster: int = 1
    group: int = 8

    def __post_init__(self) -> None:
        wide = self.a.bits // 8 * 8 == 16
        if self.a not in _WORDS or self.b not in _WORDS or self.a.bits != self.b.bits:
            raise ValueError(f"no wgmma of {self.a.value} and {self.b.value}")
        if wide and self.a is not self.b:
            raise ValueError(f"no wgmma of {self.a.value} and {self.b.value}")
        if not wide and (self.a_major, self.b_major) != (Major.K, Major.K):
            raise ValueError("bytes are multiplied where they lie side by side along k")
        if self.consumers not in _REGISTERS or self.columns % 8 or not 8 <= self.columns <= 256:
            raise ValueError(f"no tile of {self.consumers} by {self.columns}")
        if not wide and self.columns % 16 and self.columns not in (8, 24):
            raise ValueError(f"no integers of {self.columns} columns")
        part = self.columns // self.cluster
        if self.columns % self.cluster or (self.b_major is Major.OUTER and part % self.across):
            raise ValueError(f"{self.columns} columns are not shared by {self.cluster} blocks")
        if self.shared_bytes > SHARED_BYTES:
            raise ValueError(f"{self.stages} stages need {self.shared_bytes} bytes")

    @property
    def across(self) -> int:
        """Elements of a row of an atom."""
        return ATOM_BYTES * 8 // self.a.bits

    @property
    def depth(self) -> int:
        """Elements along k of a stage."""
        return self.across

    @property
    def rows(self) -> int:
        """Of a tile."""
        return _ROWS * self.consumers

    @property
    def threads(self) -> int:
        """Of a block."""
        return _WARPGROUP * (self.consumers + 1)

    @property
    def a_bytes(self) -> int:
        """Of A in a stage."""
        return self.rows * ATOM_BYTES

    @property
    def b_bytes(self) -> int:
        """Of B in a stage."""
        return self.columns * ATOM_BYTES

    @property
    def shared_bytes(self) -> int:
        """Of a block, with room to begin at a multiple of 1024 bytes."""
        return 1024 + self.stages * (self.a_bytes + self.b_bytes + 16)

    @property
    def accumulator(self) -> Scalar:
        """Of the products."""
        return Scalar.FLOAT32 if self.a.is_float else Scalar.INT32

    @property
    def a_box(self) -> tuple[int, int]:
        """What one copy of A takes: elements side by side, and how many such rows."""
        return (self.depth, self.rows) if self.a_major is Major.K else (self.across, self.depth)

    @property
    def b_box(self) -> tuple[int, int]:
        """What one copy of B takes."""
        part = self.columns // self.cluster
        return (self.depth, part) if self.b_major is Major.K else (self.across, self.depth)


_PRIMITIVES = """\
struct __align__(64) TensorMap { unsigned long long words[16]; };

__device__ __forceinline__ unsigned address_of(const void *memory) {
    return (unsigned)__cvta_generic_to_shared(memory);
}
__device__ __forceinline__ void barrier_make(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;"
                 :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_arrive_at(unsigned barrier, unsigned block) {
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
                 :: "r"(barrier), "r"(block) : "memory");
}
__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}
__device__ __forceinline__ void barrier_wait_cluster(unsigned barrier, unsigned parity) {
    unsigned done;
    do {
        asm volatile("{ .reg .pred p;"
                     " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
                     " selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    } while (!done);
}
__device__ __forceinline__ void copy_tile(
        unsigned target, const TensorMap *map, unsigned barrier, int x, int y, int z) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5}], [%2];"
                 :: "r"(target), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z) : "memory");
}
__device__ __forceinline__ void copy_tile_to(
        unsigned target, const TensorMap *map, unsigned barrier, int x, int y, int z,
        unsigned short blocks) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;"
                 :: "r"(target), "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(blocks)
                 : "memory");
}
__device__ __forceinline__ unsigned rank_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\\n"
                 "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ unsigned long long descriptor(
        unsigned start, unsigned leading, unsigned stride) {
    return (unsigned long long)((start & 0x3FFFF) >> 4)
        | (unsigned long long)(leading >> 4) << 16
        | (unsigned long long)(stride >> 4) << 32
        | 1ull << 62;  // the 128-byte swizzle
}
__device__ __forceinline__ void multiply_begins() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void multiply_given() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void barriers_made() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
template <int COUNT> __device__ __forceinline__ void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" :: "n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" :: "n"(COUNT));
}
template <int PENDING> __device__ __forceinline__ void multiply_done() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(PENDING) : "memory");
}
"""


def _multiply(tiling: Tiling) -> str:
    """The instruction: `d = a b`, plus `d` where `add` is not 0."""
    count = tiling.columns // 2
    number = "float" if tiling.accumulator is Scalar.FLOAT32 else "int"
    letter = "f" if number == "float" else "r"
    registers = ", ".join(f"%{i}" for i in range(count))
    operands = ", ".join(f'"+{letter}"(d[{i}])' for i in range(count))
    words = f"m64n{tiling.columns}k{_STEP_BYTES * 8 // tiling.a.bits}"
    kinds = f"{'f32' if number == 'float' else 's32'}.{_WORDS[tiling.a]}.{_WORDS[tiling.b]}"
    turned = [int(major is Major.OUTER) for major in (tiling.a_major, tiling.b_major)]
    more = f", 1, 1, {turned[0]}, {turned[1]}" if number == "float" else ""
    return f"""\
__device__ __forceinline__ void multiply(
        {number} (&d)[{count}], unsigned long long a, unsigned long long b, int add) {{
    asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{count + 2}, 0;"
        " wgmma.mma_async.sync.aligned.{words}.{kinds} {{{registers}}},"
        " %{count}, %{count + 1}, p{more}; }}"
        : {operands}
        : "l"(a), "l"(b), "r"(add));
}}
"""


def _on_a_host(tiling: Tiling) -> str:
    """The same by `tests/toolchains/shim`, which has the names of the primitives."""
    count = tiling.columns // 2
    number = "float" if tiling.accumulator is Scalar.FLOAT32 else "int"
    kinds = f"machine::{_WORDS[tiling.a]}, machine::{_WORDS[tiling.b]}"
    turned = [
        "true" if major is Major.OUTER else "false" for major in (tiling.a_major, tiling.b_major)
    ]
    return f"""\
inline void multiply({number} (&d)[{count}], unsigned long long a, unsigned long long b, int add) {{
    machine::multiply<{kinds}, {turned[0]}, {turned[1]}>(d, a, b, add);
}}
"""


def _copies(tiling: Tiling) -> str:
    """What the producer gives to the copy engine for a stage."""
    lines = []
    if tiling.a_major is Major.K:
        lines.append("copy_tile(a_at, &a_map, full_at, step * DEPTH, row, batch * a_step);")
    else:
        lines += [
            f"copy_tile(a_at + {i * tiling.depth * ATOM_BYTES}, &a_map, full_at,"
            f" row + {i * tiling.across}, step * DEPTH, batch * a_step);"
            for i in range(tiling.rows // tiling.across)
        ]
    part = tiling.columns // tiling.cluster
    call, mask = ("copy_tile", "") if tiling.cluster == 1 else ("copy_tile_to", ", EVERYONE")
    column = "column" if tiling.cluster == 1 else f"column + (int)rank * {part}"
    start = "b_at" if tiling.cluster == 1 else f"b_at + rank * {part * ATOM_BYTES}"
    if tiling.b_major is Major.K:
        lines.append(
            f"{call}({start}, &b_map, full_at, step * DEPTH, {column}, batch * b_step{mask});"
        )
    else:
        lines += [
            f"{call}({start} + {i * tiling.depth * ATOM_BYTES}, &b_map, full_at,"
            f" {column} + {i * tiling.across}, step * DEPTH, batch * b_step{mask});"
            for i in range(part // tiling.across)
        ]
    return "\n                    ".join(lines)


def _walk(major: Major, tiling: Tiling) -> tuple[int, int, int]:
    """Leading and stride of a descriptor in bytes, and from one instruction to the next."""
    group = _ATOM_ROWS * ATOM_BYTES
    if major is Major.K:
        return 16, group, _STEP_BYTES
    deep = _STEP_BYTES * 8 // tiling.a.bits
    return tiling.depth * ATOM_BYTES, group, deep * ATOM_BYTES


@dataclass(frozen=True)
class Epilogue:
    """What becomes of an accumulated sum.

    `store` is a statement of `{row}`, `{column}`, `batch` and `{sum}`. `parameters` are those of
    the kernel behind its own, as text.
    """

    store: str
    parameters: tuple[str, ...] = ()


def emit(tiling: Tiling, epilogue: Epilogue, name: str = "sarek_kernel") -> str:
    """CUDA C++ for `sm_90a`.

    The kernel's arguments are the tensor maps of A and B; m, n, k, the number of batches, and from
    one batch to the next the steps of A and B along the last dimension of their maps (0 or 1), all
    int; and those of the epilogue.
    """
    number = "float" if tiling.accumulator is Scalar.FLOAT32 else "int"
    a_lead, a_stride, a_walk = _walk(tiling.a_major, tiling)
    b_lead, b_stride, b_walk = _walk(tiling.b_major, tiling)
    a_part = _ROWS * ATOM_BYTES if tiling.a_major is Major.K else tiling.depth * ATOM_BYTES
    few, many = _REGISTERS[tiling.consumers]
    shared = tiling.cluster > 1
    meet = "cluster_meet();" if shared else "__syncthreads();"
    attribute = f"__cluster_dims__({tiling.cluster}, 1, 1) " if shared else ""
    release = (
        f"if (lane < {tiling.cluster}) barrier_arrive_at(EMPTY, lane);"
        if shared
        else "if (lane == 0) barrier_arrive(EMPTY);"
    )
    more = "".join(f",\n        {parameter}" for parameter in epilogue.parameters)
    instructions = "\n                ".join(
        f"multiply(d, a + {i * (a_walk >> 4)}, b + {i * (b_walk >> 4)}, "
        f"{'step' if i == 0 else '1'});"
        for i in range(ATOM_BYTES // _STEP_BYTES)
    )
    return f"""\
#ifdef __CUDA_ARCH__
{_PRIMITIVES}{_multiply(tiling)}#else
{_on_a_host(tiling)}#endif
enum {{ ROWS = {tiling.rows}, COLUMNS = {tiling.columns}, DEPTH = {tiling.depth}, \
STAGES = {tiling.stages}, GROUP = {tiling.group}, CLUSTER = {tiling.cluster} }};
enum {{ A_BYTES = {tiling.a_bytes}, STAGE_BYTES = {tiling.a_bytes + tiling.b_bytes} }};
enum {{ EVERYONE = {(1 << tiling.cluster) - 1} }};

struct Tile {{ int row, column, batch; }};

/* Tiles go down GROUP rows, then to the next column; blocks of a cluster are one below another. */
__device__ inline Tile locate(int tile, int down, int across, int rank) {{
    int batch = tile / (down * across), at = tile % (down * across);
    int first = at / (GROUP * across) * GROUP, left = down - first;
    int height = GROUP < left ? GROUP : left;
    int within = at - first * across;
    return {{(first + within % height) * (ROWS * CLUSTER) + rank * ROWS,
             within / height * COLUMNS, batch}};
}}

extern "C" {attribute}__launch_bounds__({tiling.threads}, 1) __global__ void {name}(
        const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
        int m, int n, int k, int batches, int a_step, int b_step{more}) {{
    extern __shared__ unsigned long long {DYNAMIC_SHARED}[];
    const unsigned stages = (address_of({DYNAMIC_SHARED}) + 1023u) & ~1023u;
    const unsigned full = stages + STAGES * STAGE_BYTES, empty = full + 8 * STAGES;
    const int steps = (k + DEPTH - 1) / DEPTH;
    const int down = (m + ROWS * CLUSTER - 1) / (ROWS * CLUSTER);
    const int across = (n + COLUMNS - 1) / COLUMNS, tiles = down * across * batches;
    const unsigned rank = {"rank_in_cluster()" if shared else "0"};
    const int warpgroup = __shfl_sync(0xFFFFFFFFu, threadIdx.x / 128, 0);
    const unsigned lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {{
        for (int s = 0; s < STAGES; s++) {{
            barrier_make(full + 8 * s, 1);
            barrier_make(empty + 8 * s, {4 * tiling.consumers} * CLUSTER);
        }}
        barriers_made();
    }}
    {meet}
    int stage = 0;
    unsigned phase = 0;
    if (warpgroup == 0) {{
        give_registers<{few}>();
        if (threadIdx.x == 0) {{
            for (int t = blockIdx.x / CLUSTER; t < tiles; t += gridDim.x / CLUSTER) {{
                const Tile tile = locate(t, down, across, rank);
                const int row = tile.row, column = tile.column, batch = tile.batch;
                for (int step = 0; step < steps; step++) {{
                    const unsigned full_at = full + 8 * stage;
                    const unsigned a_at = stages + stage * STAGE_BYTES, b_at = a_at + A_BYTES;
                    barrier_wait{"_cluster" if shared else ""}(empty + 8 * stage, phase ^ 1);
                    barrier_expect(full_at, STAGE_BYTES);
                    {_copies(tiling)}
                    if (++stage == STAGES) {{ stage = 0; phase ^= 1; }}
                }}
            }}
        }}
    }} else {{
        take_registers<{many}>();
        {number} d[{tiling.columns // 2}];
        for (int t = blockIdx.x / CLUSTER; t < tiles; t += gridDim.x / CLUSTER) {{
            const Tile tile = locate(t, down, across, rank);
            int before = 0;
            for (int step = 0; step < steps; step++) {{
                barrier_wait(full + 8 * stage, phase);
                const unsigned a_at = stages + stage * STAGE_BYTES;
                const unsigned long long a =
                    descriptor(a_at + (warpgroup - 1) * {a_part}, {a_lead}, {a_stride});
                const unsigned long long b = descriptor(a_at + A_BYTES, {b_lead}, {b_stride});
                multiply_begins();
                {instructions}
                multiply_given();
                if (step > 0) {{
                    multiply_done<1>();
                    {release.replace("EMPTY", "empty + 8 * before")}
                }}
                before = stage;
                if (++stage == STAGES) {{ stage = 0; phase ^= 1; }}
            }}
            multiply_done<0>();
            {release.replace("EMPTY", "empty + 8 * before")}
            const int warp_row = (warpgroup - 1) * 64 + threadIdx.x % 128 / 32 * 16;
            const int row0 = tile.row + warp_row + lane / 4;
            const int batch = tile.batch;
            #pragma unroll
            for (int i = 0; i < {tiling.columns // 4}; i++) {{
                const int row = row0 + i % 2 * 8, column = tile.column + i / 2 * 8 + lane % 4 * 2;
                if (row < m) {{
                    {_stores(epilogue)}
                }}
            }}
        }}
    }}
    {meet if shared else ""}
}}
"""


def _stores(epilogue: Epilogue) -> str:
    """Two neighbours of a row."""
    stores = (
        f"if ({column} < n) {epilogue.store.format(row='row', column=column, sum=sum)}"
        for column, sum in (("column", "d[2 * i]"), ("column + 1", "d[2 * i + 1]"))
    )
    return "\n                    ".join(stores)
