"""Lean step, extraction: reads the declarations that a fork left, as untrusted text. Pure.

The file's own code may have written them: each value has its type, texts can be stored, and places are in the
text. Nothing else is known of a line until it is judged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from farm.characters import storable
from farm.datasets.theorems import Extract, LeftOut, SourceFile, Step, Theorem

#: The most characters of a text, and members of a list, that are kept.
_MOST_TEXT, _MOST_MEMBERS = 1 << 16, 10_000


class NoExtract(Exception):
    """A fork left no declarations that can be read: has the reason."""


def read_extract(left: bytes | None, source: SourceFile) -> Extract:
    """Return the declarations of a file. Raises NoExtract where the fork did not write them to the end."""
    theorems, left_out = list[Theorem](), list[LeftOut]()
    for line in (left or b"").splitlines():
        try:
            said = json.loads(line)
            if "exited" in said:
                return Extract(
                    theorems=tuple(theorems), left_out=tuple(left_out), exited=said["exited"] is True
                )
            if "left_out" in said:
                left_out.append(_left_out(said))
            else:
                theorems.append(_theorem(said, source))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise NoExtract("the file's own code wrote into the list of its declarations") from error
    raise NoExtract("Lean did not read the file to its end")


def _left_out(said: Mapping[str, Any]) -> LeftOut:
    return LeftOut(name=_text(said["left_out"]), why=_text(said["why"]), more=_text(said.get("more", "")))


def _theorem(said: Mapping[str, Any], source: SourceFile) -> Theorem:
    start, proof, end = (_number(said[each]) for each in ("start", "proof", "end"))
    if not start < proof < end <= len(source.bytes):
        raise ValueError("places of a theorem that are not in the text")
    goals = None if said.get("goals") is None else _texts(said["goals"])
    steps = said.get("steps")
    return Theorem(
        name=_text(said["name"]),
        start=start,
        proof=proof,
        end=end,
        type=_maybe(said.get("type")),
        used=_texts(said["used"]),
        own=_texts(said["own"]),
        repository=_texts(said["repository"]),
        axioms=_texts(said["axioms"]),
        cost=None if said["cost"] is None else _cost(*said["cost"]),
        doc=_maybe(said.get("doc")),
        attributes=_maybe(said.get("attributes")),
        signature=_maybe(said.get("signature")),
        tokens=_number(said["tokens"]),
        step_count=_number(said["step_count"]),
        depth=_number(said["depth"]),
        histogram={_text(word): _number(count) for word, count in said["histogram"].items()},
        goals=goals,
        steps=None if steps is None else tuple(_step(each, len(goals or ()), source) for each in steps),
    )


def _step(said: Mapping[str, Any], goals: int, source: SourceFile) -> Step:
    start, end = _number(said["start"]), _number(said["end"])
    if not start <= end <= len(source.bytes):
        raise ValueError("places of a step that are not in the text")
    return Step(
        start=start,
        end=end,
        kind=_text(said["kind"]),
        depth=_number(said["depth"]),
        before=_indices(said["before"], goals),
        after=_indices(said["after"], goals),
    )


def _cost(seconds: object, heartbeats: object) -> tuple[float, int]:
    if not isinstance(seconds, float):
        raise TypeError("no time")
    return round(seconds, 6), _number(heartbeats)


def _indices(said: object, goals: int) -> tuple[int, ...] | None:
    if said is None:
        return None
    numbers = tuple(map(_number, said if isinstance(said, list) else [None]))
    if any(each >= goals for each in numbers):
        raise ValueError("a goal that is not there")
    return numbers


def _number(said: object) -> int:
    if type(said) is not int or not 0 <= said < 1 << 62:
        raise ValueError("no number")
    return said


def _text(said: object) -> str:
    if not isinstance(said, str):
        raise TypeError("no text")
    return storable(said[:_MOST_TEXT])


def _maybe(said: object) -> str | None:
    return None if said is None else _text(said)


def _texts(said: object) -> tuple[str, ...]:
    members = list[object](said) if isinstance(said, list) else [None]
    return tuple(map(_text, members[:_MOST_MEMBERS]))
