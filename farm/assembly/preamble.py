"""Assembly step, what stands before the target in the model's code: settings, helper lemmas, scopes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from farm.assembly.answer import Span
from farm.scanner import NAME, opaque_spans


class Preamble(NamedTuple):
    """What is kept of the text before the target, and what is not.

    `kept` are the spans that go before the restated statement, none when there is no helper. `differs` are
    the offsets of settings that are lost, `dropped` those of commands whose scope would reach the statement,
    and `openers` counts the namespaces and sections among these, whose ``end`` must go too.
    """

    kept: tuple[Span, ...] = ()
    differs: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    openers: int = 0


class _Command(NamedTuple):
    word: str
    line: int
    name: str


_DECLARING_WORDS = """
    theorem lemma def abbrev instance example structure inductive class axiom opaque notation notation3 infix
    infixl infixr prefix postfix macro macro_rules syntax elab elab_rules attribute deriving initialize alias
    irreducible_def declare_syntax_cat simproc
"""
_DECLARE = frozenset(_DECLARING_WORDS.split())
_SETTINGS = frozenset({"open", "set_option", "universe", "universes"})
_SCOPES = frozenset({"variable", "variables", "include", "omit"})
_OPENERS = frozenset({"namespace", "section", "mutual"})
_LEADS = frozenset({"/--", "@["})
_KNOWN = _DECLARE | _SETTINGS | _SCOPES | _OPENERS | _LEADS | {"import", "end", ""}

_LINE = re.compile(
    rf"""^(?P<lead>[ \t]*(?:(?:@\[[^\]\n]*\]|private|protected|noncomputable|unsafe|partial|nonrec
    |local|scoped|public)[ \t]*)*)
    (?:(?P<word>[a-z_0-9]+(?![\w.'])|/--|@\[)(?:[ \t]+(?P<name>{NAME}))?|(?=\n))""",
    re.VERBOSE | re.MULTILINE,
)
_GOES_ON = re.compile(r"[^\n]*+(?:\n[ \t]++\S[^\n]*+)*+\n?")
_IN = re.compile(r"[^\n]*\bin[ \t]*$", re.MULTILINE)
_END = re.compile(r"[ \t]*end\b[^\n]*")


@lru_cache(maxsize=256)
def _lines_of(header: str) -> frozenset[str]:
    return frozenset(" ".join(line.split()) for line in header.split("\n"))


def read(text: str, start: int, target: int, header: str, name: str) -> Preamble:
    """Return what becomes of ``text[start:target]``, which stands before the target's keyword."""
    start = _after_prefix(text, start, header.strip())
    if text[start:target].isspace() or start == target:
        return Preamble()
    commands, end = _before(list(_commands(text, start, target)), target, name)
    dropped, openers = _open_scopes(commands)
    known = _lines_of(header)
    lost = [c.line for c in commands if c.word in _SETTINGS and _line(text, c.line) not in known]
    if not any(c.word in _DECLARE for c in commands):
        return Preamble((), tuple(lost), tuple(dropped), openers)
    unwanted = {*dropped, *(c.line for c in commands if c.word == "import")}
    useless = unwanted | {c.line for c in commands if c.word in _SETTINGS}.difference(lost)
    first = next(c.line for c in commands if c.line not in useless)
    holes = _holes(text, [at for at in sorted(unwanted) if at >= first], end)
    return Preamble(tuple(_without(first, end, holes)), (), tuple(dropped), openers)


def _after_prefix(text: str, start: int, header: str) -> int:
    """Return where the text goes on after the header, when it begins with it to the letter."""
    first = start
    while text.startswith("\n", first):
        first += 1
    after = first + len(header)
    return after if header and text.startswith(header, first) and text.startswith("\n", after) else start


def _holes(text: str, commands: list[int], end: int) -> Iterator[Span]:
    """Yield the spans of commands, those apart that stand in the lines with which one before them goes on."""
    reached = -1
    for at in commands:
        if at >= reached:
            reached = _end_of_command(text, at, end)
            yield at, reached


def _end_of_command(text: str, at: int, end: int) -> int:
    found = _GOES_ON.match(text, at, end)
    return found.end() if found else at


def _line(text: str, at: int) -> str:
    end = text.find("\n", at)
    return " ".join(text[at : len(text) if end < 0 else end].split())


def _commands(text: str, start: int, end: int) -> Iterator[_Command]:
    """Yield the commands that begin a line in code, doc comments and attributes before them apart."""
    spans = opaque_spans(text, start, end)
    hidden_from, hidden_to = next(spans, (end, end))
    for found in _LINE.finditer(text, start, end):
        at = found.start("word") if found["word"] else found.end("lead")
        while hidden_to <= at < end and hidden_from < end:
            hidden_from, hidden_to = next(spans, (end, end))
        word = found["word"] or ""
        is_hidden = hidden_from < at or (hidden_from == at and word != "/--")
        if is_hidden or word not in _KNOWN or not (word or found["lead"].strip()):
            continue
        if not word or (word in _SETTINGS and _IN.match(text, at, end)):
            word = "@["
        yield _Command(word, found.start(), found["name"] or "")


def _before(commands: list[_Command], target: int, name: str) -> tuple[list[_Command], int]:
    """Return the commands before the target's own lead-in, and where that begins.

    An earlier declaration of the target, as in a prompt that is echoed, ends what is looked at.
    """
    for number, command in enumerate(commands):
        if name and command.word in _DECLARE and command.name == name:
            commands, target = commands[:number], command.line
            break
    while commands and commands[-1].word in _LEADS:
        target = commands.pop().line
    return commands, target


def _open_scopes(commands: list[_Command]) -> tuple[list[int], int]:
    """Return the offsets of the commands whose scope is open at the end, and how many are openers."""
    scopes: list[list[_Command]] = [[]]
    for command in commands:
        if command.word in _OPENERS:
            scopes.append([command])
        elif command.word == "end" and len(scopes) > 1:
            scopes.pop()
        elif command.word in _SCOPES:
            scopes[-1].append(command)
    return sorted(command.line for scope in scopes for command in scope), len(scopes) - 1


def _without(start: int, end: int, holes: Iterable[Span]) -> Iterator[Span]:
    for hole_start, hole_end in holes:
        if start < hole_start:
            yield start, hole_start
        start = max(start, hole_end)
    if start < end:
        yield start, end


def after_header(text: str, start: int, end: int, header: str) -> int:
    """Return where code that declares nothing begins: after the imports and the lines that the header has."""
    known = _lines_of(header)
    at = start
    while at < end:
        line_end = text.find("\n", at, end)
        line_end = end if line_end < 0 else line_end
        line = " ".join(text[at:line_end].split())
        if line not in known and not line.startswith("import "):
            return at if line else start
        at = min(line_end + 1, end)
        start = at if line else start
    return start


def without_ends(text: str, start: int, end: int, count: int) -> int:
    """Return the end of the code without its last `count` lines of ``end``."""
    for _ in range(count):
        line = text.rfind("\n", start, end) + 1
        if line <= start or not _END.fullmatch(text, line, end):
            return end
        end = line
        while end > start and text[end - 1].isspace():
            end -= 1
    return end
