"""A campaign: batches in a process of their own, what crashes it bisected, what differs shrunk.

A device's compiler may crash the process. So batches run in a worker; when it dies, or takes longer
than `PATIENCE` seconds, the campaign starts another and gives it halves of the batch until one
program is left.
"""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any

from tests.executors import has_warps
from tests.fuzz.batch import Batch, Difference, on_device
from tests.fuzz.programs import Form, Program, smaller

PATIENCE = 300.0  # seconds for one batch on one executor
_ORACLE = "interpreter"
EMULATION = "emulation"
_CRASH = "crashed the process"
_MOST_TRIALS = 2000


@dataclass(slots=True)
class Outcome:
    """What a campaign has run: programs and launches compared, by executor; what it found."""

    programs: Counter[str] = field(default_factory=Counter)
    comparisons: Counter[str] = field(default_factory=Counter)
    incapable: Counter[str] = field(default_factory=Counter)  # programs that need warps, not run
    left_out: int = 0
    found: list[Difference] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Answer:
    """A worker's answer: differences, groups that were compared, groups without a meaning.

    An executor without warps is not `capable` of programs with warp operations.
    """

    found: tuple[Difference, ...]
    compared: int
    left_out: int
    capable: bool = True


class Worker:
    """A process that runs batches. It is started when asked, and again when it died."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._connection: Connection | None = None

    def ask(self, programs: Sequence[Program], form: Form, executor: str) -> Answer | None:
        """Run a batch on an executor; None if that ended the process, or never ended."""
        if self._process is None:
            self._connection, theirs = self._context.Pipe()
            self._process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        assert self._connection is not None
        try:
            self._connection.send((tuple(programs), form, executor))
            if self._connection.poll(PATIENCE):
                answer: Answer = self._connection.recv()
                return answer
        except (EOFError, OSError):
            pass
        self.stop()
        return None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(connection: Connection) -> None:
    """Answer until the other end is closed. The last batch is kept: CPython runs it once."""
    known: Any = None
    batch: Batch | None = None
    while True:
        try:
            programs, form, executor = connection.recv()
        except EOFError:
            return
        if batch is None or known != (programs, form):
            try:
                known, batch = (programs, form), Batch(programs, form)
            except (
                Exception
            ) as error:  # no kernel in Python: a fault of the generator, or shrinking
                what = f"raised {type(error).__name__}: {error}"
                connection.send(Answer((Difference(programs[0], EMULATION, None, what),), 0, 0))
                continue
        if batch.mode.warps and not has_warps(executor):
            connection.send(Answer((), 0, batch.left_out, capable=False))
            continue
        found = tuple(batch.differences(executor, on_device(executor)))
        connection.send(Answer(found, len(batch.expected), batch.left_out))


def run(
    batches: Iterator[tuple[Sequence[Program], Form]],
    executors: Sequence[str],
    worker: Worker,
    outcome: Outcome,
) -> Iterator[list[Difference]]:
    """Run batches on executors; what each batch showed."""
    for programs, form in batches:
        found: list[Difference] = []
        for executor in executors:
            for part, answer in answers(worker, programs, form, executor):
                counted = (
                    outcome.programs if answer is None or answer.capable else outcome.incapable
                )
                counted[executor] += len(part)
                if answer is None:
                    found.append(Difference(part[0], executor, None, _CRASH))
                    continue
                found += answer.found
                outcome.comparisons[executor] += answer.compared
                if executor == executors[0]:
                    outcome.left_out += answer.left_out
        outcome.found += found
        yield found


def answers(
    worker: Worker, programs: Sequence[Program], form: Form, executor: str
) -> Iterator[tuple[Sequence[Program], Answer | None]]:
    """The answer of a batch; of its halves where it ends the process. A program may have none."""
    answer = worker.ask(programs, form, executor)
    if answer is not None and any(d.executor == EMULATION for d in answer.found):
        answer = None if len(programs) > 1 else answer  # CPython could not run one of them
    if answer is not None or len(programs) == 1:
        yield programs, answer
        return
    middle = len(programs) // 2
    for half in (programs[:middle], programs[middle:]):
        yield from answers(worker, half, form, executor)


def shrunk(worker: Worker, difference: Difference, form: Form) -> Difference:
    """The difference on a smaller program that fails in the same way.

    Where the oracle agrees with CPython on the whole program, it must find no fault in a smaller
    one: deleting a barrier or a first value makes programs without a meaning.
    """
    whole = worker.ask([difference.program], form, _ORACLE)
    is_sound = whole is not None and not whole.found and difference.executor != _ORACLE

    def again(program: Program) -> Difference | None:
        if is_sound:
            checked = worker.ask([program], form, _ORACLE)
            if checked is None or checked.found:
                return None
        answer = worker.ask([program], form, difference.executor)
        crash = Difference(program, difference.executor, None, _CRASH)
        found = (crash,) if answer is None else answer.found
        return next((d for d in found if _alike(d, difference)), None)

    return shrink(difference, again) if again(difference.program) else difference


def _alike(left: Difference, right: Difference) -> bool:
    """Whether two differences are of a kind: wrong values, or one exception."""
    kinds = [
        (d.executor, d.what.split(":")[0] if d.what.startswith("raised") else d.what.split()[0])
        for d in (left, right)
    ]
    return kinds[0] == kinds[1]


def shrink(difference: Difference, again: Callable[[Program], Difference | None]) -> Difference:
    """Delete and unwrap statements while the difference stays."""
    start, progress, trials = 0, True, 0
    while progress or start:
        if not progress:
            start = 0  # from the beginning once more: later deletions may allow earlier ones
        progress = False
        for k, candidate in enumerate(islice(smaller(difference.program), start, None), start):
            trials += 1
            smaller_one = again(candidate) if trials < _MOST_TRIALS else None
            if smaller_one is not None:
                difference, start, progress = smaller_one, k, True
                break
    return difference
