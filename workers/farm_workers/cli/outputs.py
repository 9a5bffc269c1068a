"""Command step, outputs: the file, the limits and the tables of commands that work on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farm.errors import UsageError

if TYPE_CHECKING:
    from farm.limits import Limits
    from farm.settings import Settings


def require_output(output: Path, *given: Path, suffix: str = "", force: bool) -> None:
    """Raise UsageError for an output that must not be written: one of the files that are read, or another."""
    from farm.manifest.outputs import require_free

    if not output.parent.is_dir():
        raise UsageError(f"-o {output}: there is no folder {output.parent}; make it first")
    if output.is_dir() or (suffix and output.suffix != suffix):
        ending = f" that ends in {suffix}" if suffix else ""
        raise UsageError(f"-o {output}: give the name of a file{ending}")
    if output.exists() and any(each.exists() and output.samefile(each) for each in given):
        raise UsageError(f"-o {output}: name another file than the one that is read; that one stays")
    require_free(output, force=force)


def write_output(output: Path, content: bytes) -> None:
    """Write a file, whole or not at all. Raises UsageError where it cannot be written."""
    from farm.files import write_whole

    try:
        write_whole(output, content)
    except OSError as error:
        raise UsageError(f"-o {output}: {error.strerror}; name a file that can be written") from error


def write_lines(output: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write objects as lines of JSON. Raises UsageError."""
    text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines)
    write_output(output, text.encode("utf-8", "backslashreplace"))


def limits_of(settings: Settings, timeout: float, memory_mib: int | None) -> Limits:
    """Return the limits of options, the memory of the settings by default. Raises UsageError."""
    from farm.limits import CPU_PER_WALL, Limits, require_possible

    memory = settings.memory_mib if memory_mib is None else memory_mib
    require_possible(wall_seconds=timeout, memory_mib=memory)
    return Limits(wall_seconds=timeout, cpu_seconds=CPU_PER_WALL * timeout, memory_mib=memory)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], *, title: str = "", most: int) -> None:
    """Print the first `most` rows of a table, and how many more there are; nothing without a row."""
    from rich.table import Table
    from rich.text import Text

    from farm.cli.terminal import count, out, say, visible

    if not rows:
        return
    table = Table(*columns, title=title or None)
    for row in rows[:most]:
        table.add_row(*(Text(visible(cell)) for cell in row))
    out.print(table)
    if len(rows) > most:
        say(f"{count(len(rows) - most, 'more row')}: --json has all")
