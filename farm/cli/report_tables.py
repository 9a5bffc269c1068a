"""Prints a report as tables on stdout."""

from __future__ import annotations

from collections.abc import Sequence

from rich import table as rich
from rich.text import Text

from farm.cli.terminal import out
from farm.reports import tables, words
from farm.reports.comparison import Comparison
from farm.reports.figures import Figures
from farm.reports.report import RunsReport
from farm.reports.tables import Table

#: At most this many rows of a long table are printed; `--json` has all.
_MOST = 30
#: At most this many names of flipped problems are printed.
_NAMES = 10


def print_report(report: RunsReport) -> None:
    """Print the report, the most important first."""
    out.print(Text(words.title(report), style="bold"))
    for note in words.notes(report):
        see = f" See: {note.command}" if note.command else ""
        out.print(Text(f"Note: {note.sentence}{see}", style="yellow"), soft_wrap=True)
    total = report.total
    for table in tables.tables(report):
        print_table(table)
        match table.word:
            case "verdicts":
                _say_proved(total)
            case "pass_at_k":
                _say(words.left_out(total))
            case "limits":
                _say_timeouts(total)
            case "cost":
                _say_cost(total)
    if report.comparison is not None:
        _say_comparison(report.comparison)


def _say(sentence: str) -> None:
    if sentence:
        out.print(Text(sentence), soft_wrap=True)


def print_table(table: Table) -> None:
    """Print a table, its first rows if it is long."""
    shown = rich.Table(title=Text(table.title), title_justify="left")
    for place, column in enumerate(table.columns):
        shown.add_column(Text(column), justify="left" if place < table.names else "right")
    for row in table.rows[:_MOST]:
        shown.add_row(*(Text(cell.shown) for cell in row))
    out.print(shown)
    if len(table.rows) > _MOST:
        _say(f"{words.whole(len(table.rows) - _MOST)} more rows: --format csv prints all")


def _say_proved(figures: Figures) -> None:
    if figures.unknown.lines and figures.judged:
        _say(
            f"Proved: {words.percent(figures.proved_share)} of the judged lines; of all lines at least "
            f"{words.percent(figures.proved_at_least)}, at most {words.percent(figures.proved_at_most)}."
        )
    _say(words.solved(figures))


def _say_timeouts(figures: Figures) -> None:
    timeouts = figures.timeouts
    if timeouts.lines:
        _say(
            f"Timeouts: {words.percent(timeouts.mean_share)} of a problem's lines on average; "
            f"of {words.percent(timeouts.all_samples)} of the problems all lines."
        )
    _say(words.longer(figures))


def _say_cost(figures: Figures) -> None:
    costs = figures.costs
    shared = ""
    if costs.shared_lines:
        shared = f"; {words.count(costs.shared_lines, 'line')} shared the check of an equal line"
    _say(
        f"Lean used {words.seconds(costs.cpu_seconds)} of processor time: "
        f"{words.seconds(costs.cpu_seconds_per_proof)} per proof, "
        f"{words.seconds(costs.cpu_seconds_per_solved_problem)} per solved problem{shared}."
    )


def _say_comparison(found: Comparison) -> None:
    _say(words.left_uncompared(found))
    _say(
        f"{words.count(found.problems, 'common problem')}; only here {words.whole(found.only_here)}, only in "
        f"{found.run} {words.whole(found.only_there)}. Both solved {words.whole(found.both_solved)}, neither "
        f"{words.whole(found.neither_solved)}, undecided {words.whole(found.undecided)}."
    )
    _say(_names("Gained", found.gained))
    _say(_names("Lost", found.lost))


def _names(what: str, names: Sequence[str]) -> str:
    if not names:
        return f"{what}: none."
    shown = ", ".join(map(words.name, names[:_NAMES]))
    more = f", and {words.whole(len(names) - _NAMES)} more (--json)" if len(names) > _NAMES else ""
    return f"{what} ({words.whole(len(names))}): {shown}{more}."
