"""What processes that a test started hold: in memory, in open files, and on disk."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.processes import Process, family

#: Of a process, so much is read at a time, overlapping by the length of what is looked for.
_BLOCK = 1 << 18
#: From <linux/fs.h> of /proc/PID/pagemap: the highest two bits of a page's word.
_PRESENT_OR_SWAPPED, _PAGE = 62, os.sysconf("SC_PAGE_SIZE")


def started() -> list[Process]:
    """Return all processes that came of this one."""
    return [each for each in family(os.getpid()) if each.pid != os.getpid()]


def holders(*marks: str | bytes) -> list[str]:
    """Return what processes that came of this one have one of some marks in their memory."""
    wanted = [mark.encode() if isinstance(mark, str) else mark for mark in marks]
    return [f"{each.pid} {each.command}" for each in started() if _holds(each.pid, wanted)]


def rewrite(pid: int, old: bytes, new: bytes) -> int:
    """Put other bytes of the same length in the place of some in a process's memory; return how often."""
    assert len(old) == len(new)
    places = [place for region in _regions(pid) for place in _places(pid, *region, old)]
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
        for place in places:
            os.pwrite(memory.fileno(), new, place)
    return len(places)


def shared_memory() -> list[str]:
    """Return the writable mappings that processes which came of this one share with others."""
    return [line for each in started() for line in _maps(each.pid) if line.split()[1].startswith("rw-s")]


def memory_files() -> list[tuple[int, str]]:
    """Return the files in memory that processes which came of this one have open, with their numbers."""
    opened = ((each.pid, place) for each in started() for place in _descriptors(each.pid))
    return [(pid, place) for pid, place in opened if place.startswith("/memfd:")]


def files_with(mark: bytes, *folders: Path) -> list[Path]:
    """Return the files below some folders that hold a mark."""
    files = (file for folder in folders for file in folder.rglob("*") if file.is_file())
    return [file for file in files if mark in file.read_bytes()]


def _descriptors(pid: int) -> list[str]:
    try:
        return [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:  # it is gone, or closes one just now
        return []


def _holds(pid: int, marks: Sequence[bytes]) -> bool:
    try:
        with (
            Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory,
            Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pages,
        ):
            files = memory.fileno(), pages.fileno()
            blocks = (block for region in _regions(pid) for block in _blocks(*files, *region, marks))
            return any(mark in block for block in blocks for mark in marks)
    except OSError:  # it is gone
        return False


def _places(pid: int, start: int, end: int, mark: bytes) -> Iterator[int]:
    """Yield where a mark is in a mapping."""
    with (
        Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory,
        Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pages,
    ):
        for place in range(start, end, _BLOCK):
            region = place, min(end, place + _BLOCK)
            for block in _blocks(memory.fileno(), pages.fileno(), *region, [mark]):
                yield from (place + found.start() for found in re.finditer(re.escape(mark), block))


def _maps(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:  # it is gone
        return []


def _regions(pid: int) -> Iterator[tuple[int, int]]:
    for line in _maps(pid):
        place, rights, *_ = line.split()
        if rights.startswith("rw") or (rights.startswith("r") and "memfd:" in line):
            start, end = (int(word, 16) for word in place.split("-"))
            yield start, end


def _blocks(memory: int, pages: int, start: int, end: int, marks: Sequence[bytes]) -> Iterator[bytes]:
    """Yield what a mapping has in its pages; most of what is reserved for stacks has none."""
    more = max(map(len, marks))
    for place in range(start, end, _BLOCK):
        size = min(_BLOCK, end - place)
        entries = memoryview(os.pread(pages, 8 * size // _PAGE, 8 * place // _PAGE)).cast("Q")
        if max(entries, default=0) >> _PRESENT_OR_SWAPPED:
            with contextlib.suppress(OSError):  # what is mapped and not there
                yield os.pread(memory, size + more, place)
