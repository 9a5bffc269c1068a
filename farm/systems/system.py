"""Systems step, the record: everything that submitters, judges and datasets ask of a proof system. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farm.assembly.challenge import Challenge
from farm.assembly.program import AssemblyOptions, Program
from farm.manifest.entry import Entry


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchmarkFiles:
    """The files of a benchmark that has a file for each problem, in the `folder` of one system.

    `statement` returns the statement in a file and further fields of its line, given the file's text and its
    name without the `suffix`; raises Unstated. `counts` are the published numbers of problems by split.
    """

    folder: str
    suffix: str
    statement: Callable[[str, str], tuple[str, Mapping[str, object]]]
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One proof system.

    `name` is for people. `assemble` returns the candidate programs of a line. `challenge` returns the
    challenge of a header, context and statement, None for a blank statement. Both raise StatementFault for a
    faulty line. `unproved` returns a program that states a challenge and proves nothing. `image` returns the
    number of the image that can fork for a program, 0 if the environment has only one. `minif2f` are the
    files of miniF2F, None if it has none.
    """

    name: str
    assemble: Callable[[Entry, AssemblyOptions], tuple[Program, ...]]
    challenge: Callable[[str, str, str], Challenge | None]
    unproved: Callable[[Challenge], str]
    image: Callable[[Entry, Program], int]
    minif2f: BenchmarkFiles | None


def only_image(_entry: Entry, _program: Program) -> int:
    """Return the number of the image in an environment that has only one."""
    return 0


def challenge_itself(challenge: Challenge) -> str:
    """Return the challenge's own program, which proves nothing."""
    return challenge.program
