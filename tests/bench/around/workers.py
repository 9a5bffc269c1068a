"""Bench step, workers under measure: `farm worker` itself, and processes with a stand-in in Lean's place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from farm_workers.box.launch import descendants
from farm_workers.machine.opening import ANY

from farm.errors import FarmError
from tests.bench.around.site import FarmAtWork
from tests.bench.checks.processes import cpu_seconds, own_cpu_seconds

#: The environment that stand-ins serve.
SIMULATED = "simulated"

#: What a worker may be told to do otherwise by whoever runs the bench; servers of his are not to be touched.
_SERVERS = ("FARM_DATABASE_URL", "FARM_DATABASE_URL_FILE", "FARM_BROKER_URL", "FARM_BROKER_URL_FILE")
_START_SECONDS = 300.0
_STOP_SECONDS = 30.0
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Workers:
    """A process that serves a farm: a worker, with Lean and its boxes below it, or one that `forked` many.

    All of them together check so many `at_once`.
    """

    process: subprocess.Popen[bytes]
    at_once: int
    forked: bool

    def cpu_seconds(self) -> float:
        """Return the processor time of the workers' own processes; Lean and its boxes do not count."""
        pid = self.process.pid
        return cpu_seconds([pid, *descendants(pid)]) if self.forked else own_cpu_seconds(pid)


@contextmanager
def farm_worker(
    farm: FarmAtWork, environment: str, at_once: int, more: Mapping[str, str]
) -> Iterator[Workers]:
    """Run `farm worker` with so many checks at once; it serves the environment inside the block.

    `more` are variables for it. Raises FarmError when it does not serve in time.
    """
    words = ["farm", "worker", "--concurrency", str(at_once)]
    least = os.environ.get("FARM_ISOLATION") or ANY
    with running(farm, words, {"FARM_ISOLATION": least, **more}) as process:
        _wait_until_served(farm, process, environment)
        yield Workers(process=process, at_once=at_once, forked=False)


@contextmanager
def stand_ins(
    farm: FarmAtWork, workers: int, *, at_once: int, check_seconds: float | None
) -> Iterator[Workers]:
    """Run so many workers, each with so many checks at once that take `check_seconds` and no Lean.

    With None each check takes a time that is sampled around a share of its limit.

    Inside the block all of them serve `SIMULATED`. Raises FarmError when they do not in time.
    """
    words = ["tests.bench.around.stand_in", farm.database_url, farm.broker_url]
    words += [str(workers), str(at_once), "sampled" if check_seconds is None else str(check_seconds)]
    with running(farm, words, {}) as process:
        assert process.stdout is not None
        for _ in range(workers):
            if not process.stdout.readline():
                raise FarmError("a worker of the simulated cluster exited before it served")
        yield Workers(process=process, at_once=workers * at_once, forked=True)


@contextmanager
def running(
    farm: FarmAtWork, words: Sequence[str], more: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program over a farm, and end it with the block; `words` are its module and arguments."""
    kept = {name: value for name, value in os.environ.items() if name not in _SERVERS}
    # A session of its own: an interrupt from the terminal reaches only the bench, which ends it in order.
    with subprocess.Popen(
        [sys.executable, "-P", "-m", *words],
        env=kept | dict(farm.settings) | dict(more) | {"FARM_GRACE_SECONDS": "1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
            process.kill()


def _wait_until_served(farm: FarmAtWork, process: subprocess.Popen[bytes], environment: str) -> None:
    for _ in range(round(_START_SECONDS / _LOOK_SECONDS)):
        if environment in (each.name for each in farm.queries.served()):
            return
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_SECONDS)
            break
    raise FarmError(f"the bench's worker does not serve {environment}; its output is above")


def environments_file(home: Path, named: Path | None) -> dict[str, str]:
    """Return the variable that shows a worker with another home the environments of this one."""
    file = named or home / "farm.toml"
    return {"FARM_ENVIRONMENTS": str(file)} if file.exists() else {}
