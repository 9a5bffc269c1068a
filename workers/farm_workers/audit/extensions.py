"""Audit step, extensions: classifies the entries of a module by their effect on modules that import it.

An entry is known by the name of its extension only; names as in Lean 4.35.0 (``src/Lean``, the declarations
of `registerBuiltinAttribute`, `registerSimpleScopedEnvExtension`, `registerParametricAttribute` and their
like).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from farm_workers.audit.olean import Name

#: The effect of an extension's entries by a pattern for its name; the first match counts.
_CLASSES = tuple(
    (word, re.compile(pattern))
    for word, pattern in (
        ("initialize", r"(?i)regularInitAttr|builtinInitAttr|(^|\.)init(ialize)?(Attr|Ext)"),
        ("implemented_by", r"(?i)implementedBy"),
        ("extern", r"(?i)extern(Attr|$)"),
        ("export", r"(?i)exportAttr"),
        ("csimp", r"(?i)csimp"),
        ("unification_hint", r"(?i)unificationHint"),
        ("coercion", r"(?i)coe(Ext|Decl|rcion)|\.coe"),
        ("instance", r"(?i)instanceExt|defaultInstance"),
        ("reducibility", r"(?i)reducibility|irreducible"),
        # Each word is looked for once in a name, so that its length counts once.
        (
            "elaborator",
            r"(?i)(?<!\w)(?>\w*?(?:term|command|tactic|doElem|conv|attr))(?>\w*?elab)(?>\w*?attr)"
            r"|elabAttribute|tacticElab",
        ),
        ("macro", r"(?i)macro"),
        ("notation", r"(?i)parser|token|category|delab|unexpand|formatter|parenthesizer|notation|syntax"),
        ("simplification", r"(?i)simproc|simp|grind|defeqattr|congr|norm_?num|aesop|rewrite|rules?ets?"),
        ("attribute", r"(?i)attributeExtension|attrExt|labelExt"),
        ("alias", r"(?i)alias"),
        ("elimination", r"(?i)eliminator|elabAsElim|symm|refl|trans|ext(Ext|Theorem)|match\.Extension"),
        ("option", r"(?i)option"),
    )
)


def influence(extension: Name) -> str | None:
    """Return the effect of an extension's entries on importing modules, None if its name is unknown."""
    name = ".".join(str(part) for part in extension)
    return next((word for word, pattern in _CLASSES if pattern.search(name)), None)


def influences(extensions: Mapping[Name, int]) -> tuple[tuple[Name, str, int], ...]:
    """Return the extensions with an effect, each with the effect and the number of its entries."""
    known = ((name, influence(name), count) for name, count in extensions.items())
    return tuple((name, what, count) for name, what, count in known if what is not None)
