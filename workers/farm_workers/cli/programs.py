"""Command step, programs: reads the Lean file or the manifest that a command is given."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from farm.errors import UsageError
from farm.manifest.lines import encoding_of, opened, unmarked

if TYPE_CHECKING:
    from farm.manifest.entry import Entry


def program_text(file: str) -> str:
    """Return the text of a file, or of standard input for -. Raises UsageError for no text in UTF-8."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; give a Lean file, or - for standard input") from error
    if (wrong := encoding_of(bare := data.removeprefix(codecs.BOM_UTF8))) is not None:
        raise UsageError(f"{file}: {wrong.problem}; {wrong.remedy}")
    try:
        return bare.decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from error


def manifest_lines(path: Path, *, may_lack_answer: bool) -> Iterator[tuple[str, Entry]]:
    """Yield the text of each line of a manifest, and the line validated. Raises ManifestError."""
    from farm.manifest.entries import entries

    with opened(path) as lines:
        texts = dict(lines)
    for each in entries(str(path), texts.items(), may_lack_answer=may_lack_answer):
        if isinstance(each, Exception):
            raise each
        yield unmarked(each.line, texts[each.line]).decode().strip("\r\n"), each
