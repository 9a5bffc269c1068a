"""Datasets step, the table: every benchmark that the farm knows, with its systems and published counts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from farm.datasets import layouts
from farm.datasets.generic import Columns, files_of, rows_of
from farm.datasets.layouts import Reads, files_of_minif2f
from farm.errors import UsageError
from farm.kinds import Kind
from farm.systems.known import system


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A benchmark: its word in commands, its name for people, and the function that reads its copies.

    `counts` are the published numbers of problems by system and split, which versions of the benchmark may
    exceed if it `grows`. `names` is the pattern of its problems' names, None if any name is possible, and
    `has_twins` means that different problems share names.
    """

    word: str
    title: str
    reads: Mapping[str, Reads]
    counts: Mapping[str, Mapping[str, int]]
    grows: bool = False
    names: re.Pattern[str] | None = None
    has_twins: bool = False


#: The split that stands for all splits together.
ALL = "all"

_MINIF2F = re.compile(r"(?:aime|amc|imo|mathd|mathb|algebra|numbertheory|induction)", re.IGNORECASE)
#: The files of miniF2F in each system that has a file for each problem.
_MINIF2F_FILES = {kind: files for kind in Kind if (files := system(kind).minif2f) is not None}

_DATASETS = (
    Dataset(
        word="minif2f",
        title="miniF2F",
        reads={
            "lean": layouts.lean_of_minif2f,
            **{kind: partial(files_of_minif2f, of_system=files) for kind, files in _MINIF2F_FILES.items()},
        },
        counts={
            "lean": {"test": 244, "valid": 244},
            **{kind: files.counts for kind, files in _MINIF2F_FILES.items()},
        },
        names=_MINIF2F,
    ),
    Dataset(
        word="proofnet",
        title="ProofNet",
        reads={"lean": layouts.lean_of_proofnet},
        counts={"lean": {"test": 186, "valid": 185}},
        names=re.compile(r"(?:.*[|_])?exercise_"),
        has_twins=True,
    ),
    Dataset(
        word="putnam-bench",
        title="PutnamBench",
        reads={"lean": layouts.lean_of_putnam},
        counts={"lean": {"test": 660}},
        grows=True,
        names=re.compile(r"putnam_\d{4}_[ab]\d"),
    ),
    Dataset(
        word="minictx",
        title="miniCTX",
        reads={"lean": layouts.contexts_of_minictx},
        counts={"lean": {ALL: 376}},
        has_twins=True,
    ),
    Dataset(
        word="mobench",
        title="MathOlympiadBench",
        reads={"lean": layouts.records_of_tests},
        counts={"lean": {ALL: 360}},
    ),
)

DATASETS: Mapping[str, Dataset] = MappingProxyType({each.word: each for each in _DATASETS})
"""The benchmarks by their words."""


#: Words for readers of any other benchmark, whose fields or files the user names.
LINES, FOLDER = "lines", "folder"


def dataset(word: str) -> Dataset:
    """Return a benchmark by its word; raises UsageError for one that the farm does not know."""
    if word not in DATASETS:
        raise UsageError(
            f"{word}: no such dataset; choose one of {', '.join(DATASETS)}, or read any other with "
            f"`farm dataset {LINES}` and `farm dataset {FOLDER}`"
        )
    return DATASETS[word]


def of_rows(title: str, columns: Columns) -> Dataset:
    """Return a benchmark whose problems are rows with these fields."""
    return Dataset(
        word=LINES,
        title=title,
        reads={kind: partial(rows_of, columns=columns) for kind in Kind},
        counts={},
        has_twins=True,
    )


def of_folder(title: str, match: str) -> Dataset:
    """Return a benchmark whose problems stand in files of Lean that a glob chooses."""
    return Dataset(
        word=FOLDER,
        title=title,
        reads={Kind.LEAN: partial(files_of, match=match)},
        counts={},
        has_twins=True,
    )
