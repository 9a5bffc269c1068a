"""The call step: Celery's messages over Redis wake workers that have nothing to do.

One queue per environment. Which checks wait, and whose turn it is, only PostgreSQL knows: a call says that
there is something. So Redis may be wiped at any moment, and nothing that matters is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from celery import Celery
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from farm.errors import ServerDown

#: The one task, by name: the farm sends it, `farm_workers.loop.verify` carries it out.
VERIFY = "farm.verify"

# After so long Celery gives a message that was not acknowledged to another worker: a call too many.
_VISIBILITY_SECONDS = 6 * 3600
# A Redis that takes so long to answer is taken for one that is down.
_SOCKET_SECONDS = 5.0


def queue(environment: str) -> str:
    """Return the name of an environment's queue."""
    return f"farm.{environment}"


def application(url: str) -> Celery:
    """Return the Celery application; nothing is connected yet.

    A call is acknowledged when the thread it woke finds nothing more to do. A worker takes no more calls than
    it has threads: what a busy one would sit on wakes an idle one.
    """
    app = Celery("farm", broker=url, set_as_current=False)
    app.conf.update(
        task_acks_late=True,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,  # nobody asks for it, and whoever reaches Redis could end workers
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
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


def call(app: Celery, environments: Iterable[str]) -> None:
    """Call a worker to each of these environments, for checks that are committed; raises `ServerDown`.

    A call wakes one idle thread of one worker, which calls the next when it finds work. A call too many finds
    nothing to do; one that is lost is made again by whichever worker is idle.
    """
    with reaching(app), app.producer_pool.acquire() as producer:
        for name in environments:
            app.send_task(VERIFY, queue=queue(name), producer=producer, retry=False)
