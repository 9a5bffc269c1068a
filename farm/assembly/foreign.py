"""Assembly step, foreign: recognizes statements of Isabelle and Lean 3, to refuse their manifests. Pure.

Only a sign that no text of Lean 4 can have counts, and only in code. The farm refuses to judge a statement of
Lean 4 that it takes for another system's; a foreign statement that it does not recognize only fails with
Lean's own message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, pairwise

from farm.assembly.declaration import read_target
from farm.assembly.faults import ForeignStatement
from farm.lean_text.scanner import Token, TokenKind, code_tokens

_ISABELLE_REMEDY = (
    "this farm has no Isabelle: give the problem's Lean 4 statement, or see "
    "docs/develop/isabelle.md for the parts that a farm with Isabelle needs"
)
_LEAN3_REMEDY = (
    "Lean 3 has ended and this farm has none: give the statement of the benchmark's Lean 4 port "
    "(docs/use/datasets.md names them)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A text of another proof system: the system's name, the sign of it in the text, and the remedy."""

    system: str
    sign: str
    remedy: str


#: A text with none of these and no import of a lower-case module is not read further.
_SIGNS = ("theory", "shows", "open_locale", "begin", "```")
_SMALL_IMPORT = re.compile(r"import\s+[a-z]")
_FENCE = re.compile(r"\s*```[ \t]*(isabelle|isar|lean3|lean_3|lean 3)\b", re.IGNORECASE)

#: The first parts of the modules of mathlib for Lean 3, of its core, and of miniF2F's Lean 3 files.
_LEAN3_WORDS = """
    algebra algebraic_geometry algebraic_topology analysis category_theory combinatorics computability control
    data dynamics field_theory geometry group_theory init linear_algebra logic measure_theory minif2f_import
    model_theory number_theory order probability representation_theory ring_theory set_theory system tactic
    topology
"""
_LEAN3_MODULES = frozenset(_LEAN3_WORDS.split())
_ISABELLE_PARTS = frozenset({"fixes", "assumes", "shows", "defines", "obtains"})
#: Isabelle's comments at the beginning of a text; no Lean text begins with ``(*``.
_COMMENTS = re.compile(r"\A(?:\s*+\(\*.*?\*\)|(?!))*+", re.DOTALL)
#: The longest part of a text that is read token by token.
_LONGEST_READ = 1 << 17
#: The number of tokens that count as the beginning of a text.
_FIRST = 60


def foreign(text: str) -> Foreign | None:
    """Return the other proof system of a header or statement, None for a text that may be Lean 4."""
    if not any(sign in text for sign in _SIGNS) and _SMALL_IMPORT.search(text) is None:
        return None
    fence = _FENCE.match(text)
    if fence is not None:
        is_isabelle = fence[1].lower().startswith("isa")
        return _isabelle(fence[0].strip()) if is_isabelle else _lean3(fence[0].strip())
    text = _COMMENTS.sub("", text[:_LONGEST_READ], count=1)
    first = [text[each.start : each.end] for each in islice(code_tokens(text), _FIRST)]
    return _isabelle_in(text, first) or _lean3_in(text, first)


def refuse_foreign(**fields: str) -> None:
    """Raise ForeignStatement if one of a line's fields is written for another proof system."""
    for field, text in fields.items():
        found = foreign(text)
        if found is not None:
            problem = f"this is {found.system}, not Lean 4: {found.sign}"
            raise ForeignStatement(problem, found.remedy, field)


def _isabelle(sign: str) -> Foreign:
    return Foreign(system="Isabelle", sign=sign, remedy=_ISABELLE_REMEDY)


def _lean3(sign: str) -> Foreign:
    return Foreign(system="Lean 3", sign=sign, remedy=_LEAN3_REMEDY)


def _isabelle_in(text: str, first: list[str]) -> Foreign | None:
    if first[:1] == ["theory"] and "imports" in first:
        return _isabelle("it begins with `theory ... imports`")
    if first[:1] not in (["theorem"], ["lemma"]):
        return None
    rest = first[1:]
    if rest[:2] == ["(", "in"] and ")" in rest:
        rest = rest[rest.index(")") + 1 :]
    behind = next((word for word in rest[1:3] if word != ":"), "")
    if (rest[:1] and rest[0] in _ISABELLE_PARTS) or behind in _ISABELLE_PARTS:
        return _isabelle('it says `shows "..."`') if _shows_a_string(text) else None
    return None


def _shows_a_string(text: str) -> bool:
    """Return whether ``shows`` precedes a string, directly or with a name and a colon in between."""
    found = list(code_tokens(text))
    return any(
        text[word.start : word.end] == "shows"
        and (_is_string(found, at + 1) or (_is_colon(text, found, at + 2) and _is_string(found, at + 3)))
        for at, word in enumerate(found)
    )


def _is_string(found: list[Token], at: int) -> bool:
    return at < len(found) and found[at].kind is TokenKind.STRING


def _is_colon(text: str, found: list[Token], at: int) -> bool:
    return at < len(found) and text[found[at].start : found[at].end] == ":"


def _lean3_in(text: str, first: list[str]) -> Foreign | None:
    modules = _imported(first)
    if modules and all(each.partition(".")[0] in _LEAN3_MODULES for each in modules):
        return _lean3(f"it says `import {modules[0]}`")
    if "open_locale" in text and _opens_a_locale(text):
        return _lean3("it says `open_locale`")
    return _lean3("its proof is `begin ... end`") if _begins_and_ends(text) else None


def _imported(first: list[str]) -> list[str]:
    """Return the modules that a text imports at its beginning."""
    if first[:1] != ["import"]:
        return []
    modules: list[str] = []
    for word, following in zip(first, [*first[1:], ""], strict=True):
        if word == "import":
            modules.append(following)
    return modules


def _opens_a_locale(text: str) -> bool:
    """Return whether a line in code begins with ``open_locale`` and a name."""
    found = list(code_tokens(text))
    return any(
        text[each.start : each.end] == "open_locale"
        and (each.start == 0 or text[each.start - 1] == "\n")
        and behind.kind is TokenKind.NAME
        for each, behind in pairwise(found)
    )


def _begins_and_ends(text: str) -> bool:
    """Return whether the last theorem's whole proof is ``begin ... end``."""
    if not re.search(r"\bbegin\b", text):
        return False
    read = read_target(text)
    words = [text[each.start : each.end] for each in code_tokens(text, read.core_end)] if read.core else []
    # An `end` may also close a section, and `begin` may be the name of a proof.
    closes = any(each in ("section", "namespace", "mutual") for each in _words_before(text, read.start))
    return len(words) > 1 and words[0] == "begin" and words[-1] == "end" and not closes


def _words_before(text: str, end: int) -> list[str]:
    return [text[each.start : each.end] for each in code_tokens(text, 0, end)]
