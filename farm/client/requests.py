"""Makes the requests of both clients as values: keyed items, batches of them, and HTTP bodies."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from types import MappingProxyType
from urllib.parse import quote

from farm.client.asked_fields import LineFields, Options


class Fields(LineFields, total=False):
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
    key: str


#: A whole program, or a mapping with the fields of an item.
Item = str | Fields | Mapping[str, object]

#: The largest batch that the service takes.
MOST_ITEMS = 4096
_MOST_BYTES = 4 << 20  # far below the limits of services and proxies, and large enough to amortize a request


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
