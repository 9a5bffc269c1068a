"""`Client`: carries out `farm.client.exchange` with threads and blocking sockets."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx

from farm.client import exchange, requests
from farm.client.asked_fields import Options
from farm.client.caller import DEADLINE_SECONDS, FAILURES, placed, wire
from farm.client.calls import Calls
from farm.client.errors import ClientError, TooLarge
from farm.client.exchange import Call, Following, Pause, Steps
from farm.client.requests import Item, Request, Sent
from farm.client.results import Result
from farm.client.retry import HttpReply, Lost
from farm.client.threads import merged

_T = TypeVar("_T")


class Client(Calls):
    """A client of a farm over HTTP; for many threads. A context manager.

    Without `url` it uses FARM_URL and FARM_TOKEN (or FARM_TOKEN_FILE), or else the service that `farm serve`
    runs on this machine. `deadline` is how many seconds a call may take. Options given here hold for every
    call that does not give its own.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: str | None = None,
        deadline: float = DEADLINE_SECONDS,
        batch_size: int = 1024,
        concurrency: int = 8,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(
            url, token, deadline=deadline, batch_size=batch_size, concurrency=concurrency, options=options
        )
        self._made = self._connections()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._made[1].close()

    def check(self, item: Item, *, deadline: float | None = None, **options: Unpack[Options]) -> Result:
        """Check one item, wait, and return its result; as `check_all` does."""
        return self.check_all([item], deadline=deadline, **options)[0]

    def check_all(
        self,
        items: Iterable[Item],
        *,
        progress: Callable[[int, int], object] | None = None,
        deadline: float | None = None,
        **options: Unpack[Options],
    ) -> list[Result]:
        """Check items, wait, and return their results in the same order.

        An item without a verdict at the deadline has no reward. `progress` is called with the number of done
        items and the number of all. Raises `Refused` if the request is at fault.
        """
        if progress is not None:
            return self._watched(list(items), progress, deadline, options)
        call, chosen, sent = self._call(deadline), self._chosen(options), self._batches(items)
        try:
            return self._judged(sent, chosen, call)
        except TooLarge as error:
            if error.most_items is None:
                raise
            return placed(self._streamed(sent, chosen, call))

    def _judged(self, sent: Sequence[Sent], options: Mapping[str, object], call: Call) -> list[Result]:
        if len(sent) == 1:
            return list(self._done(exchange.judge(sent[0], options, call), call).results)
        begun = self._each([exchange.begin(each, options, call, wait=False) for each in sent], call)
        done = self._each([exchange.finish(each, call) for each in begun], call)
        return [result for batch in done for result in batch.results]

    def _watched(
        self,
        items: Sequence[Item],
        progress: Callable[[int, int], object],
        deadline: float | None,
        options: Options,
    ) -> list[Result]:
        found = list[Result]()
        for result in self.stream(items, deadline=deadline, **options):
            found.append(result)
            progress(len(found), len(items))
        return placed(found)

    def stream(
        self, items: Iterable[Item], *, deadline: float | None = None, **options: Unpack[Options]
    ) -> Generator[Result, None, None]:
        """Yield the result of each item when it is complete; `index` is the item's place in the call.

        Items without a verdict at the deadline come last. Closing the generator early cancels the rest.
        """
        call, chosen = self._call(deadline), self._chosen(options)
        sent = self._batches(items, size=requests.MOST_ITEMS)
        return self._streamed(sent, chosen, call)

    def _streamed(
        self, sent: Sequence[Sent], options: Mapping[str, object], call: Call
    ) -> Generator[Result, None, None]:
        sources = [partial(self._in_parts, each, options, call) for each in sent]
        return sources[0]() if len(sources) == 1 else merged(sources, most=self._concurrency)

    def _in_parts(
        self, sent: Sent, options: Mapping[str, object], call: Call
    ) -> Generator[Result, None, None]:
        """Yield the results of a batch, in parts if the service refuses a batch of this size."""
        try:
            yield from self._followed(Following(sent, options, call), call)
        except TooLarge as error:
            yield from self._streamed(self._pieces(sent, error), options, call)

    def submit(
        self, items: Iterable[Item], *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Submit at most 4096 items as one batch and return its id at once.

        After `deadline` seconds the farm cancels items that have not begun.
        """
        call, chosen, sent = self._call(), self._chosen(options), self._together(items)
        return self._done(exchange.submit(sent, chosen, call, deadline=deadline), call)

    def _followed(self, following: Following, call: Call) -> Generator[Result, None, None]:
        try:
            yield from self._done(following.submit(), call)
            while following.listens:
                answer: HttpReply | Lost
                try:
                    arguments = wire(following.request, call, silence=exchange.LONGEST_SILENCE)
                    with self._http.stream(**arguments) as response:
                        is_stream = response.status_code == 200
                        answer = self._replied(response, b"" if is_stream else response.read())
                        for line in response.iter_lines() if is_stream else ():
                            yield from following.hear(line)
                            if not following.listens:
                                break
                except FAILURES as error:
                    answer = self._lost(error)
                self._done(following.paused(answer), call)
            yield from self._done(following.finish(), call)
        finally:
            if following.is_left:
                with suppress(ClientError):
                    self.cancel(str(following.batch))

    def _each(self, many: Sequence[Steps[_T]], call: Call) -> list[_T]:
        """Carry out several exchanges at once, and return their results in order."""

        def one(place: int, steps: Steps[_T]) -> Generator[tuple[int, _T], None, None]:
            yield place, self._done(steps, call)

        sources = [partial(one, place, steps) for place, steps in enumerate(many)]
        done = dict(merged(sources, most=self._concurrency))
        return [done[place] for place in range(len(many))]

    def _done(self, steps: Steps[_T], call: Call) -> _T:
        """Carry out an exchange and return its result."""
        answer: HttpReply | Lost | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                found: _T = end.value
                return found
            answer = self._answer(step, call)

    def _answer(self, step: Request | Pause, call: Call) -> HttpReply | Lost | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        try:
            response = self._http.request(**wire(step, call))
        except FAILURES as error:
            return self._lost(error)
        return self._replied(response, response.content)

    @property
    def _http(self) -> httpx.Client:
        """The connections of this process; after a fork, the parent's connections would mix up answers."""
        if self._made[0] != os.getpid():
            self._made = self._connections()
        return self._made[1]

    def _connections(self) -> tuple[int, httpx.Client]:
        return os.getpid(), httpx.Client(**self._http_arguments(httpx.HTTPTransport))
