"""Service step, answers: what a client is told of an item. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

from pydantic import BaseModel

from farm.assembly.segments import LineMap
from farm.judging.forgeable import is_forgeable
from farm.judging.places import moved
from farm.judging.report import Message as LeanMessage
from farm.judging.reward import UNKNOWN, worth
from farm.judging.verdict import most_telling
from farm.store.records import Item, Judged, StoredVerdict

#: Characters of all messages of an item together; what is longer is cut.
MOST_CHARACTERS = 16_384
#: And so many of them.
MOST_MESSAGES = 100

_ITEM_ID = re.compile("([0-9A-Za-z]+)-([1-9][0-9]{0,7})")

#: Where a message's position is, by the field that its piece came from.
_ORIGINS = {"predicted_proof": "answer", "generation": "answer"}


class Position(BaseModel):
    """A place in the whole program that Lean read: lines from 1, columns from 0."""

    line: int
    column: int
    end_line: int | None = None
    end_column: int | None = None


class Message(BaseModel):
    """One message of Lean.

    `origin` says what its lines, from 1, and columns, from 0, count in: the `answer` (program, proof or
    generation), the `header`, the `context`, the `formal_statement`, or the whole `assembled` program.
    `program` is the same place in that whole program.
    """

    severity: str
    text: str
    line: int
    column: int
    end_line: int | None
    end_column: int | None
    origin: Literal["answer", "header", "context", "formal_statement", "assembled"]
    program: Position


class Notice(BaseModel):
    """What the farm has noticed in assembling the program; docs/use/manifests.md lists the codes."""

    code: str
    line: int
    column: int
    origin: str


class Goal(BaseModel):
    """What was to be proved at a `sorry` or an error, as Lean prints it; positions are those of `Message`."""

    line: int
    column: int
    origin: Literal["answer", "header", "context", "formal_statement", "assembled"]
    program: Position
    kind: Literal["sorry", "error"]
    goal: str


class Provenance(BaseModel):
    """With what an item was judged, and what its verdict rests on."""

    environment: str
    environment_digest: str
    toolchain: str
    farm_version: str
    tier: str
    statement: str | None
    trusts: list[str]
    rests_on_sorry_of: list[str]
    isolation: str
    forgeable: bool
    program_sha256: str
    module_sha256: str | None
    shared: bool
    trace_id: str | None


class Seconds(BaseModel):
    """What a check took."""

    wall: float
    cpu: float


class Result(BaseModel):
    """What is known of an item; docs/use/http.md says what the fields mean."""

    id: str
    index: int
    key: str | None
    name: str
    group: str | None
    status: Literal["queued", "running", "done", "cancelled"]
    verdict: Literal["proved", "rejected", "timeout", "memory_limit", "judge_error"] | None
    reason: str | None
    detail: str
    reward: float | None
    weaker: list[str]
    messages: list[Message]
    messages_cut: bool
    warnings: list[Notice]
    goals: list[Goal] | None
    provenance: Provenance | None
    seconds: Seconds | None
    peak_memory_kib: int | None
    waits_for: str | None


class Results(BaseModel):
    """What is known of a batch."""

    batch: str
    done: bool
    items: list[Result]


def item_id(item: Item) -> str:
    """Return an item's id as clients have it."""
    return f"{item[0]}-{item[1]}"


def item_of(item_id: str) -> Item | None:
    """Return the item that an id of a client's names, None where it can be nobody's."""
    found = _ITEM_ID.fullmatch(item_id)
    return None if found is None else (found[1], int(found[2]))


def result(
    found: Judged, *, index: int, key: str | None, accept: Collection[str], waits_for: str | None
) -> dict[str, Any]:
    """Return what is known of an item, as `Result` says."""
    verdict = found.verdict
    said: dict[str, Any] = {
        "id": item_id((found.run_id, found.line)),
        "index": index,
        "key": key,
        "name": found.name,
        "group": found.group,
        "status": found.status,
        "verdict": None,
        "reason": found.cancelled,
        "detail": "",
        "reward": None,
        "weaker": [],
        "messages": [],
        "messages_cut": False,
        "warnings": _warnings(found),
        "goals": None,
        "provenance": None,
        "seconds": None,
        "peak_memory_kib": None,
        "waits_for": waits_for if found.status == "queued" else None,
    }
    return said if verdict is None else said | _judged(found, verdict, accept)


def _judged(found: Judged, verdict: StoredVerdict, accept: Collection[str]) -> dict[str, Any]:
    messages, is_cut = _messages(found, verdict)
    worth_ = UNKNOWN
    if found.status == "done":
        worth_ = worth(
            verdict.outcome,
            tier=found.tier,
            statement=verdict.statement,
            trusts=verdict.trusts,
            isolation=verdict.isolation,
            accept=accept,
        )
    return {
        "verdict": verdict.outcome,
        "reason": verdict.reason,
        "detail": moved(verdict.detail, lambda line, column: _lines(found).locate(line, column)),
        "reward": worth_.reward,
        "weaker": list(worth_.weaker),
        "messages": messages,
        "messages_cut": is_cut,
        "goals": _goals(found, verdict),
        "provenance": _provenance(found, verdict),
        "seconds": {"wall": round(verdict.wall_seconds, 6), "cpu": round(verdict.cpu_seconds, 6)},
        "peak_memory_kib": verdict.peak_memory_kib,
    }


def _provenance(found: Judged, verdict: StoredVerdict) -> dict[str, Any]:
    return {
        "environment": found.environment,
        "environment_digest": verdict.environment_digest,
        "toolchain": verdict.toolchain,
        "farm_version": verdict.checker_version,
        "tier": found.tier,
        "statement": verdict.statement,
        "trusts": verdict.trusts,
        "rests_on_sorry_of": list(verdict.rests_on_sorry_of),
        "isolation": verdict.isolation,
        "forgeable": is_forgeable(verdict.isolation),
        "program_sha256": found.sha256.hex(),
        "module_sha256": (verdict.audit or {}).get("module_sha256"),
        "shared": found.shared,
        "trace_id": verdict.trace_id,
    }


def _messages(found: Judged, verdict: StoredVerdict) -> tuple[list[dict[str, Any]], bool]:
    """Return what Lean said, as much as is told, and whether that is not all."""
    messages = verdict.messages
    if not messages:
        return [], False
    lines = _lines(found)
    texts, left = dict[int, str](), MOST_CHARACTERS
    for place in most_telling(messages)[:MOST_MESSAGES]:
        if left <= 0:
            break
        text = messages[place].text
        texts[place] = text[:left]
        left -= len(text)
    told = [
        {"severity": messages[place].severity, "text": texts[place], **_place(messages[place], lines)}
        for place in sorted(texts)
    ]
    return told, len(told) < len(messages) or left < 0


def _warnings(found: Judged) -> list[dict[str, Any]]:
    """Return what was noticed in assembling the program, at its place in what the client sent."""
    return [
        {"code": code, "line": line, "column": column, "origin": _ORIGINS.get(field, field)}
        for code, field, line, column in found.warnings
    ]


def _goals(found: Judged, verdict: StoredVerdict) -> list[dict[str, Any]] | None:
    """Return what was to be proved at errors and sorries, None where that is not known."""
    if not verdict.goals:
        return verdict.goals
    lines, told = _lines(found), []
    for each in verdict.goals:
        place = lines.locate(each["line"], each["column"])
        where = {"line": each["line"], "column": each["column"], "origin": "assembled"}
        if place is not None:
            origin = _ORIGINS.get(place.origin, place.origin)
            where = {"line": place.line, "column": place.column, "origin": origin}
        in_program = {"line": each["line"], "column": each["column"], "end_line": None, "end_column": None}
        told.append({**where, "program": in_program, "kind": each["kind"], "goal": each["goal"]})
    return told


def _lines(found: Judged) -> LineMap:
    return LineMap(found.segments, found.program, found.places.__getitem__)


def _place(message: LeanMessage, lines: LineMap) -> dict[str, Any]:
    fields = ("line", "column", "end_line", "end_column")
    in_program = {field: getattr(message, field) for field in fields}
    first = lines.locate(message.line, message.column)
    last = lines.locate(message.end_line, message.end_column)
    if first is None:
        return {**in_program, "origin": "assembled", "program": in_program}
    is_same = last is not None and last.origin == first.origin
    return {
        "line": first.line,
        "column": first.column,
        "end_line": last.line if last and is_same else None,
        "end_column": last.column if last and is_same else None,
        "origin": _ORIGINS.get(first.origin, first.origin),
        "program": in_program,
    }


def waits_for(environment: str, silent: dict[str, float], *, seconds: float) -> str | None:
    """Return why nobody will begin what waits in an environment; None where somebody will."""
    if silent.get(environment, float("inf")) <= seconds:
        return None
    return f"no worker serves {environment} at the moment"


def in_order(items: Sequence[Item], found: Sequence[Judged]) -> list[tuple[int, Judged]]:
    """Return each of these with its place among the items that were asked for."""
    by_item = {(each.run_id, each.line): each for each in found}
    return [(index, by_item[item]) for index, item in enumerate(items) if item in by_item]
