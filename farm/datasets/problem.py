"""Datasets step, the values: one problem of a benchmark, and the content of one copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from farm.errors import ManifestError
from farm.manifest.lines import printable


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePlace:
    """Where a problem was found: the file, and the line where the file holds several."""

    path: Path
    line: int | None = None

    def fault(self, problem: str, remedy: str, *, field: str | None = None) -> ManifestError:
        """Return the error about this place."""
        path = printable(self.path, None)
        return ManifestError(path, problem, remedy=remedy, line=self.line, field=field)

    def __str__(self) -> str:
        path = printable(self.path, None)
        return path if self.line is None else f"{path}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One problem: the fields of its manifest line before any model has answered.

    `statement` is the `formal_statement`; either `header` or `context` is the text before it. `group`
    distinguishes problems of one name, and is None if names are unique. `more` are further fields.
    `unanswered` is the statement without the answers of its `solutions`, None if there are none; these are
    the known answers by the names of their definitions, and None for unknown ones.
    """

    place: FilePlace
    name: str
    split: str
    statement: str
    header: str = ""
    context: str | None = None
    group: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)
    unanswered: str | None = None
    solutions: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A problem of the copy from which no line could be made, and why."""

    place: FilePlace
    why: str
