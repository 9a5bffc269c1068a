"""The worker's process: runs Celery, whose calls wake the threads, and ends them in order."""

from __future__ import annotations

import logging
import os
import signal
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import setup_logging
from celery.worker import state

from farm.broker import VERIFY, queue
from farm.errors import FarmError, ServerDown
from farm.log import line, logger
from farm.store.attempt import Released
from farm.store.environments import Pending
from farm.store.transitions import Store
from farm.version import farm_version
from farm_workers.environments.environment import Environment
from farm_workers.loop.backoff import retrying_at_start
from farm_workers.loop.bell import Bell
from farm_workers.loop.claim import Claims
from farm_workers.loop.context import Context, Threads, kinds, tiers
from farm_workers.loop.health import EnvironmentHealth
from farm_workers.loop.heartbeat import Heartbeat
from farm_workers.loop.leases import Leases
from farm_workers.loop.pending_reports import PendingReports
from farm_workers.loop.record import Completed, Recorder, nobody
from farm_workers.loop.starting import Starting
from farm_workers.loop.verify import work
from farm_workers.machine.judges import Judges
from farm_workers.metrics import events
from farm_workers.metrics.state import WorkerState

_ENDING = "Ending: running checks are finished first; once more, and they are given back"

_log = logger(__name__)


def new_context(
    store: Store,
    environments: Mapping[str, Environment],
    judges: Judges,
    *,
    name: str,
    lease_seconds: float,
    concurrency: int,
    completed: Completed = nobody,
    pending: Callable[[], Sequence[Pending]] = tuple,
) -> Context:
    """Return a complete context; its recorder runs already, and calls `completed`."""
    leases, calling, health = Leases(), threading.Event(), EnvironmentHealth(judges.trial)
    recorder = Recorder(store, leases, waiting=calling.set, completed=completed)
    recorder.start()
    return Context(
        store=store,
        environments=dict(environments),
        judges=judges,
        pending=lambda: [*pending(), *health.unfit()],
        name=name,
        lease_seconds=lease_seconds,
        threads=Threads(concurrency),
        leases=leases,
        claims=Claims(
            store,
            leases,
            worker=name,
            environments=tiers(environments),
            kinds=kinds(environments),
            lease_seconds=lease_seconds,
            is_fit=health.is_fit,
        ),
        recorder=recorder,
        health=health,
        pending_reports=PendingReports(lambda: leases.is_recalled),
        calling=calling,
    )


def serve(context: Context, app: Celery, *, grace_seconds: float, starting: Starting | None = None) -> None:
    """Serve until a signal ends the process; add each environment that `starting` finds fit.

    The first signal lets running checks end, for `grace_seconds` at most; after that, or at a second signal,
    they are given back. The pool consists of threads: a check spends its time in its own process, so a
    waiting thread costs least, and all share one pool of database connections. Raises SettingsError when
    `starting` finds no usable table, and FarmError when Celery ends without a signal.
    """
    # Celery warns of root because pickled messages could run anything; this app accepts JSON only, and a
    # container runs as root.
    warnings.filterwarnings("ignore", category=SecurityWarning)

    @app.task(name=VERIFY)  # type: ignore[untyped-decorator] # Celery ships no types
    def _verify() -> None:
        work(context)

    ending = Shutdown(context, grace_seconds)
    setup_logging.connect(_leave_logs_alone)
    bell = Bell(app, connecting=ending.install)
    heartbeat = Heartbeat(context, app, work, bell)
    events.started(tiers(context.environments))
    events.watch(lambda: _state(context, bell, heartbeat))
    # Before the first heartbeat names them as starting: a line that waits for one refers to it.
    retrying_at_start(partial(_declare, context))
    heartbeat.start()
    try:
        worker = _celery_worker(app, context, bell)
        if starting is None:
            _tell_served(context)
        else:
            _start_environments(context, starting, worker, heartbeat)
        worker.start()
        if not context.threads.stopping:
            raise FarmError(
                "Celery ended without a signal for a reason that is logged above; restart the worker"
            )
    finally:
        if starting is not None:
            starting.stop()
        context.threads.stopping = True
        context.threads.wait()
        context.pending_reports.drain()
        for claim in context.claims.unbegun(all_of_them=True):
            context.recorder.put(Released.unharmed(claim, "the worker is stopping"))
        context.recorder.stop()
        heartbeat.stop()


def _declare(context: Context) -> None:
    """Declare the environments that this worker is about to examine."""
    for each in context.pending():
        context.store.declare(each.name, kind=each.kind)


def _start_environments(context: Context, starting: Starting, worker: Any, heartbeat: Heartbeat) -> None:
    """Begin to examine environments; each is served once it is fit."""

    def found(environment: Environment) -> None:
        events.started({environment.name: environment.tiers})
        with suppress(ServerDown):  # else it is known once it is served
            context.store.declare(
                environment.name,
                kind=environment.kind,
                toolchain=environment.toolchain,
                tiers=environment.tiers,
            )

    def serve_it(environment: Environment) -> None:
        context.judges.prewarm(environment)
        context.serve(environment)
        _listen(worker, environment.name)

    def changed(served: Environment | None) -> None:
        with suppress(ServerDown):  # the next beat does it
            heartbeat.heartbeat()
        if served is not None:
            _tell_served(context)
            context.calling.set()

    starting.start(found=found, serve=serve_it, changed=changed)
    starting.wait_for_one()


def _listen(worker: Any, environment: str) -> None:
    """Have a running or starting Celery worker take calls for one more environment."""
    worker.app.amqp.queues.select_add(queue(environment))  # for every connection from now on
    consumer = worker.consumer
    if consumer.task_consumer is not None:
        consumer.call_soon(consumer.add_task_queue, queue(environment))


def _tell_served(context: Context) -> None:
    _log.info(
        "Serving environments=%s way=%s concurrency=%d worker=%s",
        ",".join(context.environments),
        context.judges.way,
        context.threads.size,
        context.name,
    )


def _state(context: Context, bell: Bell, heartbeat: Heartbeat) -> WorkerState:
    return WorkerState(
        version=farm_version(),
        worker=context.name,
        isolation=context.judges.isolation,
        way=context.judges.way,
        slots=context.threads.size,
        busy=context.threads.at_work,
        leases=len(context.leases),
        is_healthy=context.is_well,
        is_broker_up=not bell.is_lost,
        is_database_up=heartbeat.is_database_up,
        images=context.judges.images(),
        serving=tuple(context.fit),
        pending=context.pending(),
    )


def _leave_logs_alone(**_sent: object) -> None:
    """Keep the worker's log level: without a receiver of this signal, Celery sets its own for all loggers."""


def _celery_worker(app: Celery, context: Context, bell: Bell) -> Any:
    return app.Worker(
        consumer_cls=bell.hung(),
        pool="threads",
        concurrency=context.threads.size,
        # Without a queue Celery would listen to one of its own.
        queues=[queue(name) for name in context.environments] or [queue("")],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    )


class Shutdown:
    """How a worker ends: no check is taken any more, and those that run end, or are given back."""

    def __init__(self, context: Context, grace_seconds: float) -> None:
        self._context, self._grace_seconds = context, grace_seconds

    def install(self) -> None:
        """Replace Celery's own signal handlers, which it has installed before it connects to Redis."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, _number: int, _frame: object) -> None:
        if self._context.threads.stopping:
            self._context.leases.recall()
            return
        # Not logged: a signal may come while the log is being written to.
        os.write(2, line(__name__, logging.INFO, _ENDING))
        self._context.threads.stopping = True
        limit = threading.Timer(self._grace_seconds, self._context.leases.recall)
        limit.daemon = True
        limit.start()
        state.should_stop = os.EX_OK
