"""Assembly step, declaration: finds Lean's declarations, their names, signatures and bodies in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from farm.lean_text.scanner import NAME, OPAQUE, Opaque, code_tokens, first_sorry, opaque_spans, words

_THEOREMS = ("theorem", "lemma", "example")
_DEFINITIONS = ("def", "instance", "abbrev")
# The keywords that may replace each other: a model may write a theorem as a lemma, but not as a definition.
_ALIKE = {word: words for words in (_THEOREMS, _DEFINITIONS) for word in words} | {
    "": _THEOREMS + _DEFINITIONS
}


class Declaration(NamedTuple):
    """A declaration: its keyword with its offset, and its name ("" without one) with its end."""

    start: int
    keyword: str
    name: str
    name_end: int


class Signature(NamedTuple):
    """The end of a declaration's signature.

    `style` is ``assign`` (``:=``), ``equations`` (``|``), ``where`` or ``missing``; `end` is the offset of
    that mark, and `body` the offset of the body: after ``:=`` and ``where``, at the first ``|``.
    """

    style: str
    end: int
    body: int


_ATTRIBUTE = r"@\[[^\]\n]*\]"
_MODIFIER = "private|protected|noncomputable|unsafe|partial|nonrec|public|local|scoped|meta"
_MODIFIERS = re.compile(rf"[ \t]*+(?:(?:{_ATTRIBUTE}|{_MODIFIER})[ \t]*+|(?!))*+")
_NAMED = re.compile(rf"\s+({NAME})")
_SPACED = re.compile(r"[\s({\[⦃:]")


def declarations(text: str, start: int, end: int, keyword: str) -> Iterator[Declaration]:
    """Yield the declarations by a keyword that begin a command, including those inside comments."""
    at = start - 1
    while (at := text.find(keyword, at + 1, end)) >= 0:
        if (declaration := _declared(text, start, end, at, keyword)) is not None:
            yield declaration


def _declared(text: str, start: int, end: int, at: int, keyword: str) -> Declaration | None:
    """Return the declaration whose keyword stands at an offset, None if it is no keyword there."""
    after = at + len(keyword)
    if not (at == start or text[at - 1] in "\n \t]/") or not _SPACED.match(text, after, end):
        return None
    if not _begins_command(text, start, at):
        return None
    named = _NAMED.match(text, after, end)
    name, name_end = (named[1], named.end()) if named else ("", after)
    return Declaration(at, keyword, name, name_end)


_LONGEST_LEAD_IN = 300
#: So many comments around a last declaration are skipped one by one.
_FEW = 3
#: The longest part of a text that is read token by token, which takes ten times as long.
_LONGEST_LEXED = 1 << 17


def _begins_command(text: str, start: int, at: int) -> bool:
    """Return whether only attributes, modifiers, a comment or ``... in`` precede an offset on its line."""
    if at == start or text[at - 1] == "\n":
        return True
    before = text[max(start, at - _LONGEST_LEAD_IN) : at].rpartition("\n")[2]
    for mark in ("-/", " in "):
        before = before.rpartition(mark)[2]
    return _MODIFIERS.fullmatch(before) is not None


def find(text: str, start: int, end: int, target: Target) -> Declaration | None:
    """Return the declaration in code that has the target's name, None without one.

    Of several it is the last one with a proof without a sorry, or else the last.
    """
    if not target.name:
        return None
    for keyword in _ALIKE[target.keyword]:
        if text.find(keyword, start, end) >= 0:
            found = list(_of_name(text, start, end, keyword, target.name))
            if found and (code := _in_code(text, start, found)):
                return code[-1] if len(code) == 1 else _last_whole(text, code, end)
    return None


def _of_name(text: str, start: int, end: int, keyword: str, name: str) -> Iterator[Declaration]:
    """Yield the declarations of a name by a keyword, including those inside comments.

    A long text has far fewer places of the name behind a keyword than of the keyword.
    """
    at = start - 1
    while (at := text.find(name, at + 1, end)) >= 0:
        after = at
        while after > start and text[after - 1].isspace():
            after -= 1
        begins = after - len(keyword)
        if start <= begins and after < at and text.startswith(keyword, begins):
            declaration = _declared(text, start, end, begins, keyword)
            if declaration is not None and declaration.name == name:
                yield declaration


def _last_whole(text: str, found: list[Declaration], end: int) -> Declaration:
    """Return the last declaration with a proof without a sorry, or the last one if all have a sorry."""
    for declaration, until in zip(reversed(found), [end, *(d.start for d in reversed(found))], strict=False):
        body = text[signature(text, declaration, until).body : until]
        if is_proof(body):
            return declaration
    return found[-1]


def is_proof(body: str) -> bool:
    """Return whether a body is not empty and has no sorry."""
    return body.strip() not in ("", "by") and sorry_at(body) < 0


def sorry_at(text: str) -> int:
    """Return the offset of the first sorry in the first `_LONGEST_LEXED` characters, -1 without one."""
    return first_sorry(text[:_LONGEST_LEXED])


def find_again(text: str, declared: Declaration, end: int) -> int:
    """Return the start of the line that declares the same name once more, `end` without such a line."""
    if not declared.name or text.find(declared.name, declared.name_end, end) < 0:
        return end
    later = (d for word in _ALIKE[declared.keyword] for d in declarations(text, declared.name_end, end, word))
    again = _in_code(text, declared.start, sorted(d for d in later if d.name == declared.name))
    return text.rfind("\n", declared.start, again[0].start) + 1 if again else end


def find_like(text: str, start: int, end: int, keyword: str) -> Declaration | None:
    """Return the last declaration in code by `keyword`, or by a keyword that may replace it."""
    found = [last for word in _ALIKE[keyword] if (last := _last(text, start, end, word)) is not None]
    return max(found, default=None)


def _last(text: str, start: int, end: int, keyword: str) -> Declaration | None:
    """Return the last declaration in code by a keyword."""
    at = end
    for _ in range(_FEW):
        last = _last_before(text, start, end, at, keyword)
        if last is None or not _may_hide(text, start, last.start):
            return last
        opaque = Opaque(text, start, last.name_end)
        if not opaque.hides(last.start):
            return last
        at = opaque.start  # whatever else the same comment or string hides is skipped
    return next(reversed(_in_code(text, start, list(declarations(text, start, at, keyword)))), None)


def _last_before(text: str, start: int, end: int, at: int, keyword: str) -> Declaration | None:
    """Return the last declaration by a keyword before an offset, which may be inside a comment."""
    while (at := text.rfind(keyword, start, at)) >= 0:
        if (found := _declared(text, start, end, at, keyword)) is not None:
            return found
    return None


def _in_code(text: str, start: int, found: list[Declaration]) -> list[Declaration]:
    if not found or not _may_hide(text, start, found[-1].start):
        return found
    opaque = Opaque(text, start, found[-1].name_end)
    return [each for each in found if not opaque.hides(each.start)]


def _may_hide(text: str, start: int, end: int) -> bool:
    return any(text.find(mark, start, end) >= 0 for mark in ("/-", "--", '"'))


# The marks that decide the end of a signature.
_MARK = re.compile(
    rf"(?P<opaque>{OPAQUE})"
    r"""|(?P<open>[(\[{⟨⟪⟦⦃])|(?P<close>[)\]}⟩⟫⟧⦄])|(?P<assign>:=)|(?P<arrow>=>)|(?P<bar>\|(?<=[ \t\n]\|))
    |(?P<binder>\b(?:let|have|letI|haveI)\b(?!['!?.]))|(?P<function>\b(?:fun|match)\b|λ)
    |(?P<where>\bwhere\b)|(?P<command>^(?:theorem|lemma|example|def|instance|abbrev|end)\b)""",
    re.VERBOSE | re.MULTILINE,
)


class _Signature:
    """Reads marks until one of them ends the signature; `end` and `found` are the result."""

    def __init__(self, text: str, end: int) -> None:
        self.text, self.end = text, end
        self.found: Signature | None = None
        self._depth = self._assigns = self._arrows = 0
        self._bar = -1
        self._is_matching = False

    @property
    def is_unclosed(self) -> bool:
        """Whether a bracket, or a ``let`` or ``have`` in the type, lacks its end."""
        return self._depth > 0 or self._assigns > 0

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
    """Return whether a signature is short, has matching brackets and contains none of `_WORDY`."""
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
    """Return the end of a declaration's signature: the first mark outside brackets that belongs to it.

    A ``let`` or ``have`` in the type owns the next ``:=`` or the equations before it, a ``fun`` the next
    ``=>``. A ``|`` at the beginning of a line begins an equation if no ``match`` precedes it and a ``=>``
    follows before any ``:=``. If brackets are not closed, the first ``:= by`` in code ends the signature.
    """
    plain = text.find(":=", declaration.name_end, end)
    if plain >= 0 and _is_plain(text[declaration.name_end : plain]):
        return Signature("assign", plain, plain + 2)
    return read_signature(text, declaration, end)


def read_signature(text: str, declaration: Declaration, end: int) -> Signature:
    """Return the same as `signature`, without its shortcut for plain signatures."""
    reader = _Signature(text, min(end, declaration.name_end + _LONGEST_LEXED))
    reader.read(declaration.name_end)
    if reader.found is not None:
        return reader.found
    at = _first_in_code(_ASSIGN_BY, text, declaration.name_end, reader.end) if reader.is_unclosed else -1
    return Signature("assign", at, at + 2) if at >= 0 else Signature("missing", reader.end, reader.end)


def _first_in_code(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Return the start of the first match outside comments, strings and «» names, or -1."""
    hidden = opaque_spans(text, start, end)
    covered = next(hidden, (end, end))
    for found in pattern.finditer(text, start, end):
        while covered[1] <= found.start() and covered[0] < end:
            covered = next(hidden, (end, end))
        if found.start() < covered[0]:
            return found.start()
    return -1


class Target(NamedTuple):
    """The target of a formal statement, which is its last declaration; see `read_target`.

    `name` and `keyword` are "" if the statement declares nothing; `start` is the offset of the keyword and
    `name_end` the end of the name. `kept` is the length of the statement that goes into a program: it ends
    before a ``sorry`` for the proof. `ending` is ``by``, ``assign``, ``open`` (the statement contains a part
    of the proof) or ``none`` (it has no ``:=``). `core` is the declaration's text from the keyword through
    ``:=``, "" without ``:=``, and `core_end` its end; `signature` is the text between the name and ``:=``,
    and `sorry` the offset of a sorry in the kept text, or -1.
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


#: The longest statement whose target is cached: a run can have thousands of statements of megabytes each.
_LONGEST_KEPT = 1 << 12


def read_target(statement: str) -> Target:
    """Return the target of a formal statement: its last declaration, and the ending of its text."""
    return (_read_target if len(statement) > _LONGEST_KEPT else kept_target)(statement)


def _read_target(statement: str) -> Target:
    whole = (statement, 0, len(statement))
    declaration = find_like(*whole, "theorem") or find_like(*whole, "def")
    if declaration is None:
        return _unreadable(statement)
    ends = signature(statement, declaration, len(statement))
    if ends.style == "missing":
        last = _first_in_code(_LAST_ASSIGN, statement, declaration.name_end, len(statement))
        ends = ends if last < 0 else Signature("assign", last, last + 2)
    ending, kept = _ending(statement, ends.end)
    if ending in ("none", "assign"):  # the farm goes on behind it, in the same line
        kept = _code_end(statement, declaration.name_end, kept)
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


#: `read_target` with a cache, for short statements.
kept_target = lru_cache(maxsize=8192)(_read_target)

# Ends a signature in which no mark was found, as when a `let` by equations hides the `:=`.
_LAST_ASSIGN = re.compile(r":=\s*+(?:by\s*+)?(?:sorry\s*+)?\Z")
_ENDINGS = {(): "none", (":=",): "assign", (":=", "by"): "by"}
_SORRY = re.compile(r":=\s*(?:by\s+)?sorry(?=\s*\Z|\s*\n(?:[a-z#@]|/--|--))")


def _ending(statement: str, start: int) -> tuple[str, int]:
    """Return the ending of a statement from `start` on, and the length of the statement to keep.

    The kept part excludes a sorry for the proof, the commands after it, and white space before the proof.
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


def _code_end(text: str, start: int, end: int) -> int:
    """Return the end of ``text[start:end]`` without the comments and the white space behind its code."""
    if text.rfind("--", start, end) < 0 and not text.endswith("-/", start, end):
        return end
    code = position = start
    for hidden, after in opaque_spans(text, start, end):
        if ink := text[position:hidden].rstrip():
            code = position + len(ink)
        code, position = code if text[hidden] in "-/" else after, after
    ink = text[position:end].rstrip()
    return position + len(ink) if ink else code


def _unreadable(statement: str) -> Target:
    code = statement.rstrip()
    ending = "by" if re.search(r":=\s*by$", code) else "assign" if code.endswith(":=") else "open"
    return Target("", "", 0, 0, len(statement), ending, "", 0, "", -1)


def differ(one: str, other: str) -> bool:
    """Return whether two pieces of Lean text differ in their tokens; comments do not count."""
    return one.split() != other.split() and words(one) != words(other)
