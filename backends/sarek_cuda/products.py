"""Products of matrices on Hopper: which launches run `hopper`'s kernel, and how it is launched.

A kernel is printed for a tiling and for what becomes of a sum, which is IR that becomes a function
of the program. The matrices A and B are given as tensor maps, which say where a matrix lies; they
are made at a launch, where addresses are known, and kept for the next one. What the copy engine
cannot take goes to the kernel that the core made: matrices neither of whose dimensions lies side by
side, rows that do not begin at multiples of 16 bytes.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sarek_cuda import hopper
from sarek_cuda.hopper import Epilogue, Major, Tiling
from sarek_numba import passes
from sarek_numba.codegen.cfamily import Printed
from sarek_numba.codegen.dialect import Dialect
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.nodes import ArrayRead, Kernel, ParamDecl, VarRef
from sarek_numba.ir.types import Scalar, UserArgument
from sarek_numba.ir.walk import assigned_by, walk_body_exprs, walk_stmts
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.function import Function
from sarek_numba.runtime.cudalike.memory import Packed, packed
from sarek_numba.runtime.cudalike.queues import Mark, Stream
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.products import Factor, OwnKernel, ProductOrder

if TYPE_CHECKING:
    from sarek_cuda.runtime import CudaDriver

CAPABILITY: Final = 90
ENTRY: Final = "sarek_product"
_ELEMENT: Final = "store_element"
_OWN: Final = ("{row}", "{column}", "batch", "{sum}")  # what an element is told by the program
_LINE: Final = 16  # bytes that lines of a tensor map are multiples of, and begin at
_MOST_BYTES: Final = 1 << 40  # from one line of a tensor map to the next
_MOST: Final = 1 << 31  # of an index
_LEAST: Final = 64  # of m, n and k: one instruction has 64 rows, one stage 64 halves of a row
_MOST_KEPT: Final = 512
_MOST_MAPS: Final = 64
_MAP_WORDS: Final = hopper.MAP_BYTES // 8


# --- which kernel ---------------------------------------------------------------------------------

# Consumers, columns, stages, and how fast a tile is beside the largest, per element of C.
_SHAPES: Final = ((2, 256, 4, 1.0), (2, 128, 6, 0.8), (1, 128, 8, 0.6), (1, 64, 8, 0.4))
_FEW_TILES: Final = 512  # below, the matrices stay in the cache whichever way tiles are taken


def tiling_for(order: ProductOrder, majors: tuple[Major, Major], parts: int) -> Tiling:
    """The tiling that is estimated to be fastest on so many multiprocessors. Raises ValueError."""

    def made(consumers: int, columns: int, stages: int, group: int = 8) -> Tiling:
        types = order.a.type, order.b.type
        return Tiling(*types, *majors, consumers, columns, stages, group=group)

    def cost(shape: tuple[int, int, int, float]) -> float:
        tiling = made(*shape[:3])
        waves = -(-tiles_of(order, tiling) // parts)
        return waves * tiling.rows * tiling.columns / shape[3]

    best = min(_SHAPES, key=cost)[:3]
    # measured at 4096 (4) and 8192 (16) rows on an H200
    return made(*best, group=4 if tiles_of(order, made(*best)) <= _FEW_TILES else 16)


def tiles_of(order: ProductOrder, tiling: Tiling) -> int:
    """Tiles of all batches."""
    return -(-order.m // tiling.rows) * -(-order.n // tiling.columns) * order.batches


@dataclass(frozen=True, slots=True)
class Lines:
    """A factor as the copy engine sees it: how many elements lie side by side, how many such lines
    there are, how many batches, and the bytes from one line, and from one batch, to the next.
    """

    major: Major
    length: int
    count: int
    batches: int
    line: int
    batch: int
    first: int  # byte, in the array

    @property
    def step(self) -> int:
        """Along the batches, from one to the next."""
        return int(self.batches > 1)


def lines_of(name: str, of: Factor, outer: int, k: int, batches: int, by_k: bool) -> Lines | str:
    """The lines of A or B, `outer` long along m or n, or why there are none.

    `by_k` says that a row goes along k, as those of A do.
    """
    size = of.type.bits // 8
    inner_stride, other_stride = of.column_stride, of.row_stride
    if not by_k:
        inner_stride, other_stride = other_stride, inner_stride  # now along k, and the other way
    if inner_stride == 1:
        major, length, count, line = Major.K, k, outer, other_stride * size
    elif other_stride == 1 or outer == 1:
        major, length, count, line = Major.OUTER, outer, k, inner_stride * size
    else:
        return f"no elements of {name} lie side by side"
    if count == 1:
        line = -(-length * size // _LINE) * _LINE
    if not of.is_aligned or of.offset * size % _LINE:
        return f"{name} does not begin at a multiple of {_LINE} bytes"
    if line % _LINE or not length * size <= line < _MOST_BYTES:
        return f"lines of {name} are {line} bytes apart, not a multiple of {_LINE} in range"
    batch = of.batch_stride * size
    there = batches if batch else 1
    if there == 1:
        batch = line * count
    if batch % _LINE or not 0 < batch < _MOST_BYTES:
        return f"batches of {name} are {batch} bytes apart, not a multiple of {_LINE} in range"
    return Lines(major, length, count, there, line, batch, of.offset * size)


# --- its text -------------------------------------------------------------------------------------


class Whole(Printed):
    """An element's kernel as a function, and behind it the kernel that calls it."""

    def __init__(self, kernel: Kernel, dialect: Dialect, tiling: Tiling, told: int) -> None:
        super().__init__(kernel, dialect)
        self._tiling = tiling
        self._told = told

    def kernel_function(self, name: str) -> str:
        """The program's functions."""
        element = super().kernel_function(name)
        parameters, arguments = [], []
        for number, decl in enumerate(self.kernel.params):
            own = own_of(decl, self._told)
            if own is not None:
                arguments.append(_OWN[own])
                continue
            declared = self.kernel_parameter(decl)
            lead = declared.removesuffix(self.printer.names[decl.var.id])
            parameters.append(f"{lead}given_{number}")
            arguments.append(f"given_{number}")
        store = f"{name}({', '.join(arguments)});"
        return f"{element}\n\n" + hopper.emit(
            self._tiling, Epilogue(store, tuple(parameters)), ENTRY
        )

    def head(self) -> str:
        """What stands before the name of the element's function."""
        return f"{self.dialect.function_head} inline void"


def own_of(decl: ParamDecl, told: int) -> int | None:
    """Which of row, column, batch and sum a parameter of an element is; None for the others."""
    role = decl.role
    if isinstance(role, UserArgument) and role.argument >= told:
        return role.argument - told
    return None


# --- launches -------------------------------------------------------------------------------------


class ProductProgram:
    """A kernel for one product; a `QueuedProgram`. Its first two parameters are A and B."""

    static_shared_bytes = 0

    def __init__(
        self,
        owner: CudaDriver,
        source: str,
        function: Function,
        tiling: Tiling,
        order: ProductOrder,
        lines: tuple[Lines, Lines],
        params: tuple[ParamDecl, ...],
    ) -> None:
        self.params = (order.a.param, order.b.param, *params)
        self.source = source
        self.tiling = tiling
        self._owner = owner
        self._function = function
        self._lines = lines
        self._types = order.a.type, order.b.type
        steps = (each.step for each in lines)
        self._sizes = np.array([order.m, order.n, order.k, order.batches, *steps], np.uint64)
        self._maps: dict[tuple[int, int], Any] = {}

    def launch(
        self, grid: Dimensions, block: Dimensions, shared_bytes: int, arguments: Sequence[Any]
    ) -> None:
        """See `sarek_numba.runtime.device.Program`."""
        mark = self.enqueue(self._owner.stream, grid, block, shared_bytes, arguments)
        self._owner.streams.wait(mark)

    def joined(self, count: int) -> str:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        return "blocks of a product fill the device"

    def check(self, block: Dimensions) -> None:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        self._function.check(block)

    def enqueue(
        self,
        handle: Stream,
        grid: Dimensions,
        block: Dimensions,
        shared_bytes: int,
        arguments: Sequence[Any],
    ) -> Mark:
        """See `sarek_numba.runtime.device.QueuedProgram`."""
        a, b, *rest = arguments
        maps = self._maps_of(a.address, b.address)
        given = packed(rest)
        words = np.concatenate([*maps, self._sizes, given.words])
        first: int = words.__array_interface__["data"][0]
        places = [0, _MAP_WORDS, *range(2 * _MAP_WORDS, len(words))]
        addresses = np.uint64(first) + np.uint64(8) * np.array(places, np.uint64)
        size = self.tiling.shared_bytes
        return self._function.begin(handle, grid, block, size, Packed(words, addresses))

    def _maps_of(self, *addresses: int) -> Any:
        """The tensor maps of A and B at these addresses, as words. Raises BackendError."""
        key = (addresses[0], addresses[1])
        found = self._maps.get(key)
        if found is None:
            boxes = self.tiling.a_box, self.tiling.b_box
            with check("describing matrices to the copy engine", self._owner.access):
                found = [
                    np.frombuffer(self._map(*each), np.uint64)
                    for each in zip(self._types, self._lines, addresses, boxes, strict=True)
                ]
            if len(self._maps) >= _MOST_MAPS:
                self._maps = {}
            self._maps[key] = found
        return found

    def _map(self, type: Scalar, of: Lines, address: int, box: tuple[int, int]) -> bytes:
        sizes, strides = (of.length, of.count, of.batches), (of.line, of.batch)
        return self._owner.cuda.tensor_map(type, address + of.first, sizes, strides, (*box, 1))


class Products:
    """The products of one device."""

    def __init__(self, owner: CudaDriver, capability: int, parts: int) -> None:
        self._owner = owner
        self._capability = capability
        self._parts = parts
        self._lock = threading.Lock()
        self._known: dict[Hashable, OwnKernel | str] = {}
        self._functions: dict[str, Function] = {}

    def product(self, order: ProductOrder) -> OwnKernel | str:
        """See `sarek_numba.runtime.products.MakesProducts`."""
        if self._capability != CAPABILITY:
            return "these kernels are for compute capability 9.0"
        key = (order.key, *_numbers(order.a), *_numbers(order.b))
        key = (*key, order.m, order.n, order.k, order.batches, order.any_size)
        with self._lock:
            found = self._known.get(key)
            if found is None:
                if len(self._known) >= _MOST_KEPT:
                    self._known.clear()
                found = self._known[key] = self._made(order)
        return found

    def _made(self, order: ProductOrder) -> OwnKernel | str:
        sizes = order.m, order.n, order.k
        if min(sizes) < _LEAST and not order.any_size:
            return f"{order.m}, {order.n} or {order.k} is less than {_LEAST}"
        if max(*sizes, order.batches) >= _MOST:
            return "a size is beyond int32"
        a = lines_of("A", order.a, order.m, order.k, order.batches, by_k=True)
        b = lines_of("B", order.b, order.n, order.k, order.batches, by_k=False)
        if isinstance(a, str) or isinstance(b, str):
            return a if isinstance(a, str) else b  # type: ignore[return-value]
        try:
            tiling = tiling_for(order, (a.major, b.major), self._parts)
        except ValueError as error:
            return str(error)
        source, params, options = self._printed(order, tiling)
        function = self._function(source, options)
        program = ProductProgram(self._owner, source, function, tiling, order, (a, b), params)
        return OwnKernel(
            name=f"Hopper({tiling.rows}x{tiling.columns}, {tiling.stages} stages)",
            program=program,
            shape=(64, tiling.columns, 256 // order.a.type.bits),
            grid=(min(tiles_of(order, tiling), self._parts), 1, 1),
            block=(tiling.threads, 1, 1),
        )

    def _printed(
        self, order: ProductOrder, tiling: Tiling
    ) -> tuple[str, tuple[ParamDecl, ...], tuple[str, ...]]:
        """A program, its parameters, and how it is compiled."""
        toolchain = self._owner.toolchain
        legal = _lean(passes.optimise(order.element, toolchain.target), order.told)
        fast = legal.fastmath
        dialect = toolchain.fast_dialect if fast else toolchain.dialect
        with deep_recursion():
            text = Whole(legal, dialect, tiling, order.told).emit(_ELEMENT).text
        options = toolchain.fast_options if fast else toolchain.options
        options = (f"--gpu-architecture=sm_{CAPABILITY}a", *options[1:])
        params = tuple(decl for decl in legal.params if own_of(decl, order.told) is None)
        return text, params, options

    def _function(self, source: str, options: tuple[str, ...]) -> Function:
        key = "\n".join((*options, source))
        found = self._functions.get(key)
        if found is None:
            module = self._owner.build(source, options)
            with check("loading a kernel", self._owner.access):
                found = self._functions[key] = Function(self._owner, module, ENTRY)
        return found


def _lean(kernel: Kernel, told: int) -> Kernel:
    """An element's kernel without the parameters that it makes no use of, but for its own."""
    used: set[int] = set()
    for stmt in walk_stmts(kernel.body):
        target = assigned_by(stmt)
        if target is not None:
            used.add(target.id)
    for expr in walk_body_exprs(kernel.body):
        match expr:
            case VarRef(var=var) | ArrayRead(array=var):
                used.add(var.id)
    params = (p for p in kernel.params if p.var.id in used or own_of(p, told) is not None)
    return replace(kernel, params=tuple(params))


def _numbers(of: Factor) -> tuple[Hashable, ...]:
    strides = of.row_stride, of.column_stride, of.batch_stride
    return (of.type, of.offset, *strides, of.is_aligned)
