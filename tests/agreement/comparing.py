"""Compares the outcome of a script by state, in a session, with that of the same script as one text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from farm_workers.box import once as box
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.images import Images
from farm_workers.sessions.outcome import NoSession
from farm_workers.sessions.session import Session, StepLimits

from farm.client.states import State
from farm.judging.job import Check
from farm.judging.verdict import Verdict, judge
from farm.sessions.states import filled, proof_of
from tests.agreement.scripts import Script
from tests.processes import PATIENCE

_HEADER = "prelude\nimport Core\n"
_LIMITS = StepLimits(seconds=20.0 * PATIENCE)
#: The session did not open, because the statement itself has an error.
_NO_SESSION = "no session"


@dataclass(frozen=True, kw_only=True, slots=True)
class Compared:
    """A script with its outcome as a text and by state; `steps` are the tactics that a session took it in."""

    script: Script
    by_text: str
    by_state: str
    steps: tuple[str, ...]
    why: str = ""

    @property
    def agrees(self) -> bool:
        """Whether it is proved both ways, or neither way."""
        return (self.by_text == "proved") == (self.by_state == "proved")

    def __str__(self) -> str:
        """Return all that is needed to look into a difference."""
        script = self.script
        text = f"{script.before}{script.statement} := by\n{textwrap.indent(script.body, '  ')}"
        return f"{script.name}: as a text {self.by_text}, by state {self.by_state}: {self.why}\n{text}"


class Comparing:
    """Runs scripts both ways."""

    def __init__(
        self, environment: LeanEnvironment, images: Images[LeanEnvironment], checker: Checker
    ) -> None:
        self._environment, self._images, self._checker = environment, images, checker

    def compared(self, scripts: Iterable[Script]) -> Iterator[Compared]:
        """Yield each script with both outcomes."""
        return map(self._compared, scripts)

    def _compared(self, script: Script) -> Compared:
        stated = f"{_HEADER}{script.before}{script.statement} :="
        by_text = self._judged(f"{stated} by\n{textwrap.indent(script.body, '  ')}\n")
        program = f"{stated} by\n  sorry\n"
        try:
            with closing(Session(program, self._environment, self._images, box.never)) as session:
                at, root = len(session.roots) - 1, session.roots[-1]  # there are sorries before it
                steps, why = _stepped(session, at, script)
                place = State(id="", root=0, tactics=(), goals=(), line=root.line, column=root.column)
        except NoSession as error:
            return Compared(
                script=script, by_text=_words(by_text), by_state=_NO_SESSION, steps=(), why=f"{error}"
            )
        if why:
            return Compared(script=script, by_text=_words(by_text), by_state="open", steps=steps, why=why)
        proved = [
            self._judged(f"{stated} {proof_of(steps)}"),  # as of a session on a statement, and on a program
            self._judged(filled(program, [(place, steps)])),
        ]
        worst = next((each for each in proved if each.outcome != "proved"), proved[0])
        return Compared(
            script=script,
            by_text=_words(by_text),
            by_state=_words(worst),
            steps=steps,
            why=worst.detail or "",
        )

    def _judged(self, program: str) -> Verdict:
        return judge(self._checker.check(Check.of(program=program), self._environment))


def _words(verdict: Verdict) -> str:
    return "proved" if verdict.outcome == "proved" else f"{verdict.outcome} ({verdict.reason})"


def _stepped(session: Session, at: int, script: Script) -> tuple[tuple[str, ...], str]:
    """Step through a script; return its tactics, and why no proof is at their end, "" where one is."""
    if script.tactics is None:
        return _asked(session, at, script.body.split("\n"), ())
    before: tuple[str, ...] = ()
    left: Sequence[str] = ("nothing was tried",)
    for tactic in script.tactics:
        (outcome,) = session.step((at, before), [tactic], _LIMITS)
        if not outcome.has_state:
            return before, f"{tactic!r}: {outcome.outcome}: {outcome.message}"
        before, left = (*before, tactic), outcome.goals
    return before, "\n".join(left)


def _asked(
    session: Session, at: int, lines: Sequence[str], before: tuple[str, ...]
) -> tuple[tuple[str, ...], str]:
    """Step through a text whose tactics are not known: a tactic is the fewest lines that Lean takes.

    Where that leads nowhere, more lines are taken together.
    """
    why = ""
    for count in range(1, len(lines) + 1):
        rest = lines[count:]
        if rest and (not rest[0].strip() or rest[0][0].isspace()):
            continue  # the next line belongs to what stands before it
        tactic = "\n".join(lines[:count])
        (outcome,) = session.step((at, before), [tactic], _LIMITS)
        if not outcome.has_state:
            why = why or f"{tactic!r}: {outcome.outcome}: {outcome.message}"
            continue
        if not rest:
            return (*before, tactic), "\n".join(outcome.goals)
        steps, problem = _asked(session, at, rest, (*before, tactic))
        if not problem:
            return steps, ""
        why = why or problem
    return before, why
