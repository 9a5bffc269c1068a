"""Extraction step, the values: the theorems of a Lean file, as Lean described them, and their lines. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from farm.datasets.history import Change
from farm.datasets.splits import Side


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    """A Lean file: its path below the folder that is extracted, its module's name, and its text.

    The text has line feeds alone, as Lean reads it; places in it are bytes of its UTF-8. `returns` are the
    places of those line feeds before which the file has a carriage return.
    """

    path: str
    module: str
    text: str
    returns: Sequence[int] = ()

    @classmethod
    def of(cls, path: PurePosixPath, text: str) -> SourceFile:
        """Return the file of a path; its module has the names of the folders and of the file."""
        written = text.encode("utf-8", "surrogatepass")
        found = (match.start() for match in re.finditer(b"\r\n", written))
        return cls(
            path=str(path),
            module=module_of(str(path)),
            text=text.replace("\r\n", "\n"),
            returns=tuple(at - number for number, at in enumerate(found)),
        )

    @cached_property
    def bytes(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode("utf-8", "surrogatepass")

    @cached_property
    def _lines(self) -> Sequence[int]:
        starts = [0]
        for line in self.bytes.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        return starts

    def part(self, start: int, end: int) -> str:
        """Return the text between two bytes."""
        return self.bytes[start:end].decode("utf-8", "replace")

    def in_file(self, at: int) -> int:
        """Return the place that a byte of the text has in the file itself."""
        return at + bisect_left(self.returns, at)

    def place(self, at: int) -> tuple[int, int]:
        """Return the line of a byte, from 1, and its column, from 0, in code points."""
        line = bisect_right(self._lines, at)
        return line, len(self.part(self._lines[line - 1], at))


def module_of(path: str) -> str:
    """Return the name of the module of a file's path."""
    return ".".join(PurePosixPath(path).with_suffix("").parts)


def bare_name(name: str) -> str:
    """Return a name as a file gives it: Lean puts the module and a number before a private one."""
    return name.rpartition(".0.")[2] if name.startswith("_private.") else name


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One tactic of a proof: its bytes, the kind of its syntax, and how many blocks it stands in.

    `before` and `after` are indices of goals, None where Lean kept none.
    """

    start: int
    end: int
    kind: str
    depth: int
    before: tuple[int, ...] | None = None
    after: tuple[int, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Theorem:
    """One theorem of a file: its name, its bytes, and the byte at which its proof begins.

    `type` and `goals` are printed by Lean; `used` are the constants in the proof, `own` those of them that
    the file declares, and `repository` those that other files of its repository declare. `cost` is that of
    its command's elaboration, in seconds and heartbeats, and `created` the oldest commit of the lines of its
    statement; `side` is its side of a split by date. Costs, commits, sides, goals and steps are None unless
    the extraction wants them.
    """

    name: str
    start: int
    proof: int
    end: int
    type: str | None = None
    used: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    repository: tuple[str, ...] = ()
    axioms: tuple[str, ...] = ()
    cost: tuple[float, int] | None = None
    doc: str | None = None
    attributes: str | None = None
    signature: str | None = None
    tokens: int = 0
    step_count: int = 0
    depth: int = 0
    histogram: Mapping[str, int] = field(default_factory=dict)
    file_created: Change | None = None
    created: Change | None = None
    side: Side | None = None
    goals: tuple[str, ...] | None = None
    steps: tuple[Step, ...] | None = None

    @property
    def is_private(self) -> bool:
        """Whether other files cannot name it."""
        return self.name.startswith("_private.")

    @property
    def user_name(self) -> str:
        """The name that the file gives it."""
        return bare_name(self.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A theorem that has no line: its name, the reason, a word of `REASONS`, and more about it."""

    name: str
    why: str
    more: str = ""

    @property
    def words(self) -> str:
        """The reason in words."""
        said = REASONS.get(self.why, self.why)
        return f"{said}: {self.more.partition(chr(10))[0]}" if self.more else said


#: The reasons for which a theorem has no line.
REASONS = {
    "error": "Lean reports an error in it",
    "error above": "Lean reports an error above it",
    "sorry": "it rests on a sorry",
    "part of a command": "it is a part of another declaration, as in a structure or a mutual block",
    "no proof": "no text of its own is its proof",
    "no text": "its place is not in the file",
    "older": "it is older than --since",
    "no date": "git has no commit of it",
    "most": "the file has more theorems than --most allows",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Extract:
    """The result for one file: its theorems, and those that were left out. `exited`: it ends at ``#exit``."""

    theorems: tuple[Theorem, ...]
    left_out: tuple[LeftOut, ...]
    exited: bool


def manifest_line(source: SourceFile, it: Theorem, environment: str | None) -> dict[str, object]:
    """Return a theorem as a line of a manifest, with its own proof as the generation."""
    named = {} if environment is None else {"environment": environment}
    return {
        "name": it.user_name,
        **named,
        "context": source.part(0, it.start),
        "formal_statement": source.part(it.start, it.proof).rstrip(),
        "generation": source.part(it.proof, it.end),
        **described(source, it),
    }


def described(source: SourceFile, it: Theorem) -> dict[str, object]:
    """Return the facts about a theorem besides its texts, by the names of leagent where it has one."""
    (start_line, start_column), (end_line, end_column) = source.place(it.start), source.place(it.end)
    known: dict[str, object] = {
        "kind": "theorem",
        "module": source.module,
        "file": source.path,
        "start_line": start_line,
        "start_column": start_column,
        "end_line": end_line,
        "end_column": end_column,
        "start_byte": source.in_file(it.start),
        "end_byte": source.in_file(it.end),
        "signature": it.signature,
        "type": it.type,
        "doc": it.doc,
        "attributes": it.attributes,
        "is_private": it.is_private,
        "premises": premises(it),
        "proof_axioms": list(it.axioms),
        "proof_lines": source.part(it.proof, it.end).count("\n") + 1,
        "proof_tokens": it.tokens,
        "tactic_step_count": it.step_count,
        "max_tactic_depth": it.depth,
        "tactic_histogram": dict(it.histogram),
    }
    if it.cost is not None:
        known["elaboration_seconds"], known["heartbeats"] = it.cost
    if it.file_created is not None and it.created is not None:
        known["file_created"], known["theorem_created"] = it.file_created.told(), it.created.told()
    if it.side is not None:
        known["split"], known["level"] = it.side.split, it.side.level
    if it.steps is not None:
        known["goals"] = list(it.goals or ())
        known["steps"] = [_told(source, each) for each in it.steps]
    return known


def _told(source: SourceFile, it: Step) -> dict[str, object]:
    """Return a tactic with its text, and with its places in the file."""
    places = {"start": source.in_file(it.start), "end": source.in_file(it.end)}
    return {"tactic": source.part(it.start, it.end), **asdict(it), **places}


def premises(it: Theorem) -> dict[str, list[str]]:
    """Return the constants that a proof uses: of its file, imported ones, and those of its repository."""
    own = set(it.own)
    imported = [each for each in it.used if each not in own]
    return {"local": list(it.own), "imported": imported, "repository": list(it.repository)}
