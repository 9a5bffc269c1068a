"""What a person sees: tables on stdout, progress and talk on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from farm.doctor import Finding
from farm.export import Exported
from farm.queries import Judged, Run, Tally

out = Console()
err = Console(stderr=True, highlight=False)

#: Seconds between two lines of progress where there is no terminal to draw a bar on.
_PLAIN_SECONDS = 10.0

_COLOURS = {
    "proved": "green",
    "rejected": "red",
    "timeout": "yellow",
    "memory_limit": "yellow",
    "judge_error": "bold magenta",
}


def say(words: str) -> None:
    """Tell the user something, on stderr."""
    err.print(words, markup=False, soft_wrap=True)


def coloured(verdict: str) -> Text:
    """Return a verdict in its colour."""
    return Text(verdict, style=_COLOURS.get(verdict, ""))


class RunProgress:
    """Shows how far a run is: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("[bold]judging"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[mix]}"),
            TextColumn("{task.fields[pace]}"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._task = self._bar.add_task("judging", total=None, mix="", pace="")
        self._started = self._said = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> RunProgress:
        """Show the bar."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        """Take the bar away."""
        self._bar.stop()

    def show(self, tally: Tally) -> None:
        """Show a newer tally."""
        if self._first is None:
            self._first = tally.done
        mix, pace = _mix(tally), self._pace(tally)
        self._bar.update(self._task, total=tally.total, completed=tally.done, mix=mix, pace=pace)
        now = time.monotonic()
        if not err.is_terminal and now - self._said >= _PLAIN_SECONDS:
            self._said = now
            say(f"judged {tally.done} of {tally.total}: {mix}; {pace}")

    def _pace(self, tally: Tally) -> str:
        done = tally.done - (self._first or 0)
        elapsed = time.monotonic() - self._started
        if not done or not elapsed:
            return ""
        rate = done / elapsed
        left = tally.unfinished / rate
        return f"{rate:.1f}/s, {int(left // 60)}:{int(left % 60):02d} left"


def _mix(tally: Tally) -> str:
    counts: dict[str, int] = {}
    for (verdict, _), number in tally.verdicts.items():
        counts[verdict] = counts.get(verdict, 0) + number
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))


@contextmanager
def storing() -> Iterator[Callable[[], None]]:
    """Show how many lines are stored; yields the function to call for each."""
    bar = Progress(
        TextColumn("[bold]storing"),
        TextColumn("{task.completed:.0f} lines"),
        TimeElapsedColumn(),
        console=err,
        transient=True,
        disable=not err.is_terminal,
    )
    task = bar.add_task("storing", total=None)
    with bar:
        yield lambda: bar.advance(task)


def print_tally(run: Run, tally: Tally, solved: tuple[int, int]) -> None:
    """Print how far a run is and what its verdicts are."""
    table = Table(title=f"run {run.id}", title_justify="left")
    table.add_column("verdict")
    table.add_column("reason")
    table.add_column("lines", justify="right")
    table.add_column("share", justify="right")
    for (verdict, reason), number in sorted(tally.verdicts.items(), key=lambda item: -item[1]):
        table.add_row(coloured(verdict), reason, f"{number}", f"{number / tally.total:.1%}")
    for status in ("running", "queued", "cancelled"):
        if number := tally.statuses.get(status, 0):
            table.add_row(Text(status, style="dim"), "", f"{number}", f"{number / tally.total:.1%}")
    out.print(table)
    proved, names = solved
    out.print(
        f"{tally.done} of {tally.total} lines judged; {proved} of {names} names have a proof.",
        highlight=False,
    )


def print_runs(rows: Iterable[tuple[Run, Tally]]) -> None:
    """Print runs, newest first, with their progress."""
    table = Table()
    for column in ("run", "submitted", "judged", "proved", "manifests"):
        table.add_column(column)
    for run, tally in rows:
        names = ", ".join(path.name for path in run.manifests[:3])
        more = f" and {len(run.manifests) - 3} more" if len(run.manifests) > 3 else ""
        proved = sum(n for (verdict, _), n in tally.verdicts.items() if verdict == "proved")
        submitted = run.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(run.id, submitted, f"{tally.done}/{tally.total}", f"{proved}", names + more)
    out.print(table)


def print_lines(judged: Iterable[Judged]) -> None:
    """Print one row for each line of a manifest."""
    table = Table()
    for column in ("line", "name", "verdict", "reason", "seconds"):
        table.add_column(column, justify="right" if column in ("line", "seconds") else "left")
    table.add_column("what was found", overflow="ellipsis", no_wrap=True, ratio=1)
    for job in judged:
        verdict = job.verdict
        if verdict is None:
            table.add_row(f"{job.line}", job.name, Text(job.status, style="dim"), "", "", "")
        else:
            seconds = f"{verdict.wall_seconds:.2f}"
            found = verdict.detail.splitlines()[0] if verdict.detail else ""
            table.add_row(
                f"{job.line}", job.name, coloured(verdict.outcome), verdict.reason, seconds, Text(found)
            )
    out.print(table)


def print_program(program: str) -> None:
    """Print a Lean text with line numbers."""
    out.print(Syntax(program, "lean", line_numbers=True, theme="ansi_dark", background_color="default"))


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names and values, one a line."""
    width = max(map(len, facts))
    for name, value in facts.items():
        out.print(f"{name:<{width}}  {value}", markup=False, highlight=False, soft_wrap=True)


def print_findings(findings: Iterable[Finding]) -> None:
    """Print what was found of each part."""
    table = Table()
    for column in ("part", "", "found"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        mark = Text("works", style="green") if finding.ok else Text("broken", style="bold red")
        table.add_row(finding.part, mark, Text(finding.words))
    out.print(table)


def say_exported(written: Iterable[Exported]) -> None:
    """Say which manifests have their verdicts now."""
    for file in written:
        say(f"Wrote {file.lines} verdicts into {file.path}")
