"""Image step, filling: has Lean's parser read an answer in its hole, in a fork that elaborates none of it.

The commands above the hole are elaborated, so that their notations are known. Lean's parser then reads the
hole's own command twice, as it is in the draft and with the answer. Both trees have to agree in all but the
place of the hole, where the answer has to be all that the farm wrote there: a sequence of tactics, or a term,
in parentheses. An answer that closes what stands around it, or leaves something open, has another tree.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from farm_workers.binding import table
from farm_workers.binding.objects import LeanError, boxed, elements, field, shared, tag
from farm_workers.binding.table import Ability
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import BREAKS_OUT, FITS, NO_HOLE, UNREADABLE, FillAsked
from farm_workers.images.reading import normal
from farm_workers.images.syntax import NODE, kind_of, span

#: A term in parentheses, and a sequence of tactics, in each of Lean's languages of tactics.
_IN_PARENTHESES = frozenset(
    f"Lean.Parser.{each}.paren" for each in ("Term", "Tactic", "Tactic.Conv", "Tactic.Grind")
)


def filling_in(frontend: Frontend, asked: FillAsked) -> dict[str, object]:
    """Return how an answer fits into its hole: `protocol.FITS` or another one of these words.

    A draft with an error fits: Lean reports the error when the draft is compiled. Raises LeanError where Lean
    cannot be asked.
    """
    if reason := frontend.lean.lacks(Ability.READING):
        raise LeanError(reason)
    for stream in (1, 2):
        os.dup2(0, stream)  # the messages of the check itself count
    frontend.elaborate(asked["program"][: asked["start"]] + "\n", None)
    return {"fit": _Filling(frontend, asked).fit()}


class _Text:
    """A text as Lean has it, where places are bytes, and the span in it that the two texts do not share."""

    def __init__(self, frontend: Frontend, text: str, own: Sequence[int]) -> None:
        self.bytes = normal(text)
        self.input = frontend.input(text)
        self.start, self.end = (len(normal(text[:offset])) for offset in own)


class _Command(NamedTuple):
    """A command that was read: its syntax, the parser's state behind it, the byte there, and if it failed."""

    syntax: int
    behind: int
    end: int
    failed: bool


class _Filling:
    """Reads the draft and the program with the answer; Lean's state is that above the next command."""

    def __init__(self, frontend: Frontend, asked: FillAsked) -> None:
        self._frontend, self._lean = frontend, frontend.lean
        self._state = frontend.last_state()
        self._first = len(normal(asked["program"][: asked["start"]]))
        self._draft = _Text(frontend, asked["draft"], asked["hole"])
        self._filled = _Text(frontend, asked["program"], asked["answer"])

    def fit(self) -> str:
        """Return how the answer fits into the hole."""
        draft, at = self._draft, self._at(self._first)
        begun = self._first
        while (command := self._read(draft, at)).end <= draft.start and begun < command.end:
            if command.failed:
                return FITS
            self._elaborate(at, command.end)
            at, begun = shared(command.behind), command.end
        if command.end <= draft.start:
            return NO_HOLE
        filled = self._read(self._filled, at)
        if command.failed:
            return FITS
        if filled.failed:
            return UNREADABLE
        is_same_end = filled.end - self._filled.end == command.end - draft.end
        return FITS if is_same_end and self._is_filled(command.syntax, filled.syntax) else BREAKS_OUT

    def _is_filled(self, draft: int, filled: int) -> bool:
        """Return whether two trees agree but for the hole and the answer in its place."""
        count, todo = 0, [(draft, filled)]
        while todo:
            pair = todo.pop()
            if (parts := self._parts(*pair)) is not None:
                todo += parts
            elif self._is_same_leaf(*pair):
                continue
            elif self._is_answer(*pair):
                count += 1
            else:
                return False
        return count == 1

    def _parts(self, draft: int, filled: int) -> list[tuple[int, int]] | None:
        """Return the parts of two nodes of the same kind side by side, None for anything else."""
        if draft & 1 or filled & 1 or not tag(draft) == tag(filled) == NODE:
            return None
        if kind_of(draft) != kind_of(filled):
            return None
        parts, others = elements(field(draft, 2)), elements(field(filled, 2))
        return list(zip(parts, others, strict=True)) if len(parts) == len(others) else None

    def _is_same_leaf(self, draft: int, filled: int) -> bool:
        """Return whether two leaves have the same text of the draft, or none."""
        if draft & 1 or filled & 1:
            return draft == filled
        if tag(draft) != tag(filled) or tag(draft) == NODE:
            return False
        place, other = span(self._lean, draft), span(self._lean, filled)
        if place is None or other is None:
            return place == other
        moved = self._filled.end - self._draft.end if place[0] >= self._draft.end else 0
        is_around = place[1] <= self._draft.start or place[0] >= self._draft.end
        return is_around and other == (place[0] + moved, place[1] + moved)

    def _is_answer(self, draft: int, filled: int) -> bool:
        """Return whether a part of the draft is the hole, and one of the other text what the farm wrote."""
        hole, answer = (self._draft.start, self._draft.end), (self._filled.start, self._filled.end)
        if filled & 1 or tag(filled) != NODE:
            return False
        if span(self._lean, draft) != hole or span(self._lean, filled) != answer:
            return False
        return kind_of(filled) in _IN_PARENTHESES

    # Lean's values

    def _at(self, byte: int) -> int:
        return self._lean.make(table.PARSER_AT, {"pos": boxed(byte), "recovering": 0})

    def _read(self, source: _Text, at: int) -> _Command:
        lean = self._lean
        nothing = shared(lean.constant(table.NO_MESSAGES))
        read = lean.call(table.PARSE_COMMAND, shared(source.input), self._scope(), shared(at), nothing)
        behind, log = field(field(read, 1), 0), field(field(read, 1), 1)
        return _Command(
            syntax=field(read, 0),
            behind=behind,
            end=lean.get(table.PARSER_POSITION, behind) >> 1,
            failed=bool(elements(lean.call(table.MESSAGE_ARRAY, shared(log)))),
        )

    def _elaborate(self, at: int, end: int) -> None:
        """Continue behind a command of the draft: Lean's loop reads a text that ends there."""
        lean = self._lean
        until = self._frontend.input(self._draft.bytes[:end].decode("utf-8", "surrogatepass"))
        done = lean.call(table.PROCESS_COMMANDS, until, shared(at), shared(self._state))
        self._state = shared(lean.get(table.DONE_STATE, done))

    def _scope(self) -> int:
        lean, scope = self._lean, field(self._lean.get(table.SCOPES, self._state), 0)
        parts = {
            "env": shared(lean.get(table.ENVIRONMENT, self._state)),
            "options": shared(lean.get(table.SCOPE_OPTIONS, scope)),
            "currNamespace": shared(lean.get(table.SCOPE_NAMESPACE, scope)),
            "openDecls": shared(lean.get(table.SCOPE_OPEN, scope)),
        }
        return lean.make(table.PARSER_CONTEXT, parts)
