"""The queue step: check ids to Celery's queues over Redis, sent only after they are committed.

One queue per environment, one id per message. Redis is a doorbell and may be wiped at any moment: no result,
no lease and no count is kept there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from farm.errors import ServerDown
from farm.store import Store

#: The one task, by name: the farm sends it, `workers.tasks` carries it out.
VERIFY = "farm.verify"

#: Ids taken from the store and sent at once.
BATCH = 1000

# Celery gives a message to a second worker when the first has not acknowledged it for so long. Leases in the
# store decide who may work, so this only has to be longer than any check.
_VISIBILITY_SECONDS = 6 * 3600


def queue(environment: str) -> str:
    """Return the name of an environment's queue."""
    return f"farm.{environment}"


def application(url: str) -> Celery:
    """Return the Celery application; nothing is connected yet.

    A task is acknowledged after it ended, and a worker holds no more messages than it has checks running, so
    that no proof waits behind a busy worker while another idles.
    """
    app = Celery("farm", broker=url, set_as_current=False)
    app.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_SECONDS,
            "global_keyprefix": "farm:",
            "socket_connect_timeout": 5,
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
        where = app.connection().as_uri()
        raise ServerDown(
            f"Redis does not answer at {where}: {error}; "
            "start it (Debian: sudo systemctl start redis-server) or correct FARM_BROKER_URL, and try again"
        ) from error


def require_broker(app: Celery) -> str:
    """Return where Redis answers, without its password; raises `ServerDown` when it does not answer now."""
    with reaching(app), app.connection() as connection:
        connection.ensure_connection(max_retries=1, timeout=5)
        return str(connection.as_uri())


def publish(app: Celery, store: Store, *, run_id: str | None = None, seconds: float = math.inf) -> None:
    """Send the committed and unsent checks, of one run or of all, for about so many seconds at most.

    Raises `ServerDown`; what was not sent then stays in the store and is sent by the next call, from whoever.
    """
    end = time.monotonic() + seconds
    while _publish_batch(app, store, run_id) and time.monotonic() < end:
        pass


def _publish_batch(app: Celery, store: Store, run_id: str | None) -> int:
    with store.outbox(run_id=run_id, most=BATCH) as rows:
        if rows:
            _send(app, rows)
        return len(rows)


def _send(app: Celery, rows: list[tuple[int, str]]) -> None:
    with reaching(app), app.producer_pool.acquire() as producer, producer.batch(BATCH):
        for check_id, environment in rows:
            app.send_task(VERIFY, args=[check_id], queue=queue(environment), producer=producer)


def resend_when_empty(app: Celery, store: Store, environments: list[str], *, seconds: float) -> None:
    """Queue again what was sent so long ago and never taken, where the environment's queue is empty.

    An empty queue beside waiting checks means that Redis lost them. A check on its way to a worker at this
    moment may be sent twice; the second message finds nothing to claim.
    """
    with reaching(app), app.connection() as connection:
        connection.ensure_connection(max_retries=1, timeout=5)
        channel = connection.default_channel
        empty = [name for name in environments if channel._size(queue(name)) == 0]
    store.unpublish(empty, older_than_seconds=seconds)
