"""Assembly step, other systems: statements of Isabelle and Lean 3 are told from those of Lean 4. Pure.

Only what no text of Lean 4 can begin with counts, and only where it stands in code. A statement of Lean 4
that is taken for another system's could not be judged at all; one of another system that is not recognized
fails with Lean's own message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice, pairwise

from farm.assembly.declaration import read_target
from farm.assembly.faults import ForeignStatement
from farm.lean_text.scanner import Kind, Token, code_tokens

_ISABELLE_REMEDY = (
    "this farm has no Isabelle: give the problem's Lean 4 statement, or see "
    "docs/develop/add-a-proof-system.md for the parts that a farm with Isabelle needs"
)
_LEAN3_REMEDY = (
    "Lean 3 has ended and this farm has none: give the statement of the benchmark's Lean 4 port "
    "(docs/use/datasets.md names them)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """A text of another system: the system's name, what shows it, and what to do."""

    system: str
    sign: str
    remedy: str


#: A text without any of these, or an import of a small letter, is not read at all.
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
#: So many tokens of a text decide what its beginning says.
_FIRST = 60


def foreign(text: str) -> Foreign | None:
    """Return which other system a header or a statement is written in, None for what may be Lean 4."""
    if not any(sign in text for sign in _SIGNS) and _SMALL_IMPORT.search(text) is None:
        return None
    fence = _FENCE.match(text)
    if fence is not None:
        is_isabelle = fence[1].lower().startswith("isa")
        return _isabelle(fence[0].strip()) if is_isabelle else _lean3(fence[0].strip())
    text = text[_behind_comments(text) :]
    first = [text[each.start : each.end] for each in islice(code_tokens(text), _FIRST)]
    return _isabelle_in(text, first) or _lean3_in(text, first)


def refuse_foreign(**fields: str) -> None:
    """Raise ForeignStatement where one of a line's fields is written in another system."""
    for field, text in fields.items():
        found = foreign(text)
        if found is not None:
            problem = f"this is {found.system}, not Lean 4: {found.sign}"
            raise ForeignStatement(problem, found.remedy, field)


def _behind_comments(text: str) -> int:
    """Return where Isabelle's comments at the beginning of a text end; nothing of Lean begins like them."""
    at = 0
    while text.startswith("(*", start := at + len(text[at:]) - len(text[at:].lstrip())):
        end = text.find("*)", start)
        if end < 0:
            break
        at = end + 2
    return at


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
    """Return whether ``shows`` stands before a string, with a name and a colon between or without."""
    found = list(code_tokens(text))
    return any(
        text[word.start : word.end] == "shows"
        and (_is_string(found, at + 1) or (_is_colon(text, found, at + 2) and _is_string(found, at + 3)))
        for at, word in enumerate(found)
    )


def _is_string(found: list[Token], at: int) -> bool:
    return at < len(found) and found[at].kind is Kind.STRING


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
        and behind.kind is Kind.NAME
        for each, behind in pairwise(found)
    )


def _begins_and_ends(text: str) -> bool:
    """Return whether the last theorem's whole proof is ``begin ... end``."""
    if not re.search(r"\bbegin\b", text):
        return False
    read = read_target(text)
    words = [text[each.start : each.end] for each in code_tokens(text, read.core_end)] if read.core else []
    # An `end` may close a section as well, and `begin` could be the name of a proof.
    closes = any(each in ("section", "namespace", "mutual") for each in _words_before(text, read.start))
    return len(words) > 1 and words[0] == "begin" and words[-1] == "end" and not closes


def _words_before(text: str, end: int) -> list[str]:
    return [text[each.start : each.end] for each in code_tokens(text, 0, end)]
