"""The candidates of a check as columns of the tables `checks` and `jobs`. Pure.

A list has at most three, so each has columns of its own, whose names have a candidate's place: the first has
`program_sha256`, `submitted` and `segments`, the second of three `restated_...`, and the last one
`fallback_...`. A table of candidates would take a row more for each check, and one column for all of them
an index over what it contains: a prune asks which checks refer to a text. Workers and services of the release
before read and write these columns during an upgrade, and the cache key has them in their own order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from farm.assembly.challenge import Challenge
from farm.assembly.negation import begin_of_negation, negation_to
from farm.judging.report import Preamble
from farm.task import Kind

_SECOND, _LAST = "restated", "fallback"


def _columns(what: str) -> tuple[str, str, str]:
    """Return the columns of one value of candidates, in the order in which a worker tries them."""
    first = f"program_{what}" if what in ("sha256", "text") else what
    return first, f"{_SECOND}_{what}", f"{_LAST}_{what}"


def in_columns(what: str, values: Sequence[object]) -> dict[str, Any]:
    """Return one value of each candidate by its column; the columns of other candidates are None."""
    first, *others = values
    second = others[0] if len(others) > 1 else None
    return dict(zip(_columns(what), (first, second, others[-1] if others else None), strict=True))


def of_columns(what: str, row: Mapping[str, Any]) -> list[Any]:
    """Return one value of each candidate from its column."""
    return [row[name] for name in _columns(what) if row[name] is not None]


def preamble_of(place: int, candidates: int) -> Preamble | None:
    """Return the stored word for the candidate in this place of so many, None for an only one."""
    if candidates == 1:
        return None
    return (Preamble.MODEL, *((Preamble.RESTATED,) * (candidates - 2)), Preamble.FARM)[place]


def counted(what: str) -> str:
    """Return the SQL for the value of the candidate that counted, by the verdict's `preamble`."""
    first, second, last = _columns(what)
    return (
        f"CASE preamble WHEN '{Preamble.FARM}' THEN {last} "
        f"WHEN '{Preamble.RESTATED}' THEN {second} ELSE {first} END"
    )


def challenges_of(stored: Challenge, asks: Kind) -> tuple[Challenge | None, Challenge | None]:
    """Return the challenge of a check's proofs and that of its disproofs, None without any.

    A check has one challenge. Where it has both proofs and disproofs, that is the negation's under the name
    of the statement, whose own program begins it.
    """
    if asks not in (Kind.DISPROVE, Kind.EITHER):
        return stored, None
    begins = begin_of_negation(stored.program)
    negation = replace(stored, negates=begins)
    if asks is Kind.DISPROVE:
        return None, negation
    stated = replace(stored, program=stored.program[:begins])
    made = negation_to(stated)
    return stated, negation if made is None else replace(negation, name=made.name)
