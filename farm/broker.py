"""The call step: wakes idle workers by Celery's messages over Redis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from celery import Celery
from kombu.exceptions import OperationalError
from redis import exceptions
from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    BusyLoadingError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)

from farm import place
from farm.errors import ServerDown
from farm.redis_client import client_of, turned_away

#: The one task, by name: the farm sends it, `farm_workers.loop.verify` carries it out.
VERIFY = "farm.verify"

# Celery redelivers a message that was not acknowledged after this time: a superfluous call.
_VISIBILITY_SECONDS = 6 * 3600
# A Redis that has not answered after this time counts as down.
_SOCKET_SECONDS = 5.0
# The key whose write shows that Redis accepts writes, and its expiry.
_PROBE, _PROBE_MILLISECONDS = "farm:probe", 60_000


def queue(environment: str) -> str:
    """Return the name of an environment's queue."""
    return f"farm.{environment}"


def application(url: str) -> Celery:
    """Return the Celery application; nothing is connected yet.

    A call is acknowledged when the thread it woke finds no more work. A worker takes no more calls than it
    has threads: a call that would wait for a busy worker wakes an idle one.
    """
    app = Celery("farm", broker=url, set_as_current=False)
    app.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,  # unused, and any client of Redis could end workers
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_channel_error_retry=True,  # a Redis that refuses a command is one that is away for a while
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_SECONDS,
            "global_keyprefix": "farm:",
            "socket_connect_timeout": _SOCKET_SECONDS,
            "socket_timeout": _SOCKET_SECONDS,
        },
        task_create_missing_queues=True,
    )
    return app


@contextmanager
def reaching(app: Celery) -> Iterator[None]:
    """Raise `ServerDown` when Redis cannot be reached or goes away inside the block."""
    try:
        yield
    except (OperationalError, RedisError, OSError) as error:
        raise ServerDown(f"Redis {_fault(app, error)}, and try again") from error


# The remedies for errors of a server that answers.
_REMEDIES: dict[type[BaseException], str] = {
    OutOfMemoryError: "its memory is full; raise its maxmemory, or delete other data there",
    ReadOnlyError: "it is a read-only replica; name the primary in FARM_BROKER_URL",
    AuthenticationError: "correct the user and the password in FARM_BROKER_URL",
    AuthenticationWrongNumberOfArgsError: "it knows no users; leave the user out of FARM_BROKER_URL",
    NoPermissionError: "give its user the rights that docs/operate/install.md names",
    BusyLoadingError: "it loads its data; wait until that is done",
    exceptions.ConnectionError: "raise its maxclients, or close other connections",
}

_REMEDIES_BY_CODE = {
    "NOAUTH": _REMEDIES[AuthenticationError],
    "WRONGPASS": _REMEDIES[AuthenticationError],
    "MISCONF": "give its disk room for its snapshots, or turn them off there with: CONFIG SET save ''",
    "NOREPLICAS": "connect its replicas, or lower its min-replicas-to-write",
}
_SEE_ITS_LOG = "correct the fault that its log names"


def _fault(app: Celery, error: BaseException) -> str:
    """Return in words why Redis cannot be used, and the remedy."""
    where = app.connection().as_uri()
    if (words := refusal(app, error)) is not None:
        return f"refuses the farm's commands at {where}: {words}"
    remedy = place.here().start(place.REDIS, urlsplit(where).hostname or "")
    return f"does not answer at {where}: {error}; {remedy} or correct FARM_BROKER_URL"


def refusal(app: Celery, error: BaseException | None) -> str | None:
    """Return the error of a Redis that answers, and the remedy; None for an error of another kind."""
    if (words := _answered(error)) is not None:
        return words
    closed = turned_away(app.conf.broker_url)
    return f"{closed}; {_REMEDIES[exceptions.ConnectionError]}" if closed else None


def code_of(words: str) -> str:
    """Return the code of a refusal, as ``READONLY``, or its first word if it has none."""
    answer = words.partition("caused error: ")[2] if words.startswith("Command ") else words
    return next(iter(answer.removeprefix("ERR ").split()), "")


def _answered(error: BaseException | None) -> str | None:
    """Return the words of an error that Redis answered with, and the remedy."""
    while error is not None:
        code = getattr(error, "status_code", None)
        if code or isinstance(error, ResponseError):
            words = f"{code or ''} {error}".strip().rstrip(".")
            remedy = _REMEDIES.get(type(error)) or _REMEDIES_BY_CODE.get(code_of(words), _SEE_ITS_LOG)
            return f"{words}; {remedy}"
        error = error.__cause__
    return None


def require_broker(app: Celery) -> str:
    """Write a key that expires into Redis, and return the server's address, without its password."""
    with reaching(app), client_of(app.conf.broker_url, answer_seconds=_SOCKET_SECONDS) as client:
        client.set(_PROBE, b"", px=_PROBE_MILLISECONDS)
    return str(app.connection().as_uri())


def call(app: Celery, environments: Iterable[str]) -> None:
    """Call a worker to each of these environments, for checks that are committed; raises `ServerDown`.

    A call wakes one idle thread of one worker, which calls the next when it finds work. A call too many finds
    nothing to do; one that is lost is made again by whichever worker is idle.
    """
    with reaching(app), app.producer_pool.acquire() as producer:
        for name in environments:
            app.send_task(VERIFY, queue=queue(name), producer=producer, retry=False)
