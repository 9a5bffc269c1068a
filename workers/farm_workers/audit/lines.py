"""A file of sorted lines, in which one is found without reading the others."""

from __future__ import annotations

import mmap
from pathlib import Path


class SortedLines:
    """The lines of a UTF-8 file, sorted by code points.

    A library has hundreds of thousands of names, and an audit asks for a few hundred of them.
    """

    def __init__(self, file: Path) -> None:
        with file.open("rb") as opened:
            empty = opened.seek(0, 2) == 0
            self._bytes = b"" if empty else mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)

    def __contains__(self, line: str) -> bool:
        """Whether a line equals this one."""
        wanted = line.encode("utf-8", "surrogatepass")
        low, high = 0, len(self._bytes)  # both are where lines begin
        while low < high:
            begin = self._bytes.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._bytes.find(b"\n", begin, high)
            found = self._bytes[begin : high if end < 0 else end]
            if found == wanted:
                return True
            if found < wanted:
                low = high if end < 0 else end + 1
            else:
                high = begin
        return False
