"""Releases of the farm beside each other: the one of this checkout, the one before, and an invented next one.

Each is installed as its users install it, into a venv of its own that finds all other packages where this
Python has them.
"""

from __future__ import annotations

import re
import shutil
import site
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from tests.commands import Running

_CHECKOUT = Path(__file__).parents[2]
#: Holds the commit of the release before, which a new release has to work beside.
PREVIOUS = _CHECKOUT / "tests" / "deploy" / "previous.txt"
#: Whether this is a checkout, and no unpacked archive.
PREVIOUS_IS_KNOWN = (_CHECKOUT / ".git").exists()
_PARTS = ("farm", "workers", "migrations", "pyproject.toml", "README.md", "LICENSE", "NOTICE")

_NEXT = '''"""What the next release adds."""

from alembic import op

revision = "{new}"
down_revision = "{old}"


def upgrade():
    op.execute("ALTER TABLE checks ADD COLUMN next_release TEXT")
    op.execute("ALTER TABLE verdicts ADD COLUMN next_release BOOLEAN NOT NULL DEFAULT false")
    op.execute("ALTER TABLE workers ADD COLUMN next_release TEXT")
'''


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """A release: its version, the Python that has it, and whether it begins on a newer database."""

    version: str
    python: Path
    takes_newer: bool

    def begin(self, folder: Path, settings: Mapping[str, str], *words: object) -> Running:
        """Start a `farm` command, or with a path in the place of its first word that program."""
        first = ["-P", "-m", "farm"] if not isinstance(words[0], Path) else []
        folder.mkdir(parents=True, exist_ok=True)
        out, err = folder / "stdout", folder / "stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [self.python, *first, *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={"PATH": "/usr/bin:/bin", **settings},
                start_new_session=True,
            )
        return Running(process, out, err)

    @contextmanager
    def running(self, folder: Path, settings: Mapping[str, str], *words: object) -> Iterator[Running]:
        """Run a `farm` command that is gone at the end of the block."""
        running = self.begin(folder, settings, *words)
        try:
            yield running
        finally:
            running.process.kill()
            running.process.wait()


def previous(folder: Path) -> Release:
    """Install the release before this one; raises `RuntimeError` where its commit is not there."""
    commit = PREVIOUS.read_text().strip()
    # Also in a checkout that belongs to another user, as in a container.
    git = ["git", "-c", "safe.directory=*", "-C", str(_CHECKOUT)]
    said = subprocess.run([*git, "archive", commit, "--", *_PARTS], capture_output=True, check=False)
    if said.returncode != 0:
        raise RuntimeError(
            f"the commit of the release before, {commit}, is not in this checkout "
            f"({said.stderr.decode().strip()}); fetch it: git fetch --unshallow"
        )
    tree = folder / "tree"
    tree.mkdir()
    # Python 3.11.2, which Debian 12 has, unpacks without a filter alone, and later ones warn without one.
    subprocess.run(["tar", "-x", "-C", tree], input=said.stdout, check=True)
    return _installed(folder)


def this(folder: Path) -> Release:
    """Install the release of this checkout."""
    _copied(folder / "tree")
    return _installed(folder)


def following(folder: Path) -> Release:
    """Install a release after this one, with a revision of the schema that adds to every table at work."""
    tree = folder / "tree"
    _copied(tree)
    schema = tree / "farm" / "revision.py"
    found = re.search(r'^SCHEMA = "(\d+)"', schema.read_text(), flags=re.MULTILINE)
    assert found is not None
    old, new = found[1], f"{int(found[1]) + 1:04}"
    schema.write_text(schema.read_text().replace(found[0], f'SCHEMA = "{new}"'))
    revision = tree / "migrations" / "farm_migrations" / "versions" / f"{new}_next.py"
    revision.write_text(_NEXT.format(old=old, new=new))
    return _installed(folder)


def _copied(tree: Path) -> None:
    tree.mkdir(parents=True)
    for part in _PARTS:
        source = _CHECKOUT / part
        if source.is_dir():
            shutil.copytree(source, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / part)


def _installed(folder: Path) -> Release:
    """Install a tree; verdicts and workers tell it from the others by its version."""
    tree, place = folder / "tree", folder / "venv"
    venv.create(place, with_pip=False, symlinks=True)
    python = place / "bin" / "python"
    (packages,) = place.glob("lib/python3*/site-packages")
    (packages / "shared.pth").write_text("".join(f"{path}\n" for path in site.getsitepackages()))
    options = ("--no-deps", "--no-index", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", python, "install", *options, tree], check=True, timeout=300
    )
    takes_newer = "compatibility" in (tree / "farm" / "store" / "postgres.py").read_text()
    (own,) = distributions(name="lean-proof-farm", path=[str(packages)])
    return Release(version=own.version, python=python, takes_newer=takes_newer)
