"""Report step: words its sentences and numbers, the same in a terminal and on the page. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from farm.manifest.lines import printable
from farm.reports.comparison import Comparison, PassDifference
from farm.reports.figures import Figures, LimitUse, PassAt
from farm.reports.report import RunFigures, RunsReport
from farm.reports.svg import points_label
from farm.store.queries import StoredRun

#: The longest name or value that is shown whole.
_LONGEST = 80
#: At most this many false statements are named.
_MOST_FALSE = 20

VERDICTS = {
    "proved": "proved",
    "disproved": "disproved",
    "partial": "partial",
    "stated": "stated",
    "rejected": "rejected",
    "timeout": "timeout",
    "memory_limit": "memory limit",
    "judge_error": "judge error",
    "cancelled": "cancelled",
    "unfinished": "unfinished",
}

LIMITS = {
    "wall": "wall time",
    "cpu": "processor time",
    "kernel_time": "audit and kernel",
    "heartbeats": "Lean's heartbeats",
    "memory": "memory",
    "lean_memory": "Lean's own memory limit",
}


def name(text: str | None) -> str:
    """Return a foreign name or value, fit for display."""
    if text is None:
        return "(without the field)"
    return printable(text, _LONGEST) or "(empty)"


def count(number: int, thing: str) -> str:
    """Return a number of things in words."""
    return f"{whole(number)} {thing}{'' if number == 1 else 's'}"


def whole(number: int) -> str:
    """Return a number with a narrow space, at which no line breaks, between thousands."""
    return f"{number:,}".replace(",", "\u202f")


def p_value(p: float | None) -> str:
    """Return a p value with three places, a dash for none."""
    if p is None:
        return "–"
    return "<0.001" if p < 0.0005 else f"{p:.3f}"


def percent(share: float | None, places: int = 1) -> str:
    """Return a share from 0 to 1 in per cent, a dash for none; a share near 0 or 1 is marked as such."""
    if share is None:
        return "–"
    least = 10.0 ** -(places + 2)
    if 0 < share < least / 2:
        return f"<{100 * least:.{places}f}%"
    if 1 - least / 2 < share < 1:
        return f">{100 - 100 * least:.{places}f}%"
    return f"{100 * share:.{places}f}%"


def interval(low: float | None, high: float | None) -> str:
    """Return the bounds of an interval in per cent."""
    return "–" if low is None or high is None else f"{100 * low:.1f}–{100 * high:.1f}%"


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign, as plots say it."""
    return points_label(difference)


def points_interval(low: float | None, high: float | None) -> str:
    """Return the bounds of an interval of differences in percentage points."""
    return "–" if low is None or high is None else f"{points(low)} to {points(high)}"


def seconds(number: float | None) -> str:
    """Return a time in the unit that suits it, a dash for none."""
    if number is None:
        return "–"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if number >= 2 * length:
            return f"{number / length:.1f} {unit}"
    if number >= 10:
        return f"{number:.0f} s"
    return f"{number:.2f} s" if number >= 0.1 or number == 0 else f"{1000 * number:.0f} ms"


def title(report: RunsReport) -> str:
    """Return the report's title."""
    ids = [each.run.id for each in report.runs]
    if len(ids) == 1:
        return f"Run {ids[0]}"
    return f"Runs {', '.join(ids[:-1])} and {ids[-1]}"


def manifests(run: StoredRun) -> str:
    """Return the names of a run's manifests, the first of many."""
    names = [printable(path.name, _LONGEST) for path in run.manifests[:3]]
    rest = len(run.manifests) - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest else "")


def run_rows(report: RunsReport) -> list[tuple[str, Figures]]:
    """Return the figures of every run, and of all together."""
    return [*((each.run.id, each.figures) for each in report.runs), ("together", report.total)]


def value_rows(report: RunsReport) -> list[tuple[str, Figures]]:
    """Return the figures of every value of the field."""
    return [(name(each.value), each.figures) for each in report.values]


@dataclass(frozen=True, slots=True)
class ReportNote:
    """A sentence, and the command for details, if one exists."""

    sentence: str
    command: str = ""


def notes(report: RunsReport) -> list[ReportNote]:
    """Return the notes that a reader needs before any figure."""
    runs = [*report.runs, *([report.against] if report.against else [])]
    return [note for each in runs for note in _notes(each)]


def _notes(found: RunFigures) -> Iterator[ReportNote]:
    run, unknown = found.run, found.figures.unknown
    if unknown.unfinished:
        lines = count(unknown.unfinished, "line")
        of = f"{lines} of {whole(found.figures.lines)}"
        yield ReportNote(
            f"Run {run.id} is not over: {of} without a verdict yet.", f"farm status {run.id} --wait"
        )
    if unknown.judge_error:
        lines = count(unknown.judge_error, "line")
        yield ReportNote(
            f"The farm could not judge {lines} of run {run.id}, which says nothing about the proofs.",
            f"farm show {run.id} --verdict judge_error",
        )
    if found.rests_on_sorry:
        yield ReportNote(
            f"Of the proofs of run {run.id}, {whole(found.rests_on_sorry)} rest on a sorry of the dataset, "
            "such as an earlier part of the statement.",
            f"farm show {run.id} --verdict proved",
        )
    if found.unchecked:
        yield ReportNote(
            f"Of the proofs of run {run.id}, {whole(found.unchecked)} were compared with no statement."
        )
    if not unknown.cancelled:
        return
    cancelled = f"{count(unknown.cancelled, 'line')} of run {run.id} cancelled"
    if found.stops_on_first_proof:
        yield ReportNote(
            f"{cancelled}, for it stops on the first proof: pass@1 over its judged lines is too high, and "
            "another pass@k is given only if the cancelled lines cannot change it. "
            "Use the bounds, and the problems solved."
        )
    else:
        yield ReportNote(f"{cancelled}.")


def solved(figures: Figures) -> str:
    """Return how many problems have a proof."""
    words = f"{whole(figures.solved)} of {count(figures.problems, 'problem')} solved"
    if figures.undecided:
        words += f", {whole(figures.undecided)} undecided"
    return f"{words}; {samples(figures)}.{_false(figures)}"


def _false(figures: Figures) -> str:
    """Return the sentence that names false statements, "" without any."""
    if not figures.disproved:
        return ""
    named = ", ".join(map(name, figures.false_statements[:_MOST_FALSE]))
    more = figures.disproved - _MOST_FALSE
    return f" Disproved, so false: {named}{f' and {whole(more)} more' if more > 0 else ''}."


def samples(figures: Figures) -> str:
    """Return how many lines a problem has."""
    least, most = figures.samples_least, figures.samples_most
    if least == most:
        return f"{count(most, 'line')} each"
    return f"{whole(least)} to {whole(most)} lines each, mostly {whole(figures.samples_usual)}"


def of_problems(figures: Figures, at: PassAt) -> str:
    """Return over how many problems a pass@k is."""
    if at.problems == figures.problems:
        return whole(at.problems)
    return f"{whole(at.problems)} of {whole(figures.problems)}"


def left_out(figures: Figures) -> str:
    """Return which problems the last rows of pass@k leave out, nothing when they leave out none."""
    short = [at for at in figures.pass_at if 0 < at.problems < figures.problems]
    if not short:
        return ""
    worst = max(short, key=lambda at: figures.problems - at.problems)
    return (
        f"pass@k is over the problems with enough judged lines: pass@{worst.k} leaves out "
        f"{whole(figures.problems - worst.problems)} of {whole(figures.problems)}."
    )


#: The limits that a longer time limit raises.
_TIMES = ("wall", "cpu", "kernel_time")


def longer(figures: Figures) -> str:
    """Return whether longer time limits would help, judged by the use of the present ones."""
    times = [each for each in figures.limits if each.limit in _TIMES]
    ended = [each for each in times if each.ended]
    if not ended:
        named = ", ".join(LIMITS[each.limit] for each in times)
        return f"No line ran into a time limit ({named}): longer ones would change nothing."
    lines = (f"{LIMITS[each.limit]} {whole(each.ended)}" for each in ended)
    said = f"Lines that ran into a time limit: {', '.join(lines)}."
    used = [each for each in ended if each.proved_tenths is not None]
    if used:
        said += f" {_by_rate(used, figures)}"
    if len(used) < len(ended):
        said += (
            " Lean accepted those whose audit and kernel took too long: longer limits may well prove them."
        )
    return said


def _by_rate(limits: Sequence[LimitUse], figures: Figures) -> str:
    """Return whether longer limits would help, judged by the proofs near the limits whose use is known."""
    if not figures.proved:
        return "Without a proof it is unknown whether longer limits would help."
    near = ", ".join(f"{LIMITS[each.limit]} {whole(each.proofs_above_four_fifths)}" for each in limits)
    found = (
        f"Of {count(figures.proved, 'proof')}, these numbers took more than four fifths of the limit: {near}."
    )
    guess = sum(min(each.ended, 5 * each.proofs_above_four_fifths) for each in limits)
    if not guess:
        return f"{found} Longer limits would probably find few more."
    return (
        f"{found} If proofs kept coming at that rate, twice the limits would find about {whole(guess)} more; "
        "they usually come more slowly."
    )


def share_above(limit: LimitUse, figures: Figures, above: int) -> str:
    """Return the number of proofs that took more than ``above`` tenths of a limit, a dash if unknown."""
    if limit.proved_tenths is None:
        return "–"
    number = sum(limit.proved_tenths[above:])
    return f"{whole(number)} ({percent(number / figures.proved)})" if number else "0"


def left_uncompared(found: Comparison) -> str:
    """Return why there is no pass@k beside the other run, nothing when there is one."""
    if found.pass_at:
        return ""
    return "For no k is pass@k of both runs known."


def verdict_of(difference: PassDifference) -> str:
    """Return the meaning of a difference's interval."""
    if difference.is_of_few:
        return "too few problems"
    if not difference.differs:
        return "no clear difference"
    return "better" if difference.difference > 0 else "worse"
