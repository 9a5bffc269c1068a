"""Metamath step, canaries: builds blocks of known verdict from a database's own assertions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from farm_workers.systems.metamath.database import Database, Frame

LABEL = "farm-canary"
_LEVELS = 40
_NUMBERS = "ABCDEFGHIJKLMNOPQRST"


class CanaryBlock(NamedTuple):
    """A block and the reason that its verdict must have; `challenge` is the statement to prove."""

    name: str
    program: str
    challenge: str
    expected: str


def canaries(database: Database) -> list[CanaryBlock]:
    """Return the blocks; none if no assertion of a database can be stated behind it."""
    stated = next((frame for frame in database.frames.values() if _is_sayable(database, frame)), None)
    if stated is None:
        return []
    statement = database.words(stated.statement)
    given = f"{LABEL}.1 $e {statement} $."
    theorem = f"{LABEL} $p {statement} $="

    def block(proof: str, label: str = LABEL) -> str:
        return f"${{ {given} {theorem.replace(LABEL, label, 1)} {proof} $. $}}"

    number = len({*stated.statement} & database.variables)
    inactive = f"${{ ${{ {given} $}} {theorem} ( {LABEL}.1 ) {_NUMBERS[number % 20]} $. $}}"

    def bare(proof: str) -> str:
        return f"${{ {theorem} {proof} $. $}}"

    made = [
        CanaryBlock("right", block(f"{LABEL}.1"), block("?"), "ok"),
        CanaryBlock("wrong", block(f"{LABEL}.1 {LABEL}.1"), block("?"), "error"),
        CanaryBlock("incomplete", block("?"), block("?"), "has_sorry"),
        CanaryBlock("cheating", inactive, bare("?"), "error"),
        CanaryBlock("another", block(f"{LABEL}.1", f"{LABEL}2"), block("?"), "statement_mismatch"),
    ]
    bomb = next(_bombs(database, stated), None)
    if bomb is not None:
        made.append(CanaryBlock("endless", bare(bomb), bare("?"), "memory_limit"))
    return made


def _is_sayable(database: Database, frame: Frame) -> bool:
    """Whether an assertion can be stated behind the database, with its types still active."""
    variables = database.variables.intersection(frame.statement)
    return len(variables) < len(_NUMBERS) and variables <= database.types().keys()


def _bombs(database: Database, stated: Frame) -> Iterator[str]:
    """Yield proofs whose expressions grow at every step, by an assertion that combines one with itself."""
    for frame in database.frames.values():
        kinds = {hypothesis.expression[0] for hypothesis in frame.hypotheses}
        has_variables = all(hypothesis.variable for hypothesis in frame.hypotheses)
        if kinds != {frame.statement[0]} or not has_variables or len(frame.hypotheses) < 2:
            continue
        for variable, hypothesis in database.types().items():
            if hypothesis.expression[0] in kinds and variable not in stated.statement:
                first = len(database.variables.intersection(stated.statement))
                yield _bomb(first, hypothesis.label, frame)
                break


def _bomb(first: int, variable: str, frame: Frame) -> str:
    """Return the proof: its numbers begin behind `first` mandatory hypotheses."""
    times, doubling = len(frame.hypotheses), _number(first + 1)
    steps = [times * _number(first) + doubling + "Z"]
    steps += [times * _number(first + 2 + level) + doubling + "Z" for level in range(_LEVELS)]
    return f"( {variable} {frame.label} ) {''.join(steps)}"


def _number(value: int) -> str:
    """Return a number, from 0, as a compressed proof writes it."""
    text, value = _NUMBERS[value % 20], value // 20
    while value:
        value, digit = divmod(value - 1, 5)
        text = "UVWXY"[digit] + text
    return text
