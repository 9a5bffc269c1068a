"""Datasets step, layouts: finds the problems in a copy of each benchmark, by proof system."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from farm.assembly.faults import Unstated
from farm.datasets.lean_files import StatedTheorem, only_theorem, open_theorems, problems, theorems
from farm.datasets.problem import FilePlace, LeftOut, Problem
from farm.datasets.reading import (
    data_files,
    files,
    has_rows,
    is_data,
    object_of,
    objects,
    require_field,
    survivors,
    text_field,
    text_of,
)
from farm.datasets.records import first_of, lean_records, split_of
from farm.manifest.lines import unusable
from farm.systems.system import BenchmarkFiles

Found = Iterator[Problem | LeftOut]

_SPLITS = ("test", "valid")


def lean_of_minif2f(path: Path) -> Found:
    """Yield the Lean 4 problems of miniF2F: lines of JSON, a folder for each split, or a file for each."""
    yield from _with_names(_lean_of_minif2f(path))


def _with_names(found: Found) -> Found:
    """Yield problems of miniF2F with the fields that their names give; fields of the copy win."""
    for each in found:
        yield replace(each, more={**named(each.name), **each.more}) if isinstance(each, Problem) else each


def _lean_of_minif2f(path: Path) -> Found:
    if path.is_file():
        yield from _one_file(path, split="")
        return
    for folder in (path, path / "MiniF2F", path / "lean4", path / "lean4" / "src", path / "src"):
        found = _splits_of(folder, ".lean")
        if found:
            for split, place in found.items():
                yield from _of_files(files(place, ".lean"), split) if place.is_dir() else _many(place, split)
            return
    if split_of(path) and files(path, ".lean"):
        yield from _of_files(files(path, ".lean"), split_of(path))
        return
    yield from _of_data(path, split="")


def _splits_of(folder: Path, suffix: str) -> dict[str, Path]:
    """Return the folder or the file of each split, a folder with files of that suffix first."""
    if not folder.is_dir():
        return {}
    found: dict[str, Path] = {}
    for each in sorted(folder.iterdir()):
        split = each.name.removesuffix(suffix).lower()
        if split in _SPLITS and each.is_dir() and files(each, suffix):
            found[split] = each
        elif split in _SPLITS and each.is_file() and each.suffix == suffix:
            found.setdefault(split, each)
    return {split: found[split] for split in _SPLITS if split in found}


def _one_file(path: Path, *, split: str) -> Found:
    if is_data(path):
        yield from lean_records(path, split=split)
    elif path.suffix == ".lean":
        yield from _many(path, split_of(path) or split)
    else:
        raise unusable(
            path, "is no file of this benchmark", "give its folder, or a .jsonl, .json or .lean file"
        )


def _of_data(path: Path, *, split: str) -> Found:
    """Yield the problems of the files with JSON in a folder, or in its folder of data."""
    for folder in (path, path / "data", path / "dataset", path / "datasets", path / "benchmark"):
        found = tuple(each for each in data_files(folder) if has_rows(each))
        if found:
            for each in found:
                yield from lean_records(each, split=split)
            return


def _many(path: Path, split: str) -> Found:
    text = text_of(path)
    for stated in theorems(text):
        if isinstance(stated, Unstated):
            raise FilePlace(path=path).fault(str(stated), "mend the file, or take it out of the copy")
        yield lean_problem(FilePlace(path=path, line=stated.line), stated, stated.name, split, {})


def _of_files(paths: tuple[Path, ...], split: str, words: Mapping[str, Mapping[str, object]] = {}) -> Found:
    for path in paths:
        text = text_of(path)
        try:
            stated = only_theorem(text, path.stem)
        except Unstated as error:
            raise FilePlace(path=path).fault(
                str(error), "mend the file, or take it out of the copy"
            ) from error
        yield lean_problem(FilePlace(path=path), stated, path.stem, split, words.get(path.stem, {}))


def lean_problem(
    place: FilePlace, stated: StatedTheorem, name: str, split: str, words: Mapping[str, object]
) -> Problem:
    """Return the problem that a text of Lean states, with other words of the benchmark on it."""
    more = dict(words)
    if stated.answers:
        more["answer"] = "\n".join(stated.answers)
    if stated.open_answers:
        more["open_answer"] = ", ".join(stated.open_answers)
    return Problem(
        place=place,
        name=name,
        split=split,
        header=stated.header,
        statement=stated.statement,
        more=more,
        unanswered=stated.unanswered,
        solutions={
            **dict(zip(stated.answered, stated.answers, strict=True)),
            **dict.fromkeys(stated.open_answers),
        },
    )


def files_of_minif2f(path: Path, of_system: BenchmarkFiles) -> Found:
    """Yield the problems of miniF2F of one system: a statement in a file of its own for each."""
    for split, each in _of_splits(path, of_system.folder, of_system.suffix):
        place = FilePlace(path=each)
        try:
            statement, fields = of_system.statement(text_of(each), each.stem)
        except Unstated as error:
            yield LeftOut(place=place, why=str(error))
            continue
        more = {**_known_of_minif2f(each), **fields}
        yield Problem(place=place, name=each.stem, split=split, statement=statement, more=more)


def _known_of_minif2f(path: Path) -> dict[str, object]:
    """Return the fields that a problem's name gives, and those of the clone's own file on it."""
    return named(path.stem) | _words_of_minif2f(path)


def _words_of_minif2f(path: Path) -> dict[str, object]:
    """Return the words of a problem, where the clone has them beside the folders of the systems."""
    clone, split = path.parent.parent.parent, path.parent.name
    words = clone / "informal" / split / f"{path.stem.replace('-', '_')}.json"
    if not words.is_file():
        return {}
    return survivors(object_of(words), {"problem_name"})


def _of_splits(path: Path, name: str, suffix: str) -> Iterator[tuple[str, Path]]:
    if not path.is_dir():
        raise unusable(path, "is not a folder", f"give the clone, or its folder {name}")
    for folder in (path / name, path):
        found = _splits_of(folder, suffix)
        if found:
            for split, place in found.items():
                yield from ((split, each) for each in files(place, suffix))
            return
    for each in files(path, suffix) if split_of(path) else ():
        yield split_of(path), each


def lean_of_putnam(path: Path) -> Found:
    """Yield the problems of PutnamBench: a file of Lean for each, or lines of JSON."""
    if path.is_file():
        yield from _one_file(path, split="test")
        return
    for folder in (path / "lean4" / "src", path / "src", path):
        found = files(folder, ".lean")
        if found:
            yield from _of_files(found, "test", _words_of_putnam(folder))
            return
    yield from _of_data(path, split="test")


def _words_of_putnam(folder: Path) -> dict[str, Mapping[str, object]]:
    """Return the problems' own words and tags, by name, where the clone has them."""
    path = folder.parent.parent / "informal" / "putnam.json"
    if not path.is_file():
        return {}
    found: dict[str, Mapping[str, object]] = {}
    for _, fields in objects(path):
        found[str(fields.get("problem_name"))] = survivors(fields, {"problem_name"})
    return found


def records_of_tests(path: Path) -> Found:
    """Yield the problems of a benchmark that comes as lines of JSON, all of them its test."""
    yield from _one_file(path, split="test") if path.is_file() else _of_data(path, split="test")


def lean_of_proofnet(path: Path) -> Found:
    """Yield the problems of ProofNet: lines of JSON; a file for each problem; a file for each textbook."""
    if path.is_file():
        yield from _one_file(path, split="")
        return
    is_empty = True
    for each in _of_data(path, split=""):
        is_empty = False
        yield each
    if is_empty:
        yield from _exercises(path)


def _exercises(path: Path) -> Found:
    for folder in (path, path / "formal"):
        found = files(folder, ".lean")
        for each in in_files(path, found):
            if isinstance(each, LeftOut) or _EXERCISE in each.name:
                yield each


#: The word in every name of ProofNet.
_EXERCISE = "exercise_"


def in_files(folder: Path, paths: Sequence[Path], *, each_states: bool = False) -> Found:
    """Yield the problems of files of Lean, each with its file's place in a folder.

    Where any file leaves a theorem with a ``sorry``, those that leave none are a library and state nothing,
    unless `each_states` something.
    """
    texts = [(path, text_of(path)) for path in paths if path.name != _LAKEFILE]
    has_library = not each_states and any(open_theorems(text) for _, text in texts)
    for path, text in texts:
        if has_library and not open_theorems(text):
            continue
        for stated in problems(text):
            if isinstance(stated, Unstated):
                yield LeftOut(place=FilePlace(path=path), why=str(stated))
                continue
            more = {"file": str(path.relative_to(folder))}
            yield lean_problem(FilePlace(path=path, line=stated.line), stated, stated.name, "", more)


def contexts_of_minictx(path: Path) -> Found:
    """Yield the problems of miniCTX: lines of JSON, a file for each project."""
    if path.is_file():
        yield from context_records(path, split="")
        return
    for folder in (path, path / "minictx-test", path / "test", path / "data", path / "minictx"):
        found = tuple(each for each in data_files(folder) if not each.name.startswith(_NO_CONTEXT))
        if found:
            for each in found:
                yield from context_records(each, split="")
            return


#: A file of Lean's build tool, which states nothing.
_LAKEFILE = "lakefile.lean"

#: Beside its own projects miniCTX carries miniF2F, in another form.
_NO_CONTEXT = "minif2f"

Reads = Callable[[Path], Found]


_CONTEXTS = ("srcContext", "srcUpToDecl")
_STATEMENTS = ("theoremStatement", "decl")
_NAMES = ("theoremName", "declName", "declId")
#: Lean refuses them, and a context must not be changed: its positions are those of a file.
_REFUSED = {"\t": "a tab", "\r": "a carriage return"}


def context_records(path: Path, *, split: str) -> Iterator[Problem | LeftOut]:
    """Yield the problems of a file of miniCTX or of ntp-toolkit; raises ManifestError.

    The split is the file's name where lines name none: a file is a project. Names may be missing or the same
    in several files, so a problem's group is the place of its theorem.
    """
    usual = split or path.name.partition(".")[0].removeprefix("minictx-").removeprefix("minictx_")
    for place, fields in objects(path):
        context = text_field(place, fields, _CONTEXTS)
        statement = require_field(place, fields, _STATEMENTS, "statement")
        if context is None:
            require_field(place, fields, _CONTEXTS, "text before the theorem")
        refused = [word for mark, word in _REFUSED.items() if mark in (context or "") or mark in statement]
        if refused:
            yield LeftOut(place=place, why=f"its text has {refused[0]}, which Lean refuses")
        else:
            yield _problem(place, fields, context or "", statement, usual)


def _problem(
    place: FilePlace, fields: Mapping[str, object], context: str, statement: str, usual: str
) -> Problem:
    file = text_field(place, fields, ("file",)) or place.path.name
    where = f"{file}:{context.count(chr(10)) + 1}"
    found: dict[str, object] = {
        "file": file,
        "commit": _inside(fields, "theoremCreated", "commit") or _inside(fields, "fileCreated", "commit"),
        "proof_type": _inside(fields, "proofMetadata", "proofType"),
    }
    told = {name: value for name, value in found.items() if value is not None}
    used = {first_of(fields, names) for names in (_CONTEXTS, _STATEMENTS, _NAMES)} | {"split"}
    return Problem(
        place=place,
        name=text_field(place, fields, _NAMES) or where,
        split=text_field(place, fields, ("split",)) or usual,
        context=context,
        statement=statement,
        group=where,
        more=told | survivors(fields, used),
    )


def _inside(fields: Mapping[str, object], outer: str, inner: str) -> object:
    value = fields.get(outer)
    return value.get(inner) if isinstance(value, dict) else None


_AMC = re.compile(r"amc(\d*)[a-z]?")
_YEAR = re.compile(r"(?:19|20)\d\d")
_SUBJECTS = {"algebra": "algebra", "numbertheory": "number theory", "induction": "induction"}


def named(name: str) -> dict[str, object]:
    """Return `category`, `level`, `problem_source` and `year`, those that the name says.

    The categories are the paper's: olympiads, and the subjects of the other problems. Names are written with
    underscores in Lean, and with dashes in Metamath and HOL Light.
    """
    head, *rest = re.split(r"[_-]", name.lower())
    year = next((int(part) for part in rest if _YEAR.fullmatch(part)), None)
    found = {**_origin(head, rest), "year": year}
    return {field: value for field, value in found.items() if value is not None}


def _origin(head: str, rest: list[str]) -> dict[str, object]:
    if (amc := _AMC.fullmatch(head)) is not None:
        return _olympiad("AMC", f"AMC {amc[1]}".rstrip())
    for contest in ("AIME", "IMO"):
        if head.startswith(contest.lower()):
            return _olympiad(contest, contest)
    if head in ("mathd", "mathb"):
        subject = rest[0] if rest else ""
        return {"category": _SUBJECTS.get(subject, subject or None), "problem_source": "MATH"}
    if head in _SUBJECTS:
        return {"category": _SUBJECTS[head], "problem_source": "custom"}
    return {}


def _olympiad(source: str, level: str) -> dict[str, object]:
    return {"category": "olympiad", "level": level, "problem_source": source}
