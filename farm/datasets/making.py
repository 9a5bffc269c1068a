"""Datasets step, the use case: makes a manifest from a local copy of a benchmark."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import zstandard

from farm.assembly.faults import StatementFault
from farm.datasets.catalogue import ALL, DATASETS, Dataset
from farm.datasets.problem import LeftOut, Problem
from farm.errors import UsageError
from farm.files import write_whole
from farm.lean_text.scanner import sorry_tokens
from farm.manifest.lines import printable, unusable
from farm.manifest.outputs import require_free
from farm.systems.known import system

#: At most this many left-out problems are listed.
_MOST_TOLD = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """The manifest to make: its benchmark, system and split ("" for all), and further fields of its lines.

    With `open_answers` solutions are left open for the model, and the known ones are those expected.
    """

    dataset: Dataset
    system: str = "lean"
    split: str = ""
    samples: int | None = None
    environment: str | None = None
    open_answers: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Copy:
    """The content of a copy of a benchmark: its problems, the left-out ones, and notes for people."""

    problems: tuple[Problem, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]

    @property
    def splits(self) -> dict[str, int]:
        """How many problems each split has, in the order of the copy."""
        return dict(Counter(each.split for each in self.problems))


def read_copy(path: Path, wanted: Wanted) -> Copy:
    """Return the problems of a local copy. Raises ManifestError for an error in it, and UsageError."""
    dataset = wanted.dataset
    if wanted.system not in dataset.reads:
        raise UsageError(
            f"--system {wanted.system}: {dataset.title} is read in {', '.join(dataset.reads)}; "
            "choose one of these"
        )
    if not path.exists():
        raise unusable(path, "no such file or folder", "check the spelling; nothing is downloaded")
    found = list(dataset.reads[wanted.system](path))
    problems = [each for each in found if isinstance(each, Problem)]
    left_out = [each for each in found if isinstance(each, LeftOut)]
    if not problems:
        why = f"; {left_out[0].place}: {left_out[0].why}" if left_out else ""
        problem = f"holds no problem of {dataset.title} for {wanted.system}{why}"
        raise unusable(path, problem, _layout(dataset))
    _refuse_others(path, dataset, problems)
    problems, twins = _told_apart(dataset, problems)
    left_out = [*left_out, *twins]
    notes = tuple(_notes(wanted, problems, left_out))
    return Copy(
        problems=tuple(_of_split(path, problems, wanted.split)), left_out=tuple(left_out), notes=notes
    )


def _layout(dataset: Dataset) -> str:
    if dataset.word not in DATASETS:
        return "give another file, or other options (docs/use/datasets.md)"
    return f"give the folder of a clone of {dataset.title} or one of its data files (docs/use/datasets.md)"


def _refuse_others(path: Path, dataset: Dataset, problems: Sequence[Problem]) -> None:
    """Raise ManifestError where most names are not such as the benchmark has."""
    if dataset.names is None:
        return
    strangers = [each for each in problems if dataset.names.match(each.name) is None]
    if 2 * len(strangers) <= len(problems):
        return
    name = strangers[0].name
    known = (each for each in DATASETS.values() if each.names is not None and each.names.match(name))
    other = next((f"; farm dataset {each.word} reads {each.title}" for each in known), "")
    raise strangers[0].place.fault(
        f"{printable(name)} is no name of {dataset.title}, nor are {len(strangers)} of {len(problems)} names",
        f"check that {printable(path, None)} is a copy of {dataset.title}{other}",
    )


def _told_apart(dataset: Dataset, problems: Sequence[Problem]) -> tuple[list[Problem], list[LeftOut]]:
    """Return the problems with groups where names repeat, and those that are there a second time.

    Raises ManifestError for a name that repeats in a benchmark whose names are unique.
    """
    seen: dict[tuple[str, str], dict[str, Problem]] = {}
    told: list[Problem] = []
    twice: list[LeftOut] = []
    for each in problems:
        known = each.group or each.name
        # Names that are unique are so in their split; others must not meet in a report of several.
        others = seen.setdefault(("" if dataset.has_twins else each.split, known), {})
        text = (each.context or each.header) + each.statement
        if others and not dataset.has_twins:
            raise each.place.fault(
                f"two problems are called {printable(each.name)}; the first is at {_first(others)}",
                "take one of the two out of the copy",
            )
        if text in others:
            twice.append(LeftOut(place=each.place, why=f"the same as {others[text].place}"))
            continue
        told.append(replace(each, group=f"{known}#{len(others) + 1}") if others else each)
        others[text] = each
    return told, twice


def _first(problems: dict[str, Problem]) -> str:
    return str(next(iter(problems.values())).place)


def _notes(wanted: Wanted, problems: Sequence[Problem], left_out: Sequence[LeftOut]) -> Iterator[str]:
    yield from _counted(wanted, problems)
    twins = sum(1 for each in problems if each.group is not None and "#" in each.group)
    if twins:
        have = "problem has" if twins == 1 else "problems have"
        yield f"{twins} {have} the name of another one; their lines have a group of their own"
    is_lean = wanted.system == "lean"
    holed = [each for each in problems if is_lean and sorry_tokens(each.header + each.statement)]
    if holed:
        yield (
            f"problems with a sorry in their statement: {len(holed)}, such as {holed[0].name}; only "
            "definitions among them can be given by a proof (docs/use/tasks.md)"
        )
    yield from _unreadable(wanted, problems)
    for each in left_out[:_MOST_TOLD]:
        yield f"{each.place}: left out: {each.why}"
    if len(left_out) > _MOST_TOLD:
        yield f"{len(left_out) - _MOST_TOLD} more problems were left out; --json lists all"


def _unreadable(wanted: Wanted, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield a note on statements from which no program can be made."""
    state = system(wanted.system).challenge
    for each in problems:
        try:
            state(each.header, each.context or "", each.statement)
        except StatementFault as fault:
            yield f"{each.place}: its lines will be judged bad_challenge: {fault}; {fault.remedy}"


def _counted(wanted: Wanted, problems: Sequence[Problem]) -> Iterator[str]:
    """Yield notes about the numbers of problems, compared with the published ones."""
    dataset = wanted.dataset
    found = Counter(each.split for each in problems) + Counter({ALL: len(problems)})
    for split, number in dataset.counts.get(wanted.system, {}).items():
        if wanted.split and split not in (ALL, wanted.split):
            continue
        of_split = "" if split == ALL else f" in {split}"
        has = found[split]
        if split != ALL and not has:
            continue  # a copy of one split is nothing odd
        if has != number and not (dataset.grows and has > number):
            yield f"{dataset.title} has {number} problems{of_split} as published; this copy has {has}"
        elif has > number:
            yield f"{dataset.title} was published with {number} problems{of_split}; this later copy has {has}"


def _of_split(path: Path, problems: Sequence[Problem], split: str) -> Iterator[Problem]:
    there = dict.fromkeys(each.split for each in problems)
    if split and split not in there:
        named = ", ".join(printable(each) for each in there if each) or "no splits"
        raise UsageError(
            f"--split {split}: {printable(path, None)} has no such split; it has {named}. Choose one of "
            "these, or leave --split out"
        )
    yield from (each for each in problems if not split or each.split == split)


def lines(copy: Copy, wanted: Wanted) -> Iterator[dict[str, object]]:
    """Yield the manifest's lines: each problem once, or as often as there are to be samples."""
    for each in copy.problems:
        fields = _fields(each, wanted)
        if wanted.samples is None:
            yield fields
        else:
            yield from ({**fields, "sample": number} for number in range(wanted.samples))


def _fields(problem: Problem, wanted: Wanted) -> dict[str, object]:
    fields: dict[str, object] = {
        "name": problem.name,
        "split": problem.split or None,
        "source": f"{wanted.dataset.title} ({system(wanted.system).name})",
        "group": problem.group,
        "environment": wanted.environment,
        "header": problem.header if problem.context is None and wanted.system == "lean" else None,
        "context": problem.context,
        "formal_statement": problem.statement,
    }
    more = dict(problem.more)
    if wanted.open_answers and problem.solutions:
        fields["formal_statement"] = problem.unanswered
        fields |= _asked(problem.solutions)
        for given in ("answer", "open_answer"):
            more.pop(given, None)
    told = {name: value for name, value in fields.items() if value is not None}
    return {**told, **more}


def _asked(solutions: Mapping[str, str | None]) -> dict[str, object]:
    """Return the fields that ask for the solutions of a statement."""
    known = {name: text for name, text in solutions.items() if text is not None}
    if not known:
        return {"answers": True}
    alone = len(solutions) == 1
    return {"expected_answer": next(iter(known.values())) if alone else known}


def require_writable(output: Path, source: Path, *, force: bool) -> None:
    """Raise UsageError where the manifest may not be written, before anything is read."""
    name = printable(output, None)
    if not output.parent.is_dir():
        raise UsageError(f"-o {name}: there is no folder {printable(output.parent, None)}; make it first")
    if output.is_dir() or (output.exists() and not output.is_file()):
        raise UsageError(f"-o {name}: this is no regular file; give the name of a file")
    if output.exists() and source.exists() and output.samefile(source):
        raise UsageError(f"-o {name}: this is the copy that is read; give another file")
    require_free(output, force=force)
    if not output.name.lower().endswith((".jsonl", ".jsonl.gz", ".jsonl.zst")):
        raise UsageError(f"-o {name}: a manifest's name ends in .jsonl, .jsonl.gz or .jsonl.zst; rename it")


def _encoded(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(fields, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def write(output: Path, found: Sequence[dict[str, object]]) -> None:
    """Write the manifest, replacing an old file, compressed as its name says; raises UsageError."""
    # A field of a copy may hold a lone surrogate, which is written as JSON's escape of it.
    text = b"".join(_encoded(each) for each in found)
    suffix = output.suffix.lower()
    if suffix == ".gz":
        text = gzip.compress(text, mtime=0)
    elif suffix == ".zst":
        text = zstandard.ZstdCompressor(write_checksum=True).compress(text)
    try:
        write_whole(output, text)
    except OSError as error:
        raise UsageError(
            f"-o {printable(output, None)}: cannot be written: {error.strerror}; free space, give yourself "
            "permission there, or give another file"
        ) from error
