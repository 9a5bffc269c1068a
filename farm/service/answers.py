"""Service step, answers: makes a client's result of an item as the store has it. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, cast

from farm.assembly.segments import LineMap, Location
from farm.client.results import (
    Answer,
    Declared,
    Goal,
    Hole,
    Message,
    Notice,
    Part,
    Position,
    Provenance,
    Result,
    Seconds,
    Stated,
)
from farm.judging.audit import UNREBUILT, Audit, Declaration
from farm.judging.forgeable import is_forgeable
from farm.judging.holes import holes_of
from farm.judging.messages import most_telling
from farm.judging.places import origin
from farm.judging.report import Goal as LeanGoal
from farm.judging.report import Message as LeanMessage
from farm.judging.reward import UNKNOWN, Worth, worth
from farm.judging.verdict import Outcome
from farm.store.records import Item, Judged, StoredVerdict
from farm.task import Kind

#: The most characters of all messages of an item together; longer text is cut.
MOST_CHARACTERS = 16_384
#: The most characters of the programs in all holes of an item together; later holes are left out.
MOST_PROGRAMS_CHARACTERS = 1 << 20
#: The most messages of an item.
MOST_MESSAGES = 100

_ITEM_ID = re.compile("([0-9A-Za-z]+)-([1-9][0-9]{0,7})")


@dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """The state of a batch and of its items."""

    batch: str
    done: bool
    items: tuple[Result, ...]

    @classmethod
    def of(cls, batch: str, items: Sequence[Result]) -> Results:
        """Return the state of a batch that consists of these items."""
        return cls(batch=batch, done=all(each.over for each in items), items=tuple(items))


def item_id(item: Item) -> str:
    """Return the id under which clients know an item."""
    return f"{item[0]}-{item[1]}"


def item_of(item_id: str) -> Item | None:
    """Return the item that an id of a client's names, None for a text that is no id."""
    found = _ITEM_ID.fullmatch(item_id)
    return None if found is None else (found[1], int(found[2]))


def result(
    found: Judged,
    *,
    index: int,
    key: str | None,
    accept: Collection[str],
    waits_for: str | None,
    with_feedback: bool = False,
) -> Result:
    """Return the state of an item."""
    known = Result(
        id=item_id((found.run_id, found.line)),
        index=index,
        key=key,
        name=found.name,
        group=found.group,
        status=cast("Any", found.status),
        reason=found.cancelled,
        warnings=tuple(
            Notice(code=code, line=line, column=column, origin=origin(field))
            for code, field, line, column in found.warnings
        ),
        waits_for=waits_for if found.status == "queued" else None,
    )
    if found.verdict is None:
        return known
    judged = _judged(known, found, found.verdict, accept)
    if not with_feedback:
        return judged
    first = found.lines().line_without(("header", "context"))
    return replace(judged, feedback=judged.feedback_on(found.program, first))


def _judged(known: Result, found: Judged, verdict: StoredVerdict, accept: Collection[str]) -> Result:
    lines = found.lines()
    messages = verdict.messages
    told = tuple(_messages(messages, lines))
    audit = verdict.audit
    worth_ = _worth(found, verdict, accept) if found.status == "done" else UNKNOWN
    return replace(
        known,
        verdict=cast("Any", verdict.outcome),
        reason=verdict.reason,
        detail=found.detail(lines),
        reward=worth_.reward,
        weaker=worth_.weaker,
        messages=told,
        messages_cut=sum(len(each.text) for each in told) < sum(len(each.text) for each in messages)
        or len(told) < len(messages),
        goals=None if verdict.goals is None else tuple(_goal(each, lines) for each in verdict.goals),
        answers=() if audit is None else tuple(Answer(**asdict(each)) for each in audit.answers),
        **_standings(audit, lines),
        holes=_holes(found, verdict),
        provenance=_provenance(found, verdict, audit),
        seconds=Seconds(wall=round(verdict.wall_seconds, 6), cpu=round(verdict.cpu_seconds, 6)),
        peak_memory_kib=verdict.peak_memory_kib,
        error_kind=verdict.particulars.error_kind or None,
        stated=None if audit is None or audit.stated is None else Stated(**asdict(audit.stated)),
        contested=verdict.contested,
    )


def _worth(found: Judged, verdict: StoredVerdict, accept: Collection[str]) -> Worth:
    audit = verdict.audit if verdict.outcome == Outcome.PARTIAL else None
    return worth(
        verdict.outcome,
        tier=found.tier,
        statement=verdict.statement,
        trusts=verdict.trusts,
        isolation=verdict.isolation,
        accept=accept,
        share=0.0 if audit is None else audit.share_proved,
        asks=Kind(verdict.particulars.task or Kind.PROVE),
    )


def _provenance(found: Judged, verdict: StoredVerdict, audit: Audit | None) -> Provenance:
    return Provenance(
        environment=found.environment,
        environment_digest=verdict.environment_digest,
        toolchain=verdict.toolchain,
        farm_version=verdict.checker_version,
        tier=found.tier,
        statement=verdict.statement,
        trusts=tuple(verdict.trusts),
        rests_on_sorry_of=verdict.rests_on_sorry_of,
        uses_choice=None if audit is None else audit.uses_choice,
        isolation=verdict.isolation,
        forgeable=is_forgeable(verdict.isolation),
        unrebuilt=UNREBUILT in verdict.trusts,
        program_sha256=found.sha256.hex(),
        module_sha256=None if audit is None else audit.module_sha256,
        shared=found.shared,
        trace_id=verdict.trace_id,
    )


def _messages(messages: Sequence[LeanMessage], lines: LineMap) -> Iterator[Message]:
    """Yield Lean's messages in their order, at most as many as an answer has room for."""
    texts, left = dict[int, str](), MOST_CHARACTERS
    for place in most_telling(messages)[:MOST_MESSAGES]:
        if left <= 0:
            break
        texts[place] = messages[place].text[:left]
        left -= len(messages[place].text)
    for place in sorted(texts):
        yield _message(messages[place], texts[place], lines)


def _message(message: LeanMessage, text: str, lines: LineMap) -> Message:
    """Return a message with its place in the item, or in the program where it is in none of its parts."""
    at = Position(**{name: getattr(message, name) for name in _POSITION})
    first, last = lines.locate(at.line, at.column), lines.locate(at.end_line, at.end_column)
    own, where = at, "assembled"
    if first is not None:
        where = origin(first.origin)
        end = last if last and last.origin == first.origin else None
        own = Position(
            line=first.line, column=first.column, end_line=end and end.line, end_column=end and end.column
        )
    return Message(severity=message.severity, text=text, origin=cast("Any", where), program=at, **asdict(own))


_POSITION = tuple(each.name for each in fields(Position))


def _goal(goal: LeanGoal, lines: LineMap) -> Goal:
    """Return goals with their place in the item, or in the program where it is in none of its parts."""
    place = lines.locate(goal.line, goal.column) or Location("assembled", goal.line, goal.column)
    return Goal(
        line=place.line,
        column=place.column,
        origin=cast("Any", origin(place.origin)),
        program=Position(line=goal.line, column=goal.column),
        kind=goal.kind,
        goal=goal.goal,
    )


def _standings(audit: Audit | None, lines: LineMap) -> dict[str, Any]:
    """Return the fields of a result about parts and declarations, if the item asked about them."""
    if audit is None or (audit.parts, audit.declarations) == (None, None):
        return {}
    return {
        "parts": audit.parts and tuple(Part(**asdict(each)) for each in audit.parts),
        "declarations": audit.declarations and tuple(_declared(each, lines) for each in audit.declarations),
        "declarations_left_off": audit.declarations_left_off,
    }


def _declared(found: Declaration, lines: LineMap) -> Declared:
    """Return a declaration with its place in the item, or in the program where it is in none of its parts."""
    given = asdict(found)
    if found.line is None or found.column is None:
        return Declared(**given)
    place = lines.locate(found.line, found.column) or Location("assembled", found.line, found.column)
    return Declared(
        **given | {"line": place.line, "column": place.column},
        origin=cast("Any", origin(place.origin)),
        program=Position(line=found.line, column=found.column),
    )


def _holes(found: Judged, verdict: StoredVerdict) -> tuple[Hole, ...] | None:
    """Return the holes of a program that Lean accepts, as many as an answer has room for."""
    goals = verdict.goals
    if goals is None:
        return None
    if verdict.outcome == Outcome.PROVED or any(each.severity == "error" for each in verdict.messages):
        return ()
    program = found.program
    most = MOST_PROGRAMS_CHARACTERS // max(1, len(program))
    return tuple(Hole(**each) for each in holes_of(program, goals, found.segments)[:most])


def waits_for(environment: str, silent: dict[str, float], *, seconds: float) -> str | None:
    """Return why no worker will begin the queued checks of an environment; None if a worker serves it."""
    if silent.get(environment, float("inf")) <= seconds:
        return None
    return f"no worker serves {environment} at the moment"


def in_order(items: Sequence[Item], found: Sequence[Judged]) -> list[tuple[int, Judged]]:
    """Return each stored item with its index in the request."""
    by_item = {(each.run_id, each.line): each for each in found}
    return [(index, by_item[item]) for index, item in enumerate(items) if item in by_item]
