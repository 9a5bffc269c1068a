"""Extraction step, the journal: finished files of an extraction that may be interrupted.

Beside the output stands its journal while the extraction lasts: for each finished file a line that names it,
its digest and the number of its lines, then these. A torn end is the work of a killed process: it is cut off.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.errors import FarmError, UsageError
from farm.manifest.lines import printable


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A finished file: its path, the digest of its text and of the options, its result, and its lines."""

    file: str
    digest: str
    facts: Mapping[str, Any]
    lines: Sequence[bytes]

    def encoded(self) -> bytes:
        """Return the unit as the journal has it."""
        head = {"file": self.file, "digest": self.digest, "facts": self.facts, "lines": len(self.lines)}
        return b"".join(each + b"\n" for each in (json.dumps(head).encode(), *self.lines))


def digest(*parts: str) -> str:
    """Return the digest of a file's text and of the options that its lines depend on."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """The journal of an output; as a context manager it is open for more units."""

    def __init__(self, output: Path, *, resume: bool, force: bool) -> None:
        """Read what is there. Raises UsageError for an earlier extraction that nobody said to resume."""
        self._path = output.with_name(f"{output.name}.part")
        self._output, self._ends = output, dict[str, tuple[str, int, int]]()
        if not resume and not force and self._path.exists():
            raise UsageError(
                f"{printable(self._path, None)}: an extraction into this file was interrupted; "
                "add --resume to go on with it, or --force to begin again"
            )
        if resume and self._path.exists():
            self._read()

    def _read(self) -> None:
        whole = 0
        with self._path.open("rb") as file:
            while head := file.readline():
                try:
                    told = json.loads(head)
                    found = [file.readline() for _ in range(told["lines"])]
                except (ValueError, KeyError, TypeError):
                    break
                if not all(each.endswith(b"\n") for each in (head, *found)):
                    break
                self._ends[told["file"]] = (told["digest"], whole, file.tell())
                whole = file.tell()
        os.truncate(self._path, whole)

    def __enter__(self) -> Journal:
        try:
            mode = "ab" if self._ends else "wb"
            self._file = self._path.open(mode)
        except OSError as error:
            raise FarmError(f"{printable(self._path, None)}: {error.strerror}") from error
        return self

    def __exit__(self, *_raised: object) -> None:
        self._file.close()

    def has(self, file: str, known: str) -> bool:
        """Return whether a file with this digest is finished."""
        return self._ends.get(file, ("",))[0] == known

    def add(self, unit: Unit) -> None:
        """Add a finished file, whole."""
        start = self._file.tell()
        self._file.write(unit.encoded())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._ends[unit.file] = (unit.digest, start, self._file.tell())

    def units(self, files: Sequence[str]) -> Iterator[Unit]:
        """Yield the finished files, in the order of the names."""
        with self._path.open("rb") as file:
            for name in files:
                known, start, _ = self._ends[name]
                file.seek(start)
                told = json.loads(file.readline())
                lines = [file.readline().rstrip(b"\n") for _ in range(told["lines"])]
                yield Unit(file=name, digest=known, facts=told["facts"], lines=lines)

    def facts(self, files: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the name and the result of each finished file, in the order of the names."""
        for unit in self.units(files):
            yield unit.file, unit.facts

    def publish(self, files: Sequence[str]) -> int:
        """Write the lines of all files into the output, atomically, and remove the journal.

        Returns the number of lines.
        """
        self._file.close()
        made = self._output.with_name(f".farm-{secrets.token_hex(8)}.new")
        count = 0
        with made.open("xb") as file:
            for unit in self.units(files):
                file.writelines(line + b"\n" for line in unit.lines)
                count += len(unit.lines)
            file.flush()
            os.fsync(file.fileno())
        made.replace(self._output)
        self._path.unlink()
        return count
