"""Declarations step: asks a worker, over Redis, for declarations of an environment by parts of their names.

The names are read from the compiled modules, which only a worker has; no Lean runs.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any, TypedDict, cast

from redis.exceptions import RedisError

from farm.client.results import Declarations
from farm.documents import decoded
from farm.errors import QueueFull, ServerDown, UsageError
from farm.redis_client import client_of, expiring

#: The most declarations of an answer.
MOST = 100
#: A worker must answer within this time; the first answer about a large library may take longer.
ANSWER_SECONDS = 60
_SOCKET_SECONDS = 5.0


class Asked(TypedDict):
    """A request to a worker: all `words` are parts of a name, in any case."""

    answers: str
    environment: str
    words: Sequence[str]
    most: int


def requests_of(environment: str) -> str:
    """Return the list of requests that any worker of an environment may take."""
    return f"farm:declarations:environment:{environment}"


def find(broker_url: str, environment: str, contains: str, *, most: int) -> Declarations:
    """Return the declarations whose names contain all words of a text.

    Raises QueueFull when no worker answers in time, ServerDown when Redis does not answer.
    """
    if not (words := contains.split()) or not all(map(str.isprintable, words)):
        raise UsageError("contains is no part of a name; give one or more words, such as: and comm")
    answers = f"farm:declarations:answers:{secrets.token_hex(12)}"
    asked: Asked = {"answers": answers, "environment": environment, "words": words, "most": most}
    client = client_of(broker_url, answer_seconds=ANSWER_SECONDS + _SOCKET_SECONDS)
    request = json.dumps(asked)
    place = requests_of(environment)
    try:
        with expiring(client, ANSWER_SECONDS, place) as pipeline:
            pipeline.rpush(place, request)
        found = cast("tuple[bytes, bytes] | None", client.blpop([answers], timeout=ANSWER_SECONDS))
        if found is None:
            client.lrem(place, 0, request)
    except (RedisError, OSError) as error:
        raise ServerDown(f"Redis does not answer: {error}") from error
    finally:
        client.close()
    if found is None:
        raise QueueFull(
            f"no worker of the environment {environment} answered within {ANSWER_SECONDS} s; the first "
            "search of a large library takes longer, so ask again in a minute"
        )
    return _answered(json.loads(found[1]))


def _answered(answer: dict[str, Any]) -> Declarations:
    if "refused" in answer:
        raise UsageError(str(answer["refused"]))
    return decoded(Declarations, answer)
