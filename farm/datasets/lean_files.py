"""Datasets step, files of Lean 4: finds the header and the statements of a file by the farm's scanner."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from farm.assembly.commands import LeanCommand, commands
from farm.assembly.declaration import read_target
from farm.assembly.faults import Unstated
from farm.lean_text.scanner import Token, TokenKind, sorry_tokens, tokens

_THEOREMS = frozenset({"theorem", "lemma"})
_ANSWERS = frozenset({"abbrev", "def"})
_ANSWER_ENDING = "_solution"


@dataclass(frozen=True, kw_only=True, slots=True)
class StatedTheorem:
    """A theorem of a file: the text before it, its statement through ``:=``, and its line.

    `answers` are the values of its ``..._solution`` that comments gave, `answered` the names of those;
    `open_answers` are the names of solutions that still have a ``sorry``. `unanswered` is the statement with
    a ``sorry`` in every solution.
    """

    name: str
    header: str
    statement: str
    line: int
    answers: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    unanswered: str = ""
    open_answers: tuple[str, ...] = ()


def only_theorem(text: str, name: str = "", *, at: int | None = None) -> StatedTheorem:
    """Return the one problem that a file states: the theorem of this name, else its last one.

    `at` chooses the theorem whose keyword stands there. Definitions and lemmas before it belong to its
    statement. Raises Unstated.
    """
    place = None if at is None else sum(each < at for each in _keywords(text))
    filled, cleared, answers, left = _with_answers(text)
    stated = _chosen(filled, name, place)
    unanswered = _chosen(cleared, name, place).statement if answers else stated.statement
    return replace(
        stated,
        answers=tuple(answers.values()),
        answered=tuple(answers),
        open_answers=left,
        unanswered=unanswered,
    )


def _chosen(text: str, name: str, place: int | None) -> StatedTheorem:
    """Return the theorem of a name or a number, or else the last one, with all declarations before it."""
    found = list(commands(text, 0, len(text)))
    theorems = [each for each in found if each.word in _THEOREMS]
    if not theorems:
        raise Unstated("states no theorem")
    named = next((each for each in theorems if name and each.name == name), theorems[-1])
    target = named if place is None else theorems[place]
    first = next(each for each in found if each.declares)
    return _stated(text, text[: first.start], first.start, target)


def theorems(text: str, chosen: Collection[int] | None = None) -> Iterator[StatedTheorem | Unstated]:
    """Yield every theorem of a file that states many, or why one states nothing.

    The other commands between the theorems hold for those that follow: they are added to their header. Where
    some are `chosen`, by the places of their keywords, the other theorems are such commands too.
    """
    found = list(commands(text, 0, len(text)))
    first = next((each.start for each in found if each.declares), len(text))
    header = text[:first]
    for command in found:
        if command.word in _THEOREMS and (chosen is None or command.keyword in chosen):
            yield _stated_or_why(text, header, command)
        elif command.start >= first:
            header = f"{header.rstrip()}\n\n{text[command.start : command.end]}\n\n"


def open_theorems(text: str) -> tuple[int, ...]:
    """Return the places of the keywords of those theorems whose text has a ``sorry``."""
    found = commands(text, 0, len(text))
    return tuple(
        each.keyword
        for each in found
        if each.word in _THEOREMS and sorry_tokens(text[each.keyword : each.end])
    )


def problems(text: str) -> Iterator[StatedTheorem | Unstated]:
    """Yield the theorems that a file asks to prove: those with a ``sorry``, or the last one if none has one.

    The declarations before a single problem belong to its statement; those before several, to their headers.
    """
    left = open_theorems(text)
    if len(left) > 1:
        yield from theorems(text, left)
        return
    try:
        yield only_theorem(text, at=left[0] if left else None)
    except Unstated as error:
        yield error


def _stated_or_why(text: str, header: str, command: LeanCommand) -> StatedTheorem | Unstated:
    try:
        return _stated(text, header, command.start, command)
    except Unstated as error:
        return error


def _keywords(text: str) -> list[int]:
    return [each.keyword for each in commands(text, 0, len(text)) if each.word in _THEOREMS]


def _stated(text: str, header: str, start: int, target: LeanCommand) -> StatedTheorem:
    line = text.count("\n", 0, target.keyword) + 1
    part = text[start : target.end]
    read = read_target(part)
    if not read.core or start + read.start != target.keyword:
        raise Unstated(f"line {line}: the theorem {target.name or 'without a name'} has no `:=` of its own")
    return StatedTheorem(name=read.name, header=header, statement=part[: read.core_end], line=line)


def _with_answers(text: str) -> tuple[str, str, dict[str, str], tuple[str, ...]]:
    """Return the text with the answers of comments in place of each ``sorry``, and without these comments.

    Then follow the answers by the names of solutions, and the names of solutions without one.
    """
    cleared = text
    answers: dict[str, str] = {}
    left: list[str] = []
    for command in reversed(list(commands(text, 0, len(text)))):
        if command.word not in _ANSWERS or not command.name.endswith(_ANSWER_ENDING):
            continue
        place = _sorry_and_comments(text, command)
        if place is None:
            continue
        start, end, lines = place
        if lines:
            answers[command.name] = "\n".join(lines)
            text = text[:start] + "\n  ".join(lines) + text[end:]
            cleared = f"{cleared[:start]}sorry{cleared[end:]}"
        else:
            left.append(command.name)
    return text, cleared, dict(reversed(answers.items())), tuple(reversed(left))


def _comments_behind(text: str, at: int, found: Sequence[Token]) -> list[Token]:
    """Return the comments on the lines right behind a place; a blank line ends them, and so does a note."""
    behind: list[Token] = []
    for each in found:
        if each.start < at:
            continue
        is_next = text.count("\n", at, each.start) <= 1
        words = text[each.start : each.end]
        if not is_next or not words.startswith("--") or words.removeprefix("--").lstrip().startswith("Note"):
            break
        behind.append(each)
        at = each.end
    return behind


def _sorry_and_comments(text: str, command: LeanCommand) -> tuple[int, int, Sequence[str]] | None:
    """Return the span of a definition's ``sorry``, and the comments right behind it.

    None if the definition has a body already.
    """
    read = read_target(text[command.start : command.end])
    if not read.core:
        return None
    body = list(tokens(text, command.start + read.core_end, command.end))
    code = [each for each in body if each.kind not in (TokenKind.COMMENT, TokenKind.DOC_COMMENT)]
    if [text[each.start : each.end] for each in code] != ["sorry"]:
        return None
    behind = _comments_behind(text, code[0].end, body)
    lines = [text[each.start + 2 : each.end].rstrip().removeprefix(" ") for each in behind]
    end = behind[-1].end if behind else code[0].end
    return code[0].start, end, [line for line in lines if line.strip()]
