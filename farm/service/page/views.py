"""The values of runs and lines that the page's templates show. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from farm.judging.advisories import advisories
from farm.judging.audit import ADMITTED
from farm.judging.forgeable import is_forgeable
from farm.store.looking import LinePlace, SeenRun
from farm.store.queries import Tally
from farm.store.records import Judged, StoredVerdict

#: The states of a line in the order of display, each with its sign.
SIGNS = {
    "proved": "✓",
    "disproved": "¬",
    "partial": "◐",
    "stated": "≡",
    "rejected": "✗",
    "timeout": "◷",
    "memory_limit": "▤",
    "judge_error": "!",
    "cancelled": "⊘",
    "running": "▸",
    "queued": "…",
    "waiting": "…",
}
_ENDS = ("proved", "disproved", "partial", "stated", "rejected", "timeout", "memory_limit", "judge_error")
#: The states by which the page filters lines.
STATES = (*_ENDS, "waiting", "cancelled")
_PARTS = (*_ENDS, "cancelled", "running", "queued")


@dataclass(frozen=True, kw_only=True, slots=True)
class BarPart:
    """The number of a run's lines in one state, and its place in a bar from 0 to 100."""

    word: str
    count: int
    start: float
    width: float

    @property
    def percent(self) -> str:
        """The share of the run's lines."""
        return f"{self.width:.1f} %"


def parts(tally: Tally) -> list[BarPart]:
    """Return the states of a run's lines as parts of a bar, without empty ones."""
    return parts_of(_counts(tally))


def _counts(tally: Tally) -> dict[str, int]:
    counts = {word: tally.statuses.get(word, 0) for word in ("cancelled", "running", "queued")}
    for (verdict, _), number in tally.verdicts.items():
        counts[verdict] = counts.get(verdict, 0) + number
    return counts


def parts_of(counts: Mapping[str, int]) -> list[BarPart]:
    """Return these counts of lines as parts of a bar, without empty ones."""
    bar, start, total = list[BarPart](), 0.0, sum(counts.values())
    for word in _PARTS:
        if number := counts.get(word, 0):
            width = 100 * number / total
            bar.append(BarPart(word=word, count=number, start=round(start, 3), width=round(width, 3)))
            start += width
    return bar


def reasons(tally: Tally) -> list[tuple[str, str, int]]:
    """Return verdicts with their reasons and numbers of lines, the most frequent first."""
    found = [(verdict, reason, number) for (verdict, reason), number in tally.verdicts.items()]
    return sorted(found, key=lambda each: (-each[2], each))


def title(run: SeenRun) -> str:
    """Return the title of a run: its manifests or the batch's name, and the run that it rechecks."""
    names = ", ".join(path.name for path in run.manifests[:3]) or run.batch_name or "batch"
    more = f" and {len(run.manifests) - 3} more" if len(run.manifests) > 3 else ""
    again = f"recheck of {run.rechecks} in {run.options.get('environment')}: " if run.rechecks else ""
    return f"{again}{names}{more}"


def place(words: str) -> LinePlace | None:
    """Return the place in a text ``manifest:line``, None for any other text."""
    manifest, _, line = words.partition(":")
    if not all(each.isascii() and each.isdigit() and len(each) < 10 for each in (manifest, line)):
        return None
    return LinePlace(int(manifest), int(line))


def doubts(job: Judged, verdict: StoredVerdict) -> list[str]:
    """Return the doubts about a *proved* or *disproved*, as sentences."""
    if verdict.outcome not in ("proved", "disproved"):
        return []
    trusted = [what for what in verdict.trusts if what != ADMITTED]
    holes = ", ".join(known.id for known in advisories(verdict.toolchain) or ())
    told = {
        f"The tier {job.tier} believes more than Lean's kernel.": job.tier != "kernel",
        "No statement was compared: the program proves whatever it states.": verdict.statement != "compared",
        f"It trusts {', '.join(trusted)}.": bool(trusted),
        f"It rests on the sorry of {', '.join(verdict.rests_on_sorry_of)}.": bool(verdict.rests_on_sorry_of),
        "It was judged where nothing kept a proof from forging verdicts.": is_forgeable(verdict.isolation),
        "It is contested: a line of another key proves the contrary.": verdict.contested,
        f"The kernel of {verdict.toolchain} has known holes: {holes}.": bool(holes) and job.tier == "kernel",
    }
    return [sentence for sentence, is_so in told.items() if is_so]
