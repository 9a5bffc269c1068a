"""A worker's consumer of calls, on a real Redis: it hears those of environments served at any time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import redis
from celery import Celery, _state, bootsteps
from celery.worker import WorkController, state
from celery.worker.consumer.tasks import Tasks
from farm_workers.loop.bell import Bell

from farm import broker
from tests.processes import PATIENCE, eventually


class ServedWhileItConnects(bootsteps.StartStopStep):  # type: ignore[misc] # Celery ships no types
    """Serves an environment after the consumer has read what it is to hear, and before it does."""

    requires = (Tasks,)

    def start(self, consumer: object) -> None:
        consumer.app.amqp.queues.select_add(broker.queue("late"))  # type: ignore[attr-defined]


@contextmanager
def hearing(app: Celery) -> Iterator[None]:
    """Have a worker hear calls inside the block."""
    listener = Bell(app).hung()
    worker = WorkController(
        app=app,
        consumer_cls=listener,
        pool="threads",
        concurrency=1,
        queues=[broker.queue("")],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    thread = threading.Thread(target=worker.start)
    thread.start()
    try:
        yield
    finally:
        state.should_stop = 0
        thread.join(60 * PATIENCE)
        state.should_stop = None
        assert not thread.is_alive()


def test_an_environment_that_is_served_while_the_connection_is_made_is_heard(
    redis_database: tuple[str, redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Celery registers a task in every later application of this process; this one is for this test alone.
    monkeypatch.setattr(_state, "_on_app_finalizers", set(_state._on_app_finalizers))
    app = broker.application(redis_database[0])
    heard = threading.Event()

    @app.task(name=broker.VERIFY)  # type: ignore[untyped-decorator] # Celery ships no types
    def _verify() -> None:
        heard.set()

    app.steps["consumer"].add(ServedWhileItConnects)
    with hearing(app):
        broker.call(app, ["late"])
        eventually(heard.is_set, seconds=30)
