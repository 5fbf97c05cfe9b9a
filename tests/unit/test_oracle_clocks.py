"""What fences and atomics order in the oracle, against a brute-force model of happens-before."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sarek_numba.ir import build as b
from sarek_numba.ir.nodes import Barrier as BlockBarrier
from sarek_numba.ir.nodes import FenceScope, Kernel, MemFence, Stmt, Var, WarpBarrier
from sarek_numba.ir.types import INT32
from sarek_numba.span import Span
from tests.unit.happens_before import Act, races
from tests.unit.oracle_kit import Builder, bid, run, tid

BLOCKS, THREADS, WIDTH, PLACES = 3, 4, 2, 4
EVERYONE = tuple(range(THREADS))


# --- executions as kernels ------------------------------------------------------------------------


def kernel_of(acts: Sequence[Act], shared: bool = False) -> Kernel:
    """A kernel whose only execution is this one; the line of an act is its number + 1.

    Blocks run together and statement by statement, so the acts happen in their order.
    """
    k = Builder()
    cells = k.shared("cells", PLACES) if shared else k.array("cells")
    begin = [b.store(cells, tid(), 0), BlockBarrier()] if shared else []
    kernel = k.kernel(*begin, *(_statement(k, cells, line, act) for line, act in enumerate(acts)))
    return replace(kernel, warp_width=WIDTH)


def _statement(k: Builder, cells: Var, line: int, act: Act) -> Stmt:
    span = Span("acts", line + 1)
    present = b.eq(bid(), b.const_int(act.block))
    first, last = act.threads[0], act.threads[-1]
    inside = b.and_(b.ge(tid(), b.const_int(first)), b.le(tid(), b.const_int(last)))
    return b.if_(present, [b.if_(inside, [_act(k, cells, line, act, span)])])


def _act(k: Builder, cells: Var, line: int, act: Act, span: Span) -> Stmt:
    match act.what:
        case "read":
            return b.let(k.var("v", INT32), replace(b.read(cells, act.place), span=span))
        case "write":
            return replace(b.store(cells, act.place, line + 2), span=span)
        case "fence":
            return MemFence(FenceScope(act.scope), span=span)
        case "barrier":
            return BlockBarrier(span=span)
        case "warp_barrier":
            return WarpBarrier(span=span)
        case "load":
            atomic = b.atomic("load", cells, act.place, result=k.var("v", INT32))
        case "cas":
            atomic = b.atomic("cas", cells, act.place, 1, compare=0, result=k.var("v", INT32))
        case "store" | "clear":
            atomic = b.atomic("store", cells, act.place, int(act.what == "store"))
        case what:
            atomic = b.atomic(what, cells, act.place, 1, result=k.var("v", INT32))
    return replace(atomic, span=span)


def found(acts: Sequence[Act], shared: bool = False) -> set[tuple[int, str]]:
    arguments = [] if shared else [np.zeros(PLACES, np.int32)]
    report = run(kernel_of(acts, shared), BLOCKS, THREADS, *arguments, races="strict")
    said = set()
    for finding in report.findings:
        kind = re.search(r" of block \(.*?\) (reads|writes|updates) it", finding.message)
        assert kind is not None, str(report)
        said.add((finding.span.line - 1, kind[1]))
    return said


def show(acts: Sequence[Act]) -> str:
    return "\n".join(map(str, acts))


def check(acts: Sequence[Act], shared: bool = False) -> None:
    assert found(acts, shared) == races(acts), show(acts)


# --- every way to hand one value over -------------------------------------------------------------

SCOPES = (None, "block", "device")


def fence(block: int, thread: int, scope: str | None) -> list[Act]:
    return [] if scope is None else [Act("fence", block, (thread,), scope=scope)]


@pytest.mark.parametrize("reader", [(0, 1), (1, 0)], ids=["same block", "other block"])
@pytest.mark.parametrize("between", ["", "add", "fenced add", "store", "fenced store", "write"])
def test_every_handover(reader, between):
    """Each write and read of a flag, each fence or none, something coming between: as modelled."""
    block, thread = reader
    third = [] if not between else [Act(between.split()[-1], 2, (3,), 1)]
    if between.startswith("fenced"):
        third = [*fence(2, 3, "device"), *third]
    orders = 0
    sets, gets = ("store", "add", "exch", "cas", "write"), ("load", "add", "exch", "cas")
    if between:  # the rest is shown without it
        sets, gets = ("store", "add"), ("load", "cas")
    for set_, get, release, acquire in itertools.product(sets, gets, SCOPES, SCOPES):
        acts = [
            Act("write", 0, (0,), 0),
            *fence(0, 0, release),
            Act(set_, 0, (0,), 1),
            *third,
            Act(get, block, (thread,), 1),
            *fence(block, thread, acquire),
            Act("read", block, (thread,), 0),
        ]
        fences = [act for act in acts if act.what == "fence"]
        if fences:  # else nothing asks for clocks, and barriers alone order
            check(acts)
            orders += not races(acts)
    assert bool(orders) == (between not in ("store", "fenced store", "write"))


# --- random executions ----------------------------------------------------------------------------


def random_acts(rng: random.Random, blocks: int) -> list[Act]:
    """A score of acts: data at places 0 and 1, flags at 2 and 3, now and then a plain flag.

    Most are whole releases and acquires, so that most data is handed over, and some is not.
    """
    acts = [Act("fence", 0, (0,)), Act("add", 0, (0,), 3)]  # so that clocks are kept
    actors = [(rng.randrange(blocks), rng.randrange(THREADS)) for _ in range(rng.randint(2, 4))]
    for _ in range(rng.randint(6, 14)):
        block, thread = rng.choice(actors)
        some = (thread,) if rng.random() < 0.8 else tuple(range(thread, THREADS))
        fence = Act("fence", block, some, scope="device" if rng.random() < 0.8 else "block")
        flag = 2 if rng.random() < 0.7 else 3
        match rng.choices(["data", "release", "acquire", "some", "barrier"], [6, 4, 4, 2, 2])[0]:
            case "data":
                place = rng.randrange(2) if rng.random() < 0.95 else flag
                acts.append(Act(rng.choice(["read", "write"]), block, some, place))
            case "release":
                op = rng.choice(["store", "clear", "add", "exch", "cas"])
                acts += [fence, Act(op, block, some, flag)]
            case "acquire":
                acts += [Act(rng.choice(["load", "add", "cas"]), block, some, flag), fence]
            case "some":
                op = rng.choice(["load", "store", "clear", "add", "exch", "cas"])
                acts.append(rng.choice([fence, Act(op, block, some, flag)]))
            case _:
                first = thread // WIDTH * WIDTH
                warp = Act("warp_barrier", block, tuple(range(first, first + WIDTH)))
                acts.append(rng.choice([warp, Act("barrier", block, EVERYONE)]))
    return acts


def acts_in_turn(rng: random.Random) -> list[Act]:
    """Threads that work on one place in turn and hand it over; perhaps one act is left out."""
    acts: list[Act] = []
    block, thread = 0, 0
    for _ in range(rng.randint(2, 5)):
        acts.append(Act(rng.choice(["read", "write"]), block, (thread,), 0))
        flag = rng.randint(2, 3)
        way = rng.choice(["fences", "fences", "fences", "barrier", "warp_barrier"])
        if way == "fences":
            release = rng.choice(["store", "clear", "add", "add", "exch", "cas"])
            acts += [Act("fence", block, (thread,)), Act(release, block, (thread,), flag)]
            if rng.random() < 0.3:
                noise = rng.choice(["add", "cas", "load", "exch", "store"])
                acts.append(Act(noise, rng.randrange(BLOCKS), (3,), flag))
            block, thread = rng.randrange(BLOCKS), rng.randrange(2)
            acquire = rng.choice(["load", "add", "cas"])
            acts += [Act(acquire, block, (thread,), flag), Act("fence", block, (thread,))]
        elif way == "barrier":
            acts.append(Act("barrier", block, EVERYONE))
            thread = rng.randrange(THREADS)
        else:
            first = thread // WIDTH * WIDTH
            acts.append(Act("warp_barrier", block, tuple(range(first, first + WIDTH))))
            thread = first + rng.randrange(WIDTH)
    acts.append(Act("write", block, (thread,), 0))
    if rng.random() < 0.4:
        del acts[rng.randrange(len(acts))]
    return [Act("fence", 0, (0,)), Act("load", 0, (0,), 3), *acts]


@pytest.mark.parametrize("seed", range(10))
def test_random_turns(seed):
    """Threads that take turns race exactly where the model says: mostly not at all."""
    rng = random.Random(seed)
    racing = 0
    for _ in range(40):
        acts = acts_in_turn(rng)
        check(acts)
        racing += bool(races(acts))
    assert 0 < racing < 40


@pytest.mark.parametrize("seed", range(10))
def test_random_executions(seed):
    """Programs of fences, atomics and barriers race exactly where the model says."""
    rng = random.Random(seed)
    racing = 0
    for _ in range(40):
        acts = random_acts(rng, rng.randint(2, BLOCKS))
        check(acts)
        racing += bool(races(acts))
    assert 0 < racing < 40


@pytest.mark.parametrize("seed", range(5))
def test_random_executions_in_shared_memory(seed):
    """The same within a block, where either scope reaches."""
    rng = random.Random(seed)
    for _ in range(20):
        check(random_acts(rng, 1), shared=True)
