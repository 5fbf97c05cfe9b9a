"""`sarek.coverage`: which lines of kernels ran, and for which share of threads.

Launches within `with sarek.coverage() as c:` go to the oracle, which counts how often threads come
to each statement, of kernels and of the device functions that they call. `c.report()` is a table,
`c.save(path)` writes a data file of coverage.py.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from sarek_numba import recording
from sarek_numba.display import STYLE, columns, themed, words
from sarek_numba.frontend.covering import is_counted
from sarek_numba.recording import LineCount, Recording
from sarek_numba.runtime.registry import use_device
from sarek_numba.span import shown_file

if TYPE_CHECKING:
    from coverage import CoverageData

_NEVER = LineCount()


@dataclass(frozen=True, slots=True)
class CoveredLine:
    """One line of a function's text. `hits` is None where no statement starts.

    `hits` is how often threads came to the statement, `share` which part of the launched threads
    did at least once.
    """

    number: int
    text: str
    hits: int | None = None
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class CoveredFunction:
    """A kernel or a device function, line by line."""

    file: str
    name: str
    lines: tuple[CoveredLine, ...]

    @property
    def statements(self) -> int:
        """Number of lines on which a statement starts."""
        return sum(line.hits is not None for line in self.lines)

    @property
    def missed(self) -> tuple[int, ...]:
        """The lines of statements that no thread came to."""
        return tuple(line.number for line in self.lines if line.hits == 0)

    @property
    def headline(self) -> str:
        """The function, where it stands, and how many of its statements ran."""
        ran = self.statements - len(self.missed)
        place = f"{shown_file(self.file)}:{self.lines[0].number}"
        return f"{self.name}, {place}: {ran} of {self.statements} statements ran"


class Coverage:
    """Counts while it is entered; `with` may be entered again, and counts go on."""

    def __init__(self) -> None:
        self._recording = Recording()
        self._entered: list[ExitStack] = []

    def __enter__(self) -> Coverage:
        with ExitStack() as stack:
            stack.enter_context(use_device("interpreter"))
            stack.enter_context(recording.into(self._recording))
            self._entered.append(stack.pop_all())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.pop().close()

    @property
    def lines(self) -> dict[str, dict[int, LineCount]]:
        """By file and line, the counts of each statement of what was launched."""
        found: dict[str, dict[int, LineCount]] = {}
        for (file, line), count in sorted(self._recording.lines.items()):
            found.setdefault(file, {})[line] = count
        return found

    def report(self) -> CoverageReport:
        """A table for each function; it prints itself, in a notebook as annotated source."""
        counted = self._recording
        functions = tuple(covered_functions(self.lines))
        return CoverageReport(functions, counted.launches, counted.threads, counted.unread)

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the lines that ran as a data file of coverage.py; one that is there is replaced.

        `coverage combine` takes it along with others of line coverage, `coverage report` and `html`
        read it. Lines of notebooks' cells and of texts that are no files are left out. Raises
        ModuleNotFoundError without the package coverage, ValueError if no line of a file ran.
        """
        ran = {
            str(Path(file).resolve()): sorted(_lines_run(file, counts))
            for file, counts in self.lines.items()
            if Path(file).is_file()
        }
        if not any(ran.values()):
            raise ValueError("no line of a file ran: launch kernels within `with coverage:` first")
        data = _coverage_data(str(path))
        data.add_lines(ran)
        data.write()
        return Path(path)


def coverage() -> Coverage:
    """Count which lines of kernels run, in the oracle: `with sarek.coverage() as c:`.

    Launches within go to the oracle, but for one that names another device, which is not counted.
    """
    return Coverage()


def _coverage_data(path: str) -> CoverageData:
    try:
        from coverage import CoverageData
    except ImportError:
        raise ModuleNotFoundError(
            "saving coverage needs the package 'coverage'\n"
            "  hint: pip install 'sarek-numba[coverage]'",
            name="coverage",
        ) from None
    return CoverageData(path)


# --- source ---------------------------------------------------------------------------------------


def covered_functions(lines: dict[str, dict[int, LineCount]]) -> Iterator[CoveredFunction]:
    """The functions in which statements were counted, with all of their lines."""
    for file, counts in lines.items():
        texts = linecache.getlines(file)
        for function in _functions_of(file, set(counts)):
            starts = {node.lineno for node in _statements(function) if is_counted(node)}
            end = function.end_lineno or function.lineno
            rows = (
                _line(number, texts[number - 1], counts.get(number, _NEVER), number in starts)
                for number in range(function.lineno, end + 1)
            )
            yield CoveredFunction(file, function.name, tuple(rows))


def _line(number: int, text: str, count: LineCount, counted: bool) -> CoveredLine:
    plain = text.rstrip("\n")
    if not counted:
        return CoveredLine(number, plain)
    share = count.threads / count.launched if count.launched else 0.0
    return CoveredLine(number, plain, count.hits, share)


def _functions_of(file: str, lines: set[int]) -> list[ast.FunctionDef]:
    """The innermost functions of a file that hold these lines, in the order of the file."""
    tree = ast.parse("".join(linecache.getlines(file)))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found: dict[int, ast.FunctionDef] = {}
    for line in lines:
        holding = [f for f in functions if f.lineno < line <= (f.end_lineno or f.lineno)]
        holding += [f for f in functions if f.lineno == line == f.end_lineno]
        if holding:
            inner = max(holding, key=lambda f: f.lineno)
            found[inner.lineno] = inner
    return [found[line] for line in sorted(found)]


def _statements(function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """The statements of a function at any depth, but those of functions and classes within."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.expr):
            pending += ast.iter_child_nodes(node)


def _lines_run(file: str, counts: dict[int, LineCount]) -> set[int]:
    """The lines that ran, with `case` lines, which are no statements.

    A case was tried if the match was reached more often than the cases before it were taken.
    """
    ran = {line for line, count in counts.items() if count.hits}
    for function in _functions_of(file, set(counts)):
        for node in ast.walk(function):
            if not isinstance(node, ast.Match):
                continue
            left = counts.get(node.lineno, _NEVER).hits
            for case in node.cases:
                if left > 0:
                    ran.add(case.pattern.lineno)
                left -= counts.get(case.body[0].lineno, _NEVER).hits
    return ran


# --- display --------------------------------------------------------------------------------------

SHADES = {"missed": ("#ffebe9", "#3d1518"), "ran": ("#e6f6ea", "#10301c")}  # light, dark theme


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """What `Coverage.report` gives: functions, and the launches and threads counted."""

    functions: tuple[CoveredFunction, ...]
    launches: int
    threads: int
    unread: int = 0

    @property
    def missed(self) -> int:
        """Number of statements that no thread came to."""
        return sum(len(function.missed) for function in self.functions)

    def _headline(self) -> str:
        if not self.launches:
            return "no launch was counted"
        threads = f"{self.threads} thread{'s' * (self.threads > 1)}"
        head = f"lines of kernels in {_launches(self.launches)}, {threads}"
        if self.unread:
            text = "had no text that can be read: nothing was counted for it"
            head += f"\n{_launches(self.unread)} {text}"
        return head

    def __str__(self) -> str:
        parts = [self._headline()]
        for function in self.functions:
            rows = [("line", "hits", "threads", ""), *map(_cells, function.lines)]
            aligned = [
                (number.rjust(5), hits.rjust(9), share.rjust(8), text)
                for number, hits, share, text in rows
            ]
            parts += ["", function.headline, *columns(aligned)]
        return "\n".join(parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        parts = [STYLE, _COVERAGE_STYLE, f"<p>{escape(self._headline())}</p>"]
        for function in self.functions:
            text = "\n".join(line.text for line in function.lines)
            shown = words(text, "python").split("\n")
            width = max(len(line.text) for line in function.lines)
            shown = [
                html + " " * (width - len(line.text))
                for html, line in zip(shown, function.lines, strict=True)
            ]
            rows = "\n".join(map(_html_row, function.lines, shown))
            parts.append(f"<p>{escape(function.headline)}</p>")
            parts.append(f'<pre class="sarek-code">{rows}</pre>')
        return "".join(parts)


def _launches(count: int) -> str:
    return f"{count} launch{'es' * (count > 1)}"


def _cells(line: CoveredLine) -> tuple[str, str, str, str]:
    if line.hits is None:
        return str(line.number), "", "", line.text
    return str(line.number), str(line.hits), _percent(line.share), line.text


def _percent(share: float) -> str:
    """A share in percent: 0 and 100 only where they are exact."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{min(percent, 99.9) if percent < 100 else 100:.3g} %"


def _html_row(line: CoveredLine, shown: str) -> str:
    number, hits, share, _ = _cells(line)
    margin = escape(f"{number:>5} {hits:>9} {share:>8}  ")
    if line.hits is None:
        return margin + shown
    return f'<span class="s-{"ran" if line.hits else "missed"}">{margin}{shown}</span>'


_COVERAGE_STYLE = (
    "<style>"
    + themed({f".sarek-code .s-{name}": shades for name, shades in SHADES.items()}, "background")
    + "</style>"
)
