"""Prints a report as tables on stdout."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from farm.cli.terminal import out
from farm.reports import words
from farm.reports.comparison import Comparison
from farm.reports.figures import Figures, PassAt
from farm.reports.report import RunsReport

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
    _print_verdicts(total)
    _say(words.solved(total))
    _print_pass_at(total)
    if len(report.runs) > 1:
        _print_side_by_side("runs", "run", words.run_rows(report))
    if report.by is not None:
        field = words.name(report.by)
        _print_side_by_side(f"by {field}", field, words.value_rows(report))
    if report.comparison is not None:
        _print_comparison(report.comparison)
    _print_limits(total)
    _print_costs(total)
    _print_slowest(total)


def _say(sentence: str) -> None:
    if sentence:
        out.print(Text(sentence), soft_wrap=True)


def _table(title: str, left: Sequence[str], right: Sequence[str]) -> Table:
    table = Table(title=Text(title), title_justify="left")
    for column in left:
        table.add_column(Text(column))
    for column in right:
        table.add_column(Text(column), justify="right")
    return table


def _print_verdicts(figures: Figures) -> None:
    table = _table("verdicts", ("verdict", "reason"), ("lines", "share"))
    for each in figures.verdicts:
        table.add_row(each.verdict, each.reason, words.whole(each.lines), words.percent(each.share))
    unknown = figures.unknown
    for status, number in (("cancelled", unknown.cancelled), ("unfinished", unknown.unfinished)):
        if number:
            table.add_row(status, "", words.whole(number), words.percent(number / figures.lines))
    out.print(table)
    if unknown.lines and figures.judged:
        _say(
            f"Proved: {words.percent(figures.proved_share)} of the judged lines; of all lines at least "
            f"{words.percent(figures.proved_at_least)}, at most {words.percent(figures.proved_at_most)}."
        )


def _print_pass_at(figures: Figures) -> None:
    right = ["k", "pass@k", "95% interval", "at least", "at most", "all k time out", "problems"]
    table = _table("pass@k over problems", (), right)
    for at in figures.pass_at:
        table.add_row(
            words.whole(at.k),
            words.percent(at.value),
            words.interval(at.low, at.high),
            words.percent(at.at_least),
            words.percent(at.at_most),
            words.percent(at.all_timed_out),
            words.of_problems(figures, at),
        )
    out.print(table)
    _say(words.left_out(figures))


def _print_side_by_side(title: str, what: str, rows: Sequence[tuple[str, Figures]]) -> None:
    right = ["lines", "judged", "proved", "problems", "solved", "pass@1", "interval", "pass@usual", "CPU"]
    table = _table(title, (what,), right)
    for name, figures in rows[:_MOST]:
        first, usual = figures.at(1), figures.at(figures.samples_usual)
        table.add_row(
            Text(name),
            words.whole(figures.lines),
            words.whole(figures.judged),
            words.whole(figures.proved),
            words.whole(figures.problems),
            words.whole(figures.solved),
            words.percent(first.value if first else None),
            words.interval(first.low, first.high) if first else "–",
            _usual(usual),
            words.seconds(figures.costs.cpu_seconds),
        )
    out.print(table)
    if len(rows) > _MOST:
        _say(f"{words.whole(len(rows) - _MOST)} more rows: --json, or --html FILE")


def _usual(at: PassAt | None) -> str:
    return "–" if at is None else f"@{at.k}: {words.percent(at.value)}"


def _print_limits(figures: Figures) -> None:
    left, right = ("limit",), ("lines ended", "proofs above half", "proofs above four fifths")
    table = _table("limits", left, right)
    for each in figures.limits:
        table.add_row(
            words.LIMITS[each.limit],
            words.whole(each.ended),
            words.share_above(each, figures, 5),
            words.share_above(each, figures, 8),
        )
    out.print(table)
    timeouts = figures.timeouts
    if timeouts.lines:
        _say(
            f"Timeouts: {words.percent(timeouts.mean_share)} of a problem's lines on average; "
            f"of {words.percent(timeouts.all_samples)} of the problems all lines."
        )
    _say(words.longer(figures))


def _print_costs(figures: Figures) -> None:
    costs = figures.costs
    table = _table("cost", ("verdict",), ("lines", "checked", "processor time", "per check"))
    for each in costs.by_verdict:
        table.add_row(
            words.VERDICTS[each.verdict],
            words.whole(each.lines),
            words.whole(each.checked),
            words.seconds(each.cpu_seconds),
            words.seconds(each.mean_cpu_seconds),
        )
    out.print(table)
    shared = ""
    if costs.shared_lines:
        shared = f"; {words.count(costs.shared_lines, 'line')} shared the check of an equal line"
    _say(
        f"Lean used {words.seconds(costs.cpu_seconds)} of processor time: "
        f"{words.seconds(costs.cpu_seconds_per_proof)} per proof, "
        f"{words.seconds(costs.cpu_seconds_per_solved_problem)} per solved problem{shared}."
    )


def _print_slowest(figures: Figures) -> None:
    if not figures.slowest:
        return
    right = ("judged", "proved", "mean", "longest", "processor time")
    table = _table("slowest problems", ("problem",), right)
    for each in figures.slowest:
        table.add_row(
            Text(words.name(each.problem)),
            words.whole(each.lines),
            words.whole(each.proved),
            words.seconds(each.mean_seconds),
            words.seconds(each.longest_seconds),
            words.seconds(each.cpu_seconds),
        )
    out.print(table)


def _print_comparison(found: Comparison) -> None:
    right = ("k", "here", found.run, "difference (points)", "95% interval", "problems", "")
    table = _table(f"against run {found.run}", (), right)
    for each in found.pass_at:
        table.add_row(
            words.whole(each.k),
            words.percent(each.value),
            words.percent(each.against),
            words.points(each.difference),
            words.points_interval(each.low, each.high),
            words.whole(each.problems),
            words.verdict_of(each),
        )
    if found.pass_at:
        out.print(table)
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
