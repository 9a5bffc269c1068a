"""An environment of Python into which the farm's wheel was installed without extras, and no index asked."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]


def built(folder: Path) -> Path:
    """Build the wheel into a folder and return it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


class Bare:
    """The environment: the wheel, and the distributions that it needs, which are those of the tests."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        venv.create(folder, with_pip=False)
        self.bin = folder / "bin"
        self._pip("install", "--no-index", "--no-deps", str(wheel))
        (site,) = folder.glob("lib/python*/site-packages")
        (own,) = site.glob("lean_proof_farm-*.dist-info")
        self.needed = {each.name: each for each in _needed(PathDistribution(own))}
        for each in self.needed.values():
            _link(each, site)

    def _pip(self, *words: str) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.bin / "python"), *words]
        subprocess.run(command, check=True, capture_output=True)

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment, to which no variable of the farm or of Python is passed on."""
        outside = {
            name: value for name, value in os.environ.items() if not name.startswith(("FARM_", "PYTHON"))
        }
        return subprocess.run(
            [str(self.bin / words[0]), *words[1:]],
            check=False,
            capture_output=True,
            text=True,
            env={**outside, **variables},
            cwd=self.bin,
        )

    def python(self, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program in Python."""
        return self.run("python", "-c", program, **variables)


def _needed(asking: Distribution) -> Iterator[Distribution]:
    """Yield what a distribution requires without extras, and what that requires, as it is installed here."""
    waiting = [asking]
    seen: set[str] = set()
    while waiting:
        for line in waiting.pop().requires or ():
            requirement = Requirement(line)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            found = distribution(requirement.name)
            if found.name not in seen:
                seen.add(found.name)
                waiting.append(found)
                yield found


def _link(installed: Distribution, site: Path) -> None:
    for file in installed.files or ():
        if ".." not in file.parts and "__pycache__" not in file.parts:
            target = site / file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(str(file.locate()))
