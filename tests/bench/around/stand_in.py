"""Bench step, the process of a simulated cluster: many workers that are real but for the checker.

``python -m tests.bench.around.stand_in DATABASE_URL BROKER_URL WORKERS AT_ONCE SECONDS`` loads what a
worker loads and forks so many of them, which share that memory. SECONDS is a number, or
``sampled``. Each opens its own connections, prints a line
when it serves, and ends with the process, which ends at SIGTERM.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from typing import cast

from celery.signals import worker_ready
from farm_workers.box import once as box
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment
from farm_workers.loop.context import CONNECTIONS
from farm_workers.loop.process import new_context, serve
from farm_workers.machine.judges import Judges
from farm_workers.systems.lean.judge import LeanJudge

from farm import broker, log
from farm.completions import Publisher
from farm.judging.job import Check
from farm.judging.report import Answer, Execution, Message, Report
from farm.kinds import Kind
from farm.orphans import die_with
from farm.store import postgres
from farm.store.transitions import Store
from tests.bench.around.workers import SIMULATED
from tests.reports import SEALED

_ENVIRONMENT = LeanEnvironment(
    name=SIMULATED,
    digest="0" * 64,
    toolchain="none",
    lean=("/bin/false",),
    lean_path=(),
    header="",
    checkers=(
        KernelChecker(name="none", command=(), visible=()),
    ),  # for runs are submitted to the tier kernel
)
_ERROR = Message(
    severity="error",
    kind="",
    text="Type mismatch\n  h.left\nhas type\n  p\nbut is expected to have type\n  q",
    line=5,
    column=10,
    end_line=5,
    end_column=16,
)
#: What ends these processes; the first one waits for it.
_ENDING = (signal.SIGTERM, signal.SIGINT)
#: Seconds between two looks whether a check is still wanted.
_PATIENCE_SECONDS = 0.5


#: Of a check's time limit this share is how long a sampled check takes on average.
SHARE_OF_LIMIT = 0.1
#: How much sampled times differ: two of three are between 0.5 and 1.5 times the average (log-normal).
_SIGMA = 0.5


class StandIn:
    """Stands in the place of a `Checker`, and every other check fails.

    Every check takes as many `seconds`, or with None a time that is sampled around a share of its time limit.
    """

    way, isolation = "forked", "none"

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._random = random.Random(os.getpid())
        self._numbers = count()

    def check(
        self, check: Check, _environment: LeanEnvironment, *, cancelled: Callable[[], bool] = box.never
    ) -> Report:
        """Wait, and report what Lean would, whatever the program is."""
        seconds = self._sampled(check) if self._seconds is None else self._seconds
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and not cancelled():
            time.sleep(min(left, _PATIENCE_SECONDS) if seconds > 1 else left)
        return _report(seconds, fails=next(self._numbers) % 2 == 1)

    def _sampled(self, check: Check) -> float:
        factor = self._random.lognormvariate(-(_SIGMA**2) / 2, _SIGMA)
        return check.limits.wall_seconds * SHARE_OF_LIMIT * factor


def _report(seconds: float, *, fails: bool) -> Report:
    run = Execution(
        exit_status=int(fails),
        wall_seconds=seconds,
        cpu_seconds=seconds,
        peak_memory_kib=40_000,
        output_bytes=200,
    )
    answer = Answer(messages=(_ERROR,) * fails, reached_end=True)
    return Report(run=run, answer=answer, way="forked", audit=SEALED)


def _be_worker(number: int, database_url: str, broker_url: str, at_once: int, seconds: float | None) -> None:
    engine = postgres.connect(database_url, application="farm-worker", connections=CONNECTIONS, works=True)
    worker_ready.connect(_say_ready)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    with Publisher(broker_url) as publisher:
        context = new_context(
            Store(engine),
            {SIMULATED: _ENVIRONMENT},
            _judges(cast("Checker", StandIn(seconds))),
            name=f"stand-in:{number}",
            lease_seconds=20.0,
            concurrency=at_once,
            completed=publisher.publish,
        )
        serve(context, broker.application(broker_url), grace_seconds=1.0)


def _judges(checker: Checker) -> Judges:
    return Judges({Kind.LEAN: lambda: LeanJudge(checker)}, way=checker.way, isolation=checker.isolation)


def _say_ready(**_sent: object) -> None:
    os.write(1, b"serves\n")


def main(database_url: str, broker_url: str, workers: int, at_once: int, seconds: float | None) -> None:
    """Fork the workers, and end them when told to."""
    log.configure("warning")
    parent = os.getpid()
    pids = []
    for number in range(workers):
        if (pid := os.fork()) == 0:
            die_with(parent, signal.SIGTERM)
            _be_worker(number, database_url, broker_url, at_once, seconds)
            os._exit(0)
        pids.append(pid)
    signal.sigwait(_ENDING)
    for pid in pids:
        os.kill(pid, signal.SIGTERM)
    for pid in pids:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    asked = None if sys.argv[5] == "sampled" else float(sys.argv[5])
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), asked)
