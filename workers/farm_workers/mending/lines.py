"""Mending step, lines: tidies or repairs the programs of a manifest's lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.verdict import Outcome, Verdict, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.manifest.splice import with_fields
from farm.task import Kind
from farm_workers.box import once as box
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.checking.side_by_side import side_by_side
from farm_workers.checking.verdict_fields import verdict_fields
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.outlined import NoOutline
from farm_workers.mending.trials import Mended, Trials

#: A program with these is worth more to its line than one with an error, or as much.
_DRAFTS = frozenset({Outcome.PROVED, Outcome.PARTIAL, Outcome.REJECTED})
#: Makes another text of a program.
Make = Callable[[Trials, str], Mended]


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A line of a manifest: its text, the same validated, and the environment to judge it in."""

    text: str
    entry: Entry
    environment: LeanEnvironment


@dataclass(frozen=True, kw_only=True, slots=True)
class MendedLine:
    """The text of a line with another program, or as it was, and the verdicts before and after.

    `why` is the reason for which it was not changed, "" for a changed line. `is_unjudged`: the farm could not
    judge the line, or its new program.
    """

    entry: Entry
    text: str
    before: Verdict | None
    after: Verdict | None
    changes: int = 0
    why: str = ""
    is_unjudged: bool = False

    def facts(self) -> dict[str, object]:
        """Return the line's result for scripts."""
        before, after = (
            None if it is None else {"verdict": it.outcome, "reason": it.reason, "detail": it.detail}
            for it in (self.before, self.after)
        )
        told = {"before": before, "after": after, "changes": self.changes, "why": self.why}
        return {"line": self.entry.line, "name": self.entry.name, **told}


@dataclass(frozen=True, kw_only=True, slots=True)
class LineMending:
    """Makes other programs of lines by `make`, several lines at once; each has its own budget.

    Lines with the verdict `of` are tried; a proved program is replaced only by another one. `word` names the
    command in lines.
    """

    checker: Checker
    limits: Limits
    make: Make
    of: Outcome
    word: str
    seconds: float
    most: int
    at_once: int

    def mended(self, lines: Sequence[Given], done: Callable[[], None]) -> Iterator[MendedLine]:
        """Yield the lines in order; `done` is called for each.

        A caller that closes the iterator early waits for no check.
        """
        with side_by_side(self.at_once) as (pool, cancelled):
            for each in pool.map(partial(self._line, cancelled=cancelled), lines):
                done()
                yield each

    def _line(self, given: Given, cancelled: box.Cancelled) -> MendedLine:
        same = MendedLine(entry=given.entry, text=given.text, before=None, after=None)
        if given.entry.hole is not None or given.entry.task.kind is not Kind.PROVE:
            return replace(same, why="the line asks for something else than a proof of its statement")
        check = self._check(given)
        report = self.checker.check(check, given.environment, cancelled=cancelled)
        before = judge(report)
        same = replace(same, before=before, after=before, is_unjudged=before.outcome is Outcome.JUDGE_ERROR)
        if before.outcome is not self.of:
            is_proved = before.outcome is Outcome.PROVED
            return replace(same, why="the line is proved already" if is_proved else before.detail)
        judged = check.candidates[report.candidate]
        trials = Trials(
            self.checker,
            given.environment,
            self.limits,
            seconds=self.seconds,
            most=self.most,
            submitted=judged.submitted,
            cancelled=cancelled,
        )
        try:
            mended = self.make(trials, judged.program)
        except NoOutline as error:
            return replace(same, why=str(error))
        if mended.text == judged.program:
            needless = "nothing had to be changed" if before.outcome is Outcome.PROVED else before.detail
            return replace(same, why="; ".join(mended.left) or needless)
        return self._changed(given, same, mended, cancelled)

    def _changed(
        self, given: Given, same: MendedLine, mended: Mended, cancelled: box.Cancelled
    ) -> MendedLine:
        """Return a line with its new program, judged as the line's answer; as it was if that is worse."""
        entry = replace(given.entry, generation="", predicted_proof=mended.text)
        report = self.checker.check(
            self._check(replace(given, entry=entry)), given.environment, cancelled=cancelled
        )
        after = judge(report)
        if after.outcome not in ({Outcome.PROVED} if self.of is Outcome.PROVED else _DRAFTS):
            why = f"with the changes it is {after.outcome} ({after.reason})"
            return replace(same, why=why, is_unjudged=after.outcome is Outcome.JUDGE_ERROR)
        facts = {
            "by": self.word,
            "changes": [asdict(each) for each in mended.changes],
            "left": list(mended.left),
            "predicted_proof": given.entry.predicted_proof or None,
        }
        told = verdict_fields(report, given.environment, self.checker.isolation)
        text = with_fields(given.text, {"predicted_proof": mended.text, **told, "mended": facts})
        return replace(same, text=text, after=after, changes=len(mended.changes))

    def _check(self, given: Given) -> Check:
        return check_of(given.entry, self.limits, Assurance(tier=given.environment.tiers[0]))
