"""The broker step, underneath: connects to Redis with redis-py at the URL that Celery takes."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from urllib.parse import SplitResult, parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.retry import Retry

# Celery takes Python's words for how to verify a certificate, redis-py only its own.
_VERIFY = re.compile(r"(?<=[?&]ssl_cert_reqs=)CERT_(\w+)")


def redis_url(broker_url: str) -> str:
    """Return Celery's URL of a broker as redis-py reads it."""
    if not broker_url.startswith("redis+socket://"):
        return _VERIFY.sub(lambda found: found[1].lower(), broker_url)
    parts = urlsplit(broker_url)
    database = parse_qs(parts.query).get("virtual_host", ["0"])[0]
    userinfo, at, _ = parts.netloc.rpartition("@")
    return f"unix://{userinfo}{at}{parts.path}?db={database}"


#: A server that turns a connection away says so at once.
_GREETING_SECONDS = 0.5


def turned_away(broker_url: str) -> str:
    """Return why a Redis closes a connection before its first command, "" if it does not.

    A client that writes to such a connection gets an error of the system and never reads the server's words.
    """
    parts = urlsplit(redis_url(broker_url))
    try:
        with _connected(parts) as connection:
            said = connection.recv(200)
    except (OSError, ValueError):
        return ""
    return said.decode(errors="replace").strip().removeprefix("-").removeprefix("ERR ")


def _connected(parts: SplitResult) -> socket.socket:
    """Return a connection. Raises OSError, and ValueError for one that would be encrypted."""
    if parts.scheme == "unix":
        with ExitStack() as on_failure:
            connection = on_failure.enter_context(socket.socket(socket.AF_UNIX))
            connection.settimeout(_GREETING_SECONDS)
            connection.connect(parts.path)
            on_failure.pop_all()
        return connection
    if parts.scheme != "redis":
        raise ValueError(parts.scheme)
    return socket.create_connection((parts.hostname or "localhost", parts.port or 6379), _GREETING_SECONDS)


def client_of(broker_url: str, *, answer_seconds: float) -> redis.Redis:
    """Return a client of the broker at Celery's URL, which connects at its first use."""
    return redis.Redis.from_url(
        redis_url(broker_url), socket_timeout=answer_seconds, retry=Retry(NoBackoff(), 0)
    )


@contextmanager
def expiring(client: redis.Redis, seconds: int, *keys: str) -> Iterator[Pipeline]:
    """Run the commands of the block, and have their keys expire, in one transaction.

    A client that sends the expiry by itself may die before, and leave a key that nobody deletes.
    """
    with client.pipeline(transaction=True) as pipeline:
        yield pipeline
        for key in keys:
            pipeline.expire(key, seconds)
        pipeline.execute()
