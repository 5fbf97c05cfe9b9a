"""Many programs as one kernel, run on executors and compared with CPython.

Compiling costs more than running, most of all on OpenCL. So the programs of a batch are device
functions of one kernel; a block finds its program in an array, and one launch runs every program
with several arguments. A `Group` is one program with one set of arguments: some blocks, which own
their part of every array. CPython runs the same kernel, group by group: a group in which it raises
(a Python int that does not fit an element, say) has no meaning to compare with and is left out.
"""

from __future__ import annotations

import linecache
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

import sarek_numba as sarek
from tests.executors import device_of
from tests.fuzz import records, tuple_loops, unions
from tests.fuzz.arrays import (
    Arrays,
    arrays_of,
    first_difference,
    first_values,
    joined,
    nothing,
    part,
)
from tests.fuzz.programs import Form, Program


@sarek.function
def copy_sign(number: Any, sign: Any) -> Any:
    """`np.copysign` of what has a sign that means something: a NaN's does not."""
    return np.copysign(number, sign if sign == sign else sign.dtype.type(1))


_GLOBALS = {"copy_sign": copy_sign, **records.GLOBALS, **unions.GLOBALS, **tuple_loops.GLOBALS}

# Takes a kernel, a grid, a block and the arguments.
Executor = Callable[[Any, int, int, tuple[Any, ...]], None]


@dataclass(frozen=True, slots=True)
class Group:
    """A program, by its position in the batch, with one set of arguments."""

    position: int
    round: int


@dataclass(frozen=True, slots=True)
class Difference:
    """A program with which an executor fails, or differs from CPython."""

    program: Program
    executor: str
    round: int | None
    what: str

    def __str__(self) -> str:
        seed, name = self.program.seed, self.executor
        where = "" if self.round is None else f", arguments {self.round}"
        return (
            f"seed {seed}{where}: {name} {self.what}\n\n{self.program.text()}\n"
            f"again: python -m tests.fuzz --seed {seed} --count 1 --executors {name}"
        )


class Batch:
    """Programs as one kernel, and their groups as CPython leaves them."""

    def __init__(
        self, programs: Sequence[Program], form: Form = Form.FUNCTION, rounds: int | None = None
    ) -> None:
        assert form is Form.FUNCTION or len(programs) == 1
        self.programs = tuple(programs)
        self.form = form
        self.mode = self.programs[0].mode
        assert all(program.mode == self.mode for program in programs)
        every = [
            Group(k, j) for k in range(len(programs)) for j in range(rounds or self.mode.rounds)
        ]
        self.expected = {group: out for group in every if (out := self._reference(group))}
        self.left_out = len(every) - len(self.expected)

    @cached_property
    def kernel(self) -> Any:
        """The kernel, with its text where tracebacks and the compiler find it."""
        seeds = ",".join(str(program.seed) for program in self.programs)
        name = f"<fuzz {self.form.value} {seeds}>"
        module = ModuleType("fuzz")
        module.__dict__.update(sarek=sarek, np=np, math=math, **_GLOBALS)
        linecache.cache[name] = (len(self.text), None, self.text.splitlines(True), name)
        exec(compile(self.text, name, "exec"), module.__dict__)
        last = self.programs[0].name if self.form is Form.KERNEL else "batch"
        return sarek.kernel(**self.mode.options)(getattr(module, last))

    @cached_property
    def text(self) -> str:
        text = "\n\n".join(program.text(self.form) for program in self.programs)
        # here, not in the programs: their texts are those that campaigns ran
        text = text.replace("np.copysign(", "copy_sign(")
        return text if self.form is Form.KERNEL else f"{text}\n\n{self._dispatch()}"

    def _dispatch(self) -> str:
        lines = [
            f"def batch({', '.join(self._parameters)}):",
            f"    group = sarek.block_idx.x // {self.mode.grid}",
            "    which = programs[group]",
            "    n = int(ns[group])",
            "    m = int(ms[group])",
        ]
        for k, program in enumerate(self.programs):
            given = ", ".join(arrays_of(program))
            lines += [f"    if which == {k}:", f"        {program.name}({given}, n, m)"]
        return "\n".join(lines) + "\n"

    @property
    def _parameters(self) -> tuple[str, ...]:
        return (*self._array_names, "programs", "ns", "ms")

    @cached_property
    def _array_names(self) -> tuple[str, ...]:
        return tuple(sorted({name for program in self.programs for name in arrays_of(program)}))

    # --- running ----------------------------------------------------------------------------------

    def _reference(self, group: Group) -> Arrays | None:
        """The arrays as CPython leaves them, or None where it raises."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return next(iter(self.run(emulated, [group]).values()))
        except (ArithmeticError, ValueError, TypeError, IndexError):
            return None

    def run(self, executor: Executor, groups: Sequence[Group]) -> dict[Group, Arrays]:
        """The arrays of each group after the launches."""
        if self.form is Form.KERNEL:
            return {group: self._run_alone(executor, group) for group in groups}
        inputs = [self._inputs(group) for group in groups]
        together = {
            name: joined(name, [arrays[name] for arrays, _, _ in inputs])
            for name in self._array_names
        }
        programs = np.array([group.position for group in groups], np.int32)
        ns, ms = (np.array([given[k] for given in inputs], np.int32) for k in (1, 2))
        grid, block = self.mode.grid * len(groups), self.mode.block
        executor(self.kernel, grid, block, (*together.values(), programs, ns, ms))
        return {
            group: {name: part(name, array, k, self.mode) for name, array in together.items()}
            for k, group in enumerate(groups)
        }

    def _run_alone(self, executor: Executor, group: Group) -> Arrays:
        arrays, n, m = self._inputs(group)
        names = arrays_of(self.programs[0])
        given = {name: joined(name, [arrays[name]]) for name in self._array_names}
        arguments = (*(given[name] for name in names), n, m)
        executor(self.kernel, self.mode.grid, self.mode.block, arguments)
        return given

    def _inputs(self, group: Group) -> tuple[Arrays, int, int]:
        """Arrays, n and m: a function of the program's seed and the round."""
        seed = self.programs[group.position].seed
        used = arrays_of(self.programs[group.position])
        arrays = {
            name: first_values(name, seed, group.round, self.mode)
            if name in used
            else nothing(name, self.mode)
            for name in self._array_names
        }
        n, m = (int(k) for k in np.random.default_rng((seed, group.round)).integers(-1, 6, 2))
        return arrays, n, m

    # --- comparing --------------------------------------------------------------------------------

    def differences(
        self, name: str, executor: Executor, groups: Sequence[Group] | None = None
    ) -> Iterator[Difference]:
        """What an executor gives other than CPython; of each program the first."""
        groups = tuple(self.expected) if groups is None else groups
        if not groups:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                actual = self.run(executor, groups)
        except Exception as error:
            yield from self._failure(name, executor, groups, f"{type(error).__name__}: {error}")
            return
        differing: set[int] = set()
        for group in groups:
            what = first_difference(self.expected[group], actual[group])
            if what is not None and group.position not in differing:
                differing.add(group.position)
                yield Difference(self.programs[group.position], name, group.round, what)

    def _failure(
        self, name: str, executor: Executor, groups: Sequence[Group], what: str
    ) -> Iterator[Difference]:
        """Which programs fail: each half of the batch by itself."""
        if len(self.programs) == 1:
            yield Difference(self.programs[0], name, None, f"raised {what}")
            return
        middle, found = len(self.programs) // 2, False
        for half in (self.programs[:middle], self.programs[middle:]):
            for difference in Batch(half, self.form).differences(name, executor):
                found = True
                yield difference
        if not found:
            yield Difference(self.programs[0], name, None, f"raised in a batch alone: {what}")


def emulated(kernel: Any, grid: int, block: int, arguments: tuple[Any, ...]) -> None:
    """Run in CPython, thread by thread."""
    sarek.emulate(kernel)[grid, block](*arguments)


def on_device(name: str) -> Executor:
    """Run on the device of this name."""

    def launch(kernel: Any, grid: int, block: int, arguments: tuple[Any, ...]) -> None:
        with sarek.use_device(device_of(name)):
            kernel[grid, block](*arguments)

    return launch
