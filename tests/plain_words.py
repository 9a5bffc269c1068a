"""Counts riddle words: pronouns and the like in place of an agent or a noun, which make a reader read twice.

    python -m tests.plain_words             # the words per 1 000 in each folder, the worst first
    python -m tests.plain_words farm/store  # the lines with such words below a folder

The prose of a Python file is its docstrings, comments and raised messages; that of a page is its text without
code blocks. The count is an alarm: a sentence names its agent and its object, with a noun of the field.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
#: The ceiling of a folder without one of its own; no folder need have fewer riddle words in 1 000.
ENOUGH = 3.0
#: A ceiling that is higher than the count by more than this must be lowered.
SLACK = 2.0
#: A count of few words is chance: one riddle word more or less is allowed.
_ONE = 1

_RIDDLES = re.compile(
    r"\b(?:what|who|whoever|whom|told|tells?|telling|anew|nobody|somebody|so many|meanwhile|there is none"
    r"|where there|of it|said|asked|(?:is|are) left)\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]+")
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Prose(NamedTuple):
    """A docstring, a comment, a part of a raised message, or a page, with its first line."""

    line: int
    text: str


def prose_of_python(source: str) -> Iterator[Prose]:
    """Yield the docstrings, comments and raised messages of a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, _DOCUMENTED) and (text := ast.get_docstring(node, clean=False)) is not None:
            yield Prose(node.body[0].lineno, text)
        elif isinstance(node, ast.Raise) and node.exc is not None:
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield Prose(part.lineno, part.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline) if "#" in source else ():
        if token.type == tokenize.COMMENT:
            yield Prose(token.start[0], token.string)


def prose_of(path: Path) -> Iterator[Prose]:
    """Yield the prose of a Python file or a page."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from prose_of_python(text)
    else:
        yield Prose(1, _FENCED.sub(lambda block: "\n" * block[0].count("\n"), text))


@dataclass(kw_only=True)
class Count:
    """The riddle words and all words of some prose."""

    riddles: int = 0
    words: int = 0

    def add(self, prose: Iterable[Prose]) -> None:
        """Count more prose."""
        for each in prose:
            self.riddles += len(_RIDDLES.findall(each.text))
            self.words += len(_WORD.findall(each.text))

    def above(self, rate: float) -> int:
        """Return the excess of riddle words over `rate` in 1 000 words; negative below it."""
        return round(self.riddles - rate * self.words / 1000)

    @property
    def rate(self) -> float:
        """The riddle words in 1 000 words."""
        return 1000 * self.riddles / max(1, self.words)


def files(root: Path = ROOT) -> Iterator[Path]:
    """Yield the files with prose for a reader: the product's modules, and its pages."""
    for folder in ("farm", "workers", "migrations/farm_migrations"):
        yield from sorted((root / folder).rglob("*.py"))
    yield from sorted((root / "docs").rglob("*.md"))
    yield from sorted(root.glob("*.md"))


def folder_of(path: Path, ceilings: Mapping[str, float], root: Path = ROOT) -> str:
    """Return a file's entry in the table: itself, the nearest listed folder, or else its own folder."""
    place = path.relative_to(root)
    folders = [str(each) for each in place.parents][:-1]
    return next((each for each in (str(place), *folders) if each in ceilings), str(place.parent))


def counted(ceilings: Mapping[str, float], root: Path = ROOT) -> dict[str, Count]:
    """Return the count of each folder."""
    found: dict[str, Count] = {}
    for path in files(root):
        found.setdefault(folder_of(path, ceilings, root), Count()).add(prose_of(path))
    return found


def faults(counts: Mapping[str, Count], ceilings: Mapping[str, float]) -> Iterator[str]:
    """Yield a sentence for each folder above its ceiling, and for each ceiling that must be lowered."""
    for folder, count in sorted(counts.items()):
        ceiling = ceilings.get(folder, ENOUGH)
        if count.above(ceiling) > _ONE:
            rate = f"{count.rate:.1f} riddle words in 1 000, above its ceiling of {ceiling:g}"
            yield f"{folder}: {rate}. Name agent and object: python -m tests.plain_words {folder}"
        elif ceiling > ENOUGH and count.above(ceiling - SLACK) < -_ONE:
            lower = max(ENOUGH, count.rate)
            yield f"{folder}: only {count.rate:.1f} riddle words in 1 000; lower its ceiling to {lower:.1f}"
    for folder in sorted(ceilings.keys() - counts.keys()):
        yield f"{folder}: has no prose any more; remove its ceiling"


def main() -> None:
    """Print the counts of all folders, or the lines with riddle words below some."""
    if not sys.argv[1:]:
        for folder, count in sorted(counted({}).items(), key=lambda each: -each[1].rate):
            print(f"{count.rate:6.1f} {count.riddles:5d} of {count.words:6d} {folder}")  # noqa: T201 # its result
    for path in files():
        place = path.relative_to(ROOT)
        if any(place.is_relative_to(each) for each in sys.argv[1:]):
            for prose in prose_of(path):
                for number, line in enumerate(prose.text.split("\n"), prose.line):
                    if _RIDDLES.search(line):
                        print(f"{place}:{number}: {line.strip()}")  # noqa: T201 # its result


if __name__ == "__main__":
    main()
