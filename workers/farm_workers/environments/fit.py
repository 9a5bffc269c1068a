"""Environment step, fit: how the Lean of an environment can be forked here, kept with its digest.

`farm_workers.machine.fitting` tries it. A Lean whose release the farm's own tests have run needs none;
any other is forked only where it fits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path

from farm.documents import decoded
from farm.errors import FarmError
from farm.files import write_whole

#: The packages whose code decides whether a Lean fits.
_ENGINE = ("audit", "binding", "images", "replay", "seal")
_PACKAGES = Path(__file__).parent.parent
#: The folder of fits in the farm's data folder.
_FOLDER = "fits"


@dataclass(frozen=True, kw_only=True, slots=True)
class Tried:
    """One way to fork: whether it fits, and the first reasons why it does not."""

    way: str
    fits: bool
    why: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A Lean's ways and abilities on this machine.

    `source` says where its description comes from, `description` is the file that holds it, "" for the farm's
    own. `way` is the best way that fits, "" if none does. `lacking` has a sentence for each ability that is
    not to be had. `cases` counts the programs that were judged, `modules` the compiled modules that the audit
    read, with the first `misfits`. `figures` are in the units of their names. `engine` identifies the farm's
    code: another one has to find out again.
    """

    digest: str
    lean: str
    source: str
    engine: str
    way: str = ""
    description: str = ""
    tried: tuple[Tried, ...] = ()
    lacking: dict[str, str] = field(default_factory=dict)
    cases: int = 0
    modules: int = 0
    misfits: tuple[str, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        """Return a hash that takes no time."""
        return hash((self.digest, self.way))

    @property
    def words(self) -> str:
        """Whether and how Lean is forked, with the time that it takes, or the first reason why it is not."""
        if not self.way:
            why = next((reason for each in self.tried for reason in each.why), "no way was tried")
            return f"not forked: {why}"
        forked, cold = (1e3 * self.figures.get(each, 0.0) for each in ("forked_seconds", "cold_seconds"))
        return f"forked ({self.way}), a small proof in {forked:.0f} ms where a fresh Lean takes {cold:.0f}"

    @property
    def document(self) -> Mapping[str, object]:
        """Its facts, for people who send them."""
        return {name: value for name, value in asdict(self).items() if name != "description"}


def path_of(home: Path, digest: str) -> Path:
    """Return the file of a fit, in the farm's data folder."""
    return home / _FOLDER / f"{digest}.json"


def load(home: Path, digest: str, brought: str = "") -> Fit | None:
    """Return the fit of an environment from the data folder, else from a folder that was `brought` along.

    It is None if there is none, or if another release of the farm found it.
    """
    folders = [home / _FOLDER, *([Path(brought)] if brought else [])]
    return next((fit for folder in folders if (fit := _read(folder, digest)) is not None), None)


def _read(folder: Path, digest: str) -> Fit | None:
    try:
        found = decoded(Fit, json.loads((folder / f"{digest}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
    if found.engine != engine() or found.digest != digest:
        return None
    if not found.description:
        return found
    # The two files can be carried elsewhere together.
    description = folder / Path(found.description).name
    return replace(found, description=str(description)) if description.exists() else None


def save(home: Path, fit: Fit) -> Path:
    """Write a fit, and return its file. Raises FarmError."""
    path = path_of(home, fit.digest)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, (json.dumps(asdict(fit), indent=1) + "\n").encode())
    except OSError as error:
        raise FarmError(f"{path}: {error.strerror}") from error
    return path


@cache
def engine() -> str:
    """Return a digest of the farm's code that forks Lean."""
    found = hashlib.sha256()
    for package in _ENGINE:
        for path in sorted((_PACKAGES / package).glob("*.py")):
            found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
