"""Tables of runs and of their lines, for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from farm.cli.terminal import count, mix_words, out, say, visible
from farm.judging.advisories import advisories
from farm.judging.forgeable import FORGEABLE
from farm.judging.judgement import Judgement
from farm.judging.places import beside
from farm.reports.changes import Change, Changes
from farm.runs.summary import Summary
from farm.store.queries import StoredRun, Tally
from farm.store.rechecks import Turned
from farm.store.records import Judged

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
    verdicts = f" ({mix_words(tally)})" if tally.verdicts else ""
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


def _print_plain(words: str) -> None:
    out.print(Text(visible(words)), soft_wrap=True)
