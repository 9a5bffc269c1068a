"""HOL Light step, one check: reads the goal, gates the tactic and runs it, in a fork of the image."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict

from farm.assembly.challenge import NOT_STATED
from farm.judging.audit import COMPARED, UNCHECKED, Audit, Replay, against
from farm.judging.job import Check
from farm.judging.report import Answer, Execution, Message, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import judge_text
from farm.judging.words import Words
from farm.limits import Limits
from farm.systems.hol_light.assembly import parts as parts_of
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed
from farm_workers.images.fork import ImageGone
from farm_workers.images.image import Image, NoImage
from farm_workers.systems import canaries
from farm_workers.systems.hol_light.canaries import CANARIES, RIGHT
from farm_workers.systems.hol_light.environment import HolLightEnvironment
from farm_workers.systems.hol_light.resident import NoLongerWanted, Residents

WAY = "forked"
#: The trusted parts besides the kernel: the tactic ran in the process that judged it.
TRUSTS = ("the gate on OCaml's syntax",)
#: An image may have ended since its last fork; a check tries its replacement once.
_TURNS = 2
_WORDS = Words(
    prover="HOL Light", kernel="The kernel", made="the theorem", faulty="is no term that can be proved"
)
_UNREADABLE = "The program is not of the form prove(`goal`, tactic);;"
#: The judge's possible findings against a proof that it has read to its end.
_FINDINGS = {"refused": "gate", "axiom": "axiom", "statement_mismatch": "statement_mismatch"}


class HolLightJudge:
    """Judges tactics in HOL Light environments; thread-safe."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._residents = Residents(isolation)

    def check(
        self, check: Check, environment: HolLightEnvironment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report:
        """Check a tactic and report the facts; nothing is raised for its failures."""
        if check.challenge is not None and not check.challenge.name:
            return _report(challenge_error=NOT_STATED)
        impossible = judge_text(check.program)
        if impossible is not None:
            return _report(text_error=impossible.detail, text_place=impossible.place)
        parts = parts_of(check.program)
        if parts is None:
            return _report(text_error=_UNREADABLE)
        goal = parts.goal if check.challenge is None else check.challenge.program
        if parts.goal.strip() != goal.strip():
            return _another_goal(parts.goal)
        request = {"goal": goal, "tactic": parts.tactic}
        run = self._run(request, check.limits, environment, cancelled)
        statement = UNCHECKED if check.challenge is None else COMPARED
        report = run if isinstance(run, Report) else _told(run, statement)
        return _moved(report, check.program, parts.start)

    def _run(
        self,
        request: Mapping[str, str],
        limits: Limits,
        environment: HolLightEnvironment,
        cancelled: Callable[[], bool],
    ) -> Execution | Report:
        name = self._isolation.name
        try:
            for _ in range(_TURNS):
                image = self._residents.ready(environment, cancelled)
                try:
                    return self._forked(image, request, limits, cancelled)
                except ImageGone:
                    self._residents.replace(environment, image)
        except NoImage as error:
            return _report(environment_error=str(error))
        except NoLongerWanted:
            return Execution(box_error=box.CANCELLED, isolation=name)
        except BoxFailed as error:
            return Execution(box_error=str(error), isolation=name)
        return Execution(box_error="an image exited, and so did its replacement", isolation=name)

    def _forked(
        self, image: Image, request: Mapping[str, str], limits: Limits, cancelled: Callable[[], bool]
    ) -> Execution:
        with contextlib.closing(image.check(request, limits)) as fork:
            fork.go()
            return box.watched(fork, limits, self._isolation, cancelled)

    def prewarm(self, environment: HolLightEnvironment) -> None:
        """Begin to load the library."""
        self._residents.begin(environment)

    def require_sound(self, environment: HolLightEnvironment) -> None:
        """Judge the environment's canaries; raises FarmError for a wrong verdict."""
        canaries.require_none(canaries.wrong(CANARIES, self, environment), environment)

    def trial(self, environment: HolLightEnvironment) -> tuple[str, ...]:
        """Judge one canary, and return a sentence for a wrong verdict."""
        return canaries.wrong([RIGHT], self, environment)

    def images(self) -> list[tuple[str, int]]:
        """Return the images that can fork, as an environment and bytes each."""
        return self._residents.kept()

    def close(self) -> None:
        """End every process; the object cannot be used afterwards."""
        self._residents.close()


def _report(**facts: Any) -> Report:
    return Report(words=_WORDS, tier=Tier.KERNEL, **facts)


def _another_goal(goal: str) -> Report:
    sentence = f"The program proves another goal than the line's: `{goal.strip()}`."
    return _report(
        run=Execution(exit_status=0),
        answer=Answer(reached_end=True),
        audit=_found("statement_mismatch", sentence),
    )


def _told(run: Execution, statement: str) -> Report:
    """Return the report of a fork's answer; without an answer, of how the fork ended."""
    facts = replace(run, stdout=b"", stderr=b"")
    said = _answer(run)
    if said is None:
        output = run.stderr.decode(errors="replace") if not run.is_undisturbed or run.exit_status != 0 else ""
        return _report(run=facts, way=WAY, answer=Answer(foreign_output=output))
    word, text = said["word"], said["said"]
    if word == "memory":
        return _report(run=replace(facts, limit="memory"), way=WAY)
    if word == "bad_challenge":
        return _report(run=facts, way=WAY, challenge_error=text)
    if word == "proved":
        return _report(run=facts, way=WAY, answer=Answer(reached_end=True), audit=_accepted(text, statement))
    if word in _FINDINGS:
        audit = _found(_FINDINGS[word], text)
        return _report(run=facts, way=WAY, answer=Answer(reached_end=True), audit=audit)
    message = _message(text, said["line"], said["column"])
    return _report(run=facts, way=WAY, answer=Answer(messages=(message,), reached_end=True))


class _Said(TypedDict):
    """The answer of a fork, as JSON."""

    word: str
    said: str
    line: int
    column: int


def _answer(run: Execution) -> _Said | None:
    if not run.is_undisturbed or run.exit_status != 0:
        return None
    try:
        said: _Said = json.loads(run.stdout)
    except ValueError:
        return None
    is_one = (
        isinstance(said, dict) and isinstance(said.get("word"), str) and isinstance(said.get("said"), str)
    )
    return said if is_one else None


def _accepted(axioms: str, statement: str) -> Audit:
    return Audit(
        accepted=True,
        axioms=tuple(axioms.splitlines()),
        statement=statement,
        trusts=TRUSTS,
        replay=Replay(accepted=True, constants=0),
    )


def _found(word: str, sentence: str) -> Audit:
    return replace(against(word, sentence), statement=COMPARED, trusts=TRUSTS)


def _message(text: str, line: int, column: int) -> Message:
    return Message(
        severity="error", kind="", text=text, line=line, column=column, end_line=None, end_column=None
    )


def _moved(report: Report, program: str, start: int) -> Report:
    """Return the report with places in the program; the tactic begins at `start` there.

    OCaml counts columns in bytes: for a line that is not ASCII the column is dropped.
    """
    lines = program.split("\n")
    above = program.count("\n", 0, start)
    first = start - (program.rfind("\n", 0, start) + 1)

    def moved(message: Message) -> Message:
        if message.line < 1 or above + message.line > len(lines):
            return replace(message, line=0, column=0)
        column = message.column + (first if message.line == 1 else 0)
        line = above + message.line
        is_plain = lines[line - 1].isascii() and column <= len(lines[line - 1])
        return replace(message, line=line, column=column if is_plain else 0)

    messages = tuple(map(moved, report.answer.messages))
    return replace(report, answer=replace(report.answer, messages=messages))
