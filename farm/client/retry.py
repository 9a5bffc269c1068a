"""Decides for both clients whether a failed request is retried, and after which pause."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

#: Statuses that are retried: 408, 429 and 503 of a farm that accepted nothing, 502 and 504 of a proxy that
#: lost the farm for a moment. Keys make the repetition safe. All other answers are final.
LATER = frozenset({408, 429, 502, 503, 504})
_FIRST_SECONDS, _LONGEST_SECONDS = 0.25, 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpReply:
    """The service's answer to a request."""

    status: int
    body: bytes
    retry_after: str | None = None
    location: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lost:
    """A request without an answer; `reached`: a server has answered at the address before."""

    why: str
    reached: bool


def pause_after(answer: HttpReply | Lost, attempt: int) -> float | None:
    """Return the seconds to wait before the next attempt, None if the answer is final.

    Full jitter keeps clients that failed together from retrying together:
    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    if isinstance(answer, HttpReply) and answer.status not in LATER:
        return None
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2 ** min(attempt, 16))
    jitter = random.uniform(0, longest)  # noqa: S311 - spreads load, hides nothing
    return (_seconds(answer.retry_after) if isinstance(answer, HttpReply) else 0.0) + jitter


def _seconds(retry_after: str | None) -> float:
    """Return the seconds of a `Retry-After` header, which may be a date (RFC 9110, 10.2.3)."""
    if retry_after is None:
        return 0.0
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return 0.0
    return max(0.0, seconds) if seconds < float("inf") else 0.0
