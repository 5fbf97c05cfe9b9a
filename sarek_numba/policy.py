"""What may change the numbers of a kernel: grants, and the record of what was done with them.

Results are exact as `docs/numerics.md` states, unless a grant allows a deviation. A grant has a
reason; it stands on the kernel (`@sarek.kernel(accept=[...])`), around launches
(`with sarek.policy.grant(...)`) or for the process (`sarek.policy.always(...)`). The budget of a
launch is all of these without what `SAREK_OPT_DISABLE` revokes. An optimisation is applied on a
`Proof` that nothing changes or on `Granted`, never otherwise; each decision is a `Record`, which
`report()` gives and `SAREK_EXPLAIN=1` prints.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sarek_numba import settings
from sarek_numba.errors import DeviationWarning, PolicyError

_MOST_RECORDS = 10_000  # the oldest go


class Consent(Enum):
    """What a grant allows; the value is its name in `sarek.accept` and `SAREK_OPT_DISABLE`."""

    RELAXED_ACCUMULATION = "relaxed_accumulation"
    OPERAND_ROUNDING = "operand_rounding"
    AUTOMATIC_FLOAT_REWRITE = "automatic_float_rewrite"
    FASTMATH = "fastmath"


@dataclass(frozen=True, slots=True)
class Grant:
    """One consent with its reason; `detail` is the format of an operand rounding."""

    consent: Consent
    reason: str
    detail: str | None = None

    def __str__(self) -> str:
        detail = "" if self.detail is None else f" to {self.detail}"
        return f"{self.consent.value}{detail} ({self.reason})"


# --- decisions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proof:
    """An optimisation that changes no result, and why not."""

    text: str

    def __str__(self) -> str:
        return f"proven: {self.text}"


@dataclass(frozen=True, slots=True)
class Granted:
    """An optimisation that grants allow."""

    grants: tuple[Grant, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.text}; granted: {', '.join(map(str, self.grants))}"


Evidence: TypeAlias = Proof | Granted


@dataclass(frozen=True, slots=True)
class Applied:
    """An optimisation was done."""

    evidence: Evidence

    def __str__(self) -> str:
        return f"applied, {self.evidence}"


@dataclass(frozen=True, slots=True)
class Refused:
    """An optimisation was not done."""

    why: str

    def __str__(self) -> str:
        return f"not applied: {self.why}"


@dataclass(frozen=True, slots=True)
class Record:
    """One decision on one kernel for one device."""

    kernel: str
    device: str
    optimisation: str
    outcome: Applied | Refused

    def __str__(self) -> str:
        return f"kernel '{self.kernel}' on {self.device}: {self.optimisation} {self.outcome}"


_records: deque[Record] = deque(maxlen=_MOST_RECORDS)
_known: set[Record] = set()  # decisions that every launch meets again


def record(kernel: str, device: str, optimisation: str, outcome: Applied | Refused) -> None:
    """Keep a decision, and print it if `SAREK_EXPLAIN` asks for that."""
    made = Record(kernel, device, optimisation, outcome)
    _records.append(made)
    explain(str(made))


def record_once(kernel: str, device: str, optimisation: str, outcome: Applied | Refused) -> None:
    """Keep a decision that is met in every launch the first time."""
    made = Record(kernel, device, optimisation, outcome)
    if made not in _known:
        _known.add(made)
        record(kernel, device, optimisation, outcome)


def explain(line: str) -> None:
    """One line for whoever asks why, under `SAREK_EXPLAIN=1`."""
    if settings.explain():
        print(f"sarek: {line}", file=sys.stderr)


def report() -> tuple[Record, ...]:
    """All decisions since the start or `clear_report()`, the newest last."""
    return tuple(_records)


def clear_report() -> None:
    """Forget all decisions and which deviations have been told of."""
    _records.clear()
    _known.clear()
    with _lock:
        _told.clear()


# --- grants ---------------------------------------------------------------------------------------

# What launches are guarded by: see `runtime.guards`.
surrounding: ContextVar[tuple[Grant, ...]] = ContextVar("sarek_grants", default=())
process_grants: tuple[Grant, ...] = ()
_lock = threading.Lock()


@contextmanager
def grant(*grants: Grant) -> Iterator[None]:
    """Grants for the launches of this thread or task within. Raises PolicyError."""
    token = surrounding.set((*surrounding.get(), *checked("sarek.policy.grant", grants)))
    try:
        yield
    finally:
        surrounding.reset(token)


def always(*grants: Grant) -> None:
    """Grants for all launches of the process from now on. Raises PolicyError."""
    global process_grants
    made = checked("sarek.policy.always", grants)
    with _lock:
        process_grants = tuple(dict.fromkeys((*process_grants, *made)))


def withdraw() -> None:
    """Take back what `always` granted."""
    global process_grants
    with _lock:
        process_grants = ()


def checked(where: str, grants: object) -> tuple[Grant, ...]:
    """A sequence of grants as a tuple; PolicyError for anything else."""
    if isinstance(grants, tuple | list) and all(isinstance(one, Grant) for one in grants):
        return tuple(grants)
    raise PolicyError(
        f"{where} takes grants, not {grants!r}\n"
        '  hint: sarek.accept.fastmath("why") makes one, and there are others in sarek.accept'
    )


@dataclass(frozen=True, slots=True)
class Budget:
    """The grants of a launch, and those that `SAREK_OPT_DISABLE` took out of it."""

    grants: tuple[Grant, ...] = ()
    revoked: tuple[Grant, ...] = ()

    def of(self, consent: Consent, detail: str | None = None) -> tuple[Grant, ...]:
        """The grants of a consent; with a detail, those for it alone."""
        return tuple(
            one
            for one in self.grants
            if one.consent is consent and (detail is None or one.detail == detail)
        )

    def why_not(self, consent: Consent) -> str:
        """Why there is no grant of a consent."""
        if any(one.consent is consent for one in self.revoked):
            return f"SAREK_OPT_DISABLE revokes {consent.value}"
        return f"nothing grants {consent.value}"


NOTHING = Budget()


def given(own: tuple[Grant, ...] = ()) -> tuple[Grant, ...]:
    """All grants of a launch whose kernel has its `own`, the revoked ones included."""
    return (*own, *surrounding.get(), *process_grants)


def budget(own: tuple[Grant, ...] = ()) -> Budget:
    """The budget of a launch whose kernel has grants of its `own`."""
    everything = given(own)
    if not everything:
        return NOTHING
    disabled = settings.disabled_optimisations()
    if not disabled:
        return Budget(everything)
    kept = tuple(g for g in everything if not {"all", g.consent.value} & disabled)
    return Budget(kept, tuple(g for g in everything if g not in kept))


def disabled(optimisation: str) -> bool:
    """Whether `SAREK_OPT_DISABLE` names an optimisation, or all."""
    return bool({"all", optimisation} & settings.disabled_optimisations())


def enabled(optimisation: str) -> bool:
    """Whether `SAREK_OPT_ENABLE` names an optimisation."""
    return optimisation in settings.enabled_optimisations()


# --- deviations -----------------------------------------------------------------------------------


class Knowledge(Enum):
    """What is known of how far an optimisation changes a result."""

    CLOSED_FORM = "a bound in closed form"
    MEASURED = "a bound by measurement alone"
    UNMEASURED = "no bound"


_told: set[tuple[str, str]] = set()


def deviation(
    optimisation: str, knowledge: Knowledge, text: str, consent: Consent, budget: Budget
) -> Applied | Refused:
    """Whether something that changes results by a known amount is done.

    With a bound in closed form it is, under the consent or with one DeviationWarning in the
    process; with a measured one under the consent alone; without a bound never.
    """
    grants = budget.of(consent)
    if knowledge is Knowledge.UNMEASURED:
        return Refused(f"it is known by {knowledge.value}: {text}")
    if grants:
        return Applied(Granted(grants, text))
    if knowledge is Knowledge.MEASURED or budget.revoked:
        return Refused(f"{budget.why_not(consent)}: {text}")
    with _lock:
        is_new = (optimisation, text) not in _told
        _told.add((optimisation, text))
    if is_new:
        hint = f'sarek.accept.{consent.value}("why") says that this is meant'
        warnings.warn(f"{optimisation}: {text}\n  hint: {hint}", DeviationWarning, stacklevel=3)
    return Applied(Proof(f"within {text}"))
