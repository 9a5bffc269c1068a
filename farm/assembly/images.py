"""Assembly step, images: numbers programs by the image that can fork for them, for the scheduling. Pure."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from farm.assembly.program import Program
from farm.characters import encoded
from farm.lean_text.header import header_end
from farm.manifest.entry import Entry

#: The longest header, in characters, whose number is cached, and the size of the cache.
_REMEMBERED_CHARACTERS, _REMEMBERED = 8192, 1024


def image_of(entry: Entry, program: Program) -> int:
    """Return a number that Lean programs share if one image can fork for them; never 0.

    Workers check programs of one number one after the other to reuse the image. The number ignores further
    imports of an answer.
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
