"""Report step: reads the values of one field of a manifest, from the file that was submitted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from farm.errors import ManifestChanged, ManifestError
from farm.manifest.lines import Fingerprint, Lines, opened, printable

#: At most this many field names are kept for a message.
_MOST_NAMES = 50
#: A longer value is represented by its beginning and a hash.
_LONGEST = 200
#: More digits than these are a text; Python refuses to count with very many.
_MOST_DIGITS = 20

_REMEDY = "put the submitted file back, or leave out --by"


def _whole(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MOST_DIGITS else digits


# That there is nothing behind the object is known: the file is one that was submitted.
_decoded = json.JSONDecoder(parse_int=_whole).raw_decode
_encoded = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode


class Field:
    """One field, and whether any line that was read has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_found = False
        #: Fields of the lines that were read before one had this one; a dict, for they have an order.
        self.others: dict[str, None] = {}

    def value(self, line: bytes) -> str | None:
        """Return the value as a text, JSON where it is none, None without the field.

        Raises ValueError when the line is no JSON object, and RecursionError.
        """
        fields, _ = _decoded(line.decode().lstrip())
        if not isinstance(fields, dict):
            raise ValueError(line[:1])  # noqa: TRY004 - as the decoder says that a line is no line
        if self.name not in fields:
            if not self.is_found and len(self.others) < _MOST_NAMES:
                self.others.update(dict.fromkeys(fields))
            return None
        self.is_found = True
        return shown(fields[self.name])


def shown(value: object) -> str:
    """Return a value of a field as a text of bounded length; different values keep different texts."""
    return shortened(value if isinstance(value, str) else _encoded(value))


def shortened(text: str) -> str:
    """Return a text, or the beginning of a long one and its hash."""
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{text[: _LONGEST // 2]}... (sha256 {digest})"


class FieldValues:
    """The values of a field in one manifest as it was submitted, line after line."""

    def __init__(self, lines: Lines, field: Field) -> None:
        self._lines, self._field = lines, field
        self._rest: Iterator[tuple[int, bytes]] = iter(lines)

    def at(self, line: int) -> str | None:
        """Return the value at a line; calls must come in ascending order.

        Raises `ManifestError`, a `ManifestChanged` if the file no longer has that line.
        """
        for number, text in self._rest:
            if number == line:
                try:
                    return self._field.value(text)
                except (ValueError, RecursionError) as error:
                    raise changed(self._lines.path) from error
        raise changed(self._lines.path)

    def require(self, known: Collection[Fingerprint]) -> None:
        """Raise `ManifestChanged` unless the file is one of those that the farm has read or written."""
        if self._lines.fingerprint() not in known:
            raise changed(self._lines.path)


@contextmanager
def field_values(path: Path, field: Field) -> Iterator[FieldValues]:
    """Give the values of a field in a manifest, which is open inside the block; raises `ManifestError`."""
    try:
        with opened(path) as lines:
            yield FieldValues(lines, field)
    except ManifestChanged:
        raise
    except ManifestError as error:
        problem = f"{error.problem}, and --by reads the field from there"
        raise ManifestError(error.path, problem, remedy=_REMEDY) from error


def changed(path: Path) -> ManifestChanged:
    """Return the error that says that the field's values are gone."""
    problem = "has changed since it was submitted, so --by cannot know the values of the judged lines"
    return ManifestChanged(printable(path, None), problem, remedy=_REMEDY)
