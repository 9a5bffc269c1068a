"""Negation step: writes a manifest whose lines state that the statements of another are false."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from farm.assembly.negation import negation_of
from farm.errors import ManifestError
from farm.manifest.entries import read
from farm.manifest.lines import opened
from farm.manifest.rewrite import write

#: Fields of the statement's own that say nothing of its negation.
_LEFT_OUT = frozenset({"header", "generation", "predicted_proof", "proof_status", "farm", "search", "proof"})


def negate(manifest: Path, target: Path) -> int:
    """Write the negations of a manifest's statements, and return their number. Raises ManifestError."""
    with opened(manifest) as lines:
        rows = {number: json.loads(text) for number, text in lines if text.strip()}
    written = list(_negated(manifest, rows))
    write(target, [json.dumps(each, ensure_ascii=False) for each in written])
    return len(written)


def _negated(manifest: Path, rows: dict[int, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for entry in read(manifest, reassemble=True, may_lack_answer=True):
        found = negation_of(entry.header, entry.formal_statement, entry.context)
        if found is None:
            problem = "formal_statement names no theorem, so Lean cannot be asked for its negation"
            raise ManifestError(str(manifest), problem, line=entry.line, remedy="name the theorem")
        kept = {name: value for name, value in rows[entry.line].items() if name not in _LEFT_OUT}
        named = {"name": f"{entry.name}.negation"} if entry.name else {}
        yield {**kept, **named, **found._asdict(), "negates": entry.line}
