"""Manifest step, outputs: keeps a command from replacing a file with answers or verdicts in it."""

from __future__ import annotations

from pathlib import Path

from farm.errors import UsageError
from farm.manifest.lines import printable


def require_free(output: Path, *kept: Path, force: bool) -> None:
    """Raise UsageError for an output that is there already and not empty, unless `force` lets it be replaced.

    One of the files `kept`, whose lines the command keeps, may be written; what is no regular file, such as a
    device, is left to the writer.
    """
    if force or not output.is_file() or not output.stat().st_size:
        return
    if not any(each.exists() and output.samefile(each) for each in kept):
        raise UsageError(
            f"-o {printable(output, None)}: the file is there already; add --force to replace it"
        )
