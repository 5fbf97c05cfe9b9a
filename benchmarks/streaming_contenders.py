"""Who takes part in `benchmarks.streaming_gpu`: our programs, CUDA C++ by hand, copies.

A contender has the work of several sets of vectors, gives the work of so many of them in turn to
the device, and tells the seconds that the device had, and the host until all was given. Its start
is the driver's own call with arguments that were made before: what is measured is the device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import sarek_numba as sarek
from benchmarks.streaming_kernels import KERNELS, Streaming, by_hand
from sarek_numba import execute, policy
from sarek_numba.capability import Residency
from sarek_numba.passes.coarsen import NAME, each_of
from sarek_numba.runtime.cudalike.access import check
from sarek_numba.runtime.cudalike.memory import packed
from sarek_numba.runtime.work import AT_ONCE

BLOCK, PLANE_BLOCK = 256, (64, 4)


class Absent(Exception):
    """Why a contender does not take part."""


@dataclass(frozen=True)
class Case:
    """A kernel on one device: sets of vectors `(out, x, y)`, which are there, and its scalars."""

    name: str
    device: sarek.Device
    sets: list[tuple[Any, Any, Any]]
    scalars: tuple[Any, ...]

    @property
    def what(self) -> Streaming:
        return KERNELS[self.name]

    @property
    def dtype(self) -> str:
        return str(self.sets[0][0].dtype)

    def arguments(self, number: int) -> tuple[Any, ...]:
        """Of our kernel."""
        out, x, y = self.sets[number]
        return (out, x, *((y,) if self.what.inputs > 1 else ()), *self.scalars)

    def shape(self, each: int = 1) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """Blocks and threads for a thread an element, or `each` elements along x."""
        out = self.sets[0][0]
        if self.what.plane:
            x, y = PLANE_BLOCK
            return (-(-out.shape[1] // x), -(-out.shape[0] // y), 1), (x, y, 1)
        return (-(-out.size // (BLOCK * each)), 1, 1), (BLOCK, 1, 1)


Measured = tuple[float, float]


class Contender:
    """`time(calls)` gives the seconds of one of so many calls: of the device, and of the host."""

    note = ""

    def call(self, number: int) -> None:
        """Give the work of one set to the device."""
        raise NotImplementedError

    def time(self, calls: int) -> Measured:
        raise NotImplementedError


# --- ours -----------------------------------------------------------------------------------------


@contextmanager
def _setting(word: str) -> Iterator[None]:
    before = os.environ.get("SAREK_OPT_ENABLE")
    os.environ["SAREK_OPT_ENABLE"] = word
    os.environ["SAREK_OPT_DISABLE"] = "" if word else NAME  # also where it is on by default
    try:
        yield
    finally:
        os.environ.pop("SAREK_OPT_DISABLE")
        os.environ.pop("SAREK_OPT_ENABLE")
        if before is not None:
            os.environ["SAREK_OPT_ENABLE"] = before


@contextmanager
def _watched(driver: Any, found: list[Any]) -> Iterator[None]:
    """Notes what programs are launched with; no plans, which need no program."""
    usual, plans = driver.prepare, driver.plans

    def prepare(kernel: Any) -> Any:
        program = usual(kernel)

        def enqueue(handle: Any, *given: Any) -> Any:
            found.append((program, given))
            return type(program).enqueue(program, handle, *given)

        program.enqueue = enqueue
        programs.append(program)
        return program

    programs: list[Any] = []
    driver.prepare, driver.plans = prepare, None
    try:
        yield
    finally:
        del driver.prepare
        driver.plans = plans
        for program in programs:
            vars(program).pop("enqueue", None)


def _why_not(case: Case) -> str:
    """What was decided last of coarsening on the device."""
    told = [record for record in policy.report() if record.optimisation == NAME]
    return str(told[-1].outcome) if told else "nothing was decided"


class Ours(Contender):
    """Our program on any device, by its queue's marks."""

    def __init__(self, case: Case, *, coarse: bool) -> None:
        driver: Any = case.device.driver
        target = driver.target
        if coarse and not (target is not None and target.coarsening):
            raise Absent("this device is never asked for coarsened programs")
        self.device, self.queues = case.device, driver.queues
        self.given: list[tuple[Any, Any]] = []
        grid, block = case.shape()
        execute.clear_launch_cache()
        policy.clear_report()
        stream = case.device.stream()
        with _setting(NAME if coarse else ""), _watched(driver, self.given):
            for number in range(len(case.sets)):
                arguments = case.arguments(number)
                case.what.kernel.launch(
                    *arguments, grid=grid, block=block, device=case.device, stream=stream
                )
        stream.synchronize()
        execute.clear_launch_cache()
        each = each_of(self.given[0][0].params)
        if coarse and each == 1:
            raise Absent(_why_not(case))
        self.note = f"{each} elements a thread" if each > 1 else ""
        self.handle = self.queues.open()

    def call(self, number: int) -> None:
        program, given = self.given[number % len(self.given)]
        program.enqueue(self.handle, *given)

    def time(self, calls: int) -> Measured:
        queues, handle = self.queues, self.handle
        queues.wait(queues.mark(handle))
        began = perf_counter()
        # where work is recorded first, a start that is submitted alone would time the recording
        start = getattr(handle, "mark", partial(queues.mark, handle))()
        for number in range(calls):
            self.call(number)
        end = queues.mark(handle)
        queues.submit(handle)
        host = perf_counter() - began
        queues.wait(end)
        return queues.elapsed_ms(start, end) / 1e3 / calls, host / calls


class AtOnce(Contender):
    """Our launches on a device that runs them in the call: the host's clock."""

    def __init__(self, case: Case) -> None:
        grid, block = case.shape()
        launch = case.what.kernel._configured(grid, block, None, 0, case.device)
        self.calls = [partial(launch, *case.arguments(number)) for number in range(len(case.sets))]
        for one in self.calls * 3:
            one()

    def call(self, number: int) -> None:
        self.calls[number % len(self.calls)]()

    def time(self, calls: int) -> Measured:
        began = perf_counter()
        for number in range(calls):
            self.call(number)
        return (perf_counter() - began) / calls, 0.0


# --- on CUDA --------------------------------------------------------------------------------------


class _Cuda(Contender):
    """Calls of CUDA's driver on a stream of its own, between two events."""

    def __init__(self, case: Case) -> None:
        self.driver: Any = case.device.driver
        self.access = self.driver.access
        self.api: Any = self.access.api
        with check("the benchmark", self.access):
            self.stream = self.api.stream()
            self.start, self.end = (self.api.event(timed=True) for _ in range(2))

    def time(self, calls: int) -> Measured:
        with check("the benchmark", self.access):
            self.api.finish_stream(self.stream)
            began = perf_counter()
            self.api.record(self.start, self.stream)
            for number in range(calls):
                self.call(number)
            self.api.record(self.end, self.stream)
            host = perf_counter() - began
            self.api.wait_for(self.end)
            return self.api.elapsed_ms(self.start, self.end) / 1e3 / calls, host / calls


class _Launches(_Cuda):
    """Launches of one function, of whose arguments all words are there."""

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.lists: list[Any] = []

    def call(self, number: int) -> None:
        at = self.lists[number % len(self.lists)].address
        result = self.access.launch(
            self.function, *self.grid, *self.block, 0, self.stream, at, 0
        )  # fmt: skip
        if result[0]:
            self.api.check(result)


class OursOnCuda(_Launches):
    """Our program, launched as those by hand are."""

    def __init__(self, case: Case, *, coarse: bool) -> None:
        super().__init__(case)
        ours = Ours(case, coarse=coarse)
        self.note = ours.note
        program, (self.grid, self.block, _, _) = ours.given[0]
        self.function, self.kept = program.function.raw, ours
        self.lists = [packed(given[3]) for _, given in ours.given]


class ByHand(_Launches):
    """CUDA C++ by hand, with the options of ours."""

    def __init__(self, case: Case, *, wide: bool) -> None:
        super().__init__(case)
        text = by_hand(case.name, case.dtype, wide=wide)
        if text is None:
            raise Absent("there is no such form of this kernel")
        each = 16 // np.dtype(case.dtype).itemsize if wide else 1
        self.grid, self.block = case.shape(each)
        module = self.driver.build(text, self.driver.toolchain.options)
        with check("the benchmark", self.access):
            self.function = self.api.function(module, "by_hand")
            self.api.finish_loading(self.function)
        self.kept = module
        self.lists = [self._given(case, *vectors) for vectors in case.sets]

    def _given(self, case: Case, out: Any, x: Any, y: Any) -> Any:
        memory = self.driver.memory
        held = [each._storage.held(memory) for each in (out, x, y)]
        wide = np.result_type(out.dtype, np.float32).type
        scalars = [wide(each) for each in (*case.scalars, 0)]
        if case.what.plane:
            rows, columns = out.shape
            return packed([*held[:2], *scalars[:2], np.int32(rows), np.int32(columns)])
        return packed([*held, scalars[0], np.int32(out.size)])


class CopyOnCuda(_Cuda):
    """`cuMemcpyDtoDAsync` of x to out."""

    note = "cuMemcpyDtoDAsync"

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.copy = getattr(getattr(self.api, "_cuda", None), "cuMemcpyDtoDAsync", None)
        if self.copy is None:
            raise Absent("the driver has no cuMemcpyDtoDAsync")
        address: Callable[[Any], int] = lambda v: v._storage.held(self.driver.memory).address  # noqa: E731
        self.pairs = [(address(out), address(x), out.nbytes) for out, x, _ in case.sets]

    def call(self, number: int) -> None:
        self.api.check(self.copy(*self.pairs[number % len(self.pairs)], self.stream))


# --- on OpenCL ------------------------------------------------------------------------------------


class CopyOnOpenCL(Contender):
    """`clEnqueueCopyBuffer` of x to out."""

    note = "clEnqueueCopyBuffer"

    def __init__(self, case: Case) -> None:
        import pyopencl

        driver: Any = case.device.driver
        properties = pyopencl.command_queue_properties.PROFILING_ENABLE
        self.cl = pyopencl
        self.queue = pyopencl.CommandQueue(driver.context, driver.device, properties)
        buffer = execute.device_buffer
        self.pairs = [
            (buffer(out, case.device), buffer(x, case.device), out.nbytes)
            for out, x, _ in case.sets
        ]

    def call(self, number: int) -> Any:
        out, x, size = self.pairs[number % len(self.pairs)]
        return self.cl.enqueue_copy(self.queue, out, x, byte_count=size)

    def time(self, calls: int) -> Measured:
        self.queue.finish()
        began = perf_counter()
        events = [self.call(number) for number in range(calls)]
        self.queue.flush()
        host = perf_counter() - began
        self.queue.finish()
        nanoseconds = events[-1].profile.end - events[0].profile.start
        return nanoseconds / 1e9 / calls, host / calls


# --- who there is ---------------------------------------------------------------------------------

Makers = dict[str, Callable[[Case], Contender]]


def makers_for(device: sarek.Device, name: str) -> Makers:
    """All contenders of a device in one kernel, each of which may be absent."""
    found: Makers = {}
    backend = device.record.backend
    if name == "copy":
        if backend == "cuda":
            found["device's copy"] = CopyOnCuda
        elif backend == "opencl":
            found["device's copy"] = CopyOnOpenCL
    if backend == "cuda":
        found["by hand"] = lambda case: ByHand(case, wide=False)
        found["by hand, wide"] = lambda case: ByHand(case, wide=True)
    if device.driver.queues in (None, AT_ONCE):
        found["ours"] = AtOnce
        return found
    ours: Any = OursOnCuda if backend == "cuda" else Ours
    found["ours"] = lambda case: ours(case, coarse=False)
    found["ours, coarsened"] = lambda case: ours(case, coarse=True)
    return found


def at_any_size(devices: Sequence[sarek.Device]) -> None:
    """Have launches of every size coarsened on devices that can."""
    for device in devices:
        driver: Any = device.driver
        residency = Residency(0, "by construction: the benchmark says so")
        driver.record = replace(
            driver.record, limits=replace(driver.record.limits, residency=residency)
        )


def on_cpus_too(devices: Sequence[sarek.Device]) -> None:
    """Have kernels coarsened on CPUs with queues, as they never are else."""
    from sarek_numba.codegen.target import GPU_COARSENING

    for device in devices:
        driver: Any = device.driver
        if device.record.is_cpu and driver.queues not in (None, AT_ONCE):
            driver.target = replace(driver.target, coarsening=GPU_COARSENING)
