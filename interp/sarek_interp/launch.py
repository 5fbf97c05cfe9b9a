"""Run a kernel on the oracle: compile it once, bind arguments, go through its blocks, report.

Blocks run in chunks that keep their lanes' arrays in the processor's cache. The seed permutes the
chunks, and the blocks within each where order shows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from sarek_interp.clock_shadow import ClockShadow
from sarek_interp.code import Context, LocalArray, Step, scalar
from sarek_interp.covering import LinesRun, settle
from sarek_interp.fences import clocks_of, has_clocks, may_wait
from sarek_interp.machine import FALSE, Chunk, Launch, Machine, Stopped
from sarek_interp.memory import Binding, Bytes, Storage, Tracing, global_storages, new_shadow
from sarek_interp.races import Shadow
from sarek_interp.report import Findings, Report
from sarek_interp.statements import (
    compile_body,
    compile_helper,
    compile_locals,
)
from sarek_interp.variables import constant_size
from sarek_interp.views import view_of, whole_name
from sarek_interp.warps import order_of
from sarek_interp.watch import Watch
from sarek_numba.errors import Triple
from sarek_numba.ir import semantics
from sarek_numba.ir.depth import deep_recursion
from sarek_numba.ir.effects import effects_of
from sarek_numba.ir.nodes import ConstDecl, Kernel, SharedDecl
from sarek_numba.ir.printing import in_thread_order
from sarek_numba.ir.types import MemSpace
from sarek_numba.recording import current as current_recording

OPTIONAL_CHECKS = frozenset({"division"})
RACE_MODES = frozenset({"default", "strict"})
DEFAULT_STEP_LIMIT = 20_000_000
_CHUNK_LANES = 1 << 15
_CHUNK_BYTES = 64 << 20
_SHADOW_BYTES_PER_GRANULE = 36
_ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Compiled:
    """A kernel ready to run; `params` are the slots of its parameters."""

    kernel: Kernel
    context: Context
    start: Step
    body: Step
    barriers: bool
    returned: int
    params: tuple[int, ...]
    constants: tuple[tuple[int, Storage], ...]
    traced: frozenset[int]
    waits: bool


def compile_kernel(kernel: Kernel, checks: Collection[str] = ()) -> Compiled:
    """Compile a verified kernel. Raises ValueError for an unknown check."""
    unknown = set(checks) - OPTIONAL_CHECKS
    if unknown:
        known = ", ".join(sorted(OPTIONAL_CHECKS))
        raise ValueError(f"unknown check {sorted(unknown)[0]!r}; the optional checks are: {known}")
    with deep_recursion():
        context = Context(kernel, frozenset(checks), compile_helper, has_clocks(kernel))
        params = tuple(context.declare(param.var) for param in kernel.params)
        constants = tuple(
            (context.declare(decl.var), _constant(decl))
            for decl in kernel.locals
            if isinstance(decl, ConstDecl)
        )
        for decl in kernel.locals:
            if isinstance(decl, SharedDecl):
                _declare_shared(context, decl)
        start = compile_locals(context, kernel.locals)
        body = compile_body(context, kernel.body)
    return Compiled(
        kernel,
        context,
        start,
        body.run,
        body.barriers,
        context.function.returned,
        params,
        constants,
        effects_of(kernel).writes,
        context.clocked and may_wait(kernel),
    )


def _constant(decl: ConstDecl) -> Storage:
    width = decl.element.bits // 8
    data = b"".join(bits.to_bytes(width, "little") for bits in decl.bits)
    lanes = np.frombuffer(data, semantics.dtype_of(decl.element))
    return Storage(decl.var.name, decl.element, MemSpace.CONSTANT, lanes, lanes.size)


def _declare_shared(context: Context, decl: SharedDecl) -> None:
    slot = context.declare(decl.var)
    element = scalar(decl.element, decl.span)
    if decl.size is None:
        context.dynamic_shared.append((slot, decl))
    else:
        size = constant_size(context, decl.size)
        context.static_shared.append(LocalArray(slot, decl.var, element, size))


def static_shared_bytes(compiled: Compiled) -> int:
    """Bytes of the static shared arrays of one block."""
    return sum(a.length * a.scalar.bits // 8 for a in compiled.context.static_shared)


# --- running --------------------------------------------------------------------------------------


def execute(
    kernel: Kernel | Compiled,
    grid: Triple,
    block: Triple,
    arguments: Sequence[Any],
    shared_bytes: int = 0,
    *,
    checks: Collection[str] = (),
    races: str = "default",
    seed: int = 0,
    step_limit: int = DEFAULT_STEP_LIMIT,
    watch: tuple[int, int] | None = None,
) -> Report:
    """Run a kernel and report every fault; what it wrote before a fault stays written.

    `arguments` has one entry for each parameter: bytes (1-D uint8) for an array, a NumPy scalar of
    the declared type otherwise. `checks` may ask for "division" (integer division by zero);
    `races="strict"` also reports unordered writes of identical bits. `seed` permutes the order of
    blocks. After `step_limit` passes through loops a chunk of blocks is given up. The report
    tells who wrote last to the bytes of `watch`, two addresses.
    """
    if races not in RACE_MODES:
        raise ValueError(f"races is {races!r}; it may be {' or '.join(sorted(RACE_MODES))}")
    compiled = kernel if isinstance(kernel, Compiled) else compile_kernel(kernel, checks)
    began = time.perf_counter()
    findings = Findings()
    launch = Launch(
        compiled.kernel.name,
        grid,
        block,
        findings,
        compiled.context.sites,
        strict_races=races == "strict",
        step_limit=step_limit,
        order=order_of(compiled.kernel),
        watch=None if watch is None else Watch(*watch),
    )
    launch.clocks = clocks_of(compiled.kernel, grid, block, launch.order)
    values = _bound(compiled, arguments, launch)
    recording = current_recording()
    counted: list[LinesRun] | None = None if recording is None else []
    with np.errstate(all="ignore"), deep_recursion(), suppress(Stopped):
        _run_chunks(compiled, launch, values, shared_bytes, seed, counted)
    if recording is not None and counted is not None:
        marks = compiled.context.marks.numbers
        settle(recording, launch.threads * launch.blocks, marks, counted)
    return Report(
        compiled.kernel.name,
        grid,
        block,
        findings.in_order(),
        seed,
        time.perf_counter() - began,
        findings.dropped,
        in_thread_order(launch.lines),
        None if launch.watch is None else launch.watch.writer,
    )


def _run_chunks(
    compiled: Compiled,
    launch: Launch,
    values: dict[int, Any],
    shared_bytes: int,
    seed: int,
    counted: list[LinesRun] | None,
) -> None:
    per_chunk = _blocks_per_chunk(compiled, launch, shared_bytes)
    chunks = -(-launch.blocks // per_chunk)
    random = np.random.default_rng(seed)
    for number in random.permutation(chunks).tolist():
        first = number * per_chunk
        count = min(per_chunk, launch.blocks - first)
        chunk = Chunk(launch, first, count, random.permutation(count))
        if launch.clocks is not None:
            launch.clocks.begin(first, chunk.lanes)
        if compiled.barriers:
            chunk.returned_at = np.full(chunk.lanes, -1, np.int32)
        if counted is not None:
            chunk.lines = LinesRun(len(compiled.context.marks.numbers), chunk.lanes)
            counted.append(chunk.lines)
        own = {**values, **_shared(compiled, chunk, shared_bytes), **_local(compiled, chunk)}
        machine = Machine(chunk, own, chunk.lanes)
        machine.values[compiled.returned] = FALSE
        compiled.start(machine)
        compiled.body(machine)


def _blocks_per_chunk(compiled: Compiled, launch: Launch, shared_bytes: int) -> int:
    """As many blocks as fit the limits of lanes and of memory, and at least one.

    One alone where a block may wait for another: it finds the ones before it done.
    """
    context = compiled.context
    if compiled.waits:
        return 1
    local = sum(a.length * (a.scalar.bits // 8 + 1) for a in context.local_arrays)
    shared = static_shared_bytes(compiled) + shared_bytes
    granules = sum(a.length for a in context.static_shared) + shared_bytes
    of_block = local * launch.threads + shared + granules * _SHADOW_BYTES_PER_GRANULE
    lanes = max(1, _CHUNK_LANES // launch.threads)
    return max(1, min(lanes, launch.blocks, _CHUNK_BYTES // max(1, of_block)))


# --- arguments and arrays -------------------------------------------------------------------------


def _bound(compiled: Compiled, arguments: Sequence[Any], launch: Launch) -> dict[int, Any]:
    values: dict[int, Any] = dict(compiled.constants)
    bindings: list[Binding] = []
    slots: list[int] = []
    by_role = {
        param.role: int(given)
        for param, given in zip(compiled.kernel.params, arguments, strict=True)
        if param.array is None and isinstance(given, np.integer)
    }
    for param, slot, given in zip(compiled.kernel.params, compiled.params, arguments, strict=True):
        if param.array is None:
            values[slot] = np.array([given])
            continue
        memory: Bytes = given
        element = scalar(param.array.element, None)
        traced = param.var.id in compiled.traced
        pairs = param.array.pairs
        view = view_of(param, memory.size, by_role)
        name = whole_name(param.var.name)
        bindings.append(Binding(name, element, memory, traced, view, pairs))
        slots.append(slot)
    values.update(zip(slots, global_storages(bindings, launch.order, launch.clocks), strict=True))
    return values


def _shared(compiled: Compiled, chunk: Chunk, shared_bytes: int) -> dict[int, Storage]:
    storages: dict[int, Storage] = {}
    for array in compiled.context.static_shared:
        pitch = max(1, array.length)
        data = np.zeros(pitch * chunk.count, semantics.dtype_of(array.scalar))
        tracing = Tracing(_shadow(chunk.launch, data.size), 0, 1)
        storages[array.slot] = Storage(
            array.var.name, array.scalar, MemSpace.SHARED, data, array.length, pitch, tracing
        )
    views = [
        (slot, decl, scalar(decl.element, decl.span))
        for slot, decl in compiled.context.dynamic_shared
    ]
    if not views:
        return storages
    pitch = max(_ALIGNMENT, -(-shared_bytes // _ALIGNMENT) * _ALIGNMENT)
    memory = np.zeros(pitch * (chunk.count + 1), np.uint8)
    unit = math.gcd(*(element.bits // 8 for *_, element in views), *(d.offset for _, d, _ in views))
    shadow = _shadow(chunk.launch, memory.size // unit)
    for slot, decl, element in views:
        width = element.bits // 8
        offset = min(decl.offset, shared_bytes)
        end = offset + (memory.size - offset) // width * width
        storages[slot] = Storage(
            decl.var.name,
            element,
            MemSpace.SHARED,
            memory[offset:end].view(semantics.dtype_of(element)),
            (shared_bytes - offset) // width,
            pitch // width,
            Tracing(shadow, offset // unit, width // unit),
        )
    return storages


def _shadow(launch: Launch, granules: int) -> Shadow | ClockShadow:
    return new_shadow(granules, False, launch.order, launch.clocks)


def _local(compiled: Compiled, chunk: Chunk) -> dict[int, Storage]:
    storages: dict[int, Storage] = {}
    for array in compiled.context.local_arrays:
        pitch = max(1, array.length)
        data = np.zeros(pitch * chunk.lanes, semantics.dtype_of(array.scalar))
        storages[array.slot] = Storage(
            array.var.name, array.scalar, MemSpace.LOCAL, data, array.length, pitch
        )
    return storages
