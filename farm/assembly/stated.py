"""Assembly step, stated: reads the commands of header and statement above the target, for the preamble."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from farm.assembly.commands import LeanCommand, commands, namespaces
from farm.assembly.declaration import Target
from farm.lean_text.scanner import words

IN_HEADER = 0
"""The end of a command of the header, as an offset in the statement."""


class Known(NamedTuple):
    """A command of the dataset: its tokens, and the offset of its end in the statement, or `IN_HEADER`."""

    words: str
    end: int


class Stated(NamedTuple):
    """The commands of the dataset's text above the target.

    `lead` is the offset in the statement at which the target's own lead-in begins, and `ins` holds the
    lead-in's ``... in``, as tokens. `names` maps names to the commands that declare them; `others` maps the
    tokens of all other commands to their ends, and `kinds` holds the words of these. `ends` are the offsets
    in the statement at which its commands before the target end, and `comment` is the text between the last
    of them and the target's lead-in.
    """

    lead: int
    ins: frozenset[str]
    names: Mapping[str, Known]
    others: Mapping[str, tuple[int, ...]]
    kinds: frozenset[str]
    ends: tuple[int, ...]
    comment: str


#: The longest text whose commands are cached: contexts have hundreds of lines, and thousands of them differ.
_LONGEST_KEPT = 1 << 14


def read_stated(header: str, statement: str, target: Target) -> Stated:
    """Return the commands that a header and a statement have above this target."""
    is_long = len(header) + len(statement) > _LONGEST_KEPT
    return (_read_stated if is_long else _kept_stated)(header, statement, target)


def _read_stated(header: str, statement: str, target: Target) -> Stated:
    before, lead = split_lead(statement, 0, target.start, target.name_end)
    names: dict[str, Known] = {}
    others: dict[str, tuple[int, ...]] = {}
    kinds: set[str] = set()
    for part, is_statement in ((_read_header(header), False), (_read(statement, before), True)):
        around = namespaces([command for command, _ in part])
        for command, tokens in part:
            end = command.end if is_statement else IN_HEADER
            if command.names:
                names[command.name] = names[command.name.removeprefix(around)] = Known(tokens, end)
            else:
                others[tokens] = (*others.get(tokens, ()), end)
                kinds.add(command.word)
    ins = frozenset(words(statement, *span) for span in lead.ins) if lead else frozenset()
    start = lead.start if lead else target.start
    ends = tuple(command.end for command in before)
    comment = statement[max(ends, default=0) : start].strip()
    return Stated(start, ins, names, others, frozenset(kinds), ends, comment)


_kept_stated = lru_cache(maxsize=1024)(_read_stated)


@lru_cache(maxsize=256)
def _read_header(header: str) -> tuple[tuple[LeanCommand, str], ...]:
    return _read(header, commands(header, 0, len(header)))


def _read(text: str, found: Iterable[LeanCommand]) -> tuple[tuple[LeanCommand, str], ...]:
    """Return commands with their tokens, without imports."""
    return tuple((each, words(text, each.start, each.end)) for each in found if each.word != "import")


def split_lead(
    text: str, start: int, keyword: int, name_end: int
) -> tuple[tuple[LeanCommand, ...], LeanCommand | None]:
    """Return the commands before the declaration whose keyword stands at `keyword`, and its own command.

    The own command is None for a declaration that does not begin its line.
    """
    found = tuple(commands(text, start, name_end))
    if found and found[-1].keyword == keyword:
        return found[:-1], found[-1]
    return tuple(command for command in found if command.end <= keyword), None
