"""`AsyncClient`: carries out `farm.client.exchange` with tasks; the twin of `farm.client.sync`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from types import TracebackType
from typing import Self, TypeVar, Unpack

import httpx

from farm.client import exchange, requests
from farm.client.asked_fields import Options
from farm.client.caller import DEADLINE_SECONDS, FAILURES, placed, wire
from farm.client.calls import AsyncCalls
from farm.client.errors import ClientError, TooLarge
from farm.client.exchange import Call, Following, Pause, Steps
from farm.client.requests import Item, Request, Sent
from farm.client.results import Result
from farm.client.retry import HttpReply, Lost
from farm.client.tasks import merged

_T = TypeVar("_T")


class AsyncClient(AsyncCalls):
    """`farm.client.sync.Client` for asyncio: the same arguments and methods, to be awaited."""

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
        self._made: tuple[tuple[int, asyncio.AbstractEventLoop], httpx.AsyncClient] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._made is not None:
            await self._made[1].aclose()
            self._made = None

    async def check(self, item: Item, *, deadline: float | None = None, **options: Unpack[Options]) -> Result:
        """Check one item, wait, and return its result; as `check_all` does."""
        return (await self.check_all([item], deadline=deadline, **options))[0]

    async def check_all(
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
            return await self._watched(list(items), progress, deadline, options)
        call, chosen, sent = self._call(deadline), self._chosen(options), self._batches(items)
        try:
            return await self._judged(sent, chosen, call)
        except TooLarge as error:
            if error.most_items is None:
                raise
            return placed([each async for each in self._streamed(sent, chosen, call)])

    async def _judged(self, sent: Sequence[Sent], options: Mapping[str, object], call: Call) -> list[Result]:
        if len(sent) == 1:
            return list((await self._done(exchange.judge(sent[0], options, call), call)).results)
        begun = await self._each([exchange.begin(each, options, call, wait=False) for each in sent], call)
        done = await self._each([exchange.finish(each, call) for each in begun], call)
        return [result for batch in done for result in batch.results]

    async def _watched(
        self,
        items: Sequence[Item],
        progress: Callable[[int, int], object],
        deadline: float | None,
        options: Options,
    ) -> list[Result]:
        found = list[Result]()
        async for result in self.stream(items, deadline=deadline, **options):
            found.append(result)
            progress(len(found), len(items))
        return placed(found)

    def stream(
        self, items: Iterable[Item], *, deadline: float | None = None, **options: Unpack[Options]
    ) -> AsyncGenerator[Result, None]:
        """Yield the result of each item when it is complete; `index` is the item's place in the call.

        Items without a verdict at the deadline come last. Closing the generator early cancels the rest.
        """
        call, chosen = self._call(deadline), self._chosen(options)
        sent = self._batches(items, size=requests.MOST_ITEMS)
        return self._streamed(sent, chosen, call)

    def _streamed(
        self, sent: Sequence[Sent], options: Mapping[str, object], call: Call
    ) -> AsyncGenerator[Result, None]:
        sources = [partial(self._in_parts, each, options, call) for each in sent]
        return sources[0]() if len(sources) == 1 else merged(sources, most=self._concurrency)

    async def _in_parts(
        self, sent: Sent, options: Mapping[str, object], call: Call
    ) -> AsyncGenerator[Result, None]:
        """Yield the results of a batch, in parts if the service refuses a batch of this size."""
        try:
            async with aclosing(self._followed(Following(sent, options, call), call)) as found:
                async for result in found:
                    yield result
        except TooLarge as error:
            async with aclosing(self._streamed(self._pieces(sent, error), options, call)) as found:
                async for result in found:
                    yield result

    async def submit(
        self, items: Iterable[Item], *, deadline: float | None = None, **options: Unpack[Options]
    ) -> str:
        """Submit at most 4096 items as one batch and return its id at once.

        After `deadline` seconds the farm cancels items that have not begun.
        """
        call, chosen, sent = self._call(), self._chosen(options), self._together(items)
        return await self._done(exchange.submit(sent, chosen, call, deadline=deadline), call)

    async def _followed(self, following: Following, call: Call) -> AsyncGenerator[Result, None]:
        try:
            for result in await self._done(following.submit(), call):
                yield result
            while following.listens:
                answer: HttpReply | Lost
                try:
                    arguments = wire(following.request, call, silence=exchange.LONGEST_SILENCE)
                    async with self._http.stream(**arguments) as response:
                        is_stream = response.status_code == 200
                        answer = self._replied(response, b"" if is_stream else await response.aread())
                        async for line in response.aiter_lines() if is_stream else _nothing():
                            for result in following.hear(line):
                                yield result
                            if not following.listens:
                                break
                except FAILURES as error:
                    answer = self._lost(error)
                await self._done(following.paused(answer), call)
            for result in await self._done(following.finish(), call):
                yield result
        finally:
            if following.is_left:
                with suppress(ClientError):
                    await self.cancel(str(following.batch))

    async def _each(self, many: Sequence[Steps[_T]], call: Call) -> list[_T]:
        """Carry out several exchanges at once, and return their results in order."""

        async def one(place: int, steps: Steps[_T]) -> AsyncGenerator[tuple[int, _T], None]:
            yield place, await self._done(steps, call)

        sources = [partial(one, place, steps) for place, steps in enumerate(many)]
        done = dict([each async for each in merged(sources, most=self._concurrency)])
        return [done[place] for place in range(len(many))]

    async def _done(self, steps: Steps[_T], call: Call) -> _T:
        """Carry out an exchange and return its result."""
        answer: HttpReply | Lost | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                found: _T = end.value
                return found
            answer = await self._answer(step, call)

    async def _answer(self, step: Request | Pause, call: Call) -> HttpReply | Lost | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        try:
            response = await self._http.request(**wire(step, call))
        except FAILURES as error:
            return self._lost(error)
        return self._replied(response, response.content)

    @property
    def _http(self) -> httpx.AsyncClient:
        """The connections of this process and event loop; those of another would mix up answers, or hang."""
        here = os.getpid(), asyncio.get_running_loop()
        if self._made is None or self._made[0] != here:
            self._made = here, httpx.AsyncClient(**self._http_arguments(httpx.AsyncHTTPTransport))
        return self._made[1]


async def _nothing() -> AsyncGenerator[str, None]:
    for line in tuple[str, ...]():
        yield line
