"""Datasets step, names of miniF2F: reads category, level, source and year of a problem from its name."""

from __future__ import annotations

import re

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
