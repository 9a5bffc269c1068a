"""Makes the requests of both clients as values: keyed items, batches of them, and HTTP bodies."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from typing import Literal, TypedDict
from urllib.parse import quote

Tier = Literal["kernel", "audit", "lean"]
Profile = Literal["farm", "nemo-2025-11", "nemo-2025-08"]
Priority = Literal["interactive", "online", "batch"]
Weaker = Literal[
    "audit", "lean", "unchecked", "sorry", "answer", "native", "forgeable", "unrebuilt", "partial", "disproof"
]
Kind = Literal["prove", "disprove", "either", "statement"]


class AnswerForm(TypedDict, total=False):
    """The form that an answer must have: numbers, and no use of the constants in `without`."""

    form: Literal["numeral", "numerals"]
    without: Sequence[str]


class TaskFields(TypedDict, total=False):
    """What a proof has to show beyond the usual: it may rest on `axioms` and no others.

    `answers` demands or forbids values for the definitions that the statement leaves open.
    `answer_must` is their form, and `expected_answer` their value as a Lean text, or the values by name.
    With `declarations` the result lists the program's declarations. Those in `permit_sorry`, all for true,
    may contain a sorry: such a proof is *partial*. It must not use the tactics and constants of `forbid`.
    With the task ``disprove`` the answer is to prove the statement's negation, with ``either`` one of the
    two. With ``statement`` there is no answer: the statement alone is examined.
    """

    axioms: Sequence[str]
    declarations: bool
    permit_sorry: bool | Sequence[str]
    answers: bool
    answer_must: Literal["numeral", "numerals"] | AnswerForm
    expected_answer: str | Mapping[str, str]
    task: Kind
    forbid: Sequence[str]
    negates: bool | int


class Fields(TaskFields, total=False):
    """The fields of an item: one of `program`, `proof` and `generation`, and the statement to prove.

    With `hole` the answer is to fill an open place of a program (`farm.client.Hole`).
    """

    program: str
    proof: str
    generation: str
    hole: Mapping[str, object]
    formal_statement: str
    header: str
    context: str
    name: str
    group: str
    environment: str
    timeout: float
    key: str


#: A whole program, or a mapping with the fields of an item.
Item = str | Fields | Mapping[str, object]

#: The largest batch that the service takes.
MOST_ITEMS = 4096
_MOST_BYTES = 4 << 20  # far below the limits of services and proxies, and large enough to amortize a request


class Options(TaskFields, total=False):
    """The options of a call's checks; an absent option has the service's default.

    `timeout` and `cpu` are seconds for each item. `accept` names weaker proofs that are worth 1.0 too:
    ``audit``, ``lean``, ``unchecked``, ``sorry``, ``answer``, ``native``, ``forgeable``,
    ``unrebuilt``, and ``disproof``
    where the task allows either; with ``partial`` a partial proof is worth the share of its parts that are
    proved. With `goals` results have the goals at errors and sorries, with `feedback` a prompt to correct the
    answer; with `stop_at_error` Lean is ended at the first error. With `require_all_parts` a proof must prove
    every theorem that its statement leaves open. `batch_name` is the name of the batch on the page.
    """

    environment: str
    timeout: float
    cpu: float
    memory_mib: int
    tier: Tier
    native: bool
    require_all_parts: bool
    profile: Profile
    priority: Priority
    share: bool
    stop_on_first_proof: bool
    goals: bool
    stop_at_error: bool
    feedback: bool
    accept: Sequence[Weaker]
    batch_name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyed:
    """An item as JSON, with its idempotency key."""

    json: str
    key: str
    name: str
    group: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """Items of one batch; `first` is the index of the first of them in the call."""

    first: int
    items: tuple[Keyed, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One HTTP request; the service may hold its answer back for `wait_seconds`."""

    method: str
    path: str
    parameters: Mapping[str, str | float] = field(default_factory=lambda: MappingProxyType({}))
    body: str | None = None
    wait_seconds: float = 0.0


def keyed(item: Item) -> Keyed:
    """Return an item as JSON; one without a key gets a random one.

    Raises TypeError for an item that is neither text nor mapping, or has a value that JSON cannot hold.
    """
    if isinstance(item, str):
        item = {"program": item}
    elif not isinstance(item, Mapping):
        raise TypeError(f"an item is a text or a mapping, not {type(item).__name__}")
    key = item.get("key")
    if key is None:
        key = secrets.token_urlsafe(16)
    name, group = item.get("name"), item.get("group")
    return Keyed(
        json=json.dumps({**item, "key": key}, allow_nan=False),
        key=str(key),
        name="" if name is None else str(name),
        group=None if group is None else str(group),
    )


def batches(items: Iterable[Item], *, size: int) -> Iterator[Sent]:
    """Yield the items in batches of at most `size` items and 4 MiB."""
    first, together, length = 0, list[Keyed](), 0
    for item in map(keyed, items):
        if together and (len(together) >= size or length + len(item.json) > _MOST_BYTES):
            yield Sent(first=first, items=tuple(together))
            first, together, length = first + len(together), [], 0
        together.append(item)
        length += len(item.json)
    if together:
        yield Sent(first=first, items=tuple(together))


def pieces(sent: Sent, *, size: int) -> Iterator[Sent]:
    """Yield a batch in parts of at most `size` items, which keep their keys."""
    for start in range(0, len(sent.items), size):
        yield Sent(first=sent.first + start, items=sent.items[start : start + size])


def together(items: Iterable[Item]) -> Sent:
    """Return the items as one batch."""
    return Sent(first=0, items=tuple(map(keyed, items)))


def checked(options: Mapping[str, object]) -> Mapping[str, object]:
    """Return the given options with sets and tuples as lists. Raises TypeError for an unknown option."""
    for name in options:
        if name not in Options.__annotations__:
            known = ", ".join(Options.__annotations__)
            near = get_close_matches(name, Options.__annotations__, n=1)
            remedy = f"did you mean {near[0]!r}? " if near else ""
            raise TypeError(f"unknown option {name!r}; {remedy}the options are {known}")
    return {
        name: list(value) if isinstance(value, tuple | set | frozenset) else value
        for name, value in options.items()
    }


def post(
    sent: Sent, options: Mapping[str, object], *, wait_seconds: float, deadline: float | None = None
) -> Request:
    """Return the request that submits a batch; the keys of its items make it safe to repeat.

    After `deadline` seconds, when the caller gives up, the service cancels items that have not begun.
    """
    rest = {**options, "deadline_seconds": deadline, "wait_seconds": wait_seconds}
    given = json.dumps({name: value for name, value in rest.items() if value is not None}, allow_nan=False)
    body = f'{{"items": [{", ".join(item.json for item in sent.items)}], {given[1:]}'
    return Request(method="POST", path="/v1/batches", body=body, wait_seconds=wait_seconds)


def look(batch: str, *, wait_seconds: float = 0.0) -> Request:
    """Return the request for a batch's results, answered when it is done or after `wait_seconds`."""
    return Request(
        method="GET",
        path=_of(batch),
        parameters={"wait_seconds": wait_seconds},
        wait_seconds=wait_seconds,
    )


def look_at_item(item: str, *, wait_seconds: float = 0.0) -> Request:
    """Return the request for one item's result, answered when it is done or after `wait_seconds`."""
    return Request(
        method="GET",
        path=f"/v1/items/{quote(item, safe='')}",
        parameters={"wait_seconds": wait_seconds},
        wait_seconds=wait_seconds,
    )


#: Seconds that the first answer about a large library may take.
_DECLARATIONS_SECONDS = 60.0


def bundle(item: str) -> Request:
    """Return the request for the files with which others check an item."""
    return Request(method="GET", path=f"/v1/items/{quote(item, safe='')}/bundle")


def declarations(contains: str, *, environment: str | None, most: int) -> Request:
    """Return the request for the declarations of an environment whose names contain all words of a text."""
    parameters: dict[str, str | float] = {"contains": contains, "most": most}
    if environment is not None:
        parameters["environment"] = environment
    return Request(
        method="GET", path="/v1/declarations", parameters=parameters, wait_seconds=_DECLARATIONS_SECONDS
    )


def cancellation(batch: str, items: Sequence[str] | None, groups: Sequence[str] | None) -> Request:
    """Return the request that cancels items and groups of a batch, or the whole batch if both are None."""
    chosen = {
        "items": None if items is None else list(items),
        "groups": None if groups is None else list(groups),
    }
    return Request(method="POST", path=f"{_of(batch)}/cancel", body=json.dumps(chosen))


def events(batch: str) -> Request:
    """Return the request for the event stream of a batch."""
    return Request(method="GET", path=f"{_of(batch)}/events")


def _of(batch: str) -> str:
    return f"/v1/batches/{quote(batch, safe='')}"
