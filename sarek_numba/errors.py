"""Every error a user can meet, one class per failure, with typed fields.

Each class also derives from Python's class of its kind. A `CompileError` carries `Diagnostic`s:
all that one stage found, each shown as file:line:col, the line, a caret, one sentence and one
hint.
"""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from typing import Any

from sarek_numba.span import Span


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding in the user's source. `error` is the class to raise: see `raise_diagnostics`.

    `function` is the function that it is in, shown where its text is not to be had.
    """

    error: type[CompileError]
    message: str
    span: Span | None
    hint: str | None = None
    notes: tuple[tuple[Span, str], ...] = ()
    function: str | None = None

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        shown = excerpt(self.span)
        if not shown and self.function:
            place += f"in {self.function}(): "
        lines = [f"{place}{self.message}", *shown]
        for span, text in self.notes:
            if span != self.span:
                lines += [f"  note: {span}: {text}", *excerpt(span)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def excerpt(span: Span | None) -> list[str]:
    """The source line of a span with carets below it; nothing where the text is not to be had."""
    if span is None:
        return []
    line = linecache.getline(span.file, span.line).rstrip("\n")
    if not line.strip():
        return []
    number = str(span.line)
    gutter = " " * len(number)
    shown = [f"  {number} | {line.expandtabs(4)}"]
    start, end = _columns(span, line)
    lead = len(line[:start].expandtabs(4))
    width = max(1, len(line[:end].expandtabs(4)) - lead)
    shown.append(f"  {gutter} | {' ' * lead}{'^' * width}")
    return shown


def _columns(span: Span, line: str) -> tuple[int, int]:
    """Character columns of the span in its first line; co_positions counts UTF-8 bytes."""
    indent = len(line) - len(line.lstrip())
    if span.column is None:
        return indent, len(line)
    raw = line.encode()
    start = len(raw[: span.column].decode(errors="replace"))
    if span.end_column is None or span.end_line not in (None, span.line):
        return start, len(line)
    return start, len(raw[: span.end_column].decode(errors="replace"))


class SarekError(Exception):
    """Base of every error of this package."""


# --- compiling ------------------------------------------------------------------------------------


class CompileError(SarekError):
    """A kernel that cannot be compiled. `diagnostics` holds everything the stage found."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...] | Diagnostic | str) -> None:
        if isinstance(diagnostics, str):
            diagnostics = Diagnostic(type(self), diagnostics, None)
        if isinstance(diagnostics, Diagnostic):
            diagnostics = (diagnostics,)
        self.diagnostics = diagnostics
        super().__init__("\n".join(map(str, diagnostics)))

    @property
    def span(self) -> Span | None:
        """Where the first finding is."""
        return self.diagnostics[0].span


class TypingError(CompileError, TypeError):
    """An operation whose operand types have no meaning, or types that do not join."""


class UnsupportedConstruct(CompileError, NotImplementedError):
    """Python that is outside the kernel language, or a feature this version does not have."""


class CompileWarning(UserWarning):
    """A finding that refuses nothing, such as float64 that nobody asked for."""


class UnboundLocal(CompileError, UnboundLocalError):
    """A local that no path assigns before it is read."""


class UnknownName(CompileError, NameError):
    """A name, attribute or module member that does not exist."""


class ConstantOverflow(CompileError, OverflowError):
    """A constant that does not fit the integer type it meets."""


class ReadOnlyWrite(CompileError, ValueError):
    """A write to a read-only array."""


class DivergentBarrier(CompileError, ValueError):
    """A barrier in flow that is not uniform for its block."""


class InvalidIR(SarekError, ValueError):
    """IR that breaks a rule of `ir.verify`: a fault of the compiler or of hand-built IR."""


def raise_diagnostics(diagnostics: list[Diagnostic]) -> None:
    """Raise all findings of a stage as one error of the first finding's class; nothing if none."""
    if diagnostics:
        raise diagnostics[0].error(tuple(diagnostics))


# --- launching ------------------------------------------------------------------------------------


class LaunchError(SarekError):
    """A launch that is refused before anything is transferred or enqueued."""


class ArgumentCountError(LaunchError, TypeError):
    """Too many, too few, unknown or repeated arguments."""


class ArgumentTypeError(LaunchError, TypeError):
    """An argument of a kind or element type that the kernel does not take."""


class InvalidDimensions(LaunchError, ValueError):
    """A grid, block or shared size that is malformed or beyond the device's limits."""


class StreamError(LaunchError, ValueError):
    """A stream of another device, or on a device without streams. `reason` says which."""

    def __init__(self, message: str, reason: str) -> None:
        self.reason = reason
        super().__init__(message)


class MixedDevices(LaunchError, ValueError):
    """Device arrays of different devices in one launch."""


class LengthOverflow(LaunchError, OverflowError):
    """An array too long for the length that the kernel takes."""


class InvalidFile(LaunchError, ValueError):
    """A source file that is missing or of an unknown kind."""


class UnsupportedLanguage(LaunchError, ValueError):
    """A source language that the device does not take."""


class UnknownDevice(LaunchError, LookupError):
    """A device name that names no device present."""


class InvalidArgument(LaunchError, ValueError):
    """An argument whose value cannot be used, such as overlapping memory that a device cannot
    bind.
    """


class GraphError(LaunchError, ValueError):
    """A misuse of launch graphs."""


class JitError(LaunchError, ValueError):
    """A launch without the IR or the native function that the device needs."""


class CapabilityError(SarekError, NotImplementedError):
    """Something the kernel needs and the device does not have; `verdicts` holds each need."""

    def __init__(self, message: str, verdicts: tuple[object, ...] = ()) -> None:
        self.verdicts = verdicts
        super().__init__(message)


class DeviationWarning(UserWarning):
    """An optimisation changes results, within a bound that it states; said once in a process."""


class HiddenCopyWarning(UserWarning):
    """Large arrays that every launch of a kernel copies to a device; said once for each kernel."""


class PolicyError(SarekError, PermissionError):
    """Something that needs a grant which was not given."""


class BackendError(SarekError, RuntimeError):
    """A driver or compiler that failed."""


class SourceCompilationError(BackendError):
    """Generated or given source that the device's compiler rejects."""

    def __init__(self, message: str, source: str, log: str) -> None:
        self.source = source
        self.log = log
        super().__init__(f"{message}\n{log}".rstrip())


class LaunchFailed(BackendError):
    """A launch that the driver reported as failed."""


class OutOfMemory(BackendError, MemoryError):
    """Memory that a device does not have. Bytes asked and available are fields."""

    def __init__(self, message: str, asked: int, available: int | None) -> None:
        self.asked = asked
        self.available = available
        super().__init__(message)


class DeviceLost(BackendError):
    """A device that no longer answers."""


class TransferFailed(SarekError, RuntimeError):
    """Data that could not be moved between host and device."""


# --- the oracle -----------------------------------------------------------------------------------


class OracleError(SarekError):
    """Findings of the oracle; `findings` holds every one of the launch."""

    def __init__(self, message: str, findings: tuple[object, ...] = ()) -> None:
        self.findings = findings
        super().__init__(message)


class OutOfBounds(OracleError, IndexError):
    """An index outside its view."""


class DataRace(OracleError, RuntimeError):
    """Two conflicting accesses that nothing orders."""


class UninitialisedRead(OracleError, RuntimeError):
    """A read of shared or local memory that nothing wrote."""


class UnboundRead(OracleError, UnboundLocalError):
    """A read of a local that this thread has not assigned."""


class WeakOverflow(OracleError, OverflowError):
    """A Python int that leaves int64, or does not fit the type it is converted to."""


class ArithmeticFault(OracleError, ArithmeticError):
    """An arithmetic edge that NumPy or Python reports: a negative exponent, division by zero if
    asked.
    """


class BarrierDivergence(OracleError, RuntimeError):
    """A barrier that some threads of a block did not reach."""


class WarpDivergence(OracleError, RuntimeError):
    """A warp operation that some threads of a warp did not reach."""


class MisalignedMatrix(OracleError, ValueError):
    """A cooperative matrix whose rows begin where devices may not load them."""


class NoProgress(OracleError, TimeoutError):
    """A kernel that waits for another block, or did not end within the step limit."""


class AssertionFailed(OracleError, AssertionError):
    """An `assert` of the kernel that failed."""


# --- findings -------------------------------------------------------------------------------------

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Writer:
    """The thread that wrote something last, and where in the source."""

    block: Triple
    thread: Triple
    span: Span | None

    def __str__(self) -> str:
        place = f" at {self.span}" if self.span else ""
        return f"block {self.block}, thread {self.thread}{place}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault of a launch, at one place in the source. `error` is the class that is raised.

    Further threads that meet the same fault there are counted, not listed.
    `block` and `thread` are (x, y, z) of the first thread seen to meet it, `threads` how many did.
    `values` are names and values that explain it. `note` is the other place of a race or of a
    divergence. `order` is the place's position in the program.
    """

    error: type[OracleError]
    message: str
    kernel: str
    span: Span | None
    block: Triple | None
    thread: Triple | None
    array: str | None = None
    index: int | tuple[int, ...] | None = None
    values: tuple[tuple[str, Any], ...] = ()
    note: tuple[Span | None, str] | None = None
    hint: str | None = None
    threads: int = 1
    order: int = field(default=0, compare=False)

    def __str__(self) -> str:
        place = f"{self.span}: " if self.span else ""
        lines = [f"{place}{self.message}", *excerpt(self.span), f"  {self.where}"]
        if self.values:
            lines.append("  " + ", ".join(f"{name} = {value}" for name, value in self.values))
        if self.note:
            span, text = self.note
            lines += [f"  note: {span}: {text}" if span else f"  note: {text}", *excerpt(span)]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    @property
    def where(self) -> str:
        """Kernel, block and thread in words."""
        text = f"kernel '{self.kernel}'"
        if self.block is not None:
            text += f", block {self.block}"
        if self.thread is not None:
            text += f", thread {self.thread}"
        more = self.threads - 1
        return f"{text} and {more} other thread{'s' * (more > 1)}" if more > 0 else text


def raise_findings(findings: tuple[Finding, ...], dropped: int = 0) -> None:
    """Raise the first finding's error, which carries them all; nothing if there are none."""
    if not findings:
        return
    first = findings[0]
    text = str(first)
    more = len(findings) - 1 + dropped
    if more:
        text += f"\n({more} more finding{'s' * (more > 1)} in .findings)"
    raise first.error(text, findings)
