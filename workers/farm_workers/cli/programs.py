"""Command step, programs: reads the Lean file that a command is given."""

from __future__ import annotations

import codecs
import sys
from pathlib import Path

from farm.errors import UsageError
from farm.manifest.lines import encoding_of


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
