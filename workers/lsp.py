"""Protocol step: what is said to a resident Lean and what it answers, as bytes and values. Pure.

The wire format is that of the Language Server Protocol (base protocol 3.17): a header with the length of the
body, an empty line, the body in JSON. ``textDocument/waitForDiagnostics`` and ``$/lean/fileProgress`` are
Lean's own additions (``Lean/Data/Lsp/Extra.lean``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.verdict import Message

#: The one document that a resident Lean holds.
URI = "file:///program.lean"


class BrokenProtocol(Exception):
    """What came is not what the protocol promises; nothing that follows can be trusted."""


def request(number: int, method: str, params: Mapping[str, object]) -> bytes:
    """Return a request as it goes over the wire."""
    return _frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Mapping[str, object]) -> bytes:
    """Return a notification as it goes over the wire."""
    return _frame({"jsonrpc": "2.0", "method": method, "params": params})


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _frame(value: Mapping[str, object]) -> bytes:
    body = _ENCODER.encode(value).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def opening(header: str) -> bytes:
    """Return what makes a fresh ``lean --worker`` elaborate a header as the document's version 1."""
    document = {"uri": URI, "languageId": "lean", "version": 1, "text": header}
    return request(0, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}) + notification(
        "textDocument/didOpen", {"textDocument": document, "dependencyBuildMode": "never"}
    )


def change(version: int, text: str) -> bytes:
    """Return the notification that gives the document a new text."""
    document = {"uri": URI, "version": version}
    return notification(
        "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
    )


def wait(version: int) -> bytes:
    """Return the request, numbered like the version, that is answered when all messages are out."""
    return request(version, "textDocument/waitForDiagnostics", {"uri": URI, "version": version})


#: What stands for the body of a message that is longer than allowed.
TOO_LONG = b""


class Frames:
    """Cuts a stream of bytes into the bodies of messages."""

    def __init__(self) -> None:
        self._rest = b""
        self._skip = 0

    def feed(self, data: bytes, longest: int) -> list[bytes]:
        """Take bytes and return the bodies that are whole now, `TOO_LONG` for one above `longest` bytes.

        Raises BrokenProtocol for what is no message.
        """
        data = self._rest + data
        bodies = []
        position = self._skipped(0, len(data))
        while header := _HEADER.match(data, position):
            start, length = header.end(), int(header[1])
            if length > longest:
                bodies.append(TOO_LONG)
                self._skip = length
                position = self._skipped(start, len(data))
                continue
            if len(data) < start + length:
                break
            position = start + length
            bodies.append(data[start:position])
        else:
            if _HEADER_END in data[position:] or len(data) - position > _LONGEST_HEADER:
                raise BrokenProtocol("no header of a message where one must be")
        self._rest = data[position:]
        return bodies

    def _skipped(self, position: int, end: int) -> int:
        """Return where to go on behind a message that is too long, as far as it has come."""
        gone = min(self._skip, end - position)
        self._skip -= gone
        return position + gone


#: The header that Lean sends; the protocol knows one field more, which Lean does not use.
_HEADER = re.compile(rb"Content-Length: ([0-9]{1,15})\r\n\r\n")

_HEADER_END = b"\r\n\r\n"
_LONGEST_HEADER = 64


@dataclass(slots=True)
class Exchange:
    """What has come about one version of the document: the last of each kind, decoded when asked for."""

    version: int
    answered: bool = False
    too_long: bool = False
    size: int = 0
    _diagnostics: bytes = b""
    _progress: bytes = b""

    def may_be_over(self, heard: bytearray, start: int) -> bool:
        """Whether what was heard from `start` on looks like the answer; part of that may stand before it."""
        mark = b'"id":%d' % self.version
        return heard.find(mark, max(0, start - len(mark))) >= 0

    def take(self, body: bytes) -> None:
        """Take the body of a message; most kinds do not matter, and cost nothing more than this look."""
        if body == TOO_LONG:
            self.too_long = True
        elif b'"textDocument/publishDiagnostics"' in body:
            if self._is_about_this(body, "textDocument/publishDiagnostics"):
                self._diagnostics = body
                self.size = len(body)
        elif b'"$/lean/fileProgress"' in body:
            self._progress = body
        elif b'"method"' not in body:
            self._take_response(_decode(body))

    def _is_about_this(self, body: bytes, method: str) -> bool:
        # Without decoding: Lean writes the version last, and a whole message is decoded once, at the end.
        if body.rstrip(b" }").endswith(b'"version":%d' % self.version):
            return True
        value = _decode(body)
        return value.get("method") == method and _params(value).get("version") == self.version

    def _take_response(self, value: Mapping[str, Any]) -> None:
        if value.get("id") != self.version:
            return
        if "result" not in value:
            raise BrokenProtocol(f"Lean refused the text: {str(value.get('error'))[:200]}")
        self.answered = True

    @property
    def published(self) -> bool:
        """Whether Lean has said anything about this version, be it that there is nothing to say."""
        return bool(self._diagnostics)

    def messages(self, program: str) -> list[Message]:
        """Return Lean's messages on the program, with lines from 1 and columns in code points.

        Raises BrokenProtocol when none were published, or in another form than is known.
        """
        value = _decode(self._diagnostics)
        found = _params(value).get("diagnostics")
        if not isinstance(found, list) or value.get("method") != "textDocument/publishDiagnostics":
            raise BrokenProtocol("messages without a list of them")
        lines = program.split("\n")
        return [message for each in found if (message := _message(each, lines)) is not None]

    def working_on(self) -> int | None:
        """Return the line, counted from 1, that Lean was at work on when it last told; None when on none.

        Lean tells the ranges that it has not done with, in order. An empty one waits only to be reported. One
        that reaches to the end of the text has not been read yet: then what stands before it holds Lean up.
        When all has been read, proofs are still elaborated one after the other, and the first is at work.
        """
        if not self._progress:
            return None
        params = _params(_decode(self._progress))
        document = params.get("textDocument")
        if not isinstance(document, dict) or document.get("version") != self.version:
            return None
        try:
            ranges = [(_corner(each, "start"), _corner(each, "end")) for each in params["processing"]]
        except (KeyError, TypeError, ValueError):
            return None
        return _at_work(ranges)


_Corner = tuple[int, int]


def _corner(processing: Mapping[str, Any], which: str) -> _Corner:
    place = processing["range"][which]
    return int(place["line"]) + 1, int(place["character"])


def _at_work(ranges: list[tuple[_Corner, _Corner]]) -> int | None:
    busy = [start[0] for start, end in ranges if start != end]
    if not busy:
        return None
    start, end = ranges[-1]
    unread = start != end
    return busy[-2] if unread and len(busy) > 1 else busy[0]


def _decode(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BrokenProtocol("a message that is not JSON") from error
    if not isinstance(value, dict):
        raise BrokenProtocol("a message that is no object")
    return value


def _params(value: Mapping[str, Any]) -> dict[str, Any]:
    params = value.get("params")
    return params if isinstance(params, dict) else {}


_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "information"}
#: ``Lean.Lsp.LeanDiagnosticTag``: what editors show as a tick, ``lean --json`` does not print.
_GOALS_ACCOMPLISHED = 2


def _message(value: object, lines: list[str]) -> Message | None:
    if not isinstance(value, dict):
        raise BrokenProtocol("a message of Lean that is no object")
    if value.get("isSilent") or _GOALS_ACCOMPLISHED in value.get("leanTags", ()):
        return None
    try:
        place = value.get("fullRange") or value["range"]
        start, end = _point(place["start"], lines), _point(place["end"], lines)
        return Message(
            severity=_SEVERITIES[value["severity"]],
            kind=str(value.get("code", "")),
            text=str(value["message"]),
            line=start[0],
            column=start[1],
            end_line=None if end == start else end[0],
            end_column=None if end == start else end[1],
        )
    except (KeyError, TypeError, IndexError) as error:
        raise BrokenProtocol("a message of Lean in an unknown form") from error


def _point(value: Mapping[str, int], lines: list[str]) -> tuple[int, int]:
    """Turn a position into (line from 1, column in code points); the protocol counts UTF-16 units."""
    number, units = value["line"], value["character"]
    line = lines[number] if number < len(lines) else ""
    if line.isascii():
        return number + 1, units
    return number + 1, len(line.encode("utf-16-le")[: 2 * units].decode("utf-16-le", errors="replace"))
