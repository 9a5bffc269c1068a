"""Environment step, by command: records the files of an environment by their bytes, to compare later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote

from farm.errors import FarmError
from farm.files import write_whole
from farm_workers.environments import digest
from farm_workers.environments.configured import Parts

#: At most this many different files are named.
_MOST_NAMED = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """The content of an environment: its digest, the other facts that it covers, and each file's SHA-256.

    `made` is the folder that `farm environments add` has made for it, None if it made none.
    """

    digest: str
    covered: Mapping[str, str]
    files: Mapping[str, str]
    made: str | None = None

    @classmethod
    def read(cls, parts: Parts, told: Callable[[str], None], *, made: Path | None = None) -> Record:
        """Read every byte that the digest covers, ignoring caches; calls `told` with each file's name."""
        files = {}
        for name, file in digest.named(parts.folders, parts.programs).items():
            told(name)
            files[name] = digest.of_file(file)
        return cls(
            digest=parts.digest(digest.of_listed(files)),
            covered={
                "Lean's version": parts.toolchain.says.strip(),
                "the packages of lake-manifest.json": parts.packages,
                "the options": json.dumps(parts.options),
                "the checker": ", ".join(each.name for each in parts.checkers),
            },
            files=files,
            made=None if made is None else str(made),
        )

    def differences(self, earlier: Record) -> Iterator[str]:
        """Yield a sentence for each difference from an earlier record."""
        for what, value in self.covered.items():
            if (was := earlier.covered.get(what)) != value:
                yield f"{what}: was {was or 'none'}, is {value or 'none'}"
        both = self.files.keys() & earlier.files.keys()
        changed = [name for name in both if self.files[name] != earlier.files[name]]
        yield from _named("changed", changed)
        yield from _named("gone", earlier.files.keys() - both)
        yield from _named("new", self.files.keys() - both)


def _named(how: str, names: Iterable[str]) -> Iterator[str]:
    found = sorted(names)
    yield from (f"{how}: {name}" for name in found[:_MOST_NAMED])
    if len(found) > _MOST_NAMED:
        yield f"{how}: {len(found) - _MOST_NAMED} more files"


def _file(home: Path, name: str) -> Path:
    return home / "environments" / f"{quote(name, safe='')}.record.json"


def save(home: Path, name: str, record: Record) -> None:
    """Keep a record of an environment in the farm's data folder; raises FarmError."""
    file = _file(home, name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, json.dumps(asdict(record)).encode())
    except OSError as error:
        raise FarmError(f"{file} cannot be written: {error.strerror}; make room in FARM_HOME") from error


def load(home: Path, name: str) -> Record | None:
    """Return the record of an environment, None if it is missing or damaged."""
    try:
        return Record(**json.loads(_file(home, name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def forget(home: Path, name: str) -> None:
    """Remove the record of an environment."""
    _file(home, name).unlink(missing_ok=True)
