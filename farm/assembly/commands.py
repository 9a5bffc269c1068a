"""Assembly step, commands: finds the commands of a Lean text, for the preamble and the context.

Programs can extend Lean's grammar, so no list of words is complete. The lists of this package decide only
which candidate programs the farm tries:

- The lists here serve programs that restate the statement. Such a program drops a command that the lists
  lack, or keeps one that it could drop. Before it, the farm tries the model's own whole text, to which no
  list applies.
- A lead-in at the end of a context moves from one part of the challenge to the other, so a wrong guess does
  not change the challenge's text.
- `farm.assembly.vocabulary` knows signs of prose, to choose a part of an answer without a block tagged as
  Lean, and the commands before which a declaration there may begin.

The verdict comes from Lean alone: on every tier above `lean`, an audit compares the proved theorem with the
challenge, which contains all of the dataset's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from farm.assembly.answer import Span
from farm.lean_text.scanner import NAME, Opaque, opaque_spans

_DECLARING_WORDS = """
    theorem lemma def abbrev instance example structure inductive class axiom opaque notation notation3 infix
    infixl infixr prefix postfix macro macro_rules syntax elab elab_rules attribute deriving initialize alias
    irreducible_def declare_syntax_cat simproc coinductive add_decl_doc run_cmd
"""
DECLARING = frozenset(_DECLARING_WORDS.split())
"""Words of commands that define something for the text after them; each ends at the next command."""

SETTINGS = frozenset({"open", "set_option", "universe", "universes", "export", "suppress_compilation"})
"""Words of commands that change how Lean reads the text after them."""

SCOPES = frozenset({"variable", "variables", "include", "omit"})
"""Words of commands that may add arguments to the declarations after them."""

NOTATIONS = frozenset({"notation", "notation3", "infix", "infixl", "infixr", "prefix", "postfix"})
"""Words of commands that change how Lean reads terms, those of the statement too."""

OPENERS = frozenset({"namespace", "section", "mutual"})
"""Words of commands that an ``end`` closes."""

_NAMELESS_WORDS = """
    example notation notation3 infix infixl infixr prefix postfix macro macro_rules syntax elab elab_rules
    attribute deriving initialize add_decl_doc run_cmd
"""
_NAMELESS = frozenset(_NAMELESS_WORDS.split())
_KNOWN = DECLARING | SETTINGS | SCOPES | OPENERS | {"import", "end"}


class LeanCommand(NamedTuple):
    """One command of a text.

    `start` is the beginning of the line on which its lead-in begins (doc comment, attributes, ``... in``),
    `keyword` the offset of its word. `end` is the end of its text: of its last character that is no white
    space if it declares something, or else of its line and the indented lines below. `name` is the declared
    name with the namespaces of the text around it, or the name that it opens or closes, or "". `ins` are the
    spans of ``... in`` in its lead-in.
    """

    word: str
    name: str
    start: int
    keyword: int
    end: int
    ins: tuple[Span, ...]

    @property
    def declares(self) -> bool:
        """Whether the command defines something for the text after it."""
        return self.word in DECLARING

    @property
    def opens(self) -> bool:
        """Whether an ``end`` closes the command."""
        return self.word in OPENERS

    @property
    def names(self) -> bool:
        """Whether the command declares its `name`, so that no later command can declare it."""
        return bool(self.name) and self.word in DECLARING and self.word not in _NAMELESS


_MODIFIER = r"(?:private|protected|noncomputable|unsafe|partial|nonrec|local|scoped|public|meta)(?![\w.'])"
_WORDS = "|".join(sorted(_KNOWN, key=len, reverse=True))
_LINE = re.compile(rf"^([ \t]*)(?:/--|@\[|#[a-z]|(?:{_MODIFIER}|(?:{_WORDS})(?![\w.'])))", re.MULTILINE)
_ATTRIBUTES = re.compile(r"@\[[^\]]{0,300}\]")
_LEAD = re.compile(rf"scoped\[[^\]\n]{{0,300}}\]|{_MODIFIER}")
_WORD = re.compile(r"#?[a-z_0-9]+")
_NAME = re.compile(rf"[ \t]+({NAME})")
_DECLARED = re.compile(rf"\s+(?:inductive\s+)?({NAME})")
# Bounded: a lead-in without its `in` would take quadratic time.
_IN = re.compile(
    r"(?:open|set_option|omit|include|variable|attribute|universe|unseal|seal)\b"
    r"[^\n]*?(?:\n[ \t]+\S[^\n]*?){0,4}?"
    rf"\sin(?=[ \t]*(?:--[^\n]*)?(?:\n|\Z)|\s+(?:/--|@\[|{_MODIFIER}|(?:{_WORDS})(?![\w.'])))"
)
_MOST = 10_000
_LONGEST_LEAD = 1 << 17
_GOES_ON = re.compile(r"[^\n]*+(?:\n[ \t]++\S[^\n]*+|(?!))*+")


def commands(text: str, start: int, end: int) -> Iterator[LeanCommand]:
    """Yield the commands that begin a line of ``text[start:end]`` in code; names have their namespaces.

    After `_MOST` commands the last one includes the rest of the text.
    """
    heads = list(islice(_heads(text, start, end), _MOST))
    scopes: list[str] = []
    for head, until in zip(heads, [*(later.start for later in heads[1:]), end], strict=False):
        name = _qualified(scopes, head.name) if head.names else head.name
        command = head._replace(name=name, end=_end(text, head, until))
        _follow(scopes, command)
        yield command


def namespaces(found: Sequence[LeanCommand]) -> str:
    """Return the prefix of a name in the namespaces that are open after some commands."""
    scopes: list[str] = []
    for command in found:
        _follow(scopes, command)
    return "".join(scopes[-_DEEPEST:])


def _follow(scopes: list[str], command: LeanCommand) -> None:
    if command.opens:
        scopes.append(f"{command.name}." if command.word == "namespace" else "")
    elif command.word == "end" and scopes:
        scopes.pop()


def _qualified(scopes: list[str], name: str) -> str:
    """Return a name with the innermost namespaces around it, at most `_DEEPEST` to keep the time linear."""
    around = "".join(scopes[-_DEEPEST:])
    return name.removeprefix("_root_.") if name.startswith("_root_.") else around + name


_DEEPEST = 20


def _end(text: str, head: LeanCommand, until: int) -> int:
    if head.word not in DECLARING:
        found = _GOES_ON.match(text, head.keyword, until)
        until = found.end() if found else until
    return head.keyword + len(text[head.keyword : until].rstrip())


def trailing_lead(text: str) -> int:
    """Return the offset of the lead-in at the end of a text, or the text's length without a lead-in.

    A lead-in consists of doc comments, attributes, modifiers and ``... in``, and belongs to the declaration
    after it. Only the last `_LONGEST_LEAD` characters are searched.
    """
    start = text.find("\n", -_LONGEST_LEAD) if len(text) > _LONGEST_LEAD else 0
    if start < 0:
        return len(text)
    opaque = Opaque(text, start, len(text))
    for found in _LINE.finditer(text, start):
        at = found.end(1)
        if not opaque.hides(at) and _lead_in(text, at, len(text))[0] >= len(text):
            return found.start()
    return len(text)


def _heads(text: str, start: int, end: int) -> Iterator[LeanCommand]:
    """Yield the commands of `commands`, but with unqualified names, and with ends behind their words."""
    opaque = Opaque(text, start, end)
    reached, inside = start, -1
    for found in _LINE.finditer(text, start, end):
        at = found.end(1)
        indent = at - found.start()
        # A line that is indented deeper than the declaration before it belongs to that declaration.
        if at < reached or 0 <= inside < indent or opaque.hides(at):
            continue
        at, ins = _lead_in(text, at, end)
        word = _WORD.match(text, at, end)
        reached = word.end() if word else at
        if word and (word[0] in _KNOWN or word[0][0] == "#"):
            named = (_DECLARED if word[0] in DECLARING else _NAME).match(text, reached, end)
            yield LeanCommand(word[0], named[1] if named else "", found.start(), at, reached, ins)
            inside = indent if word[0] in DECLARING else -1


def _lead_in(text: str, at: int, end: int) -> tuple[int, tuple[Span, ...]]:
    """Return the offset of a command's word, and the spans of ``... in`` before it."""
    ins: list[Span] = []
    while True:
        at = _ink(text, at, end)
        if text.startswith(("/-", "--"), at):
            at = next(opaque_spans(text, at, end), (at, end))[1]
        elif found := _ATTRIBUTES.match(text, at, end) or _LEAD.match(text, at, end):
            at = found.end()
        elif found := _IN.match(text, at, end):
            ins.append(found.span())
            at = found.end()
        else:
            return at, tuple(ins)


def _ink(text: str, at: int, end: int) -> int:
    while at < end and text[at].isspace():
        at += 1
    return at
