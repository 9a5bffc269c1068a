"""Manifest step, changing a line: splices new fields into its text; all else keeps its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

# Integers of any length compare exactly, without Python's limit on their digits.
_DECODER = json.JSONDecoder(parse_int=Decimal)

_SPACE = "[ \t\n\r]*"
_BLANKS = " \t\n\r"
_OPENING = re.compile(rf"{_SPACE}\{{{_SPACE}")
# Keys are nearly always plain; others are decoded.
_PLAIN_KEY = re.compile(rf'"([^"\\\x00-\x1f]*)"({_SPACE}:{_SPACE})')
# How nearly every line begins: a plain key, and a plain text behind which there is more.
_PLAIN_START = re.compile(rf'{_SPACE}\{{{_SPACE}"[^"\\]*"({_SPACE}:{_SPACE})"[^"\\]*"({_SPACE},{_SPACE})')
_COLON = re.compile(rf"{_SPACE}:{_SPACE}")
_COMMA = re.compile(rf"{_SPACE},{_SPACE}")
_CLOSING = re.compile(rf"{_SPACE}\}}{_SPACE}\Z")
_NON_ASCII_ESCAPE = re.compile(r"\\u(?!00[0-7])")


class NotAnObjectError(ValueError):
    """The text is not one JSON object, so no field can be set in it."""


class _Member(NamedTuple):
    """One `"key": value` of a line, the value at `line[start:end]`."""

    start: int
    end: int
    value: object


class _Layout(NamedTuple):
    """The layout of a line: the places of its members, the end of the last one, and the separators."""

    members: dict[str, _Member]
    end: int
    comma: str
    colon: str


Change = Callable[[Mapping[str, object]], Mapping[str, object]]
"""Given the fields that a line has, returns those to set."""


def with_fields(line: str, changes: Mapping[str, object]) -> str:
    """Return the JSON object in `line` with these fields set; see `changed`."""
    return changed(line, lambda _: changes)


def changed(line: str, change: Change) -> str:
    """Return the JSON object in `line` with some fields set, and all its other text as it was.

    A field that the line has is replaced where it stands (the last one, should the line have it twice); a new
    one goes before the closing brace, with the line's own separators. A field that has this value already
    keeps its bytes. Non-ASCII text is written as the line has it: escaped where the line holds it escaped
    only, else raw. A line of plain ASCII does not say, and gets the raw form: it is shorter, and people and
    `grep` can read it. Lone surrogates are always escaped, since UTF-8 has no bytes for them.

    Raises NotAnObjectError when the line is not one JSON object.
    """
    try:
        return _spliced(line, change)
    except json.JSONDecodeError as error:
        raise NotAnObjectError(f"not one JSON object: {error.msg} at column {error.colno}") from error
    except RecursionError as error:
        raise NotAnObjectError("JSON nested too deeply") from error


def _spliced(line: str, change: Change) -> str:
    fields = _fields(line)
    changes = change(fields)
    layout = _outline(line) if fields.keys().isdisjoint(changes) else _layout(line)
    encoder = _encoder(_escapes_non_ascii(line), layout.comma, layout.colon)
    replaced: list[tuple[int, int, str]] = []
    added: dict[str, object] = {}
    for key, value in changes.items():
        member = layout.members.get(key)
        if member is None:
            added[key] = value
            continue
        text = _json(encoder, value)
        if line[member.start : member.end] != text and not _reads_as(text, member.value):
            replaced.append((member.start, member.end, text))
    new = _json(encoder, added)[1:-1]
    if new and fields:
        new = layout.comma + new
    return _replace(line, [*sorted(replaced), (layout.end, layout.end, new)])


def _replace(line: str, pieces: list[tuple[int, int, str]]) -> str:
    result: list[str] = []
    done = 0
    for start, end, text in pieces:
        result += line[done:start], text
        done = end
    return "".join([*result, line[done:]])


def _fields(line: str) -> dict[str, object]:
    _end(_OPENING, line, 0)
    fields: dict[str, object] = _DECODER.decode(line)
    return fields


def _outline(line: str) -> _Layout:
    """Return the layout without the members: most lines get new fields only, and this is the faster half."""
    end = len(line[: line.rindex("}")].rstrip(_BLANKS))
    start = _PLAIN_START.match(line)
    if start is not None:
        return _Layout({}, end, start[2], start[1])
    at = _end(_OPENING, line, 0)
    if at >= end:
        return _Layout({}, end, ", ", ": ")
    _, value, separator = _key(line, at)
    comma = _COMMA.match(line, _DECODER.raw_decode(line, value)[1])
    return _Layout({}, end, comma.group() if comma else separator.replace(":", ","), separator)


def _layout(line: str) -> _Layout:
    at = _end(_OPENING, line, 0)
    if _CLOSING.match(line, at):
        return _Layout({}, line.index("{") + 1, ", ", ": ")
    members: dict[str, _Member] = {}
    commas: list[str] = []
    while True:
        key, start, separator = _key(line, at)
        value, end = _DECODER.raw_decode(line, start)
        members[key] = _Member(start, end, value)
        comma = _COMMA.match(line, end)
        if comma is None:
            break
        commas.append(comma.group())
        at = comma.end()
    _end(_CLOSING, line, end)
    return _Layout(members, end, commas[0] if commas else separator.replace(":", ","), separator)


def _key(line: str, at: int) -> tuple[str, int, str]:
    """Return the key at this place, the place of its value, and the separator between the two."""
    plain = _PLAIN_KEY.match(line, at)
    if plain is not None:
        return plain[1], plain.end(), plain[2]
    key, colon = _DECODER.raw_decode(line, at)
    if not isinstance(key, str):
        raise json.JSONDecodeError("Expecting property name enclosed in double quotes", line, at)
    start = _end(_COLON, line, colon)
    return key, start, line[colon:start]


def _end(mark: re.Pattern[str], line: str, at: int) -> int:
    """Return where the mark that must stand here ends."""
    match = mark.match(line, at)
    if match is None:
        raise json.JSONDecodeError("Expecting one of { } : ,", line, at)
    return match.end()


def _escapes_non_ascii(line: str) -> bool:
    if not line.isascii() or "\\u" not in line:
        return False
    # Without the backslashes that are escaped themselves, which come in pairs.
    return _NON_ASCII_ESCAPE.search(line.replace(r"\\", "")) is not None


@lru_cache(maxsize=64)
def _encoder(ascii_only: bool, comma: str, colon: str) -> json.JSONEncoder:
    # The fields are built for each line and contain no cycles.
    return json.JSONEncoder(ensure_ascii=ascii_only, separators=(comma, colon), check_circular=False)


def _json(encoder: json.JSONEncoder, value: object) -> str:
    text = encoder.encode(value)
    try:
        text.encode()  # four times faster than a search for a lone surrogate, which is rare
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def _reads_as(text: str, value: object) -> bool:
    # As text, because to Python 1, 1.0 and True are equal and NaN is not.
    return repr(_DECODER.decode(text)) == repr(value)
