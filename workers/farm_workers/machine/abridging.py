"""Abridging step: makes shorter contexts of lines, and has Lean elaborate each.

A model is shown the shorter one; its proof is still judged below the whole context. Lean gives the places of
commands (`farm_workers.lean.outlined`). A command that does not compile in the shorter text is removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from farm.assembly.challenge import challenge_to
from farm.lean_text.header import header_end
from farm_workers.checking.side_by_side import side_by_side
from farm_workers.lean.edits import SORRY, Edit, edited
from farm_workers.lean.outlined import Command, NoOutline, Outline, Proof

#: The most times that a text is elaborated until no command in it fails.
_MOST_ROUNDS = 20
#: The tokens of `SORRY`.
_SORRY_TOKENS = 2


class Outlined(Protocol):
    """Returns the outline of a text; raises NoOutline."""

    def __call__(self, text: str, *, needs: bool = False) -> Outline:
        """Return the outline, with the needs of its commands if `needs`."""


class Setting(StrEnum):
    """The content of a shorter context, from the least to the whole."""

    #: Commands that declare nothing, such as `open`, `namespace` and `variable`.
    NONE = "none"
    #: The same, all declarations that are no theorems, and the statements of the theorems that these need.
    DEFINITIONS = "definitions"
    #: The same, and theorems with `sorry` for their proofs.
    STATEMENTS = "statements"
    #: The whole text with its comments, and `sorry` for the proofs of theorems.
    NO_PROOFS = "no-proofs"
    FULL = "full"

    @property
    def keeps_comments(self) -> bool:
        """Whether comments are kept."""
        return self in (Setting.NO_PROOFS, Setting.FULL)

    @property
    def keeps_theorems(self) -> bool:
        """Whether the statements of all theorems are kept."""
        return self not in (Setting.NONE, Setting.DEFINITIONS)

    def keeps(self, command: Command) -> bool:
        """Return whether a command can be kept."""
        if command.is_note and not self.keeps_comments:
            return False
        return self is not Setting.NONE or not command.declares


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The contexts that are wanted: a setting, and the most tokens, None for any number."""

    setting: Setting
    most_tokens: int | None = None

    @property
    def words(self) -> str:
        """The setting and the number of tokens, for tables."""
        return self.setting if self.most_tokens is None else f"{self.setting}, {self.most_tokens} tokens"


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A shorter context, None with a reason where none could be made.

    `states`: Lean elaborates the line's statement below it.
    """

    text: str | None
    tokens: int = 0
    states: bool = False
    why: str = ""

    def fields(self, wanted: Wanted) -> dict[str, object]:
        """Return the fields of a line."""
        return {
            "context_setting": wanted.words,
            "shown_context": self.text,
            "shown_tokens": self.tokens,
            "statement_compiles": self.states,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A command of a shorter context, and its start in the whole text.

    It is part of contexts that end at `since` in the whole text, or below: its own end, or that of the first
    command that needs it.
    """

    start: int
    since: int
    text: str
    tokens: int
    declares: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line: its program with `sorry` for the proof, and where its context ends in that."""

    program: str
    cut: int

    @property
    def context(self) -> str:
        return self.program[: self.cut]


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    """A file, its shorter text, and the starts of the commands that compile below that text."""

    text: str
    outline: Outline
    head: str
    parts: Sequence[Part]
    compiling: Set[int]

    def states(self, command: Command, text: str) -> bool:
        """Return whether a command compiles, needs no theorem, and states the same as a text with `sorry`."""
        proof = next((each for each in self.outline.proofs if each.start == command.start), None)
        if proof is None or command.needs or command.start not in self.compiling:
            return False
        stated = text.rstrip().removesuffix("sorry").rstrip().removesuffix(":=").rstrip()
        return self.text[proof.start : proof.value].rstrip() == stated


class Abridging:
    """Makes the shorter contexts of lines in one environment."""

    def __init__(self, outline: Outlined, wanted: Wanted, *, at_once: int = 1) -> None:
        """Take the function that returns the outline of a text, with the needs of its commands if `needs`."""
        self._outline, self._wanted, self._at_once = outline, wanted, at_once

    def shown(self, lines: Sequence[tuple[str, str]], done: Callable[[], None] = lambda: None) -> list[Shown]:
        """Return the shorter context of each line, given by its context and its statement.

        If one context is a prefix of another, both lines are from one file, and Lean elaborates it once.
        `done` is called for each line.
        """
        placed = [_placed(*each) for each in lines]
        found: dict[int, Shown] = {}

        def of_group(group: tuple[_Line, list[int]]) -> None:
            for number, shown in zip(group[1], self._of_file(group[0], group[1], placed), strict=True):
                found[number] = shown
                done()

        with side_by_side(self._at_once) as (pool, _):
            list(pool.map(of_group, _files(placed)))
        nothing = Shown(text=None, why="its context and its statement make no text of their own")
        return [found.get(number, nothing) for number in range(len(lines))]

    def _of_file(
        self, whole: _Line, members: Sequence[int], lines: Sequence[_Line | None]
    ) -> Iterator[Shown]:
        """Yield the contexts of the lines whose contexts begin the one of `whole`."""
        try:
            file = self._abridged(whole)
        except NoOutline as error:
            yield from (Shown(text=None, why=str(error)) for _ in members)
            return
        for number in members:
            line = lines[number]
            assert line is not None  # noqa: S101 - only those are in files
            yield self._of_line(line, file)

    def _abridged(self, whole: _Line) -> _File:
        """Return the shorter text of a file, and the statements that compile below it."""
        setting, text = self._wanted.setting, whole.program
        outline = self._outline(text, needs=not setting.keeps_theorems)
        head, made = _head(whole.context, outline, setting), parts(text, outline, setting)
        kept = self._compiling(head, made)
        stated = list(kept)
        if not setting.keeps_theorems:
            theorems = {each.start for each in outline.proofs} - {each.start for each in kept}
            more = [each for each in parts(text, outline, Setting.STATEMENTS) if each.start in theorems]
            stated = sorted([*kept, *more], key=lambda each: each.start)
        failing, _ = self._failing(head, stated) if len(stated) > len(kept) else (set[int](), False)
        compiling = {each.start for number, each in enumerate(stated) if number not in failing}
        return _File(text=text, outline=outline, head=head, parts=kept, compiling=compiling)

    def _of_line(self, line: _Line, file: _File) -> Shown:
        own = next((each for each in file.outline.commands if each.end > line.cut), None)
        lead = "" if own is None else line.program[own.start : line.cut]
        above = [each for each in file.parts if each.since <= line.cut]
        left: Sequence[Part] = latest(above, self._wanted.most_tokens)
        stated = lead + line.program[line.cut :]
        try:
            states = own is not None and len(left) == len(above) and file.states(own, stated)
            if not states:
                left = self._compiling(file.head, left)
                states = not self._failing(file.head, left, stated)[1]
        except NoOutline as error:
            return Shown(text=None, why=str(error))
        return Shown(
            text=file.head + "".join(each.text for each in left) + lead,
            tokens=sum(each.tokens for each in left),
            states=states,
        )

    def _compiling(self, head: str, given: Sequence[Part]) -> Sequence[Part]:
        """Return the parts that compile, one below the other.

        Raises NoOutline where Lean gives none, or where other parts fail time and again.
        """
        for _ in range(_MOST_ROUNDS):
            failing, _ = self._failing(head, given)
            if not failing:
                return given
            given = [each for number, each in enumerate(given) if number not in failing]
        raise NoOutline(f"its commands still fail after {_MOST_ROUNDS} attempts")

    def _failing(self, head: str, given: Sequence[Part], tail: str = "") -> tuple[set[int], bool]:
        """Return the numbers of the parts in which Lean reports errors, and whether it does below them.

        An error in the text above them is one of the number -1.
        """
        starts = [len(head)]
        for each in given:
            starts.append(starts[-1] + len(each.text))
        outline = self._outline(head + "".join(each.text for each in given) + tail)
        failing = {bisect_right(starts, each.start) - 1 for each in outline.commands if each.failed}
        return failing - {len(given)}, len(given) in failing


def told(found: Collection[Shown]) -> str:
    """Return how many statements compile below their shorter contexts, in words."""
    compiling, without = sum(each.states for each in found), sum(each.text is None for each in found)
    words = f"{compiling} of {len(found)} statements compile below their shorter contexts"
    return f"{words}; {without} have none" if without else words


def parts(text: str, outline: Outline, setting: Setting) -> list[Part]:
    """Return the commands of a text that a setting keeps, each with the kept part of its text."""
    proofs = {each.start: each for each in outline.proofs}
    starts = [*(each.start for each in outline.commands[1:]), len(text)]
    since = {each.start: each.end for each in outline.commands}
    if setting is Setting.DEFINITIONS:
        since = _with_needed({start: end for start, end in since.items() if start not in proofs}, outline)
    return [
        _part(text, command, proofs.get(command.start), until, setting, since[command.start])
        for command, until in zip(outline.commands, starts, strict=False)
        if setting.keeps(command) and command.start in since
    ]


def _with_needed(since: Mapping[int, int], outline: Outline) -> dict[int, int]:
    """Return the starts of commands and of the theorems that they need, with the end from which they do."""
    found, needs = dict(since), {each.start: each.needs for each in outline.commands}
    for start, end in since.items():
        todo = [start]
        while todo:
            new = [each for each in needs[todo.pop()] if each not in found]
            found |= dict.fromkeys(new, end)
            todo += new
    return found


def _part(text: str, command: Command, proof: Proof | None, until: int, setting: Setting, since: int) -> Part:
    edits, tokens = list[Edit](), command.tokens
    if proof is not None and setting is not Setting.FULL:
        edits.append(Edit(start=proof.value - command.start, end=proof.end - command.start, text=SORRY))
        tokens += _SORRY_TOKENS - proof.tokens
    if not setting.keeps_comments:
        edits += [Edit(start=start - command.start, end=end - command.start) for start, end in command.docs]
    own = edited(text[command.start : until if setting.keeps_comments else command.end], edits)
    if not setting.keeps_comments:
        own = own.strip() + "\n\n"
    return Part(start=command.start, since=since, text=own, tokens=tokens, declares=command.declares)


def latest(given: Sequence[Part], most_tokens: int | None) -> list[Part]:
    """Return the parts without the earliest declarations, so that at most this many tokens remain.

    Parts that declare nothing stay: the remaining ones may need their scopes.
    """
    if most_tokens is None:
        return list(given)
    spare = most_tokens - sum(each.tokens for each in given if not each.declares)
    kept = list[Part]()
    for each in reversed(given):
        if each.declares:
            spare -= each.tokens
        if spare >= 0 or not each.declares:
            kept.append(each)
    return kept[::-1]


def _placed(context: str, statement: str) -> _Line | None:
    challenge = challenge_to("", statement, context)
    if challenge is None or not context.strip() or not challenge.program.startswith(context):
        return None
    return _Line(program=challenge.program, cut=len(context))


def _files(lines: Sequence[_Line | None]) -> Iterator[tuple[_Line, list[int]]]:
    """Yield the longest context of each file, with the numbers of the lines whose contexts begin it."""
    placed = [(line.context, number, line) for number, line in enumerate(lines) if line is not None]
    whole, members = None, list[int]()
    for context, number, line in sorted(placed, key=lambda each: each[0], reverse=True):
        if whole is not None and whole.context.startswith(context):
            members.append(number)
            continue
        if whole is not None:
            yield whole, members
        whole, members = line, [number]
    if whole is not None:
        yield whole, members


def _head(context: str, outline: Outline, setting: Setting) -> str:
    """Return the text above the first command; without comments that is the header alone."""
    if not setting.keeps_comments:
        return context[: header_end(context)].rstrip() + "\n\n"
    return context[: outline.commands[0].start] if outline.commands else context
