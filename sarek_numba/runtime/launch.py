"""From a verified kernel and its arguments to a finished launch on one device.

`analyse` gathers once what a launch must know of a kernel. `check` looks at lengths, shared memory,
writes to repeated elements and capabilities. `launch` prepares the program (once for each kernel
and device), binds the memory, runs, and unbinds. What can refuse comes before anything is bound,
and is raised at every launch. Arity, kinds of arguments and dimensions are checked before this, by
`arguments` and `dimensions`: they need no compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, cast

from sarek_numba import capability, policy
from sarek_numba.errors import InvalidArgument, InvalidDimensions, LengthOverflow
from sarek_numba.ir.effects import arguments as arguments_of
from sarek_numba.ir.effects import columns as columns_of
from sarek_numba.ir.effects import effects_of
from sarek_numba.ir.layout import array_layout
from sarek_numba.ir.needs import Need, needs
from sarek_numba.ir.nodes import ArrayCreate, Const, Kernel, Let, LocalDecl, SharedDecl
from sarek_numba.ir.places import places_of
from sarek_numba.ir.text import canonical_text, text
from sarek_numba.ir.texts import has_texts, picked, without_fallbacks
from sarek_numba.ir.types import MemSpace, Scalar
from sarek_numba.ir.walk import bodies_of_kernel, walk_stmts
from sarek_numba.ir.warps import has_meetings, uses_warps
from sarek_numba.passes import optimise
from sarek_numba.passes.coarsen import NAME as COARSENING
from sarek_numba.passes.coarsen import asked, each_of, launched
from sarek_numba.passes.report import Reporting, reporting
from sarek_numba.runtime import coarsening, disk, promised, recorders, report, telemetry
from sarek_numba.runtime.arguments import Arguments, Filler, Sizes, fillers
from sarek_numba.runtime.cache import Identity, Memo, count, identity_of
from sarek_numba.runtime.clock import Clock, warn_of_copies
from sarek_numba.runtime.device import Bytes, Dimensions, Program, QueuedProgram
from sarek_numba.runtime.dimensions import check_local_bytes, check_shared
from sarek_numba.runtime.dump import dump
from sarek_numba.runtime.enqueue import enqueue, queue_for
from sarek_numba.runtime.memory import bound_regions, repeats_elements
from sarek_numba.runtime.overlap import check_apart
from sarek_numba.runtime.registry import Device
from sarek_numba.runtime.rejected import explained
from sarek_numba.runtime.source import Source
from sarek_numba.runtime.stream import Stream
from sarek_numba.runtime.submission import Submission
from sarek_numba.span import Span

_INT32_ELEMENTS = 2**31


@dataclass(frozen=True, slots=True)
class Analysed:
    """A kernel and what a launch must know of it. `reads`, `writes` are positions of arguments.

    `read_columns`, `written_columns` say which columns of arguments that are records in columns.

    `identity` is the content with the kernel's name: what is compiled depends on that. `places` are
    those of all that sources, refusals and findings name. `reporting` is what a device runs that is
    not the oracle, where there is something to print or to check.
    """

    kernel: Kernel
    identity: Identity
    places: str
    names: tuple[str, ...]
    needs: tuple[Need, ...]
    reads: frozenset[int]
    writes: frozenset[int]
    read_columns: frozenset[tuple[int, int]]
    written_columns: frozenset[tuple[int, int]]
    static_shared_bytes: int
    local_bytes: int = 0  # of the local arrays of one thread
    restrict: bool = False  # is it promised that written arrays overlap no others?
    whole_warps: bool = False  # must a block be a whole number of warps?
    reporting: Reporting | None = None
    debug: bool = False
    grants: tuple[policy.Grant, ...] = ()  # that allow what the kernel's `fastmath` says


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program, and what gives it its arguments."""

    program: Program
    fillers: tuple[Filler, ...]


_reports: Memo[Reporting] = Memo()
_is_refused: Memo[tuple[bool]] = Memo()
_refusals: Memo[list[capability.Refusal]] = Memo()
_sources: Memo[Source] = Memo()
_prepared: Memo[Prepared] = Memo()


def analyse(
    kernel: Kernel,
    names: Sequence[str],
    *,
    debug: bool = False,
    grants: tuple[policy.Grant, ...] = (),
) -> Analysed:
    """What a launch must know of a verified kernel; `names` are those of its arguments.

    `debug` has devices check subscripts and assertions, as the oracle always does.
    """
    effects = effects_of(kernel)
    reported = reporting(kernel, debug=debug)
    texts = [canonical_text(kernel), *([canonical_text(reported.kernel)] if reported else [])]
    return Analysed(
        kernel=kernel,
        identity=identity_of(sha256("\n".join(texts).encode()).hexdigest(), kernel.name),
        places=places_of(kernel),
        reporting=reported,
        debug=debug,
        grants=grants,
        names=tuple(names),
        needs=tuple(needs(kernel)),
        reads=arguments_of(kernel, effects.reads),
        writes=arguments_of(kernel, effects.writes),
        read_columns=columns_of(kernel, effects.reads),
        written_columns=columns_of(kernel, effects.writes),
        static_shared_bytes=_static_shared_bytes(kernel),
        local_bytes=_local_bytes(kernel),
        restrict=any(p.array is not None and p.array.restrict for p in kernel.params),
        whole_warps=uses_warps(kernel),
    )


def _static_shared_bytes(kernel: Kernel) -> int:
    total = 0
    for declaration in kernel.locals:
        match declaration:
            case SharedDecl(element=Scalar() as element, size=Const(value=count)):
                total += int(count) * element.bits // 8
    return total


def _local_bytes(kernel: Kernel) -> int:
    """Of all local arrays, those of device functions too, each once."""
    functions = [declared for function in kernel.functions for declared in function.locals]
    values = [declared.value for declared in (*kernel.locals, *functions)
              if isinstance(declared, LocalDecl)]  # fmt: skip
    bodies = (stmt for body in bodies_of_kernel(kernel) for stmt in walk_stmts(body))
    values += [stmt.value for stmt in bodies if isinstance(stmt, Let)]
    total = 0
    for value in values:
        match value:
            case ArrayCreate(element=element, size=Const(value=count), space=MemSpace.LOCAL):
                total += array_layout(element, int(count)).size
    return total


def check(device: Device, analysed: Analysed, arguments: Arguments, shared_bytes: int) -> None:
    """Everything of a launch that needs the compiled kernel and can refuse it.

    Raises LaunchError, CapabilityError.
    """
    _check_lengths(analysed, arguments)
    check_shared(analysed.kernel.name, analysed.static_shared_bytes, shared_bytes, device.record)
    _check_repeated(analysed, arguments)
    if analysed.restrict:
        check_apart(analysed.kernel.name, analysed.names, arguments, analysed.writes)
    check_capabilities(device, analysed)
    if analysed.grants:
        outcome = _fastmath(device, analysed.grants)
        policy.record_once(analysed.kernel.name, device.record.name, "fastmath", outcome)


def launch(
    device: Device,
    analysed: Analysed,
    arguments: Arguments,
    grid: Dimensions,
    block: Dimensions,
    shared_bytes: int,
    stream: Stream | None = None,
    prepared: Prepared | None = None,
) -> None:
    """Run a checked kernel; when this returns, what it wrote is in the arrays.

    What it wrote to vectors is there when somebody looks. A recorder takes it down instead.
    `prepared` is a program that does what the kernel does, in place of the kernel's.

    Raises BackendError, OracleError.
    """
    recorder = recorders.current.get()
    if recorder is not None:
        recorder.launched(device, analysed, arguments, grid, block, shared_bytes)
        return
    if prepared is None:
        prepared = _prepared_for(device, analysed, grid, block)
    program, filled_by = prepared.program, prepared.fillers
    check_shared(analysed.kernel.name, program.static_shared_bytes, shared_bytes, device.record)
    positions = arguments.arrays
    arrays = [arguments.values[position] for position in positions]
    read = arguments.among(analysed.reads, analysed.read_columns)
    written = arguments.among(analysed.writes, analysed.written_columns)
    driver = device.driver
    reported = _reporting_on(device, analysed)
    memory = None if reported is None else report.new_buffer()
    clock = Clock(driver, arrays) if telemetry.is_measuring() else None
    warn_of_copies(analysed.kernel.name, device, arrays, arguments.storages)

    blocks = launched(program.params, grid)
    sizes = Sizes(shared_bytes, grid[0] * block[0])

    def filled(buffers: Sequence[Any]) -> list[Any]:
        count("launches")
        return [fill(arguments, buffers, sizes) for fill in filled_by]

    def prepare(buffers: Sequence[Any]) -> Callable[[], Any]:
        assert queue is not None
        given = (queue.handle, blocks, block, shared_bytes, filled(buffers))
        start = Submission(cast(QueuedProgram, program), device.record.name, *given)
        return start if clock is None else partial(clock.over, start)

    queue = queue_for(
        driver, stream, arguments, reports=memory is not None, measured=clock is not None
    )
    if queue is None:
        with ExitStack() as stack:
            own = _bound_report(device, memory, stack)
            regions = bound_regions(
                driver, arguments.arrangement, arrays, read, written, arguments.storages
            )
            buffers = [*stack.enter_context(regions), *own]
            if clock is None:
                program.launch(blocks, block, shared_bytes, filled(buffers))
            else:
                clock.run(program, blocks, block, shared_bytes, filled(buffers))
    else:
        cast(QueuedProgram, program).check(block)
        enqueue(
            analysed.kernel.name,
            driver,
            queue,
            arguments.arrangement,
            arrays,
            read,
            written,
            arguments.storages,
            prepare,
            memory,
        )
    if reported is not None and memory is not None:
        report.settle(analysed.kernel.name, reported.sites, memory, grid, block)
    if clock is not None:
        clock.tell(device, analysed.kernel.name, grid, block, arguments.values, read, written)


@dataclass(frozen=True, slots=True)
class Bindable:
    """A checked launch, all but its memory: `fill` gives the arguments for a buffer a region."""

    program: Program
    grid: Dimensions
    fill: Callable[[Sequence[Any]], list[Any]]


def bindable(
    device: Device,
    analysed: Analysed,
    arguments: Arguments,
    grid: Dimensions,
    block: Dimensions,
    shared_bytes: int,
) -> Bindable:
    """A checked launch as something else may begin it. Raises InvalidDimensions, BackendError."""
    prepared = _prepared_for(device, analysed, grid, block)
    program = prepared.program
    check_shared(analysed.kernel.name, program.static_shared_bytes, shared_bytes, device.record)
    sizes = Sizes(shared_bytes, grid[0] * block[0])

    def fill(buffers: Sequence[Any]) -> list[Any]:
        return [each(arguments, buffers, sizes) for each in prepared.fillers]

    return Bindable(program, launched(program.params, grid), fill)


def program_of(device: Device, analysed: Analysed, grid: Dimensions, block: Dimensions) -> Program:
    """The program of a kernel on a device for launches of a size."""
    return _prepared_for(device, analysed, grid, block).program


def compile_on(device: Device, analysed: Analysed) -> None:
    """Have the device compile a kernel, as launches of few threads run it."""
    _prepared_on(device, analysed)


def _prepared_for(
    device: Device, analysed: Analysed, grid: Dimensions, block: Dimensions
) -> Prepared:
    """A kernel as the device runs it in launches of a size."""
    if not coarsening.can(device):
        return _prepared_on(device, analysed)
    why = coarsening.why_never(device) or coarsening.why_too_few(device, grid, block)
    if why is None:
        coarse = _prepared_on(device, analysed, coarse=True)
        why = coarsening.why_not(device, coarse.program, grid, block)
        if why is None:
            return coarse
    refused = policy.Refused(why)
    policy.record_once(analysed.kernel.name, device.record.name, COARSENING, refused)
    return _prepared_on(device, analysed)


def _prepared_on(device: Device, analysed: Analysed, *, coarse: bool = False) -> Prepared:
    """A kernel as the device runs it: the oracle names the places of its findings by itself."""
    places = analysed.places if device.driver.target is None else None
    key = (places, device, coarse)
    return _prepared.get(key, lambda: _prepare(device, analysed, coarse=coarse), analysed.identity)


def reports(device: Device, analysed: Analysed) -> bool:
    """Whether a launch leaves a report, of what it printed and found."""
    return _reporting_on(device, analysed) is not None


def _bound_report(device: Device, memory: Bytes | None, stack: ExitStack) -> list[Any]:
    """The report buffer as the device's, if the kernel fills one."""
    if memory is None:
        return []
    buffer = device.driver.bind(memory, read=True, written=True)
    stack.callback(device.driver.unbind, buffer)
    return [buffer]


def _reporting_on(device: Device, analysed: Analysed) -> Reporting | None:
    """The oracle prints and checks by itself. A device has texts of its own."""
    target = device.driver.target
    if target is None or analysed.reporting is None or not has_texts(analysed.kernel):
        return None if target is None else analysed.reporting
    key = (analysed.places, target.framework, analysed.debug)
    made = partial(_reporting_with_texts, analysed, target.framework)
    return _reports.get(key, made, analysed.identity)


def _reporting_with_texts(analysed: Analysed, framework: str) -> Reporting:
    found = reporting(picked(analysed.kernel, framework), debug=analysed.debug)
    assert found is not None  # what prints, and what is checked, does not depend on the texts
    return found


def _kernel_on(device: Device, analysed: Analysed) -> Kernel:
    """The kernel as the device gets it."""
    reported = _reporting_on(device, analysed)
    return analysed.kernel if reported is None else reported.kernel


# --- checks ---------------------------------------------------------------------------------------


def check_local(device: Device, analysed: Analysed, block: Dimensions) -> None:
    """Refuse more local memory for the threads of a block than the device has."""
    threads = block[0] * block[1] * block[2]
    check_local_bytes(analysed.kernel.name, analysed.local_bytes, threads, device.record)


def check_warps(device: Device, analysed: Analysed, block: Dimensions) -> None:
    """Refuse a block with a part of a warp for a kernel whose warps work together."""
    width, threads = analysed.kernel.warp_width, block[0] * block[1] * block[2]
    limits = device.record.limits
    if width not in (None, limits.warp_width_for(width)) and has_meetings(analysed.kernel):
        capability.refuse([_width_refused(device, analysed, width)])
    if analysed.whole_warps and width is not None and threads % width:
        raise InvalidDimensions(
            f"kernel '{analysed.kernel.name}' uses warp operations: block {block} is {threads} "
            f"threads, no whole number of warps of {width}\n"
            f"  hint: use a block of {-(-threads // width) * width} threads"
        )
    rows = limits.warps_span_rows or threads == block[0]
    if not rows and width is not None and block[0] % width and has_meetings(analysed.kernel):
        capability.refuse([_rows_refused(device, analysed, width)])


def _warp_span(analysed: Analysed) -> Span | None:
    """The first place where warps work together."""
    return next((need.span for need in analysed.needs if need.feature == "warp"), None)


def _width_refused(device: Device, analysed: Analysed, width: int | None) -> capability.Refusal:
    """IR that was made for warps which the device does not have."""
    own = device.record.limits.warp_width
    fact = capability.Fact(
        capability.Verdict.UNAVAILABLE,
        capability.CapabilityKind.OPTIONAL,
        f"the kernel is for warps of {width} threads, and those of the device have {own}",
        f"make the IR within execute.simulated_warp_width({own})",
    )
    need = Need("warp", span=_warp_span(analysed))
    return capability.Refusal(analysed.kernel.name, device.record.name, need, fact)


def _rows_refused(device: Device, analysed: Analysed, width: int) -> capability.Refusal:
    """Where a warp would go on in the next row of the block, the device begins another."""
    fact = capability.Fact(
        capability.Verdict.UNAVAILABLE,
        capability.CapabilityKind.OPTIONAL,
        "measured: a subgroup lies in one row along x",
        f"use a block whose x is a multiple of {width}",
    )
    need = Need("warp_rows", span=_warp_span(analysed))
    return capability.Refusal(analysed.kernel.name, device.record.name, need, fact)


def check_countable(
    device: Device, kernel: str, names: Sequence[str], arguments: Arguments
) -> None:
    """Refuse an array of so many elements that a device without int64 cannot count them.

    Raises LengthOverflow.
    """
    arrangement = arguments.arrangement
    if arrangement.reach < _INT32_ELEMENTS:
        return
    counting = capability.Capability("arithmetic", Scalar.INT64)
    if capability.fact_of(counting, device.record).verdict is capability.Verdict.AVAILABLE:
        return
    largest = max(
        arguments.arrays, key=lambda p: arrangement.regions[arguments.placement(p).region].size
    )
    raise LengthOverflow(
        f"kernel '{kernel}': argument '{names[arguments.owner(largest)]}' spans "
        f"{arrangement.reach} elements, and device '{device.record.name}' has no int64 to count "
        "them\n  hint: launch on parts of it, each of fewer than 2**31 elements"
    )


def _check_lengths(analysed: Analysed, arguments: Arguments) -> None:
    """An ordinary kernel gets 64-bit lengths where it needs them; IR made by hand may not."""
    if analysed.kernel.index_bits == 32 and arguments.arrangement.reach >= _INT32_ELEMENTS:
        raise LengthOverflow(
            f"kernel '{analysed.kernel.name}' takes lengths as int32, and an array spans "
            f"{arguments.arrangement.reach} elements"
        )


def _check_repeated(analysed: Analysed, arguments: Arguments) -> None:
    for position in arguments.arrays:
        owner = arguments.owner(position)
        if owner in analysed.writes and repeats_elements(arguments.values[position]):
            raise InvalidArgument(
                f"kernel '{analysed.kernel.name}' writes argument '{analysed.names[owner]}', "
                "whose elements each stand at several indices (a stride is 0)\n"
                "  hint: pass a copy of it"
            )


def check_capabilities(device: Device, analysed: Analysed) -> None:
    """Refuse a kernel that needs what the device does not have."""
    identity = analysed.identity
    if _is_refused.get(device, lambda: _is_refused_by(device, analysed), identity)[0]:
        found = partial(_find_refusals, device, analysed)
        capability.refuse(_refusals.get((analysed.places, device), found, identity))


def _is_refused_by(device: Device, analysed: Analysed) -> tuple[bool]:
    count("capability_checks")
    return (bool(_find_refusals(device, analysed)),)


def _find_refusals(device: Device, analysed: Analysed) -> list[capability.Refusal]:
    """What is refused of the kernel as lowered and still as the device would run it.

    Passes take needs away: a weak int that is proven small needs no int64.
    """
    kernel = _kernel_on(device, analysed)
    wanted = analysed.needs
    if kernel is not analysed.kernel:
        wanted = tuple(dict.fromkeys((*wanted, *needs(kernel))))
    refused = _judged(device, kernel, wanted)
    if refused and device.driver.target is not None:
        legal = without_fallbacks(optimise(kernel, device.driver.target))
        kept = [need for need in wanted if need.feature == "print"]
        refused = _judged(device, legal, (*kept, *needs(legal)))
    return refused


def _judged(device: Device, kernel: Kernel, wanted: Sequence[Need]) -> list[capability.Refusal]:
    """What the device lacks, else the promises about numbers that it breaks."""
    refused = capability.check(kernel.name, wanted, device.record)
    return refused or promised.refusals(device, kernel)


# --- preparing ------------------------------------------------------------------------------------


def source(device: Device, analysed: Analysed) -> Source:
    """The text that the device compiles, for a large launch; the same object each time."""
    coarse = coarsening.can(device) and coarsening.why_never(device) is None
    key = (analysed.places, device, coarse)
    return _sources.get(
        key, lambda: _make_source(device, analysed, coarse=coarse), analysed.identity
    )


def _make_source(device: Device, analysed: Analysed, *, coarse: bool) -> Source:
    count("sources")
    with asked() if coarse else nullcontext():
        text = device.driver.source(_kernel_on(device, analysed))
    return Source(text, device.record.backend)


def _fastmath(device: Device, grants: tuple[policy.Grant, ...]) -> policy.Applied | policy.Refused:
    """What a device makes of grants of `fastmath`."""
    if device.driver.target is None:
        return policy.Refused("the oracle computes exactly")
    return policy.Applied(policy.Granted(grants, "contraction, reassociation, approximations"))


def _prepare(device: Device, analysed: Analysed, *, coarse: bool) -> Prepared:
    kernel, driver = _kernel_on(device, analysed), device.driver
    with asked() if coarse else nullcontext() as decision:
        if driver.target is not None:
            target = driver.target
            dump("optimised", kernel.name, lambda: text(optimise(kernel, target)))
        dump("source", kernel.name, lambda: source(device, analysed))
        telemetry.say("kernel", telemetry.ONCE, lambda: f"{kernel.name} for {device.record.name}")
        telemetry.say("kernel", telemetry.SOURCE, lambda: source(device, analysed))
        loads = disk.code_loads()
        try:
            with explained(kernel, device.record.name, driver.target):
                program = driver.prepare(kernel)
        finally:
            if disk.code_loads() == loads:
                count("compiles")
    if decision is not None and decision.outcome is not None:
        policy.record(kernel.name, device.record.name, COARSENING, decision.outcome)
    if each_of(program.params) > 1:
        count("coarsened")
    return Prepared(program, fillers(program.params))
