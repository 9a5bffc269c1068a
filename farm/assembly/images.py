"""Assembly step, images: which programs can be forked from one process, by the text it has read. Pure."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from farm.assembly.program import Program
from farm.characters import encoded
from farm.lean_text.header import header_end
from farm.manifest.entry import Entry

#: Headers up to so many characters, and so many of them, are remembered.
_REMEMBERED_CHARACTERS, _REMEMBERED = 8192, 1024


def image_of(entry: Entry, program: Program) -> int:
    """Return a number that Lean programs have in common when one image can fork for them; never 0.

    It only says what is better checked one after the other: what an answer imports besides is not looked at.
    """
    if program.context_end:
        return _number_of(program.text[: program.context_end])
    text, header = program.text, entry.header
    if header and text.startswith(header):
        is_short = len(header) <= _REMEMBERED_CHARACTERS
        return (_of_imports if is_short else _of_imports.__wrapped__)(header)
    return _of_imports.__wrapped__(text)


@lru_cache(maxsize=_REMEMBERED)
def _of_imports(text: str) -> int:
    return _number_of(text[: header_end(text)])


def _number_of(read: str) -> int:
    """Return the number of the image that has read a text."""
    return int.from_bytes(hashlib.sha256(encoded(read)).digest()[:7], "big") + 1
