"""Words that stand for a noun or an agent make a reader read twice: prose has few of them in each folder."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: The most such words in 1 000 words of a folder; one more is allowed, for a folder may have few words.
MOST = 3.0
_RIDDLES = re.compile(
    r"\b(?:what|who|whoever|whom|told|tells?|telling|anew|nobody|somebody|so many|meanwhile|there is none"
    r"|where there|of it|said|asked|(?:is|are) left)\b",
    re.IGNORECASE,
)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def prose(source: str) -> Iterator[str]:
    """Yield the docstrings, comments and raised messages of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Raise) and node.exc is not None:
            parts = (each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant))
            yield from filter(lambda part: isinstance(part, str), parts)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.whole
def test_prose_names_its_nouns_and_its_agents() -> None:
    riddles, words = Counter[Path](), Counter[Path]()
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    modules = [path for folder in ("farm", "workers", "migrations") for path in (ROOT / folder).rglob("*.py")]
    for path in (*pages, *modules):
        text = path.read_text(encoding="utf-8")
        told = "\n".join(prose(text)) if path.suffix == ".py" else _FENCED.sub("", text)
        riddles[path.parent] += len(_RIDDLES.findall(told))
        words[path.parent] += len(re.findall("[A-Za-z]+", told))
    assert len(words) > 20
    above = {folder: many for folder, many in riddles.items() if many > 1.5 + MOST * words[folder] / 1000}
    assert above == {}, "name agents and objects with nouns of the field"


def test_prose_is_docstrings_comments_and_raised_messages() -> None:
    source = '"""Doc."""\nx = "none"  # why\nif x:\n    raise ValueError(f"no {x} left")\n'
    assert [*filter(None, prose(source))] == ["Doc.", "no ", " left", "# why"]
