"""The worker's process: Celery takes check ids from the queues of the environments served here."""

from __future__ import annotations

import warnings

from celery import Celery
from celery.platforms import SecurityWarning

from farm.broker import VERIFY, queue
from farm.log import logger
from workers.tasks import Desk, verify
from workers.upkeep import Upkeep

_log = logger(__name__)


def serve(desk: Desk, app: Celery, *, concurrency: int) -> None:
    """Serve until a signal ends the process; running checks are finished first.

    The pool is threads: a check spends its time in its own process, so a thread that waits for it costs
    least, and all share one set of database connections.
    """
    # Celery warns of root because pickled messages could run anything; only JSON is accepted here, and in a
    # container root is who runs.
    warnings.filterwarnings("ignore", category=SecurityWarning)

    @app.task(name=VERIFY)  # type: ignore[untyped-decorator] # Celery ships no types
    def _verify(check_id: int) -> None:
        verify(desk, check_id)

    upkeep = Upkeep(desk, app)
    upkeep.start()
    _log.info(
        "Serving environments=%s way=%s concurrency=%d worker=%s",
        ",".join(desk.environments),
        desk.checker.way,
        concurrency,
        desk.name,
    )
    app.Worker(
        pool="threads",
        concurrency=concurrency,
        queues=[queue(name) for name in desk.environments],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        loglevel="WARNING",
        quiet=True,
    ).start()
    upkeep.stop()
