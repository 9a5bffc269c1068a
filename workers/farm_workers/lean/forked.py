"""Forked way: each program in a fork of an image that has imported its header."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from farm.characters import storable
from farm.judging.report import Execution, Goal, Report
from farm.lean_text.positions import Positions
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.launch import FILE_BYTES
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images import protocol
from farm_workers.images.fork import Fork
from farm_workers.images.forking import forked, watched
from farm_workers.images.image import Image, NoImage
from farm_workers.images.images import Images, NotWanted
from farm_workers.lean.stopping import FirstError
from farm_workers.lean.way import FORKED, Doubtful, Question, Reply

#: The most bytes of a file's declarations; the folder of a cell has room for no more.
_EXTRACTED_BYTES = FILE_BYTES
#: The most bytes of an outline, and for each character of the text: commands and tactics have few bytes, and
#: a program that writes its own outline must not fill the memory of its reader.
_OUTLINE_BYTES, _OUTLINE_EACH = 1 << 20, 64


class Forked:
    """Runs each program in a fork of an image; thread-safe."""

    def __init__(self, isolation: Isolation, images: Images[LeanEnvironment]) -> None:
        self._isolation, self._images = isolation, images

    def compile(self, question: Question) -> Reply:
        """Have the program elaborated, and its module written.

        Raises Doubtful when this environment's Lean cannot be forked, or cannot import the header, and
        BoxFailed.
        """
        limits = question.limits
        return self._asked(
            question,
            {
                "writes": protocol.REST if question.shares_context else protocol.ALL,
                "goals": (limits.wall_seconds, limits.cpu_seconds) if question.goals else None,
            },
        )

    def compile_apart(self, question: Question) -> Reply:
        """Have the program elaborated, and its context's module written beside that of the rest.

        Where the question does not share its context, a fork of the header's image reads that. Raises as
        `compile` does.
        """
        context = "" if question.shares_context else question.context
        return self._asked(question, {"writes": protocol.APART, "context": context})

    def read(self, question: Question, asked: protocol.ReadAsked) -> tuple[Execution, bytes | None]:
        """Return the run of a fork that reads a program without elaborating it, and the answer that it left.

        Raises NoImage when this environment's Lean cannot be forked, and BoxFailed.
        """
        return self._left(question, {"reading": asked}, protocol.READING_NAME)

    def read_filling(self, question: Question, asked: protocol.FillAsked) -> tuple[Execution, bytes | None]:
        """Return the run of a fork that reads an answer in its hole, and what it found.

        Raises NoImage when this environment's Lean cannot be forked, and BoxFailed.
        """
        return self._left(question, {"filling": asked}, protocol.READING_NAME)

    def extract(self, question: Question, asked: protocol.ExtractAsked) -> tuple[Execution, bytes | None]:
        """Return the run of a fork that elaborates a file, and the declarations that it left.

        Raises NoImage when this environment's Lean cannot be forked, and BoxFailed.
        """
        name = protocol.EXTRACTED_NAME
        return self._left(question, {"extracting": asked}, name, most_bytes=_EXTRACTED_BYTES)

    def outline(self, question: Question, asked: protocol.OutlineAsked) -> tuple[Execution, bytes | None]:
        """Return the run of a fork that elaborates a file, and the outline that it left.

        Raises NoImage when this environment's Lean cannot be forked, and BoxFailed.
        """
        most = _EXTRACTED_BYTES  # the needs of commands grow faster than the text
        if not asked["needs"]:
            most = min(most, _OUTLINE_BYTES + _OUTLINE_EACH * len(asked["program"]))
        return self._left(question, {"outline": asked}, protocol.OUTLINE_NAME, most_bytes=most)

    def _left(
        self, question: Question, request: protocol.Asked, name: str, **most_bytes: int
    ) -> tuple[Execution, bytes | None]:
        """Return the run of a fork, and the file of a name that it left."""
        limits = question.limits
        try:
            with forked(
                self._images, question.key, question.cancelled, lambda image: image.check(request, limits)
            ) as fork:
                run = watched(fork, limits, self._isolation, question.cancelled)
                return run, fork.written(name, **most_bytes)
        except NotWanted:
            return Execution(box_error=box.CANCELLED, isolation=self._isolation.name), None

    def _asked(self, question: Question, words: Mapping[str, object]) -> Reply:
        limits = question.limits
        request = {
            "program": question.program,
            "mark": question.mark,
            "examples": question.keeps_examples or question.moved is not None,
            "moved": question.moved or (0, 0),
            "stop_at_error": question.stops_at is not None,
            "module": protocol.MODULE_NAME,
            "banned": question.banned,
            **words,
        }

        def begun(image: Image) -> Fork:
            return image.check(request, limits)

        try:
            with forked(self._images, question.key, question.cancelled, begun) as fork:
                run = self._watched(fork, question)
                reply = Reply.of(question, run, FORKED, fork.left)
                if question.banned is not None and reply.module:
                    reply = replace(reply, uses=read_uses(fork.written(protocol.BANNED_NAME)))
                if reply.module and words["writes"] == protocol.APART:
                    return replace(reply, context=fork.context())
                if not question.goals:
                    return reply
                goals = read_goals(fork.written(protocol.GOALS_NAME), question.program)
                return replace(reply, report=replace(reply.report, goals=goals))
        except NoImage as error:
            raise Doubtful(str(error)) from error
        except NotWanted:
            run = Execution(box_error=box.CANCELLED, isolation=self._isolation.name)
            return Reply(report=Report(run=run, way=FORKED))

    def _watched(self, fork: Fork, question: Question) -> Execution:
        """Watch a fork to its end; one that is stopped at an error ends as Lean ends after errors."""
        limits, cancelled = question.limits, question.cancelled
        if question.stops_at is None:
            return watched(fork, limits, self._isolation, cancelled)
        stop = FirstError(question.program, question.stops_at)
        run = watched(fork, limits, self._isolation, cancelled, stop)
        return run if stop.found is None else replace(run, exit_status=1, signal=None)


_MOST_USES, _MOST_TEXT = 16, 200


def read_uses(left: bytes | None) -> tuple[str, ...] | None:
    """Return a sentence for each forbidden tactic that Lean ran; None if the fork left no list of them."""
    try:
        uses = json.loads(left or b"")["uses"]
        return tuple(_sentence(str(word), int(line)) for word, line in uses[:_MOST_USES])
    except (ValueError, KeyError, TypeError, RecursionError):  # its writer was killed, or another wrote it
        return None


def _sentence(word: str, line: int) -> str:
    return storable(
        f"Lean ran the tactic `{word[:_MOST_TEXT]}`, which is forbidden (line {line} of the program)"
    )


#: Limits: the number of goals, the characters of each, and the characters of all together.
MOST_GOALS, MOST_TEXT, MOST_CHARACTERS = 32, 4096, 32_768
#: The most goals at one place.
MOST_TOGETHER = 16
_KINDS = ("sorry", "error")
#: The widest column of a block.
_WIDEST = 1000

_Usual = TypeVar("_Usual")


def read_goals(left: bytes | None, program: str) -> tuple[Goal, ...] | None:
    """Return the goals of a program that a fork left as JSON lines; None if it left none."""
    return None if left is None else tuple(_bounded(left, program))


def _bounded(left: bytes, program: str) -> Iterator[Goal]:
    lines, room = Positions(program), MOST_CHARACTERS
    for line in left.split(b"\n", MOST_GOALS + 1)[: MOST_GOALS + 1]:  # the first one is empty
        goal = _goal(line, lines)
        if goal is None or room <= 0:
            continue
        text = goal.goal[: min(MOST_TEXT, room)]
        room -= len(text)
        yield replace(goal, goal=text if len(text) == len(goal.goal) else text[:-1] + "…")


def _goal(line: bytes, lines: Positions) -> Goal | None:
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):  # its writer was killed, or another process wrote it
        return None
    if not isinstance(said, dict):
        return None
    kind, text, place, column = (said.get(name) for name in ("kind", "goal", "line", "column"))
    if kind not in _KINDS or not isinstance(text, str) or type(place) is not int or type(column) is not int:
        return None
    if lines.offset(place, column) is None:
        return None
    start, end = _hole(said.get("hole"), lines)
    return Goal(
        kind=kind,
        goal=storable(text),
        line=place,
        column=column,
        start=start,
        end=end,
        is_term=said.get("is_term") is True,
        open_goals=_within(said.get("open"), 1, MOST_TOGETHER, 1),
        indent=_within(said.get("indent"), 0, _WIDEST, None),
    )


def _hole(said: object, lines: Positions) -> tuple[int, int] | tuple[None, None]:
    """Return the offsets of a hole's start and end, None for what is no place in the program."""
    if not isinstance(said, list) or len(said) != 4 or not all(type(each) is int for each in said):
        return None, None
    start, end = lines.offset(*said[:2]), lines.offset(*said[2:])
    return (None, None) if start is None or end is None or end < start else (start, end)


def _within(said: object, least: int, most: int, usual: _Usual) -> int | _Usual:
    return said if type(said) is int and least <= said <= most else usual
