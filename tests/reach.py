"""Choose the files of tests that a change can reach: ``python -m tests.reach PATH...`` prints some.

A file of tests runs if something that it rests on changed since the base: a module that it imports, itself or
through others; the module of a command whose name stands in one of its strings; a page or a chart whose name
does; or a module that its marker ``reaches`` names. What its helpers and fixtures say counts as its own.
All files run where the change touches what every test rests on (`EVERYTHING`), and where no base is known:
``FARM_TEST_BASE`` names it, otherwise it is the commit where the branch left ``origin/main``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from tests.imports import Product, Source, closed, definitions, source

ROOT = Path(__file__).parents[1]
#: Paths below which a change reaches every test.
EVERYTHING = (
    *(".ci", ".gitignore", "Makefile", "pyproject.toml", "migrations"),
    *("requirements.lock", "requirements-dev.lock"),
    *("tests/conftest.py", "tests/imports.py", "tests/reach.py"),
)
#: By which words tests name the files below a path without modules, besides a file's own name and suffix.
#: The chart has links into `docker`.
NAMED: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("docs/site.py", "docs/site.css"), ("docs",)),
    **dict.fromkeys(("docker", "helm"), ("docker", "helm")),
    "examples": ("examples",),
    **dict.fromkeys(("docs", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"), ()),
    **dict.fromkeys(("LICENSE", "NOTICE", "mkdocs.yml"), ()),
}

_NO_BASE = "no base is known: FARM_TEST_BASE names none, and HEAD is what origin/main is"


def _below(path: str, places: Iterable[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(place) for place in places)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What changed: modules of the product, Python files of tests, other files; or why all tests run."""

    modules: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    why_all: str = ""

    @classmethod
    def of(cls, paths: Iterable[str], product: Product) -> Change:
        """Return what the change of some paths is."""
        modules: set[str] = set()
        files: set[str] = set()
        others: set[str] = set()
        for path in paths:
            if _below(path, product.folders):
                if not (found := product.changed_with(path)):
                    return cls(why_all=f"{path} changed")
                modules |= found
            elif _below(path, EVERYTHING) or not _below(path, (*NAMED, "tests")):
                return cls(why_all=f"{path} changed")
            elif path.endswith(".py") and _below(path, ["tests"]):
                files.add(path)
            else:
                others.add(path)
        return cls(modules=frozenset(modules), files=frozenset(files), others=frozenset(others))


@dataclass(frozen=True, kw_only=True)
class TestFile:
    """A file of tests, and what it rests on."""

    path: str
    files: frozenset[str]
    modules: frozenset[str]
    words: frozenset[str]

    def rests_on(self, change: Change) -> bool:
        """Return whether a change can reach it."""
        if change.why_all or self.modules & change.modules or self.files & change.files:
            return True
        return any(self._names(path) for path in change.others)

    def _names(self, path: str) -> bool:
        place = PurePosixPath(path)
        if place.parts[0] == "tests":
            return self.path.startswith(f"tests/{place.parts[1]}/") or not self.words.isdisjoint(
                place.parts[1:]
            )
        extra = next(words for root, words in NAMED.items() if _below(path, [root]))
        return not self.words.isdisjoint({place.name, place.suffix or place.name, *extra})


def _unasked(fixtures: Mapping[str, Source]) -> Iterator[str]:
    """Yield the definitions of a conftest.py that serve each test, whatever it names."""
    for name, said in fixtures.items():
        if name.startswith("pytest_") or "autouse" in said.fixtures:
            yield name


class Suite:
    """The files of tests of a checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.product = Product(root)

    @cached_property
    def files(self) -> list[TestFile]:
        """What each file of tests rests on."""
        paths = sorted(str(each.relative_to(self.root)) for each in self.root.glob("tests/*/test_*.py"))
        return [self._read(path) for path in paths]

    def change(self, paths: Iterable[str]) -> Change:
        """Return what the change of some paths is; of a test's data, a test must be known that reads them."""
        change = Change.of(paths, self.product)
        for path in change.others:
            alone = Change(others=frozenset({path}))
            if _below(path, ["tests"]) and not any(each.rests_on(alone) for each in self.files):
                return Change(why_all=f"{path} changed, which no test names")
        return change

    def chosen(self, change: Change, places: Iterable[str]) -> list[str]:
        """Return the files below some paths that a change can reach."""
        among = [each for each in self.files if _below(each.path, places)]
        return [each.path for each in among if each.rests_on(change)]

    def _read(self, path: str) -> TestFile:
        # A fixture is a parameter of the tests that use it, and of other fixtures.
        conftests = [
            f"tests/{name}" for name in ("conftest.py", f"{PurePosixPath(path).parts[1]}/conftest.py")
        ]
        conftests = [each for each in conftests if (self.root / each).exists()]
        fixtures = {name: said for each in conftests for name, said in definitions(self.root / each).items()}
        said, files, used = Source(), {path}, set(_unasked(fixtures))
        waiting = [source(self.root / path), *(fixtures[name] for name in used)]
        while waiting:
            said |= (piece := waiting.pop())
            new = {helper for name in piece.imports | piece.modules for helper in self._helpers(name)} - files
            files |= new
            waiting += [source(self.root / each) for each in new]
            asked = (piece.fixtures & fixtures.keys()) - used
            used |= asked
            waiting += [fixtures[name] for name in asked]
        return TestFile(
            path=path,
            files=frozenset({*files, *conftests}),
            modules=frozenset(closed(self.product.started_by(said), self.product.needs)),
            words=said.words | {name.partition(".")[0] for name in said.imports},
        )

    def _helpers(self, name: str) -> set[str]:
        parts = name.split(".")
        if parts[0] not in ("tests", "docker", "docs") or len(parts) < 2:
            return set()
        places = ["/".join(parts), *(["/".join(parts[:-1])] if len(parts) > 2 else [])]
        ways = [f"{place}{way}" for place in places for way in (".py", "/__main__.py")]
        return {each for each in ways if (self.root / each).is_file()}


def _git(root: Path, *words: str) -> str | None:
    ended = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else None


def base(root: Path, named: str | None) -> str | None:
    """Return the commit of the last landed state, None if this checkout does not know one."""
    if named:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}")
    left = _git(root, "merge-base", "HEAD", "origin/main")
    return None if left == _git(root, "rev-parse", "HEAD") else left


def changed(root: Path, since: str) -> list[str] | None:
    """Return the paths that differ from a commit, also uncommitted ones; None if git cannot say."""
    differing = _git(root, "diff", "--name-only", "--no-renames", "-z", since)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return None if differing is None or new is None else sorted({*f"{differing}\0{new}".split("\0")} - {""})


def main() -> int:
    """Print the chosen files; say on stderr which change was compared with which commit, and why."""
    parser = argparse.ArgumentParser(prog="python -m tests.reach", description="Choose files of tests.")
    parser.add_argument("places", nargs="+", metavar="PATH", help="choose among the files below these")
    places = parser.parse_args().places
    suite, since = Suite(ROOT), base(ROOT, os.environ.get("FARM_TEST_BASE"))
    paths = changed(ROOT, since) if since else None
    change = Change(why_all=_NO_BASE) if paths is None else suite.change(paths)
    found = suite.chosen(change, places)
    sys.stdout.write("".join(f"{each}\n" for each in found))
    among = sum(_below(each.path, places) for each in suite.files)
    sys.stderr.write(
        f"reach: {len(paths or ())} paths changed since {since or 'an unknown commit'}\n"
        f"reach: {change.why_all or f'{len(change.modules)} modules, {len(change.files)} files of tests'}\n"
        f"reach: {len(found)} of {among} files of tests below {' '.join(places)} run\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
