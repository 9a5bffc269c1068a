"""Units of systemd read and, without systemd, run: with their user, their rights and their files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docker" / "systemd"


@dataclass(frozen=True)
class Unit:
    """What a unit's section [Service] says, each setting with all of its values."""

    path: Path
    settings: Mapping[str, Sequence[str]]

    @property
    def name(self) -> str:
        return self.path.stem

    def __getitem__(self, name: str) -> str:
        """Return the one value of a setting."""
        (value,) = self.settings[name]
        return value

    def variables(self) -> dict[str, str]:
        """Return its environment variables; those of the file win, as systemd.exec(5) says."""
        words = [word for line in self.settings.get("Environment", ()) for word in shlex.split(line)]
        lines = [line for line in environment_file().read_text().splitlines() if line and line[0] != "#"]
        return dict(word.split("=", 1) for word in [*words, *lines])

    @property
    def command(self) -> list[str]:
        return shlex.split(self["ExecStart"])


def environment_file() -> Path:
    return FOLDER / "farm.env"


def _read(path: Path) -> Unit:
    settings: dict[str, list[str]] = {}
    section = ""
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and line and line[0] != "#":
            name, value = line.split("=", 1)
            settings.setdefault(name, []).append(value)
    return Unit(path, settings)


UNITS = {path.stem: _read(path) for path in sorted(FOLDER.glob("*.service"))}
