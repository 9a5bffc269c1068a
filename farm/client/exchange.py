"""The logic of both clients, without a socket: generators that yield requests and pauses, and get answers.

`farm.client.sync` and `farm.client.asynchronous` carry out these steps, so the logic stands here once.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from farm.client import requests, results
from farm.client.errors import (
    ClientError,
    Fault,
    NotAFarm,
    Refused,
    ServiceFailed,
    Unanswered,
    Unreachable,
    failure,
)
from farm.client.requests import Request, Sent
from farm.client.results import Batch, Result
from farm.client.retry import LATER, HttpReply, Lost, pause_after

#: The service holds an answer back for this time at most: proxies close connections after an idle minute.
LONGEST_POLL = 50.0
#: After an answer that comes sooner without news, the client pauses for the rest of this time.
SHORTEST_POLL = 0.5
#: The service sends something on an event stream every 15 s.
LONGEST_SILENCE = 45.0
#: After this number of streams in a row without a result, the client polls instead.
MOST_LISTENS = 3
#: The client retries an address that has never answered for this time, since a service may be starting there.
FIRST_CONTACT_SECONDS = 30.0

#: Statuses that a proxy before a farm may answer by itself; they are refusals too.
_OF_PROXIES = frozenset({401, 403, 413})

_T = TypeVar("_T")
_log = logging.getLogger("farm.client")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pause:
    """A pause of the exchange."""

    seconds: float


Steps = Generator[Request | Pause, HttpReply | Lost | None, _T]


@dataclass(slots=True)
class Contact:
    """The state of one client's address: `is_farm` after the first answer that only a farm gives."""

    is_farm: bool = False


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call: its start, and the seconds until its deadline.

    `traceparent` is the header of the caller's span, None without a span; `contact` is shared by all calls
    of a client.
    """

    url: str
    seconds: float | None
    traceparent: str | None = None
    contact: Contact = field(default_factory=Contact)
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "began", self.clock())

    @property
    def spent(self) -> float:
        """The seconds since the call began."""
        return self.clock() - self.began

    @property
    def left(self) -> float:
        """The seconds until the deadline."""
        return float("inf") if self.seconds is None else self.seconds - self.spent

    @property
    def poll(self) -> float:
        """The seconds for which the service may hold back its next answer; 0 at the end of the call.

        A margin lets the last answer arrive before the deadline.
        """
        margin = 1.0 if self.seconds is None else min(1.0, self.seconds / 10)
        return max(0.0, min(LONGEST_POLL, self.left - margin))


def ask(request: Request, call: Call) -> Steps[Any]:
    """Repeat a request until its answer is final, and return the answer's JSON.

    Raises `Unanswered` at the deadline, `Unreachable` if no server has ever answered, and `Refused` or
    `ServiceFailed` for the service's own refusals and failures.
    """
    answer: HttpReply | Lost | None = None
    attempt = 0
    while call.left > 0:
        answer = yield request
        assert answer is not None  # noqa: S101 # a request is answered or lost
        pause = pause_after(answer, attempt)
        if pause is None:
            return _content(answer)
        _require_contact(answer, call)
        if pause >= call.left:
            break
        _log.warning("%s: %s; asking again in %.1f s", call.url, _trouble(answer), pause)
        yield Pause(seconds=pause)
        attempt += 1
    raise Unanswered(
        f"{call.url} gave no answer within {call.seconds:g} s: {_trouble(answer)}. Ask again later."
    )


def begin(sent: Sent, options: Mapping[str, object], call: Call, *, wait: bool) -> Steps[Batch]:
    """Submit a batch and return its results so far; with `wait`, after waiting for the verdicts.

    If the service fails, the items come back without a reward and with the reason in `detail`. Raises
    `Refused`, whose faults have indexes of the whole call, and `NotAFarm` if no farm has ever answered.
    """
    request = requests.post(sent, options, wait_seconds=call.poll if wait else 0.0, deadline=call.seconds)
    nothing = results.unknown(sent)
    try:
        answer = yield from ask(request, call)
        batch = results.parse_batch(answer, sent)
    except Refused as error:
        raise error.moved(sent.first) from None
    except (Unanswered, ServiceFailed) as error:
        if isinstance(error, NotAFarm) and not call.contact.is_farm:
            raise
        return _given_up(nothing, error)
    call.contact.is_farm = True
    return batch


def finish(batch: Batch, call: Call) -> Steps[Batch]:
    """Wait until a submitted batch is done or the deadline has come, and return its results."""
    own = True
    try:
        while batch.id is not None and not batch.done and (wait := call.poll) > 0:
            asked = call.spent
            if own:
                answer = yield from ask(requests.look(batch.id, wait_seconds=wait), call)
                news = results.parse_news(answer)
            else:
                item = next(str(each.id) for each in batch.results if not each.over)
                answer = yield from ask(requests.look_at_item(item, wait_seconds=wait), call)
                news = results.parse_news({"items": [answer]}, wanted=item)
            batch = results.updated(batch, news)
            # An item with a key of an earlier call belongs to that call's batch, so it is polled separately.
            own = own and not all(each.over for each in news)
            if not batch.done and call.spent - asked < min(wait, SHORTEST_POLL):
                yield Pause(seconds=min(wait, SHORTEST_POLL))
    except (Unanswered, ServiceFailed) as error:
        return _given_up(batch, error)
    return batch


def judge(sent: Sent, options: Mapping[str, object], call: Call) -> Steps[Batch]:
    """Submit a batch and wait for it, in one request if that suffices."""
    batch = yield from begin(sent, options, call, wait=True)
    return (yield from finish(batch, call))


def submit(sent: Sent, options: Mapping[str, object], call: Call, *, deadline: float | None) -> Steps[str]:
    """Submit a batch, which the service cancels after `deadline` seconds, and return its id."""
    answer = yield from ask(requests.post(sent, options, wait_seconds=0.0, deadline=deadline), call)
    return str(results.parse_batch(answer, sent).id)


class Following:
    """Follows one batch by its event stream: the results so far, the open items, and when to reconnect.

    The service sends all events of a batch on each connection, so a broken stream loses nothing; a repeated
    result is yielded once.
    """

    def __init__(self, sent: Sent, options: Mapping[str, object], call: Call) -> None:
        self._sent, self._options, self._call = sent, options, call
        self._batch = results.unknown(sent)
        self._open = dict[str | None, Result]()
        self._event, self._data = "", list[str]()
        self._attempt = 0
        self._ended = False

    @property
    def batch(self) -> str | None:
        """The id of the batch, None if the service never confirmed it."""
        return self._batch.id

    @property
    def listens(self) -> bool:
        """Whether items are open, the events have not ended, and there is time left."""
        return bool(self._open) and not self._ended and self._call.left > 0

    @property
    def request(self) -> Request:
        """The request whose answer is the event stream."""
        return requests.events(str(self.batch))

    @property
    def is_left(self) -> bool:
        """Whether the caller stopped listening while items were open; their batch is to be cancelled."""
        return bool(self._open)

    def submit(self) -> Steps[list[Result]]:
        """Submit the batch, and return the results that are done already."""
        self._batch = yield from begin(self._sent, self._options, self._call, wait=False)
        if self._batch.id is None:
            return []
        self._open = {each.id: each for each in self._batch.results if not each.over}
        return [each for each in self._batch.results if each.over]

    def hear(self, line: str) -> list[Result]:
        """Take one line of the stream, and return the result that it completes, if any.

        The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
        """
        name, _, value = line.partition(":")
        if name == "event":
            self._event = value.removeprefix(" ")
        elif name == "data":
            self._data.append(value.removeprefix(" "))
        elif not line:
            return self._end_of_event()
        return []

    def _end_of_event(self) -> list[Result]:
        event, data = self._event, "\n".join(self._data)
        self._event, self._data = "", []
        if event == "end":
            self._ended = True
        if event != "result":
            return []
        self._attempt = 0
        try:
            new = results.parse_result(_json(data.encode()))
            old = self._open.get(new.id)
            found = [] if old is None or not new.over else [results.renewed(old, new)]
        except ServiceFailed as error:
            _log.warning("%s; asking for the results instead", error)
            self._ended, found = True, []
        if found:
            del self._open[new.id]
        return found

    def paused(self, answer: HttpReply | Lost) -> Steps[None]:
        """Pause before the next connection, or stop listening if the service has no events.

        Raises `Refused` if the request is at fault.
        """
        self._event, self._data = "", []
        if not self.listens:
            return
        pause = pause_after(answer, self._attempt)
        if isinstance(answer, HttpReply) and answer.status == 200:
            pause = pause_after(Lost(why="the events ended early", reached=True), self._attempt)
        self._attempt += 1
        if pause is None or self._attempt >= MOST_LISTENS:
            self._end(answer)
        else:
            yield Pause(seconds=min(pause, max(0.0, self._call.left)))

    def _end(self, answer: HttpReply | Lost) -> None:
        """Stop listening; `finish` polls for the results instead."""
        self._ended = True
        if isinstance(answer, HttpReply) and 400 <= answer.status < 500 and answer.status not in LATER:
            raise _failure(answer)
        _log.warning("%s: no events: %s; asking for the results instead", self._call.url, _trouble(answer))

    def finish(self) -> Steps[list[Result]]:
        """Return the results without an event, after waiting for them until the deadline."""
        if self._batch.id is None:
            return list(self._batch.results)
        rest = replace(self._batch, done=not self._open, results=tuple(self._open.values()))
        found = yield from finish(rest, self._call)
        self._open = {}
        return list(found.results)


def _given_up(batch: Batch, error: Exception) -> Batch:
    """Return a batch with the failure in its results' `detail`; other batches continue."""
    _log.warning("%s Its items have no reward.", error)
    return results.explained(batch, error)


def _require_contact(answer: HttpReply | Lost, call: Call) -> None:
    if isinstance(answer, Lost) and not answer.reached and call.spent > FIRST_CONTACT_SECONDS:
        raise Unreachable(
            f"nothing answers at {call.url}: {answer.why}. "
            "Start the service (farm serve) or correct FARM_URL."
        )


def _trouble(answer: HttpReply | Lost | None) -> str:
    if answer is None:
        return "there was no time to ask"
    return answer.why if isinstance(answer, Lost) else f"{answer.status} {_detail(answer)}"


def _content(answer: HttpReply | Lost) -> Any:
    assert isinstance(answer, HttpReply)  # noqa: S101 # `ask` retries a lost answer
    if answer.status >= 300 or answer.status < 200:
        raise _failure(answer)
    return _json(answer.body)


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError as error:
        raise NotAFarm(
            f"the service's answer is not JSON: {body[:80]!r}. Another web server answers at this address; "
            "correct FARM_URL."
        ) from error


def _failure(answer: HttpReply) -> ClientError:
    """Return the error for an answer; a farm explains each of its refusals in JSON."""
    told = _explained(answer)
    if "detail" not in told and answer.status not in _OF_PROXIES:
        to = f" with a redirect to {answer.location}" if answer.location else ""
        return NotAFarm(
            f"the answer is {answer.status}{to}, and not in the form of a farm's: {_detail(answer)!r}. "
            "Another web server answers at this address, or a proxy before the farm; correct FARM_URL."
        )
    most = told.get("most_items")
    return failure(
        answer.status,
        _detail(answer),
        faults=_faults(told),
        most_items=most if isinstance(most, int) else None,
    )


def _faults(told: Mapping[str, object]) -> list[Fault]:
    """Return the faults that a refusal lists, or a fault for each item that it names."""
    if faults := _listed(told.get("detail")):
        return [_fault(each) for each in faults]
    places = told.get("items")
    named = [each for each in places if isinstance(each, int)] if isinstance(places, list) else []
    return [Fault(place, "", str(told["detail"])) for place in named]


def _explained(answer: HttpReply) -> Mapping[str, object]:
    try:
        told = json.loads(answer.body)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _listed(detail: object) -> list[dict[str, object]]:
    return [each for each in detail if isinstance(each, dict)] if isinstance(detail, list) else []


def _detail(answer: HttpReply) -> str:
    """Return the service's message: its text, or its list of faults."""
    told = _explained(answer)
    if "detail" not in told:
        return answer.body[:200].decode(errors="replace").strip()
    if faults := _listed(told["detail"]):
        return "; ".join(str(_fault(each)) for each in faults)
    return str(told["detail"])


def _fault(fault: Mapping[str, object]) -> Fault:
    """Return a fault from FastAPI's form, which has the path of the field in `loc`."""
    place = fault.get("loc")
    path = [each for each in place if each != "body"] if isinstance(place, list) else []
    item = path[1] if path[:1] == ["items"] and len(path) > 1 and isinstance(path[1], int) else None
    if item is not None:
        path = path[2:]
    return Fault(item, ".".join(map(str, path)), str(fault.get("msg", "")))
