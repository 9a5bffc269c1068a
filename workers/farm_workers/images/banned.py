"""Image step, banned tactics: writes which forbidden tactics Lean ran for a program to a file.

They are read in Lean's trees of the elaboration, which have a node for each tactic that Lean ran, also for
those that a macro expands to. The process that ran the program can change the trees, so
`farm_workers.images.reading` first makes sure that the program does not change Lean.
"""

from __future__ import annotations

import json

from farm_workers.binding import table
from farm_workers.binding.lean import Callback
from farm_workers.binding.objects import FALSE, NOTHING, LeanError, dotted, field, number_of, shared
from farm_workers.binding.table import Ability
from farm_workers.images.frontend import Frontend
from farm_workers.images.protocol import BANNED_NAME, Banned
from farm_workers.images.reading import Source, first_token, has_token

_MOST_USES = 16


def write_banned(frontend: Frontend, program: str, banned: Banned) -> None:
    """Write which forbidden tactics the program that was just elaborated uses. Raises LeanError, OSError."""
    if reason := frontend.lean.lacks(Ability.READING):
        raise LeanError(reason)
    uses = _Uses(frontend, program, banned).found()
    with open(BANNED_NAME, "x", encoding="utf-8") as file:  # noqa: PTH123
        json.dump({"uses": uses[:_MOST_USES]}, file)


class _Uses:
    def __init__(self, frontend: Frontend, program: str, banned: Banned) -> None:
        self._frontend, self._lean = frontend, frontend.lean
        self._tokens, self._kinds = banned["tokens"], frozenset(banned["kinds"])
        self._source = Source(program, banned["submitted"])
        self._tactic, self._term = (self._lean.number(each) for each in (table.IS_TACTIC, table.IS_TERM))
        self._found: dict[tuple[str, int], None] = {}

    def found(self) -> list[tuple[str, int]]:
        """Return the forbidden words that were used in the submission, each with its line."""
        visit = Callback(self._visit)
        for tree in self._frontend.trees():
            self._lean.call(table.FOLD_TREE, self._lean.closure(visit), NOTHING, shared(tree))
        return list(self._found)

    def _visit(self, _context: int, info: int, found: int) -> int:
        lean, kind = self._lean, number_of(info)
        if kind == self._tactic:
            self._judge(lean.get(table.INFO_SYNTAX, lean.get(table.TACTIC_INFO, field(info, 0))))
        elif kind == self._term and self._kinds:
            self._judge(lean.get(table.INFO_SYNTAX, lean.get(table.TERM_INFO, field(info, 0))), is_term=True)
        return found

    def _judge(self, syntax: int, *, is_term: bool = False) -> None:
        kind = dotted(self._lean.call(table.SYNTAX_KIND, shared(syntax))) if self._kinds else ""
        word = kind if kind in self._kinds else None
        if word is None and not is_term:
            word = has_token(first_token(syntax), self._tokens)
        if word is None:
            return
        start, end = (self._place(each, syntax) for each in (table.START, table.END))
        if start is None or self._source.is_submitted(start, end or start):
            self._found[word, self._source.line(start or 0)] = None

    def _place(self, which: table.Function, syntax: int) -> int | None:
        found = self._lean.call(which, shared(syntax), FALSE)
        return None if found == NOTHING else field(found, 0) >> 1
