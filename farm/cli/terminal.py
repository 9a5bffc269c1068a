"""Output for a person: messages and progress on stderr, and the console of stdout."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
from rich.table import Table
from rich.text import Text

from farm import log

# Every command speaks; only some of them read the store.
if TYPE_CHECKING:
    from farm.runs.export import Exported
    from farm.store.queries import Tally

#: Columns of a table that does not go to a terminal: wide enough that no value is truncated for a script.
_WIDE = 200

#: Seconds between two lines of progress if the output is no terminal with a bar.
_PLAIN_SECONDS = 10.0

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
        mix, pace = mix_words(tally), self._pace(tally)
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


def mix_words(tally: Tally) -> str:
    """Return how many lines have each verdict, in words."""
    counts: dict[str, int] = {}
    for (verdict, _), number in tally.verdicts.items():
        counts[verdict] = counts.get(verdict, 0) + number
    return ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))


def visible(words: str) -> str:
    """Return words with the control and unprintable characters of a terminal escaped."""
    return _UNSHOWN.sub(lambda found: found.group().encode("unicode_escape").decode(), words)


_UNSHOWN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def print_cells(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of plain words."""
    table = Table(*headings)
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out.print(table)
