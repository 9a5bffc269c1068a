"""Manifest step, errors: collects the first wrong lines of a manifest into one error."""

from __future__ import annotations

from collections.abc import Iterable

from farm.errors import ManifestError, WrongLines

#: At most this many wrong lines are listed; the others are counted.
MOST_TOLD = 10

#: At most this many lines behind the first wrong one are read: enough to see whether all are wrong in the
#: same way, and few enough to report a single one soon.
LOOKED_AT_BEHIND = 20_000


class Faults:
    """Collects the errors of a manifest, in the order of its lines."""

    def __init__(self) -> None:
        self._told: list[ManifestError] = []
        self._untold = 0
        self._last: int | None = None
        self._is_cut = False

    def __bool__(self) -> bool:
        """Whether anything is wrong."""
        return bool(self._told)

    def add(self, fault: ManifestError) -> None:
        """Add the error of the next wrong line, or of the file behind all lines."""
        if self._last is None:
            self._last = (fault.line or 0) + LOOKED_AT_BEHIND
        if len(self._told) < MOST_TOLD:
            self._told.append(fault)
        else:
            self._untold += 1

    def add_all(self, faults: Iterable[ManifestError]) -> None:
        """Add errors in the order of the lines, up to the last line that is read."""
        for fault in faults:
            if not self.ends_before(fault.line or 0):
                self.add(fault)

    def ends_before(self, line: int) -> bool:
        """Return whether a line is no longer to be looked at, and remember it."""
        is_behind = self._last is not None and line > self._last
        self._is_cut = self._is_cut or is_behind
        return is_behind

    def error(self) -> ManifestError:
        """Return one error with all of them."""
        path, rest = self._told[0].path, []
        if self._untold:
            rest.append(f"{path}: {self._untold} more lines are wrong")
        if self._is_cut:
            rest.append(f"{path}: the lines behind line {self._last} were not looked at")
        if len(self._told) == 1 and not rest:
            return self._told[0]
        return WrongLines(self._told, rest)
