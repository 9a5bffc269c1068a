"""Abridging step: makes shorter contexts of lines, and has Lean elaborate each.

A model is shown the shorter one; its proof is still judged below the whole context. Lean says what stands
where (`farm_workers.lean.outlined`). Commands that do not compile in the shorter text are left out of it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum

from farm.assembly.challenge import challenge_to
from farm.lean_text.header import header_end
from farm_workers.lean.edits import SORRY, Edit, edited
from farm_workers.lean.outlined import Command, NoOutline, Outline, Proof

#: The most times that a text is elaborated until no command in it fails.
_MOST_ROUNDS = 20
#: The tokens of `SORRY`.
_SORRY_TOKENS = 2


class Setting(StrEnum):
    """What a shorter context has, from the least to the whole."""

    #: Commands that declare nothing, such as `open`, `namespace` and `variable`.
    NONE = "none"
    #: The same, and all declarations that are no theorems.
    DEFINITIONS = "definitions"
    #: The same, and theorems with `sorry` for their proofs.
    STATEMENTS = "statements"
    #: The whole text with its comments, and `sorry` for the proofs of theorems.
    NO_PROOFS = "no-proofs"
    FULL = "full"

    @property
    def keeps_comments(self) -> bool:
        """Whether comments are part of it."""
        return self in (Setting.NO_PROOFS, Setting.FULL)

    def keeps(self, command: Command, proof: Proof | None) -> bool:
        """Return whether a command is part of it, given the proof of the theorem that it declares."""
        if command.is_note and not self.keeps_comments:
            return False
        if self is Setting.NONE:
            return not command.declares
        return proof is None or self is not Setting.DEFINITIONS


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
    """A shorter context, None where there is none, and why.

    `states`: Lean elaborates the line's statement below it; `failed` counts the commands that were left out
    because Lean reports errors in them.
    """

    text: str | None
    tokens: int = 0
    states: bool = False
    failed: int = 0
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
    """A command of a shorter context; `end` is its end in the whole text."""

    end: int
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


class Abridging:
    """Makes the shorter contexts of lines in one environment; `outline` may raise NoOutline."""

    def __init__(self, outline: Callable[[str], Outline], wanted: Wanted, *, at_once: int = 1) -> None:
        self._outline, self._wanted, self._at_once = outline, wanted, at_once

    def shown(self, lines: Sequence[tuple[str, str]], done: Callable[[], None] = lambda: None) -> list[Shown]:
        """Return the shorter context of each line, given by its context and its statement.

        Lines of one file share their work: contexts that begin each other are those of one file. `done` is
        called for each line.
        """
        placed = [_placed(*each) for each in lines]
        found: dict[int, Shown] = {}

        def of_group(group: tuple[_Line, list[int]]) -> None:
            for number, shown in zip(group[1], self._of_file(group[0], group[1], placed), strict=True):
                found[number] = shown
                done()

        with ThreadPoolExecutor(self._at_once) as pool:
            list(pool.map(of_group, _files(placed)))
        nothing = Shown(text=None, why="its context and its statement make no text of their own")
        return [found.get(number, nothing) for number in range(len(lines))]

    def _of_file(
        self, whole: _Line, members: Sequence[int], lines: Sequence[_Line | None]
    ) -> Iterator[Shown]:
        """Yield the contexts of the lines whose contexts begin the one of `whole`."""
        try:
            outline = self._outline(whole.program)
            made = parts(whole.program, outline, self._wanted.setting)
            head = _head(whole.context, outline, self._wanted.setting)
            above = [each for each in made if each.end <= whole.cut]
            kept, _ = self._compiling(head, above, "")
        except NoOutline as error:
            yield from (Shown(text=None, why=str(error)) for _ in members)
            return
        for number in members:
            line = lines[number]
            assert line is not None  # noqa: S101 - only those are in files
            yield self._of_line(line, outline, head, kept, len(above) - len(kept))

    def _of_line(self, line: _Line, outline: Outline, head: str, kept: Sequence[Part], failed: int) -> Shown:
        own = latest([each for each in kept if each.end <= line.cut], self._wanted.most_tokens)
        lead = _lead(line, outline)
        try:
            left, states = self._compiling(head, own, lead + line.program[line.cut :])
        except NoOutline as error:
            return Shown(text=None, why=str(error))
        return Shown(
            text=head + "".join(each.text for each in left) + lead,
            tokens=sum(each.tokens for each in left),
            states=states,
            failed=failed + len(own) - len(left),
        )

    def _compiling(self, head: str, given: Sequence[Part], tail: str) -> tuple[Sequence[Part], bool]:
        """Return the parts that compile, one below the other, and whether the text below them does.

        Raises NoOutline where Lean gives none, or where other parts fail time and again.
        """
        for _ in range(_MOST_ROUNDS):
            starts = [len(head)]
            for each in given:
                starts.append(starts[-1] + len(each.text))
            outline = self._outline(head + "".join(each.text for each in given) + tail)
            failed = {bisect_right(starts, each.start) - 1 for each in outline.commands if each.failed}
            if failed <= {len(given)}:
                return given, not failed
            given = [each for number, each in enumerate(given) if number not in failed]
        raise NoOutline(f"commands of it still fail after {_MOST_ROUNDS} attempts")


def told(found: Collection[Shown]) -> str:
    """Return how many statements compile below their shorter contexts, in words."""
    compiling, without = sum(each.states for each in found), sum(each.text is None for each in found)
    words = f"{compiling} of {len(found)} statements compile below their shorter contexts"
    return f"{words}; {without} have none" if without else words


def parts(text: str, outline: Outline, setting: Setting) -> list[Part]:
    """Return the commands of a text that a setting keeps, each with what it keeps of it."""
    proofs = {each.start: each for each in outline.proofs}
    starts = [*(each.start for each in outline.commands[1:]), len(text)]
    return [
        _part(text, command, proofs.get(command.start), until, setting)
        for command, until in zip(outline.commands, starts, strict=False)
        if setting.keeps(command, proofs.get(command.start))
    ]


def _part(text: str, command: Command, proof: Proof | None, until: int, setting: Setting) -> Part:
    edits, tokens = list[Edit](), command.tokens
    if proof is not None and setting is not Setting.FULL:
        edits.append(Edit(start=proof.value - command.start, end=proof.end - command.start, text=SORRY))
        tokens += _SORRY_TOKENS - proof.tokens
    if not setting.keeps_comments:
        edits += [Edit(start=start - command.start, end=end - command.start) for start, end in command.docs]
    own = edited(text[command.start : until if setting.keeps_comments else command.end], edits)
    if not setting.keeps_comments:
        own = own.strip() + "\n\n"
    return Part(end=command.end, text=own, tokens=tokens, declares=command.declares)


def latest(given: Sequence[Part], most_tokens: int | None) -> list[Part]:
    """Return the parts without the earliest declarations, so that there are at most so many tokens.

    Parts that declare nothing stay: what is left may need their scopes.
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


def _lead(line: _Line, outline: Outline) -> str:
    """Return the end of a context that belongs to the line's own theorem, such as `open Nat in`."""
    around = next((each for each in outline.commands if each.start < line.cut < each.end), None)
    return "" if around is None else line.program[around.start : line.cut]
