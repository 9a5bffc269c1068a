"""HOL Light step, one check: reads the goal, gates the tactic and runs it, in a fork of the image."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

from farm.assembly.challenge import NOT_STATED, Challenge
from farm.judging.audit import COMPARED, UNCHECKED, Audit, Replay, against
from farm.judging.job import Check
from farm.judging.report import Answer, Execution, Message, Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Reason, judge_text
from farm.judging.words import Words
from farm.limits import Limits
from farm.systems.hol_light.assembly import parts as parts_of
from farm_workers import images
from farm_workers.box import launch
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.images.fork import ImageGone
from farm_workers.images.image import UNLIMITED, Image, NoImage, in_box, words
from farm_workers.images.recipe import Recipe
from farm_workers.systems import canaries
from farm_workers.systems.canaries import Canary
from farm_workers.systems.hol_light.environment import HolLightEnvironment

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


#: Ample limits: a busy machine must not change a canary's verdict.
_AMPLE = replace(Limits(), wall_seconds=600.0, cpu_seconds=600.0)


def _canary(name: str, goal: str, tactic: str, expected: Reason, limits: Limits = _AMPLE) -> Canary:
    program = f"prove(`{goal}`,\n{tactic}\n);;\n"
    check = Check.of(program=program, limits=limits, challenge=Challenge(program=goal, name=name))
    return Canary(name=name, check=check, expected=expected)


RIGHT = _canary("right", goal="1 + 1 = 2", tactic="ARITH_TAC", expected=Reason.OK)
#: Goes on for as long as it may, and takes no memory for it.
_ENDLESS = "let rec again (n:int) : tactic = again n in again 0"
_GROWING = "let rec more (l:int list) : tactic = more (1::l) in more []"

CANARIES = (
    RIGHT,
    _canary("wrong", goal="1 + 1 = 3", tactic="ARITH_TAC", expected=Reason.ERROR),
    _canary("incomplete", goal="T /\\ T", tactic="CONJ_TAC", expected=Reason.ERROR),
    _canary("cheating", goal="F", tactic="CHEAT_TAC", expected=Reason.AXIOM),
    _canary("forged", goal="F", tactic="ACCEPT_TAC (Obj.magic TRUTH)", expected=Reason.AUDIT),
    _canary("other", goal="F", tactic="ACCEPT_TAC TRUTH", expected=Reason.ERROR),
    _canary("unbound", goal="x = 0", tactic="ARITH_TAC", expected=Reason.BAD_CHALLENGE),
    _canary(
        "endless",
        goal="F",
        tactic=_ENDLESS,
        expected=Reason.WALL_LIMIT,
        limits=replace(_AMPLE, wall_seconds=0.3),
    ),
    _canary(
        "growing",
        goal="F",
        tactic=_GROWING,
        expected=Reason.MEMORY_LIMIT,
        limits=replace(_AMPLE, memory_mib=512),
    ),
)


_PACKAGE = Path(__file__).resolve().parent
#: How often a thread that waits for an image looks whether its check was cancelled.
_LOOK_SECONDS = 0.25
#: Loading takes a minute and a half on an idle core.
_START_SECONDS = 1800.0
#: An image that could not be made is not begun again sooner: loading takes minutes of a core.
_RETRY_SECONDS = 300.0


class NoLongerWanted(Exception):
    """The check was cancelled while it waited for an image."""


class Residents:
    """Keeps the image of each environment; thread-safe."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._lock = threading.Lock()
        self._images: dict[HolLightEnvironment, Image] = {}
        self._closed = False

    def begin(self, environment: HolLightEnvironment) -> Image:
        """Return the environment's image, which may not be ready yet. Raises BoxFailed."""
        with self._lock:
            if self._closed:
                raise BoxFailed("the images of this worker are closed")
            image = self._images.get(environment)
            if image is None or (image.has_failed and time.monotonic() > image.begun_at + _RETRY_SECONDS):
                image = self._images[environment] = _image(environment, self._isolation)
            return image

    def ready(self, environment: HolLightEnvironment, cancelled: Callable[[], bool]) -> Image:
        """Return the environment's image when it can fork.

        Raises NoImage if it cannot be made, NotWanted when `cancelled` returns True during the wait, and
        BoxFailed.
        """
        image = self.begin(environment)
        while not image.wait(_LOOK_SECONDS):
            if cancelled():
                raise NoLongerWanted
        return image

    def replace(self, environment: HolLightEnvironment, image: Image) -> None:
        """Forget an image that has ended, so that the next check makes another one."""
        with self._lock:
            if self._images.get(environment) is image:
                del self._images[environment]
        image.close()

    def kept(self) -> list[tuple[str, int]]:
        """Return the images that can fork: the environment and the private memory in bytes of each."""
        with self._lock:
            found = list(self._images.items())
        return [(environment.name, image.memory_kib << 10) for environment, image in found if image.is_ready]

    def close(self) -> None:
        """End all images; the object cannot be used afterwards."""
        with self._lock:
            self._closed = True
            found = list(self._images.values())
            self._images.clear()
        for image in found:
            image.close()


def _image(environment: HolLightEnvironment, isolation: Isolation) -> Image:
    told = [*words(isolation), str(environment.runtime), str(environment.folder)]
    command = Command(
        words=images.started(python(), "farm_workers.systems.hol_light.serve", told),
        limits=UNLIMITED,
        environment={"HOLLIGHT_DIR": str(environment.folder)},
        visible=(*images.FOLDERS, _PACKAGE, environment.folder, environment.ocaml),
        trusted=True,
        stack_bytes=launch.THREAD_STACK_BYTES,
    )
    return Image(
        environment.name,
        Recipe(header=environment.script),
        isolation,
        in_box(lambda: command),
        start_seconds=_START_SECONDS,
    )
