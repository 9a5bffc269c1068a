"""The completion step: workers publish the ids of ended checks over Redis, and waiting processes listen.

A message is a hint, and PostgreSQL has the truth: workers publish after the commit, messages get lost, and
any client of Redis can publish false ones. So a listener queries PostgreSQL when it gets an id, and once in a
while without one.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import redis
from redis.exceptions import RedisError

from farm.log import logger
from farm.redis_client import client_of

#: A listener that lost Redis reconnects after this many seconds.
RETRY_SECONDS = 1.0

# A Redis that has not answered after this time counts as down.
_SOCKET_SECONDS = 5.0
# A silent listener pings Redis, and looks whether it must stop, this often.
_LOOK_SECONDS = 1.0
# A publisher that stops publishes the rest for at most this many seconds.
_STOP_SECONDS = 1.0
# While Redis hangs, at most this many check ids are kept for publication; listeners find the others by
# polling.
_MOST_UNPUBLISHED = 4096

_IDS = re.compile(rb"[0-9]{1,18}(?:,[0-9]{1,18})*")

_log = logger(__name__)

Heard = Callable[[frozenset[int]], None]


def channel(client: redis.Redis) -> str:
    """Return the channel of the farm whose database of Redis this is; channels are common to all of them."""
    return f"farm:completed:{client.get_connection_kwargs().get('db', 0)}"


def _client(broker_url: str) -> redis.Redis:
    return client_of(broker_url, answer_seconds=_SOCKET_SECONDS)


class Publisher(threading.Thread):
    """Publishes the ids of ended checks, from a thread of its own; a context manager.

    `publish` never blocks and never raises: an unpublished id is not lost, because listeners poll.
    """

    def __init__(self, broker_url: str) -> None:
        super().__init__(name="publisher", daemon=True)
        self._broker_url = broker_url
        self._changed = threading.Condition()
        self._unpublished: list[int] = []
        self._stopping = False

    def __enter__(self) -> Publisher:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def publish(self, check_ids: Collection[int]) -> None:
        """Have it published soon that these checks have ended; usually in one message for each call."""
        with self._changed:
            if len(self._unpublished) < _MOST_UNPUBLISHED:
                self._unpublished += check_ids
            self._changed.notify_all()

    def stop(self) -> None:
        """Publish the remaining ids and end, without waiting for a Redis that hangs."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self.join(_STOP_SECONDS)

    def run(self) -> None:
        """Publish until stopped."""
        with _client(self._broker_url) as client:
            to = channel(client)
            while check_ids := self._next():
                try:
                    client.publish(to, ",".join(map(str, check_ids)))
                except (RedisError, OSError) as error:
                    # The worker logs by itself that Redis is away: it listens for calls there.
                    _log.debug("%d completions could not be published: %s", len(check_ids), error)

    def _next(self) -> list[int]:
        """Wait for ids and return them; nothing when the publisher stops and all are published."""
        with self._changed:
            self._changed.wait_for(lambda: self._unpublished or self._stopping)
            check_ids, self._unpublished = self._unpublished, []
            return check_ids


class Listener(threading.Thread):
    """Calls `heard` in a thread of its own with the ids of checks that have ended; a context manager.

    It calls `heard` with no ids when it has begun to listen, for the first time or again: earlier messages
    were missed. `heard` must return soon and raise nothing.
    """

    def __init__(self, broker_url: str, heard: Heard) -> None:
        super().__init__(name="listener", daemon=True)
        self._broker_url, self._heard = broker_url, heard
        self._stopping = threading.Event()
        self._is_listening = False
        self._logged = ""

    def __enter__(self) -> Listener:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def is_listening(self) -> bool:
        """Whether Redis answered a moment ago; while it does not, `heard` is not called."""
        return self._is_listening

    def stop(self) -> None:
        """Have the thread end within a second, without waiting for it; `heard` is called no more."""
        self._stopping.set()

    def run(self) -> None:
        """Listen until stopped."""
        while not self._stopping.is_set():
            try:
                with _client(self._broker_url) as client, client.pubsub() as pubsub:
                    pubsub.subscribe(channel(client))
                    self._listen(pubsub)
            except (RedisError, OSError) as error:
                _log.debug("Completions cannot be heard, and are looked for: %s", error)
            except Exception as error:  # noqa: BLE001 # the thread's edge: else nothing would be heard again
                self._log_once(error)
            self._is_listening = False
            self._stopping.wait(RETRY_SECONDS)

    def _log_once(self, error: Exception) -> None:
        """Log an error with its traceback, unless it repeats the last one: it may come every second."""
        if repr(error) != self._logged:
            _log.error("Completions cannot be heard, and are looked for: %r", error, exc_info=error)
        self._logged = repr(error)

    def _listen(self, pubsub: Any) -> None:
        answered_at = time.monotonic()
        while not self._stopping.is_set():
            message = pubsub.get_message(timeout=_LOOK_SECONDS)
            if message is not None:
                answered_at = time.monotonic()
                self._take(message)
            elif time.monotonic() - answered_at > _SOCKET_SECONDS:
                raise TimeoutError(f"Redis did not answer for {_SOCKET_SECONDS:g} s")
            else:
                pubsub.ping()

    def _take(self, message: Mapping[str, object]) -> None:
        check_ids = _check_ids(message)
        is_new = message["type"] == "subscribe"
        self._is_listening |= is_new
        if (check_ids or is_new) and not self._stopping.is_set():
            self._heard(check_ids)


def _check_ids(message: Mapping[str, object]) -> frozenset[int]:
    """Return the ids that a message is about, none for a message that no publisher sent."""
    data = message["data"]
    if message["type"] != "message" or not isinstance(data, bytes) or not _IDS.fullmatch(data):
        return frozenset()
    return frozenset(map(int, data.split(b",")))


class Subscription:
    """The messages received on behalf of one waiting caller."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._ended: set[int] = set()
        self._missed = False

    def heard(self, check_ids: frozenset[int]) -> None:
        """Note that these checks have ended; no ids: that any may have."""
        with self._changed:
            self._ended |= check_ids
            self._missed |= not check_ids
            self._changed.notify_all()

    def forget(self) -> None:
        """Forget the messages, before a query of PostgreSQL."""
        with self._changed:
            self._ended.clear()
            self._missed = False

    def wait(self, check_ids: frozenset[int] | None, seconds: float) -> None:
        """Wait, at most `seconds`, until all of these may have ended; for None, wait the whole time."""
        with self._changed:
            self._changed.wait_for(lambda: check_ids is not None and self._may_have_ended(check_ids), seconds)

    def _may_have_ended(self, check_ids: frozenset[int]) -> bool:
        return self._missed or check_ids <= self._ended


class Completions:
    """One listener for all threads of a process that wait for checks; it listens from the first one on."""

    def __init__(self, broker_url: str) -> None:
        self._listener = Listener(broker_url, self._heard)
        self._lock = threading.Lock()
        self._followings: list[Subscription] = []
        self._has_begun = False

    @contextmanager
    def following(self) -> Iterator[Subscription]:
        """Give an object that notes all checks that end inside the block."""
        following = Subscription()
        with self._lock:
            self._followings.append(following)
            if not self._has_begun:
                self._listener.start()
            self._has_begun = True
        try:
            yield following
        finally:
            with self._lock:
                self._followings.remove(following)

    def close(self) -> None:
        """Stop listening."""
        self._listener.stop()

    def _heard(self, check_ids: frozenset[int]) -> None:
        with self._lock:
            for following in self._followings:
                following.heard(check_ids)
