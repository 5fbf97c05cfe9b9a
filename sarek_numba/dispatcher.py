"""`@kernel`: specialise a Python function on its arguments, and launch it.

A kernel is compiled once for each tuple of argument kinds, index width and captured values.
Captured globals and closure cells count as they are at the launch: at every launch they are
compared with the values that a specialisation was compiled from, and a rebound one gives a new
specialisation. A failing compilation is not remembered: the next launch meets the same error.

A launch checks, in this order: arity; kinds and element types; dimensions; the stream; then, of the
compiled kernel, what `runtime.launch` checks. Nothing is transferred before all of it has passed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, assert_never, overload

import numpy as np
from numba.core import types
from numba.np.numpy_support import from_dtype

from sarek_numba import accept, policy, recording, settings
from sarek_numba.errors import (
    ArgumentCountError,
    Diagnostic,
    LaunchError,
    UnsupportedConstruct,
)
from sarek_numba.frontend.complexes import WEAK_COMPLEX
from sarek_numba.frontend.halves import value_type
from sarek_numba.frontend.hints import (
    NAMES,
    NONE,
    Hints,
    python_function,
    read_hints,
    refuse_options,
)
from sarek_numba.frontend.records import RecordType, value_of
from sarek_numba.frontend.shipped import reduced
from sarek_numba.frontend.typed import Captured
from sarek_numba.frontend.warps import DEFAULT_WIDTH
from sarek_numba.frontend.weak import WEAK_FLOAT, WEAK_INT, type_of
from sarek_numba.ir.needs import Need
from sarek_numba.ir.nodes import Kernel
from sarek_numba.ir.types import ArrayInfo, Pair, Record, Scalar
from sarek_numba.runtime import compiled as compiling
from sarek_numba.runtime import launch as launching
from sarek_numba.runtime import recorders, telemetry
from sarek_numba.runtime.annotations import read_annotation, stated_of
from sarek_numba.runtime.arguments import (
    Kind,
    PythonNumber,
    Stated,
    StatedArray,
    array_kind,
    describe,
    element_of,
    record_argument,
)
from sarek_numba.runtime.attempts import attempt_of, note_vectors
from sarek_numba.runtime.device import Dimensions
from sarek_numba.runtime.dimensions import (
    check_limits,
    check_most_threads,
    dimensions,
    needs_wide_indices,
    parts_of,
    problem_size,
    shared_size,
)
from sarek_numba.runtime.foreign import placed
from sarek_numba.runtime.guards import guards_of
from sarek_numba.runtime.inspection import Card
from sarek_numba.runtime.outcome import Original, Request
from sarek_numba.runtime.plans import Attempt, Plan
from sarek_numba.runtime.registry import Device, device, use_device
from sarek_numba.runtime.sharded import ShardedVector, check_alike, positions
from sarek_numba.runtime.signature import Signature, signature_of
from sarek_numba.runtime.soa import SoAVector
from sarek_numba.runtime.source import Source
from sarek_numba.runtime.stream import Stream, check_stream
from sarek_numba.runtime.vector import Vector

if TYPE_CHECKING:
    from sarek_numba.matrix.specialise import Outcome

_MOST_ATTEMPTS = 8  # of one configuration
_LONGEST_PAUSE = 64  # launches between two attempts at a plan
_MOST_CONFIGURATIONS = 256  # of one kernel
_MOST_SPECIALISATIONS = 64  # of one tuple of kinds, by captured values; the oldest is dropped


@dataclass(frozen=True, slots=True)
class _Specialisation:
    analysed: launching.Analysed
    captures: tuple[Captured, ...]

    def serves(self, warp_width: int) -> bool:
        """Whether it is right for warps of that width, and for what it captured as it is now."""
        if self.analysed.kernel.warp_width not in (None, warp_width):
            return False
        return all(captured.is_current() for captured in self.captures)


class Configuration:
    """`k[grid, block]`, `k[grid, block, stream, shared_bytes]`: call it with the arguments.

    `attempts` do launches like earlier ones; the newest is tried first.
    """

    __slots__ = (
        "_arity", "_launches", "_pauses", "attempts", "block", "grid", "kernel", "plans",
        "shared_bytes", "stream", "where",
    )  # fmt: skip

    def __init__(
        self,
        kernel: Dispatcher,
        grid: Any,
        block: Any,
        stream: Any = None,
        shared_bytes: Any = 0,
        where: str | Device | None = None,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.stream = stream
        self.shared_bytes = shared_bytes
        self.where = where
        self.attempts: tuple[Attempt, ...] = ()
        self.plans: tuple[Plan, ...] = ()  # of the attempts
        self._pauses: dict[Device, tuple[int, int]] = {}  # how long, and before which launch
        self._arity = len(kernel.signature.names)
        self._launches = 0

    def __call__(self, *arguments: Any, **named: Any) -> None:
        values: Sequence[Any] = arguments
        if named or len(arguments) != self._arity:
            values = self.kernel.signature.bind(arguments, named)
        for attempt, finish in self.attempts:
            rest = attempt(*values)
            if rest is None:
                return
            if rest is not False:
                assert finish is not None
                finish(values, rest)
                return
        self.kernel._launch(self, values)

    def learns(self, target: Device) -> bool:
        """Whether to make an attempt of the launch that was just done: not of the very first.

        Where nothing came of it, not of the next ones either, twice as many each time.
        """
        self._launches += 1
        least = self._pauses.get(target, (0, 2))[1]
        at_once = self.stream is None or self.stream.runs_at_once
        return self._launches >= least and at_once and not telemetry.is_measuring()

    def learn(self, target: Device, learnt: tuple[Plan, Attempt] | None) -> None:
        """Try this first from now on."""
        if learnt is None:
            pause = min(2 * self._pauses.get(target, (1, 0))[0], _LONGEST_PAUSE)
            self._pauses[target] = pause, self._launches + pause
            return
        self._pauses.pop(target, None)
        self.plans = (learnt[0], *self.plans[: _MOST_ATTEMPTS - 1])
        self.attempts = (learnt[1], *self.attempts[: _MOST_ATTEMPTS - 1])


class ForAll:
    """`k.forall(n, block)`: as many blocks as n threads take; none at all if n is 0.

    The block "auto" is the fastest one, which is searched when it is not known yet.
    """

    __slots__ = ("block", "count", "kernel")

    def __init__(self, kernel: Dispatcher, count: Any, block: Any) -> None:
        self.kernel = kernel
        self.count = count
        self.block = block

    def __call__(self, *arguments: Any, **named: Any) -> None:
        kernel, count, block = self.kernel, self.count, self.block
        is_of_each = isinstance(count, ShardedVector)
        if is_of_each or (block == "auto" and _is_sharded((*arguments, *named.values()))):
            self._launch_each(kernel.signature.bind(arguments, named))
            return
        if block == "auto":
            block = self._fastest(count, kernel.signature.bind(arguments, named))
        blocks = self._blocks(count, block)
        if count:
            kernel._configured(blocks, block)(*arguments, **named)
            return
        if type(count) is not int:
            recorders.refuse(
                f"kernel '{kernel.__name__}' is launched for a variable that is 0",
                "capture it with another value: a replay may have 0",
            )
        values = kernel.signature.bind(arguments, named)
        kernel._launch(Configuration(kernel, blocks, block), values, run=False)

    def _fastest(self, count: int, values: Sequence[Any]) -> Any:
        return self.kernel._fastest_block(count, values) if count else 1

    def _blocks(self, count: int, block: Any) -> int:
        threads, *others = dimensions(self.kernel.__name__, "block", block)
        return -(-count // (threads * others[0] * others[1])) if count else 1

    def _launch_each(self, values: Sequence[Any]) -> None:
        """As many threads on each device as its part has elements, or as n says."""
        kernel, name, block = self.kernel, self.kernel.__name__, self.block
        each = positions(name, kernel.signature.names, values, None, None)
        counts = [self.count] * len(each)
        if isinstance(self.count, ShardedVector):
            among = [("n", self.count), *zip(kernel.signature.names, values, strict=True)]
            check_alike(f"kernel '{name}'", among)
            counts = [part.size for part in self.count.parts]
        launches = []
        for (target, own), count in zip(each, counts, strict=True):
            with use_device(target):
                chosen = self._fastest(count, own) if block == "auto" else block
            configuration = kernel._configured(self._blocks(count, chosen), chosen, where=target)
            launches.append((configuration, own, count > 0))
        kernel._launch_all(launches)


class Dispatcher:
    """A kernel, made by `@sarek.kernel`. Launch it as `k[grid, block](*arguments)`."""

    def __init__(
        self,
        function: FunctionType,
        hints: Hints = NONE,
        *,
        debug: bool = False,
        grants: tuple[policy.Grant, ...] = (),
    ) -> None:
        self.py_func = function
        self.hints = hints
        self.grants = grants
        self.debug = debug
        self.signature: Signature = signature_of(function)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._lock = threading.RLock()
        self._specialisations: dict[Any, tuple[_Specialisation, ...]] = {}
        self._configurations: dict[Any, Configuration] = {}

    # --- launching

    def __getitem__(self, configuration: Any) -> Configuration:
        if type(configuration) is tuple and len(configuration) == 2:
            grid, block = configuration
            if type(grid) is int and type(block) is int:
                known = self._configurations.get((grid, block, 0, None, None))
                if known is not None:
                    return known
        return self._configured(*parts_of(self.__name__, configuration))

    def _configured(
        self,
        grid: Any,
        block: Any,
        stream: Any = None,
        shared_bytes: Any = 0,
        where: str | Device | None = None,
    ) -> Configuration:
        """A configuration, the same one for equal dimensions, so that it knows its attempts."""
        is_kept = stream is None or (isinstance(stream, Stream) and stream.runs_at_once)
        if not is_kept or not all(map(_is_plain, (grid, block, shared_bytes))):
            return Configuration(self, grid, block, stream, shared_bytes, where)
        key = (grid, block, shared_bytes, where, stream)
        known = self._configurations.get(key)
        if known is None:
            if len(self._configurations) >= _MOST_CONFIGURATIONS:
                self._configurations.clear()
            known = Configuration(self, grid, block, stream, shared_bytes, where)
            self._configurations[key] = known
        return known

    def __call__(self, *arguments: Any, **named: Any) -> None:
        name = self.__name__
        raise LaunchError(
            f"kernel '{name}' is launched with a grid and a block, not called\n"
            f"  hint: {name}[grid, block](...) or {name}.forall(n)(...)"
        )

    def launch(
        self,
        *arguments: Any,
        grid: Any,
        block: Any,
        device: str | Device | None = None,
        stream: Stream | None = None,
        shared_bytes: int = 0,
        **named: Any,
    ) -> None:
        """Launch with everything named. `device` is a name or a device; see `sarek.device`."""
        self._configured(grid, block, stream, shared_bytes, device)(*arguments, **named)

    def forall(self, n: int | ShardedVector, block: Any = 256) -> ForAll:
        """Launch n threads, rounded up to whole blocks: the kernel must guard itself.

        Of a vector on several devices it is as many on each as its part has elements.

        `block="auto"` searches the fastest block at the first launch of such a size, with copies of
        what the kernel writes; see `sarek.realize.optimize_local_size`.
        """
        count = n if isinstance(n, ShardedVector) else problem_size(self.__name__, n)
        return ForAll(self, count, block)

    def _launch_each(self, given: Configuration, values: Sequence[Any], run: bool) -> None:
        """A launch on each device that vectors among the values are on."""
        names = self.signature.names
        each = positions(self.__name__, names, values, given.where, given.stream)
        self._launch_all(
            [
                (self._configured(given.grid, given.block, None, given.shared_bytes, t), own, run)
                for t, own in each
            ]
        )

    def _launch_all(self, launches: Sequence[tuple[Configuration, Sequence[Any], bool]]) -> None:
        """Launches that are all checked before the first is done, if they are to be."""
        for configuration, values, _ in launches:
            self._launch(configuration, values, run=False)
        for configuration, values, run in launches:
            if run:
                configuration(*values)

    def _fastest_block(self, count: int, values: Sequence[Any]) -> Dimensions:
        """The block that so many threads run fastest with, guarded as `forall` asks."""
        from sarek_numba.realize.local_size import optimize_local_size
        from sarek_numba.realize.programs import Program

        name, names = self.__name__, self.signature.names
        arguments = describe(name, names, values, self._stated)
        target = placed(name, names, arguments.foreign, None)
        width = target.record.limits.warp_width_for(settings.warp_width())
        fast = self._fast_grants(target)
        program = Program(target, self._specialise(arguments.kinds, 32, width, fast=fast))
        return optimize_local_size(
            target, program, count, values, guarded=True, most_threads=self.hints.max_threads
        )

    def _launch(
        self,
        configuration: Configuration,
        values: Sequence[Any],
        run: bool = True,
        request: Request | None = None,
    ) -> Outcome:
        """The long way of a launch, with one value for each parameter.

        What stands in for the kernel is told, and why nothing does.
        """
        if _is_sharded(values):
            self._launch_each(configuration, values, run)
            return Original("each device of its vectors launches for itself")
        telemetry.begin()
        name, signature = self.__name__, self.signature
        arguments = describe(name, signature.names, values, self._stated)
        grid = dimensions(name, "grid", configuration.grid)
        block = dimensions(name, "block", configuration.block)
        shared_bytes = shared_size(name, configuration.shared_bytes)
        target = placed(name, signature.names, arguments.foreign, configuration.where)
        check_limits(name, grid, block, target.record)
        check_most_threads(name, block, self.hints.max_threads)
        stream = check_stream(name, configuration.stream, target)
        launching.check_countable(target, name, signature.names, arguments)
        wide = arguments.arrangement.reach >= 2**31 or needs_wide_indices(grid, block)
        warp_width = target.record.limits.warp_width_for(settings.warp_width())
        covered = recording.current() is not None and target.driver.target is None
        fast = self._fast_grants(target)
        bits = 64 if wide else 32
        made = self._specialised(arguments.kinds, bits, warp_width, covered, fast)
        analysed = made.analysed
        launching.check_warps(target, analysed, block)
        launching.check_local(target, analysed, block)
        launching.check(target, analysed, arguments, shared_bytes)
        if not run:
            return Original("nothing was launched")
        from sarek_numba.matrix.launches import attempt, stays

        launch = (target, analysed, arguments, grid, block, shared_bytes, stream)
        outcome = attempt(launch, self.grants, request)
        if isinstance(outcome, Original):
            launching.launch(*launch)
        if recorders.current.get() is not None:
            return outcome
        if stream is None or stream.runs_at_once:
            note_vectors(target, values, analysed)
        if configuration.learns(target) and stays(outcome, target, analysed.kernel):
            launched = (values, arguments, grid, block, shared_bytes)
            self._learn(configuration, target, made, warp_width, launched)
        return outcome

    def launch_asking(
        self, request: Request, arguments: Sequence[Any], grid: Any, block: Any, *where: Any
    ) -> Outcome:
        """A launch for `sarek.matrix.run`; `where` are the device and the stream."""
        target, stream = where
        configuration = Configuration(self, grid, block, stream, where=target)
        values = self.signature.bind(tuple(arguments), {})
        return self._launch(configuration, values, request=request)

    def _learn(
        self,
        configuration: Configuration,
        target: Device,
        made: _Specialisation,
        warp_width: int,
        launched: tuple[Any, ...],
    ) -> None:
        """Make a plan of the launch that was just done, if everything still is as it was then."""
        learnt = None
        guards = guards_of(made.captures, target.driver)
        width = target.record.limits.warp_width_for(settings.warp_width())
        if guards and device(configuration.where) is target and width == warp_width:
            learnt = attempt_of(target, made.analysed, guards, configuration.plans, *launched)
        configuration.learn(target, learnt)

    # --- specialising

    def _fast_grants(self, target: Device) -> tuple[policy.Grant, ...]:
        """The grants of `fastmath` in the budget of a launch now; a revoked one is recorded."""
        budget = policy.budget(self.grants)
        if any(grant.consent is policy.Consent.FASTMATH for grant in budget.revoked):
            why = policy.Refused(budget.why_not(policy.Consent.FASTMATH))
            policy.record_once(self.__name__, target.record.name, "fastmath", why)
        return budget.of(policy.Consent.FASTMATH)

    @cached_property
    def _stated(self) -> tuple[Stated, ...]:
        return stated_of(self.py_func, self.signature.names)

    def _specialise(
        self,
        kinds: tuple[Kind, ...],
        index_bits: int,
        warp_width: int = DEFAULT_WIDTH,
        covered: bool = False,
        fast: tuple[policy.Grant, ...] = (),
    ) -> launching.Analysed:
        return self._specialised(kinds, index_bits, warp_width, covered, fast).analysed

    def _specialised(
        self,
        kinds: tuple[Kind, ...],
        index_bits: int,
        warp_width: int,
        covered: bool,
        fast: tuple[policy.Grant, ...],
    ) -> _Specialisation:
        key = (kinds, index_bits, covered, bool(fast))
        for specialisation in self._specialisations.get(key, ()):
            if specialisation.serves(warp_width):
                return specialisation
        with self._lock:
            known = self._specialisations.get(key, ())
            for specialisation in known:  # another thread may have made it meanwhile
                if specialisation.serves(warp_width):
                    return specialisation
            made = self._compile(kinds, index_bits, warp_width, covered, fast)
            self._specialisations[key] = (made, *known[: _MOST_SPECIALISATIONS - 1])
            return made

    def _compile(
        self,
        kinds: Sequence[Kind],
        index_bits: int,
        warp_width: int,
        covered: bool,
        fast: tuple[policy.Grant, ...],
    ) -> _Specialisation:
        about = (self.__name__, repr(tuple(kinds)), index_bits, repr(self.hints), warp_width)
        kept = None if covered else compiling.look_up(self.py_func, about)
        if kept is not None and kept.found is not None:
            return self._analysed(kept.found, fast)
        from sarek_numba.compile import compile_kernel  # decorating loads no compiler

        numba_types = tuple(map(numba_type, kinds))
        narrow = {i for i, kind in enumerate(kinds) if kind is PythonNumber.INT}
        compiled = compile_kernel(
            self.py_func,
            numba_types,
            self.__name__,
            index_bits,
            frozenset(narrow),
            self.hints,
            warp_width,
            covered,
        )
        if kept is not None:
            kept.keep(compiled)
        return self._analysed(compiled, fast)

    def _analysed(
        self, compiled: compiling.Compiled, fast: tuple[policy.Grant, ...]
    ) -> _Specialisation:
        kernel = replace(compiled.kernel, fastmath=True) if fast else compiled.kernel
        analysed = launching.analyse(kernel, self.signature.names, debug=self.debug, grants=fast)
        return _Specialisation(analysed, compiled.captures)

    # --- inspecting

    def __reduce__(self) -> Any:
        """By its name, or with its function; it is specialised anew."""
        made = partial(Dispatcher, self.py_func, self.hints, debug=self.debug, grants=self.grants)
        return reduced(self, (made, ()))

    def ir(self, *arguments: Any) -> Kernel:
        """The kernel in Sarek IR, as lowered, for arguments or types (`sarek.float32[:]`, `int`).

        Without arguments the annotations decide. A type of an array stands for a C-contiguous,
        writable one unless it says otherwise.
        """
        return self._inspected(arguments).kernel

    def source(self, device_name: str | Device, *arguments: Any) -> Source:
        """The text that a device compiles, for arguments or types as in `ir`: a `str`."""
        target = device(device_name)
        width = target.record.limits.warp_width_for(settings.warp_width())
        fast = self._fast_grants(target)
        return launching.source(target, self._inspected(arguments, width, fast))

    def needs(self, *arguments: Any) -> tuple[Need, ...]:
        """What the kernel needs of a device, for arguments or types as in `ir`."""
        return self._inspected(arguments).needs

    def _inspected(
        self,
        given: Sequence[Any],
        warp_width: int | None = None,
        fast: tuple[policy.Grant, ...] = (),
    ) -> launching.Analysed:
        signature = self.signature
        if not given and signature.names and any(s is None for s in self._stated):
            raise ArgumentCountError(
                f"kernel '{self.__name__}' states no type for each of its parameters\n"
                "  hint: give arguments or types, as in k.ir(sarek.float32[:], int)"
            )
        wanted = given if given else self._stated
        kinds = map(self._inspected_kind, signature.names, signature.bind(wanted, {}))
        width = warp_width or settings.warp_width() or DEFAULT_WIDTH
        return self._specialise(tuple(kinds), 32, width, fast=fast)

    def _inspected_kind(self, name: str, given: Any) -> Kind:
        match given:
            case StatedArray() | Record() | Scalar() | Pair() | PythonNumber():
                return _kind_of_stated(given)
            case None | bool() | int() | float() | complex() | np.generic():
                return describe(self.__name__, (name,), (given,), (None,)).kinds[0]
            case np.ndarray() | Vector() | SoAVector():
                return describe(self.__name__, (name,), (given,), (None,)).kinds[0]
            case _ if record_argument(given) is not None:
                return describe(self.__name__, (name,), (given,), (None,)).kinds[0]
            case _:
                return _kind_of_stated(read_annotation(self.py_func, name, given))

    def __repr__(self) -> str:
        return f"<sarek kernel {self.__name__}({', '.join(self.signature.names)})>"

    def __str__(self) -> str:
        return self._card().text()

    def _repr_html_(self) -> str:
        return self._card().html()

    def _card(self) -> Card:
        """What the kernel shows of itself: options, and what it was compiled for by now."""
        options = {n: v for n in NAMES if (v := getattr(self.hints, n)) != getattr(NONE, n)}
        with self._lock:
            compiled = [
                (kinds, made.analysed)
                for (kinds, _, covered, _), several in self._specialisations.items()
                for made in several
                if not covered
            ]
        return Card(
            self.py_func, options | ({"debug": True} if self.debug else {}), tuple(compiled)
        )


def _is_sharded(values: Sequence[Any]) -> bool:
    return ShardedVector in map(type, values)


def _is_plain(part: Any) -> bool:
    """Whether it is an int or a tuple of ints: equal ones mean the same."""
    return type(part) is int or (type(part) is tuple and {*map(type, part)} == {int})


def _kind_of_stated(stated: Stated) -> Kind:
    if isinstance(stated, StatedArray):
        element = stated.element or Scalar.FLOAT64
        ndim = 1 if stated.ndim is None else stated.ndim
        return array_kind(element, ndim, stated.layout or "C")
    return stated


def numba_type(kind: Kind) -> Any:
    """The Numba type that inference starts from."""
    match kind:
        case ArrayInfo():
            element = element_of(kind)
            if isinstance(element, Record):
                dtype = RecordType(element, by_bytes=not kind.columns)
            else:
                dtype = type_of(element) if isinstance(element, Scalar) else _complex_type(element)
            layout: Any = kind.layout
            return types.Array(dtype, kind.ndim, layout, readonly=not kind.writable)
        case Record():
            return value_of(kind)
        case Scalar():
            return value_type(type_of(kind))
        case Pair():
            return _complex_type(kind)
        case PythonNumber.INT | PythonNumber.WIDE_INT:
            return WEAK_INT
        case PythonNumber.FLOAT:
            return WEAK_FLOAT
        case PythonNumber.COMPLEX:
            return WEAK_COMPLEX
        case None:
            return types.none
        case _:
            assert_never(kind)


def _complex_type(kind: Pair) -> Any:
    return from_dtype(np.dtype(kind.value))


# --- the decorator --------------------------------------------------------------------------------


@overload
def kernel(function: Callable[..., None]) -> Dispatcher: ...
@overload
def kernel(**options: Any) -> Callable[[Callable[..., None]], Dispatcher]: ...
def kernel(function: Any = None, **options: Any) -> Any:
    """Make a kernel of a Python function: `@sarek.kernel`.

    The function returns nothing; its arguments are NumPy arrays and numbers. It is compiled when it
    is launched, for the types of the arguments, or for the types that annotations state.

    `wraparound=False`: no index counts from the end. `bounds="clamp"`: an index out of range means
    the nearest in it. `strict=True` refuses stores that can lose information. `max_threads=N`
    refuses launches with more threads a block. `restrict=True` refuses launches in which an array
    that the kernel writes overlaps another argument, and tells the device's compiler so.
    `debug=True` has every device check subscripts and assertions, as the device 'interpreter'
    does. `accept=[sarek.accept.fastmath("why")]` grants what may change results, and
    `fastmath="why"` is short for that one (see `sarek.policy`). Raises PolicyError for a grant
    without a reason.
    """
    given = {name: options.pop(name) for name in NAMES if name in options}
    debug = options.pop("debug", False)
    grants = _grants(options)
    refuse_options(options)
    hints = read_hints(given)
    if not isinstance(debug, bool):
        message = f"@sarek.kernel(debug=...) is True or False, not {debug!r}"
        raise UnsupportedConstruct(
            Diagnostic(UnsupportedConstruct, message, None, "write @sarek.kernel(debug=True)")
        )
    if function is None:
        return lambda decorated: Dispatcher(
            python_function(decorated), hints, debug=debug, grants=grants
        )
    return Dispatcher(python_function(function), hints, debug=debug, grants=grants)


def _grants(options: dict[str, Any]) -> tuple[policy.Grant, ...]:
    """What `accept=` and `fastmath=` grant; both are taken out of the options."""
    grants = policy.checked("@sarek.kernel(accept=...)", options.pop("accept", ()))
    if "fastmath" in options:
        grants = (*grants, accept.fastmath(options.pop("fastmath")))
    return grants
