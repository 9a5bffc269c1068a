"""Assembly step, Lean's declarations: where they are, what they are called, where their bodies begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from farm.lean_text.scanner import NAME, code_tokens, first_sorry, opaque_spans, words

_THEOREMS = ("theorem", "lemma", "example")
_DEFINITIONS = ("def", "instance", "abbrev")
# Which keywords may stand for which: a model may call a theorem a lemma, not a definition.
_ALIKE = {word: words for words in (_THEOREMS, _DEFINITIONS) for word in words} | {
    "": _THEOREMS + _DEFINITIONS
}


class Declaration(NamedTuple):
    """A declaration: the offset of its keyword, the keyword, its name ("" without one), where that ends."""

    start: int
    keyword: str
    name: str
    name_end: int


class Signature(NamedTuple):
    """How a declaration's signature ends.

    `style` is ``assign`` (``:=``), ``equations`` (``|``), ``where`` or ``missing``; `end` is where the mark
    stands and `body` where the body begins: after ``:=`` and ``where``, at the first ``|``.
    """

    style: str
    end: int
    body: int


_ATTRIBUTE = r"@\[[^\]\n]*\]"
_MODIFIER = "private|protected|noncomputable|unsafe|partial|nonrec|public|local|scoped|meta"
_MODIFIERS = re.compile(rf"[ \t]*+(?:(?:{_ATTRIBUTE}|{_MODIFIER})[ \t]*+)*+")
_NAMED = re.compile(rf"\s+({NAME})")
_SPACED = re.compile(r"[\s({\[⦃:]")


def declarations(text: str, start: int, end: int, keyword: str) -> Iterator[Declaration]:
    """Yield what looks like a declaration at the beginning of a command; comments are not known here."""
    at = start - 1
    while (at := text.find(keyword, at + 1, end)) >= 0:
        if (declaration := _declared(text, start, end, at, keyword)) is not None:
            yield declaration


def _declared(text: str, start: int, end: int, at: int, keyword: str) -> Declaration | None:
    """Return the declaration whose keyword stands at a place, None where that is no keyword."""
    after = at + len(keyword)
    if not (at == start or text[at - 1] in "\n \t]/") or not _SPACED.match(text, after, end):
        return None
    if not _begins_command(text, start, at):
        return None
    named = _NAMED.match(text, after, end)
    name, name_end = (named[1], named.end()) if named else ("", after)
    return Declaration(at, keyword, name, name_end)


_LONGEST_LEAD_IN = 300
_LONGEST_READ = 1 << 20
#: So much is read token by token, which takes ten times as long: a signature, what follows it, a sorry.
_LONGEST_LEXED = 1 << 17


def _begins_command(text: str, start: int, at: int) -> bool:
    """Return whether only attributes, modifiers, a comment or ``... in`` stand before it on its line."""
    if at == start or text[at - 1] == "\n":
        return True
    before = text[max(start, at - _LONGEST_LEAD_IN) : at].rpartition("\n")[2]
    for mark in ("-/", " in "):
        before = before.rpartition(mark)[2]
    return _MODIFIERS.fullmatch(before) is not None


def find(text: str, start: int, end: int, target: Target) -> Declaration | None:
    """Return the declaration that has the target's name and stands in code, None without one.

    Of several it is the last that is whole.

    It is looked for in the last `_LONGEST_READ` characters, which is more than anyone writes.
    """
    if not target.name:
        return None
    start = max(start, end - _LONGEST_READ)
    for keyword in _ALIKE[target.keyword]:
        if text.find(keyword, start, end) >= 0 and text.find(target.name, start, end) >= 0:
            found = [d for d in declarations(text, start, end, keyword) if d.name == target.name]
            if found and (code := _in_code(text, start, found)):
                return code[-1] if len(code) == 1 else _last_whole(text, code, end)
    return None


def _last_whole(text: str, found: list[Declaration], end: int) -> Declaration:
    """Return the last of some declarations that has a proof without a sorry, the last where none has."""
    for declaration, until in zip(reversed(found), [end, *(d.start for d in reversed(found))], strict=False):
        body = text[signature(text, declaration, until).body : until]
        if is_proof(body):
            return declaration
    return found[-1]


def is_proof(body: str) -> bool:
    """Return whether a body is there and has no sorry."""
    return body.strip() not in ("", "by") and sorry_at(body) < 0


def sorry_at(text: str) -> int:
    """Return the offset of the first sorry in a text, -1 without one in the part that is read."""
    return first_sorry(text[:_LONGEST_LEXED])


def find_again(text: str, declared: Declaration, end: int) -> int:
    """Return where the line begins on which something is declared once more, `end` where nothing is."""
    if not declared.name or text.find(declared.name, declared.name_end, end) < 0:
        return end
    later = (d for word in _ALIKE[declared.keyword] for d in declarations(text, declared.name_end, end, word))
    again = _in_code(text, declared.start, sorted(d for d in later if d.name == declared.name))
    return text.rfind("\n", declared.start, again[0].start) + 1 if again else end


def find_like(text: str, start: int, end: int, keyword: str) -> Declaration | None:
    """Return the last declaration by `keyword`, or by one that may stand for it, that stands in code."""
    start = max(start, end - _LONGEST_READ)
    found = [last for word in _ALIKE[keyword] if (last := _last(text, start, end, word)) is not None]
    return max(found, default=None)


def _last(text: str, start: int, end: int, keyword: str) -> Declaration | None:
    """Return the last declaration by a keyword that stands in code."""
    at, last = end, None
    while last is None and (at := text.rfind(keyword, start, at)) >= 0:
        last = _declared(text, start, end, at, keyword)
    if last is None or _in_code(text, start, [last]):
        return last
    return next(reversed(_in_code(text, start, list(declarations(text, start, last.start, keyword)))), None)


def _in_code(text: str, start: int, found: list[Declaration]) -> list[Declaration]:
    if not found or not _may_hide(text, start, found[-1].start):
        return found
    kept: list[Declaration] = []
    spans = opaque_spans(text, start, found[-1].name_end)
    hidden_from, hidden_to = next(spans, (len(text), len(text)))
    for declaration in found:
        while hidden_to <= declaration.start and hidden_from < len(text):
            hidden_from, hidden_to = next(spans, (len(text), len(text)))
        if declaration.start < hidden_from:
            kept.append(declaration)
    return kept


def _may_hide(text: str, start: int, end: int) -> bool:
    return any(text.find(mark, start, end) >= 0 for mark in ("/-", "--", '"'))


# All that decides where a signature ends; everything else is passed over.
_MARK = re.compile(
    r"""(?P<opaque>--[^\n]*+|/-|"|«[^«»\n]*+»)
    |(?P<open>[(\[{⟨⟪⟦⦃])|(?P<close>[)\]}⟩⟫⟧⦄])|(?P<assign>:=)|(?P<arrow>=>)|(?P<bar>\|(?<=[ \t\n]\|))
    |(?P<binder>\b(?:let|have|letI|haveI)\b(?!['!?.]))|(?P<function>\b(?:fun|match)\b|λ)
    |(?P<where>\bwhere\b)|(?P<command>^(?:theorem|lemma|example|def|instance|abbrev|end)\b)""",
    re.VERBOSE | re.MULTILINE,
)


class _Signature:
    """Reads marks until one of them ends the signature; `end` and `found` are its answer."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.found: Signature | None = None
        self._depth = self._assigns = self._arrows = 0
        self._bar = -1
        self._is_matching = False

    def read(self, position: int) -> None:
        while self.found is None and (mark := _MARK.search(self.text, position, self.end)):
            at, position = mark.span()
            group = mark.lastgroup
            if group == "opaque":
                position = max(position, next(opaque_spans(self.text, at, self.end), (at, position))[1])
            elif group == "open":
                self._depth += 1
            elif group == "close":
                self._depth = max(0, self._depth - 1)
            elif group == "command":
                self.end = at
            elif not self._depth:
                self._meet(group or "", at, position)

    def _meet(self, group: str, at: int, after: int) -> None:
        if group == "binder":
            self._assigns += 1
        elif group == "function":
            self._arrows += 1
            self._is_matching = True
        elif group == "where":
            self.found = Signature("where", at, after)
        elif group == "bar" and self._bar < 0 and not self._is_matching:
            self._meet_bar(at)
        elif group == "arrow":
            self._meet_arrow()
        elif group == "assign":
            if not self._assigns:
                self.found = Signature("assign", at, after)
            self._assigns -= 1

    def _meet_bar(self, at: int) -> None:
        before = self.text[max(0, at - _DEEPEST_INDENT) : at].rstrip(" \t")
        if not before.endswith("\n"):
            return
        if self._assigns:  # a `let` by equations, which has no `:=`
            self._assigns -= 1
            self._is_matching = True
        else:
            self._bar = at

    def _meet_arrow(self) -> None:
        if not self._arrows and self._bar >= 0:
            self.found = Signature("equations", self._bar, self._bar)
        self._arrows = max(0, self._arrows - 1)


_DEEPEST_INDENT = 200
_ASSIGN_BY = re.compile(r":=\s*+by\b")


_OPENING = "([{⟨⟪⟦⦃"
_BRACKET = re.compile(r"[()\[\]{}⟨⟩⟪⟫⟦⟧⦃⦄]")
_WORDY = (
    *("--", "/-", '"', "«", "|", "let", "have", "where"),
    *("\ntheorem", "\nlemma", "\nexample", "\ndef", "\ninstance", "\nabbrev", "\nend"),
)
_SHORT = 4_000


def _is_plain(signature: str) -> bool:
    """Return whether brackets match in a signature and nothing in it needs a closer look."""
    if len(signature) >= _SHORT:
        return False
    for word in _WORDY:
        if word in signature:
            return False
    depth = 0
    for bracket in _BRACKET.findall(signature):
        depth += 1 if bracket in _OPENING else -1
        if depth < 0:
            return False
    return depth == 0


def signature(text: str, declaration: Declaration, end: int) -> Signature:
    """Return where the signature of a declaration ends: at the first mark outside brackets that is its own.

    A ``let`` or ``have`` in the type owns the next ``:=`` or the equations before it, a ``fun`` the next
    ``=>``. A ``|`` at the beginning of a line is an equation's when no ``match`` stands before it and a
    ``=>`` follows before any ``:=``. When brackets are not closed, the first ``:= by`` will do.
    """
    plain = text.find(":=", declaration.name_end, end)
    if plain >= 0 and _is_plain(text[declaration.name_end : plain]):
        return Signature("assign", plain, plain + 2)
    return read_signature(text, declaration, end)


def read_signature(text: str, declaration: Declaration, end: int) -> Signature:
    """Return the same as `signature`, always by reading all its marks."""
    reader = _Signature(text, min(end, declaration.name_end + _LONGEST_LEXED))
    reader.read(declaration.name_end)
    if reader.found is not None:
        return reader.found
    guess = _ASSIGN_BY.search(text, declaration.name_end, reader.end)
    if guess is not None:
        return Signature("assign", guess.start(), guess.start() + 2)
    return Signature("missing", reader.end, reader.end)


class Target(NamedTuple):
    """What the farm must know of a formal statement; see `read_target`.

    `name` and `keyword` are "" when it declares nothing; `start` is the offset of the keyword and `name_end`
    that where the name ends. `kept` is how much of it goes into a program, without a ``sorry`` for its proof
    and without what follows that. `ending` is ``by``, ``assign``, ``open`` (some of the proof is there) or
    ``none`` (not even a ``:=``). `core` is the last declaration's text from the keyword through ``:=``, ""
    when there is none, and `core_end` where that ends; `signature` is what stands between its name and
    ``:=``, `sorry` the offset of a sorry that stays, or -1.
    """

    name: str
    keyword: str
    start: int
    name_end: int
    kept: int
    ending: str
    core: str
    core_end: int
    signature: str
    sorry: int


#: What is read of longer statements is not kept: there can be thousands of them, with megabytes each.
_LONGEST_KEPT = 1 << 12


def read_target(statement: str) -> Target:
    """Return what a formal statement declares and how it ends; its last declaration is the target."""
    return (_read_target if len(statement) > _LONGEST_KEPT else kept_target)(statement)


def _read_target(statement: str) -> Target:
    whole = (statement, 0, len(statement))
    declaration = find_like(*whole, "theorem") or find_like(*whole, "def")
    if declaration is None:
        return _unreadable(statement)
    ends = signature(statement, declaration, len(statement))
    if ends.style == "missing" and (last := _LAST_ASSIGN.search(statement, declaration.name_end)):
        ends = Signature("assign", last.start(), last.start() + 2)
    ending, kept = _ending(statement, ends.end)
    return Target(
        name=declaration.name,
        keyword=declaration.keyword,
        start=declaration.start,
        name_end=declaration.name_end,
        kept=kept,
        ending=ending,
        core=statement[declaration.start : ends.body] if ends.style == "assign" else "",
        core_end=ends.body,
        signature=statement[declaration.name_end : ends.end],
        sorry=sorry_at(statement[:kept]),
    )


#: `read_target` of statements that are short enough to be kept.
kept_target = lru_cache(maxsize=8192)(_read_target)

# Where no mark ends a signature, as a `let` by equations hides it, what the statement ends in does.
_LAST_ASSIGN = re.compile(r":=\s*+(?:by\s*+)?(?:sorry\s*+)?\Z")
_ENDINGS = {(): "none", (":=",): "assign", (":=", "by"): "by"}
_SORRY = re.compile(r":=\s*(?:by\s+)?sorry(?=\s*\Z|\s*\n(?:[a-z#@]|/--|--))")


def _ending(statement: str, start: int) -> tuple[str, int]:
    """Return how a statement ends from `start` on, and how much of it is kept.

    A sorry for the proof is not, with the commands behind it, nor is white space before the proof's joint.
    """
    whole = _SORRY.match(statement, start)
    end = whole.end() - len("sorry") if whole else len(statement)
    plain = _ENDINGS.get(tuple(statement[start:end].split(maxsplit=2)))
    if plain is not None:
        return plain, end if plain == "by" and not whole else len(statement[:end].rstrip())
    if len(statement) - start > _LONGEST_LEXED:
        return "open", len(statement)
    code = list(code_tokens(statement, start))
    found = [statement[t.start : t.end] for t in code]
    kept = len(statement)
    if found and found[-1] == "sorry":
        kept = len(statement[: code[-1].start].rstrip())
        found.pop()
    return _ENDINGS.get(tuple(found), "open"), kept


def _unreadable(statement: str) -> Target:
    code = statement.rstrip()
    ending = "by" if re.search(r":=\s*by$", code) else "assign" if code.endswith(":=") else "open"
    return Target("", "", 0, 0, len(statement), ending, "", 0, "", -1)


def differ(one: str, other: str) -> bool:
    """Return whether two pieces of Lean text differ as tokens, comments aside."""
    return one.split() != other.split() and words(one) != words(other)
