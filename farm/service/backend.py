"""The backend of the service's handlers: stores, queries and cancels, as `farm submit` and its kin do."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from farm import declarations
from farm.broker import call
from farm.client.results import Declarations, Result
from farm.client.states import State, Step
from farm.completions import Listener
from farm.connections import Connections
from farm.errors import FarmError, Forbidden, ManifestError, QueueFull, ServerDown, UnknownRun, UsageError
from farm.kinds import Kind
from farm.log import about, logger
from farm.manifest.lines import printable
from farm.metrics.farm import FarmMetrics, exposition
from farm.runs.batch import Asked, Items, store_batches
from farm.runs.revise import cancel
from farm.runs.stepping import item_of as item_of_states
from farm.service import requests
from farm.service.answers import in_order, item_id, item_of, result, waits_for
from farm.service.auth.key_uses import KeyUses
from farm.service.gathering import Gathering
from farm.service.outage import Outage
from farm.service.waiters import Waiter, Waiters
from farm.sessions.front import Kept, StepOptions
from farm.store import readings
from farm.store.batches import Batch, ItemKey, Submitter
from farm.store.environments import UNSERVED_SECONDS, ServedEnvironment
from farm.store.keys import Key
from farm.store.limits import has_limit
from farm.store.queries import BroughtBatch
from farm.store.records import Item

#: Threads that query PostgreSQL, each with its own connection.
THREADS = 8
#: Threads that wait for workers to step in sessions.
SESSION_THREADS = 128
#: The environments and the length of the queue are cached for so long.
_FRESH_SECONDS = 1.0
#: A batch whose client disconnected before the answer is cancelled after this time.
LEFT_SECONDS = 60.0

_T = TypeVar("_T")

_log = logger(__name__)


class UnknownEnvironment(UnknownRun):
    """A request names an environment that was never declared or served.

    `items` are the indexes in the batch of the items that name it themselves.
    """

    def __init__(self, words: str, *, items: Sequence[int] = ()) -> None:
        super().__init__(words)
        self.items = list(items)


def require_class(key: Key, priority: str) -> None:
    """Raise `Forbidden` if a key may not submit in a priority class."""
    if priority not in key.classes:
        raise Forbidden(f"the key {key.name} may not submit in the class {priority}")


def require_time(key: Key, batch: requests.Batch, *, most_seconds: float) -> None:
    """Raise `UsageError` for a timeout beyond the key's limit, or `most_seconds` for a key without one.

    Raises `ManifestError`, which names the item, if an item has that timeout.
    """
    most = key.most_seconds or most_seconds
    remedy = (
        f"send at most {most:g}, or ask the operator for a key that may more (farm keys add --most-seconds)"
    )

    def problem(seconds: float) -> str:
        return f"a timeout of {seconds:g} s is more than the {most:g} s that the key {key.name} may ask for"

    for number, item in enumerate(batch.items, 1):
        if item.timeout is not None and item.timeout > most:
            raise ManifestError("items", problem(item.timeout), remedy=remedy, line=number, field="timeout")
    if batch.timeout > most and any(item.timeout is None for item in batch.items):
        raise UsageError(f"{problem(batch.timeout)}; {remedy}")


class _Request(NamedTuple):
    """A client's batch with its key and its trace."""

    batch: requests.Batch
    key: Key
    traceparent: str | None


def _options_of(batch: requests.Batch) -> str:
    """Return the options of a batch as a text, which batches that can be stored together share."""
    return batch.model_dump_json(exclude={"items", "wait_seconds", "accept", "feedback", "batch_name"})


class Backend:
    """Stores batches, waits for their items and returns results; for one event loop.

    Every method raises `ServerDown` when PostgreSQL does not answer; nothing is lost then.
    """

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="backend")
        self._stepping = ThreadPoolExecutor(SESSION_THREADS, thread_name_prefix="sessions")
        self._environments: list[ServedEnvironment] = []
        self._queued = 0
        self._usage = KeyUses(connections)
        self._singles = Gathering[_Request, Batch](self._store_together)
        self._outage = Outage()
        self._looked_at = -math.inf
        self._looking: asyncio.Future[None] | None = None
        self._metrics = FarmMetrics(lambda: readings.read(connections.engine))
        self._metrics_lock = asyncio.Lock()
        self._answers = dict[str, asyncio.Future[tuple[bytes, str]]]()
        self._reviving: asyncio.Future[None] | None = None
        self.waiters = Waiters(self._ask)
        self._listener = Listener(connections.urls[1], self.waiters.heard)
        self._listener.start()

    async def close(self) -> None:
        """End all waits and the threads."""
        self._listener.stop()
        await self.waiters.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._stepping.shutdown(wait=False, cancel_futures=True)

    async def _ask(self, items: Sequence[Item]) -> dict[Item, Any]:
        return await self._do(lambda: self._connections.queries.waited(items))

    async def _do(self, step: Callable[[], _T]) -> _T:
        loop = asyncio.get_running_loop()
        try:
            with self._outage.noticed():
                return await loop.run_in_executor(self._threads, step)
        except ServerDown:
            if self._reviving is None or self._reviving.done():
                self._reviving = loop.run_in_executor(None, self._revive)
            raise

    def _revive(self) -> None:
        """Restart the farm's own servers: no other command may use this home for days."""
        try:
            self._connections.revived()
        except FarmError as error:
            _log.warning("%s", error)

    async def ask(self, question: Callable[[Connections], _T]) -> _T:
        """Run a question to the store in a thread and return its answer."""
        return await self._do(lambda: question(self._connections))

    async def take(self, batch: requests.Batch, key: Key, *, traceparent: str | None = None) -> Batch:
        """Store a batch whole or not at all, wake workers, and return it.

        The batch becomes part of the trace that the request's header `traceparent` names. Raises
        `UnknownEnvironment`, `QueueFull`, `OverLimit`, `Forbidden` and `KeyReused`; `ManifestError` and
        `UsageError` for options that no environment supports.
        """
        await self.look()
        if self._queued >= self._connections.settings.queue_limit:
            raise QueueFull("too many checks wait already; try again later")
        require_class(key, batch.priority)
        require_time(key, batch, most_seconds=self._connections.settings.most_seconds)
        self._require_environments(batch)
        request = _Request(batch, key, traceparent)
        if len(batch.items) == 1 and not batch.stop_on_first_proof:
            return await self._singles.add((key.id, _options_of(batch)), request)
        (stored,) = await self._store_together([request])
        if isinstance(stored, Exception):
            raise stored
        return stored

    async def require_room(self, key: Key, proofs: int) -> None:
        """Raise `OverLimit` if this number of proofs would exceed the key's limits now."""
        if has_limit(key):
            await self._do(lambda: self._usage.require_room(key, proofs))

    async def _store_together(self, asked: Sequence[_Request]) -> Sequence[Batch | Exception]:
        return await self._do(lambda: self._store(asked))

    def _store(self, asked: Sequence[_Request]) -> list[Batch | Exception]:
        """Store requests of one key with the same options; return for each its batch, or why it has none."""
        found: list[Batch | Exception | None] = [None] * len(asked)
        fit: dict[int, Asked] = {}
        for place, each in enumerate(asked):
            try:
                fit[place] = self._prepared(each)
            except FarmError as error:
                found[place] = error
        if fit:
            key = asked[0].key
            submitter = Submitter(owner=key.id, key=key)
            stored = store_batches(self._connections.store, list(fit.values()), submitter)
            found = [*found]
            for place, one in zip(fit, stored, strict=True):
                found[place] = one
            self._call([one for one in stored if isinstance(one, Batch)])
        return [each for each in found if each is not None]

    def _prepared(self, asked: _Request) -> Asked:
        settings, batch = self._connections.settings, asked.batch
        options = batch.submit_options(environment=settings.environment, memory_mib=settings.memory_mib)
        items = Items(
            [item.entry(number) for number, item in enumerate(batch.items, 1)],
            options,
            self._environments,
            accept=batch.accept,
            feedback=batch.feedback,
            name=batch.batch_name or "",
        )
        keys = [
            ItemKey(key=item.key, sha256=batch.sha256(item), line=number)
            for number, item in enumerate(batch.items, 1)
            if item.key is not None
        ]
        return Asked(items=items, keys=keys, traceparent=asked.traceparent)

    def _call(self, stored: Sequence[Batch]) -> None:
        """Wake workers of the environments in which something waits now."""
        queued = frozenset[str]().union(*(each.queued for each in stored))
        if not queued:
            return
        try:
            call(self._connections.broker, queued)
        except ServerDown as error:
            with about(run_id=stored[0].id):
                _log.warning("%s; idle workers find the batch by themselves", error)

    def _require_environments(self, batch: requests.Batch) -> None:
        usual = batch.environment or self._connections.settings.environment
        known = {each.name for each in self._environments}
        for name in {item.environment or usual for item in batch.items} - known:
            there = ", ".join(sorted(known)) or "none yet"
            raise UnknownEnvironment(
                f"no environment is called {printable(name)!r}; there are: {there}",
                items=[place for place, item in enumerate(batch.items) if item.environment == name],
            )

    async def look(self) -> None:
        """Refresh the environments and the length of the queue, unless they are less than a second old."""
        if time.monotonic() - self._looked_at < _FRESH_SECONDS:
            return
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._look())
        await asyncio.shield(self._looking)  # one query for all requests at this time

    async def _look(self) -> None:
        queries, limit = self._connections.queries, self._connections.settings.queue_limit
        self._environments, self._queued = await self._do(
            lambda: (queries.served(), queries.queue_length(most=limit))
        )
        self._looked_at = time.monotonic()

    async def environments(self) -> list[ServedEnvironment]:
        """Return the environments that were declared or served."""
        await self.look()
        return self._environments

    async def is_served(self) -> bool:
        """Return whether any worker has sent a heartbeat lately."""
        await self.look()
        return any(each.silent_seconds <= UNSERVED_SECONDS for each in self._environments)

    async def items_of(self, batch_id: str, owner: str) -> list[Item]:
        """Return the items of an owner's batch, which then stays wanted; raises `UnknownRun`."""
        if not (batch_id.isascii() and batch_id.isalnum()):
            raise UnknownRun(f"no batch has the id {printable(batch_id)!r}")
        items = await self._do(lambda: self._connections.queries.batch(batch_id, owner))
        await self._brought(items, owner)
        return items

    async def mine(self, item_ids: Sequence[str], owner: str) -> list[Item]:
        """Return the items of these ids; raises `UnknownRun` for one that this owner did not submit."""
        items = [item_of(each) for each in item_ids]
        there = [item for item in items if item is not None]
        brought = await self._brought(there, owner)
        for each, item in zip(item_ids, items, strict=True):
            if item is None or item[0] not in brought:
                raise UnknownRun(f"no item has the id {printable(each)!r}")
        return there

    async def _brought(self, items: Sequence[Item], owner: str) -> dict[str, BroughtBatch]:
        """Return the options of the items' batches; batches that their clients had left are wanted again."""
        return await self._do(lambda: self._ask_again(self._connections.queries.asked_of(items, owner)))

    def _ask_again(self, brought: dict[str, BroughtBatch]) -> dict[str, BroughtBatch]:
        if left := [batch for batch, each in brought.items() if each.is_left]:
            self._connections.store.ask_again(left)
        return brought

    async def metrics(self, accepted: str) -> tuple[bytes, str]:
        """Return the farm's metrics in a format that `accepted` names, and that format's content type.

        At most one thread reads metrics, so a slow reading leaves the other threads to other requests.
        """
        if accepted not in self._answers:
            answer = self._answers[accepted] = asyncio.ensure_future(self._exposition(accepted))
            answer.add_done_callback(lambda _: self._answers.pop(accepted))
        return await asyncio.shield(self._answers[accepted])  # one answer for all requests at this time

    async def _exposition(self, accepted: str) -> tuple[bytes, str]:
        async with self._metrics_lock:
            return await self._do(lambda: exposition(self._metrics, accepted))

    def wait_for(self, items: Sequence[Item], checks: Mapping[Item, int] | None = None) -> Waiter:
        """Return a wait for items, to be ended by `waiters.remove`."""
        return self.waiters.add(items, checks or {})

    async def results(
        self, items: Sequence[Item], owner: str, *, only: Sequence[Item] | None = None
    ) -> list[Result]:
        """Return the results of items, or of the part `only` of them; `index` counts in `items`."""
        await self.look()
        return await self._do(lambda: self._results(items, owner, items if only is None else only))

    def _results(self, items: Sequence[Item], owner: str, only: Sequence[Item]) -> list[Result]:
        brought, judged = self._connections.queries.told(only, owner)
        self._ask_again(brought)
        silent = {each.name: each.silent_seconds for each in self._environments}
        places = {item: index for index, item in enumerate(items)}
        answers = []
        for _, found in in_order(only, judged):
            item = found.run_id, found.line
            if found.run_id not in brought:  # it was deleted a moment ago
                raise UnknownRun(f"no batch has the id {found.run_id!r}")
            options = brought[found.run_id]
            answers.append(
                result(
                    found,
                    index=places[item],
                    key=options.keys.get(str(found.line)),
                    accept=options.accept,
                    with_feedback=options.feedback,
                    waits_for=waits_for(found.environment, silent, seconds=UNSERVED_SECONDS),
                )
            )
        return answers

    # Sessions

    async def open_session(
        self, program: str, environment: str | None, item: Mapping[str, Any], key: Key
    ) -> tuple[Kept, tuple[State, ...]]:
        """Open a session on a program; return it with its roots.

        Raises `UnknownEnvironment`, `OverLimit`, `QueueFull` and `NotOpened`.
        """
        name = await self._environment(environment)
        front = self._connections.sessions
        return await self._step(key, lambda: front.open(program, name, owner=key.id, item=item))

    async def _environment(self, environment: str | None) -> str:
        """Return an environment's name, or that of the usual one. Raises `UnknownEnvironment`."""
        await self.look()
        name = environment or self._connections.settings.environment
        if name not in {each.name for each in self._environments}:
            there = ", ".join(sorted(each.name for each in self._environments)) or "none yet"
            raise UnknownEnvironment(f"no environment is called {printable(name)!r}; there are: {there}")
        return name

    async def step(
        self,
        session: str,
        attempts: Sequence[tuple[str, Sequence[str]]],
        key: Key,
        options: StepOptions,
    ) -> list[list[Step]]:
        """Try tactics on states. Raises `UnknownRun`, `OverLimit`, `QueueFull` and `UsageError`."""
        front = self._connections.sessions
        return await self._step(key, lambda: front.step(front.session(session, key.id), attempts, options))

    async def step_by_list(
        self, session: str, attempts: Sequence[tuple[str, Sequence[str]]], key: Key, options: StepOptions
    ) -> AsyncGenerator[tuple[int, list[Step]]]:
        """Do as `step` does, but yield the number and the outcomes of each list as soon as it ends."""
        front = self._connections.sessions
        async with self._usage.step(key, self._do):
            kept = await self._in_session(lambda: front.session(session, key.id))
            found = front.step_by_list(kept, attempts, options)
            while (each := await self._in_session(lambda: next(found, None))) is not None:
                yield each

    async def session_state(self, session: str, state: str, key: Key) -> State:
        """Return a state of a session. Raises `UnknownRun`."""
        front = self._connections.sessions
        return await self._in_session(lambda: front.state(front.session(session, key.id), state))

    async def session_item(self, session: str, states: Sequence[str], key: Key) -> tuple[str, dict[str, Any]]:
        """Return a session's environment, and the item whose check proves states of it.

        Raises `UnknownRun` and `UsageError`.
        """
        front = self._connections.sessions

        def found() -> tuple[str, dict[str, Any]]:
            kept = front.session(session, key.id)
            return kept.environment, item_of_states(front.source(kept), front.states(kept, states))

        return await self._in_session(found)

    async def end_session(self, session: str, key: Key) -> None:
        """End a session. Raises `UnknownRun`."""
        front = self._connections.sessions
        await self._in_session(lambda: front.end(front.session(session, key.id)))

    async def _step(self, key: Key, step: Callable[[], _T]) -> _T:
        """Do a step of a session, which counts as one proof of the key while it runs."""
        async with self._usage.step(key, self._do):
            return await self._in_session(step)

    async def _in_session(self, step: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._stepping, step)

    async def declarations(
        self, contains: str, environment: str | None, key: Key, *, most: int
    ) -> Declarations:
        """Return declarations by parts of their names. Raises `UnknownEnvironment`, `OverLimit`, `QueueFull`.

        A search counts as one proof of the key while it runs.
        """
        name = await self._environment(environment)
        found = next(each for each in self._environments if each.name == name)
        if found.kind != Kind.LEAN or found.silent_seconds > UNSERVED_SECONDS:
            why = f"is one of {found.kind}" if found.kind != Kind.LEAN else "is served by no worker now"
            raise UsageError(f"the environment {name} {why}; its declarations cannot be searched")
        url = self._connections.urls[1]
        return await self._step(key, lambda: declarations.find(url, name, contains, most=most))

    async def leave(self, batch_id: str) -> None:
        """Cancel a batch whose client disconnected, unless a client asks for it within a minute."""
        await self._do(lambda: self._connections.store.leave(batch_id, seconds=LEFT_SECONDS))

    async def cancel(self, batch_id: str, owner: str, cancellation: requests.Cancellation) -> int:
        """Cancel items of a batch and return how many were unfinished; raises `UnknownRun`."""
        items = await self.items_of(batch_id, owner)
        if cancellation.items is not None:
            known = {item_id(item): item for item in items}
            if odd := [each for each in cancellation.items if each not in known]:
                raise UnknownRun(f"batch {batch_id} has no item {printable(odd[0])!r}")
            items = [known[each] for each in cancellation.items]
        whole = batch_id if cancellation.items is None else None
        return await self._do(lambda: self._cancel(items, cancellation.groups, whole))

    def _cancel(self, items: Sequence[Item], groups: Sequence[str] | None, whole: str | None) -> int:
        """Cancel items of batches, by id or by group; `whole` is cancelled as a batch."""
        lines: dict[str, list[int]] = defaultdict(list)
        for batch, line in items:
            lines[batch].append(line)
        store = self._connections.store
        return sum(
            cancel(store, batch, lines=None if batch == whole else some, groups=groups)
            for batch, some in lines.items()
        )
