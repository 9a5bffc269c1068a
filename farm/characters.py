"""The characters that UTF-8, Lean and PostgreSQL cannot hold, and Python and JSON can. Pure."""

from __future__ import annotations

import json
import re

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# An escaped backslash is matched first: the characters behind it are no escape.
_UNSTORABLE_IN_JSON = re.compile(r"(\\\\)|\\u0000|[\ud800-\udfff]")


def first_unstorable(text: str) -> int | None:
    """Return the offset of the first NUL or lone surrogate, None without one."""
    found = _UNSTORABLE.search(text)
    return None if found is None else found.start()


def storable(text: str) -> str:
    """Return the text with U+FFFD in place of every NUL and lone surrogate."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable_json(value: object) -> str:
    """Return the JSON of a value, all its strings storable."""
    text = json.dumps(value)
    if "\\u0000" not in text and "\\ud" not in text:
        return text  # as nearly always: there is nothing to look for
    text = json.dumps(value, ensure_ascii=False)
    return _UNSTORABLE_IN_JSON.sub(lambda found: found[1] or "\ufffd", text)


def encoded(text: str) -> bytes:
    """Return the UTF-8 of a text, lone surrogates encoded as they are."""
    return text.encode("utf-8", "surrogatepass")


def decoded(source: bytes) -> str:
    """Return the text that `encoded` made bytes of."""
    return source.decode("utf-8", "surrogatepass")
