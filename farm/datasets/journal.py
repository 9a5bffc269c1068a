"""Extraction step, the journal: finished files of an extraction that may be interrupted.

Beside the output stands its journal while the extraction lasts: for each finished file a line with its name,
its digest and its result, then its lines of JSON, then ``=`` and their number. A killed process leaves a torn
end, which is cut off. Lines are written and copied one by one: files of any length take the same memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from farm.errors import FarmError, UsageError
from farm.manifest.lines import printable


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A finished file: its path, the digest of its text and of the options, its result, and its lines."""

    file: str
    digest: str
    facts: Mapping[str, Any]
    lines: Iterable[bytes]

    def head(self) -> bytes:
        """Return the first line of the unit in the journal."""
        return json.dumps({"file": self.file, "digest": self.digest, "facts": self.facts}).encode()


def digest(*parts: str) -> str:
    """Return the digest of a file's text and of the options that its lines depend on."""
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """The journal of an output; as a context manager it is open for more units."""

    def __init__(self, output: Path, *, resume: bool, force: bool) -> None:
        """Read an earlier extraction. Raises UsageError for one without --resume."""
        self._path = output.with_name(f"{output.name}.part")
        self._output, self._ends = output, dict[str, tuple[str, int]]()
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
                    name, known = told["file"], told["digest"]
                except (ValueError, KeyError, TypeError):
                    break
                number = sum(1 for _ in _lines(file))
                if file.readline() != _foot(number):
                    break
                self._ends[name] = (known, whole)
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
        start, number = self._file.tell(), 0
        self._file.write(unit.head() + b"\n")
        for line in unit.lines:
            self._file.write(line + b"\n")
            number += 1
        self._file.write(_foot(number))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._ends[unit.file] = (unit.digest, start)

    def facts(self, files: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the name and the result of each finished file, in the order of the names."""
        with self._path.open("rb") as file:
            for name in files:
                file.seek(self._ends[name][1])
                yield name, json.loads(file.readline())["facts"]

    def publish(self, files: Sequence[str]) -> int:
        """Write the lines of all files into the output, atomically, and remove the journal.

        Returns the number of lines.
        """
        self._file.close()
        made = self._output.with_name(f".farm-{secrets.token_hex(8)}.new")
        count = 0
        with self._path.open("rb") as given, made.open("xb") as file:
            for name in files:
                given.seek(self._ends[name][1])
                given.readline()
                for line in _lines(given):
                    file.write(line)
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        made.replace(self._output)
        self._path.unlink()
        return count


_MARK = b"="


def _foot(number: int) -> bytes:
    """Return the last line of a unit."""
    return _MARK + str(number).encode() + b"\n"


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a unit from the place of a file on, and stop before its last one or a torn one."""
    while True:
        start = file.tell()
        line = file.readline()
        if line.startswith(_MARK) or not line.endswith(b"\n"):
            file.seek(start)
            return
        yield line
