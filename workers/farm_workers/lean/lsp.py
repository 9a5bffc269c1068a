"""Prepared way, protocol: the farm's requests to a ``lean --worker``, and its answers. Pure.

The wire format is that of the Language Server Protocol (base protocol 3.17): a line with the length of the
body, an empty line, the body in JSON. ``textDocument/waitForDiagnostics`` is Lean's own addition
(``Lean/Data/Lsp/Extra.lean``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from farm_workers.lean.way import Doubtful

#: The versions of the one document: its header, and the program.
HEADER, PROGRAM = 1, 2
#: The document is no file: for a file, Lean would look for a Lake workspace.
_URI = "untitled:program"


def opening(header: str) -> bytes:
    """Return the requests that have a fresh ``lean --worker`` import a header, and say when it has."""
    document = {"uri": _URI, "languageId": "lean", "version": HEADER, "text": header}
    return (
        _frame(id=0, method="initialize", params={"capabilities": {}})
        + _frame(
            method="textDocument/didOpen",
            params={"textDocument": document, "dependencyBuildMode": "never"},
        )
        + _until_ready(HEADER)
    )


def program(text: str) -> bytes:
    """Return the requests that give Lean the program, and have it say when all its messages are out."""
    changed = {"textDocument": {"uri": _URI, "version": PROGRAM}, "contentChanges": [{"text": text}]}
    return _frame(method="textDocument/didChange", params=changed) + _until_ready(PROGRAM)


def _until_ready(version: int) -> bytes:
    params = {"uri": _URI, "version": version}
    return _frame(id=version, method="textDocument/waitForDiagnostics", params=params)


def _frame(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


#: The headers before a body, and their most bytes.
_LENGTH = re.compile(rb"Content-Length: ([0-9]{1,9})\r\n\r\n")
_MOST_LENGTH = 40


class Answer:
    """The answer to the requests about one version of the document, as far as it has been written.

    `is_broken` marks output that breaks the protocol; the rest is not read.
    """

    def __init__(self, version: int) -> None:
        self._version = version
        self._read = 0
        self._published = b""
        self._is_answered = False
        self.is_broken = False

    def ends(self, written: bytes | bytearray) -> bool:
        """Read on in all that Lean has written; return whether it has answered, or will not."""
        while not self.is_broken and (body := self._next(written)) is not None:
            self._take(body)
        return self.is_broken or (self._is_answered and self._read == len(written))

    @property
    def is_complete(self) -> bool:
        """Whether Lean has answered, and published its messages."""
        return self._is_answered and bool(self._published) and not self.is_broken

    def _next(self, written: bytes | bytearray) -> bytes | None:
        """Return the next body, None if it is not there in full."""
        found = _LENGTH.match(written, self._read)
        if found is None:
            self.is_broken = len(written) - self._read >= _MOST_LENGTH
            return None
        end = found.end() + int(found[1])
        if len(written) < end:
            return None
        self._read = end
        return bytes(written[found.end() : end])

    def _take(self, body: bytes) -> None:
        """Keep the last list of messages; bodies of most methods are not even parsed."""
        if b'"textDocument/publishDiagnostics"' in body:
            self._published = body
        elif b'"method"' not in body:
            value = _parsed(body)
            self._is_answered = self._is_answered or value.get("id") == self._version
            self.is_broken = "result" not in value

    def as_printed(self, text: str) -> bytes:
        """Return Lean's messages about a text in the form in which ``lean --json`` prints them.

        Raises Doubtful for an unknown form, and for one without a field that ``lean --json`` prints.
        """
        value = _parsed(self._published)
        params = value.get("params")
        found = params.get("diagnostics") if isinstance(params, dict) else None
        if not isinstance(found, list) or not _is_about(params, self._version):
            raise Doubtful("a prepared Lean published no messages about the program")
        lines = text.split("\n")
        try:
            printed = [_printed(each, lines) for each in found if _shows(each)]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise Doubtful("a message in an unknown form") from error
        if any(_TRACE in str(each["data"]) for each in printed):
            raise Doubtful("a message with a trace")
        return b"".join(json.dumps(each).encode() + b"\n" for each in printed)


def _is_about(params: object, version: int) -> bool:
    return isinstance(params, dict) and params.get("version") == version


def _parsed(body: bytes) -> Mapping[str, object]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):  # the program may have written it
        return {}
    return value if isinstance(value, dict) else {}


#: ``Lean.Lsp.LeanDiagnosticTag``: a tick in an editor, which ``lean --json`` does not print.
_GOALS_ACCOMPLISHED = 2
_SEVERITIES = {1: "error", 2: "warning", 3: "information"}
#: Stands for a trace, which editors unfold on demand.
_TRACE = "(trace)"


def _shows(diagnostic: Any) -> bool:
    tags = diagnostic.get("leanTags") or ()
    return not diagnostic.get("isSilent") and _GOALS_ACCOMPLISHED not in tags


def _printed(diagnostic: Any, lines: list[str]) -> dict[str, object]:
    place = diagnostic.get("fullRange") or diagnostic["range"]
    return {
        "severity": _SEVERITIES[diagnostic["severity"]],
        "data": diagnostic["message"],
        "pos": _position(place["start"], lines),
        "endPos": _position(place["end"], lines),
        "kind": _kind(diagnostic),
    }


def _kind(diagnostic: Mapping[str, object]) -> str:
    """Return the kind that ``lean --json`` prints; editors get no kind but an error's name."""
    code = diagnostic.get("code")
    return f"{code}._namedError" if isinstance(code, str) else ""


def _position(place: Mapping[str, int], lines: list[str]) -> dict[str, int]:
    """Turn a position into a line from 1 and a column in code points; the protocol counts UTF-16 units."""
    number, units = place["line"], place["character"]
    line = lines[number]
    column = units if line.isascii() else len(line.encode("utf-16-le")[: 2 * units].decode("utf-16-le"))
    return {"line": number + 1, "column": column}
