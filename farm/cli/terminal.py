"""Output for a person: tables on stdout, progress and messages on stderr."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from farm import log
from farm.cli.doctor import Diagnosis
from farm.judging.advisories import advisories
from farm.judging.forgeable import FORGEABLE
from farm.judging.judgement import Judgement
from farm.judging.places import beside
from farm.reports.changes import Change, Changes
from farm.runs.export import Exported
from farm.runs.summary import Summary
from farm.store.queries import StoredRun, Tally
from farm.store.rechecks import Turned
from farm.store.records import Judged

#: Columns of a table that does not go to a terminal: wide enough that no value is truncated for a script.
_WIDE = 200

#: Seconds between two lines of progress if the output is no terminal with a bar.
_PLAIN_SECONDS = 10.0

#: The words and colours of each verdict.
COLOURS = {
    "proved": "green",
    "disproved": "cyan",
    "partial": "yellow",
    "stated": "cyan",
    "rejected": "red",
    "timeout": "yellow",
    "memory_limit": "yellow",
    "judge_error": "bold magenta",
}

#: The words for each change.
_CHANGES = {
    Change.BROKEN: "broken",
    Change.OVER_LIMIT: "over a limit",
    Change.UNKNOWN: "not known",
    Change.OTHER: "otherwise",
    Change.WITHIN_LIMIT: "within limits again",
    Change.MENDED: "mended",
    Change.SAME: "unchanged",
}

_log = log.logger(__name__)

_terminal = Console()
out = _terminal if _terminal.is_terminal else Console(width=_WIDE)
err = Console(stderr=True, highlight=False)


def say(words: str) -> None:
    """Print a message on stderr; with a JSON log, log it as an event instead."""
    if log.is_json():
        _log.info("%s", words)
    else:
        err.print(visible(words), markup=False, soft_wrap=True)


def how_to_come_back(run_id: str) -> str:
    """Return how to follow a run that continues without its submitter."""
    return f"Follow it: farm status {run_id} --wait\nWrite its verdicts: farm export {run_id}"


def say_exported(file: Exported) -> None:
    """Print that a manifest has its verdicts."""
    say(f"Wrote {count(file.lines, 'verdict')} into {file.path}")


def count(number: int, thing: str) -> str:
    """Return a number of things in words."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _bar(*columns: ProgressColumn, **fields: str) -> Progress:
    bar = Progress(*columns, console=err, transient=True, disable=not err.is_terminal)
    task = bar.add_task("", total=None)
    bar.tasks[task].fields.update(fields)
    return bar


@contextmanager
def busy(words: str) -> Iterator[None]:
    """Show a spinner with a message."""
    with _bar(SpinnerColumn(), TextColumn(words), TimeElapsedColumn()):
        yield


@contextmanager
def following(words: str) -> Iterator[Callable[[str], None]]:
    """Show the last message of a long task, live or now and then on a new line; yields its setter."""
    bar = _bar(
        SpinnerColumn(), TextColumn("{task.fields[last]}", markup=False), TimeElapsedColumn(), last=words
    )
    (task,) = bar.task_ids
    said = time.monotonic()

    def show(line: str) -> None:
        nonlocal said
        last = f"{words}: {visible(line)}"
        bar.update(task, last=last[: max(20, err.width - 20)])
        if not err.is_terminal and time.monotonic() - said >= _PLAIN_SECONDS:
            said = time.monotonic()
            say(last)

    with bar:
        yield show


@contextmanager
def storing() -> Iterator[Callable[[int], None]]:
    """Show how many lines are stored; yields the function to call with the number of further lines."""
    bar = _bar(SpinnerColumn(), TextColumn("storing {task.completed:.0f} lines"), TimeElapsedColumn())
    (task,) = bar.task_ids
    with bar:
        yield lambda lines: bar.advance(task, lines)


@contextmanager
def trying(programs: int) -> Iterator[Callable[[], None]]:
    """Show how many of `programs` were tried; yields the function to call for each."""
    bar = _bar(TextColumn("trying"), BarColumn(bar_width=30), MofNCompleteColumn(), TimeElapsedColumn())
    (task,) = bar.task_ids
    bar.update(task, total=programs)
    with bar:
        yield lambda: bar.advance(task)


@contextmanager
def judging() -> Iterator[Callable[[Tally], None]]:
    """Show the progress of a run, as a bar or now and then a line; yields the function that shows a tally."""
    texts = TextColumn("{task.fields[mix]}"), TextColumn("{task.fields[pace]}")
    with _bar(
        TextColumn("judging"), BarColumn(bar_width=30), MofNCompleteColumn(), *texts, mix="", pace=""
    ) as bar:
        yield _RunProgress(bar).show


class _RunProgress:
    """The progress of a run, as a bar or as lines."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._started = self._said = time.monotonic()
        self._first: int | None = None

    def show(self, tally: Tally) -> None:
        if self._first is None:
            self._first = tally.done
        mix, pace = _mix(tally), self._pace(tally)
        self._bar.update(self._bar.task_ids[0], total=tally.total, completed=tally.done, mix=mix, pace=pace)
        now = time.monotonic()
        if not err.is_terminal and now - self._said >= _PLAIN_SECONDS:
            self._said = now
            say("; ".join(part for part in (f"Judged {tally.done} of {tally.total}", mix, pace) if part))

    def _pace(self, tally: Tally) -> str:
        done = tally.done - (self._first or 0)
        elapsed = time.monotonic() - self._started
        if not done or not elapsed:
            return ""
        rate = done / elapsed
        minutes, seconds = divmod(int(tally.unfinished / rate), 60)
        return f"{rate:.1f}/s, {minutes}:{seconds:02d} left"


def _mix(tally: Tally) -> str:
    counts: dict[str, int] = {}
    for (verdict, _), number in tally.verdicts.items():
        counts[verdict] = counts.get(verdict, 0) + number
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))


def visible(words: str) -> str:
    """Return words with the control and unprintable characters of a terminal escaped."""
    return _UNSHOWN.sub(lambda found: found.group().encode("unicode_escape").decode(), words)


_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def _coloured(verdict: str) -> Text:
    return Text(verdict, style=COLOURS.get(verdict, ""))


def print_summary(run: StoredRun, summary: Summary) -> None:
    """Print the progress and the verdicts of a run."""
    _print_tally(run, summary.tally)
    tally, solved = summary.tally, summary.solved
    judged = sum(tally.verdicts.values())
    words = [
        *([f"{count(tally.shared, 'line')} shared the check of an equal line."] if tally.shared else []),
        *_brought_words(summary.brought),
        *_left_open(tally),
        *_holed_words(summary.holed),
        f"{judged} of {count(tally.total, 'line')} judged; "
        f"{solved.problems_solved} of {count(solved.problems, 'problem')} solved.",
        *_contested_words(summary.contested),
        *_forgeable_words(summary.forgeable),
    ]
    for sentence in words:
        out.print(sentence, highlight=False)


def _print_tally(run: StoredRun, tally: Tally) -> None:
    table = Table(title=f"run {run.id}, {_tier_words(run, tally)}", title_justify="left")
    for column in ("verdict", "reason"):
        table.add_column(column)
    for column in ("lines", "share"):
        table.add_column(column, justify="right")
    for (verdict, reason), number in sorted(tally.verdicts.items(), key=lambda item: -item[1]):
        table.add_row(_coloured(verdict), reason, f"{number}", f"{number / tally.total:.1%}")
    for status in ("running", "queued", "cancelled"):
        if number := tally.statuses.get(status, 0):
            table.add_row(Text(status, style="dim"), "", f"{number}", f"{number / tally.total:.1%}")
    out.print(table)


def _tier_words(run: StoredRun, tally: Tally) -> str:
    """Print the tiers on which lines are judged; a retry can add a second."""
    if tally.tiers.keys() <= {run.tier}:
        return f"tier {run.tier}"
    return "tiers " + ", ".join(f"{tier} ({count(number, 'line')})" for tier, number in tally.tiers.items())


def _brought_words(lines: int) -> Iterator[str]:
    """Yield the number of lines whose program was brought instead of an answer."""
    if lines:
        yield (
            f"{count(lines, 'line')} {'was' if lines == 1 else 'were'} judged by the predicted_proof that "
            f"{'it' if lines == 1 else 'they'} brought, not by the generation; "
            "--reassemble judges the generation."
        )


def _left_open(tally: Tally) -> Iterator[str]:
    """Yield the number of proved lines with an unchecked property."""
    if tally.unchecked:
        yield f"Of the proved lines, {count(tally.unchecked, 'line')}: statement: unchecked."
    if tally.trusting:
        yield f"Of the proved lines, {count(tally.trusting, 'line')}: trusts more than the kernel."
    if tally.unrebuilt:
        yield (
            f"Of the proved lines, {count(tally.unrebuilt, 'line')}: Lean could not be forked, so a checker "
            "read the submission's own module."
        )
    if tally.open_below:
        yield (
            f"Of the proved lines, {count(tally.open_below, 'line')}: rests on a sorry of the dataset, such "
            "as an earlier part of the statement; --require-all-parts demands proofs of all parts."
        )


def _holed_words(holed: Mapping[str, int]) -> Iterator[str]:
    """Yield how many proofs rest on a kernel with known holes."""
    for toolchain, lines in holed.items():
        holes = ", ".join(known.id for known in advisories(toolchain) or ())
        proved = f"Of the proved lines, {count(lines, 'line')}"
        yield f"{proved}: the kernel of {visible(toolchain)} has known holes ({holes})."


def _contested_words(verdicts: int) -> Iterator[str]:
    """Yield the number of verdicts whose contrary somebody else proved."""
    if verdicts:
        is_are = "is" if verdicts == 1 else "are"
        yield f"{count(verdicts, 'verdict')} {is_are} contested: a line of another key proves the contrary."


def _forgeable_words(verdicts: int) -> Iterator[str]:
    """Yield the number of verdicts that a proof could have forged."""
    if verdicts:
        made = f"{count(verdicts, 'verdict')} {'was' if verdicts == 1 else 'were'} made"
        yield f"{made} where {FORGEABLE}; farm doctor says why."


def print_runs(rows: Iterable[tuple[StoredRun, Tally]]) -> None:
    """Print runs, newest first, with their progress."""
    table = Table("run", "submitted", "judged", "proved", "manifests")
    for run, tally in rows:
        proved = sum(number for (verdict, _), number in tally.verdicts.items() if verdict == "proved")
        submitted = run.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        what = Text(visible(_title(run)))
        table.add_row(run.id, submitted, f"{tally.done}/{tally.total}", f"{proved}", what)
    out.print(table)


def _title(run: StoredRun) -> str:
    """Return the title of a run: its manifests, and the run that it judges again."""
    names = ", ".join(path.name for path in run.manifests[:3])
    more = f" and {len(run.manifests) - 3} more" if len(run.manifests) > 3 else ""
    again = f"recheck of {run.rechecks} in {run.options['environment']}" if run.rechecks else ""
    return ": ".join(part for part in (again, names + more) if part)


def print_ended(run: StoredRun, tally: Tally) -> None:
    """Print in one line how a run ended."""
    judged = f"{sum(tally.verdicts.values())} of {count(tally.total, 'line')} judged"
    verdicts = f" ({_mix(tally)})" if tally.verdicts else ""
    _print_plain(
        f"Newest finished run: {run.id}, {_title(run)}: {judged}{verdicts}. See it: farm status {run.id}"
    )


def print_lines(judged: Iterable[Judged]) -> None:
    """Print one row for each line of a manifest."""
    table = Table()
    for column in ("line", "name", "verdict", "reason", "seconds"):
        table.add_column(column, justify="right" if column in ("line", "seconds") else "left", no_wrap=True)
    table.add_column("finding")  # the one that gives way on a narrow screen
    for job in judged:
        table.add_row(f"{job.line}", Text(visible(job.name)), *_verdict_cells(job))
    out.print(table)


def print_changes(
    run: StoredRun,
    found: Iterator[tuple[Change, Turned]],
    changes: Changes,
    finding: Callable[[Turned], str],
    *,
    most: int,
) -> None:
    """Print the first lines that a recheck changed, each with its finding, then the counts of all.

    Reading `found` fills in the counts.
    """
    table = Table(title="changed lines", title_justify="left")
    for column in ("line", "name", "before", "now"):
        table.add_column(column, no_wrap=column == "line")
    table.add_column("finding")
    for _, line in islice(found, most):
        detail = Text(visible(finding(line).partition("\n")[0]), no_wrap=True, overflow="ellipsis")
        place = Text(visible(run.place(line.manifest, line.line)))
        table.add_row(place, Text(visible(line.name)), *map(_judgement, (line.before, line.now)), detail)
    more = sum(1 for _ in found)
    if table.row_count:
        out.print(table)
    if more:
        say(f"{count(more, 'more changed line')}: add -n {table.row_count + more}, or --json")
    _print_turns(run, changes)


def _print_turns(run: StoredRun, changes: Changes) -> None:
    title = f"run {run.id}, recheck of {run.rechecks} in {run.options['environment']}, tier {run.tier}"
    table = Table(title=title, title_justify="left")
    for column in ("change", "before", "now"):
        table.add_column(column)
    table.add_column("lines", justify="right")
    for each in changes.counts():
        table.add_row(Text(_CHANGES[each.change]), each.before, each.now, f"{each.lines}")
    out.print(table)


def _judgement(judged: Judgement) -> Text:
    return Text(judged.words, style=COLOURS.get(judged.verdict or "", "dim"))


def _verdict_cells(job: Judged) -> tuple[str | Text, ...]:
    verdict = job.verdict
    if verdict is None:
        return Text(job.status, style="dim"), "", "", ""
    found = job.detail().partition("\n")[0]
    words = Text(visible(found), no_wrap=True, overflow="ellipsis")
    return _coloured(verdict.outcome), verdict.reason, f"{verdict.wall_seconds:.2f}", words


def print_line(job: Judged, attempts: Iterable[Mapping[Any, Any]]) -> None:
    """Print one line whole: its program with line numbers, all messages and warnings, and every attempt."""
    print_lines([job])
    out.print(
        Syntax(visible(job.program), "lean", line_numbers=True, theme="ansi_dark", background_color="default")
    )
    locate = job.lines().locate
    for message in job.verdict.messages if job.verdict else ():
        place = beside(message.line, message.column, locate)
        _print_plain(f"{place}: {message.severity}: {message.text}")
    for hit in job.verdict.hits if job.verdict else ():
        place = beside(hit.line, hit.column, locate)
        _print_plain(f"{place}: policy {hit.action}: {hit.text} (rule {hit.rule})")
    audit = job.verdict.audit if job.verdict else None
    for words in audit.words if audit else ():
        _print_plain(words)
    for code, field, line, column in job.warnings:
        _print_plain(f"assembly: {code} at line {line}, column {column} of {field}")
    if job.verdict and job.verdict.trace_id:
        _print_plain(f"trace: {job.verdict.trace_id}")
    for attempt in attempts:
        detail = f": {attempt['detail']}" if attempt["detail"] else ""
        _print_plain(
            f"attempt {attempt['number']} by {attempt['worker']}: {attempt['outcome'] or 'running'}{detail}"
        )


#: The width of the column with the name of a part.
_PART_WIDTH = 22


def print_finding(finding: Diagnosis) -> None:
    """Print the finding about one part, its words in a column of their own."""
    word, style = ("works", "green") if finding.ok else ("broken", "bold red")
    word, style = ("weak", "yellow") if finding.ok and finding.weak else (word, style)
    row = Table.grid(padding=(0, 2))
    row.add_column(width=_PART_WIDTH, overflow="fold")
    row.add_column(width=len("broken"))
    row.add_column(overflow="fold")
    row.add_row(Text(visible(finding.part)), Text(word, style=style), Text(visible(finding.words)))
    out.print(row)


def print_environments(rows: Iterable[Sequence[str]]) -> None:
    """Print one row for each environment: name, Lean, digest, headers, tiers, kernel checker, state."""
    table = Table("environment", "Lean", "digest", "headers", "tiers", "checker", "state")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out.print(table)


def print_keys(rows: Iterable[Sequence[str]]) -> None:
    """Print one row for each key: id, name, rights, limits, and when it was added and revoked."""
    limits = ("per second", "in flight", "seconds", "weight")
    table = Table("id", "name", "scopes", "priorities", *limits, "added", "revoked")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out.print(table)


def _print_plain(words: str) -> None:
    out.print(Text(visible(words)), soft_wrap=True)
