"""The broker step, underneath: connects to Redis with redis-py at the URL that Celery takes."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import redis
from redis.backoff import NoBackoff
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


def client_of(broker_url: str, *, answer_seconds: float) -> redis.Redis:
    """Return a client of the broker at Celery's URL, which connects at its first use."""
    return redis.Redis.from_url(
        redis_url(broker_url), socket_timeout=answer_seconds, retry=Retry(NoBackoff(), 0)
    )
