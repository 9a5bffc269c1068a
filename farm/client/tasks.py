"""Merges several asynchronous iterators for `AsyncClient`, in tasks; the twin of `farm.client.threads`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import TypeVar

_T = TypeVar("_T")


async def merged(
    sources: Sequence[Callable[[], AsyncGenerator[_T, None]]], *, most: int
) -> AsyncGenerator[_T, None]:
    """Yield the values of the iterators as they come, running at most `most` iterators at once.

    The first error ends it, and its end ends all of them.
    """
    waiting = iter(sources)
    heard: asyncio.Queue[tuple[_T] | Exception | None] = asyncio.Queue()

    async def run() -> None:
        try:
            for source in waiting:
                async with aclosing(source()) as values:
                    async for value in values:
                        heard.put_nowait((value,))
        except Exception as error:  # noqa: BLE001 # a task's edge: the caller's task raises it
            heard.put_nowait(error)
        heard.put_nowait(None)

    tasks = [asyncio.create_task(run()) for _ in range(min(most, len(sources)))]
    running = len(tasks)
    try:
        while running:
            found = await heard.get()
            if found is None:
                running -= 1
            elif isinstance(found, Exception):
                raise found
            else:
                yield found[0]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
