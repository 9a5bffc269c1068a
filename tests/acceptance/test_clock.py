"""A wall limit counts what a check does, not what its neighbours do; and no check can stop its clock."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation

from farm import limits
from farm.judging.report import Execution
from farm.limits import Limits
from tests.busy import NEIGHBOURS, busy, one_core
from tests.isolation_levels import LEVELS, isolated

_PYTHON = os.path.realpath(sys._base_executable)
_LIMITS = Limits(wall_seconds=0.8, cpu_seconds=60.0, memory_mib=256, processes=32)

#: Half a second of processor time.
_WORK = "import time\nwhile time.process_time() < 0.5: pass"
#: Programs that never end, and take less of a core than they could, or keep their own threads from it.
_ENDLESS = [
    "import time\nwhile True: time.sleep(1)",
    "import time\nwhile True: time.sleep(0.00001)",
    "import os\nwhile True: os.sched_yield()",
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    """
import os
try: os.nice(19)
except OSError: pass  # some levels refuse it
while True: pass
""",
    """
import os
try: os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
except OSError: pass
while True: pass
""",
    """
import os
for _ in range(4): os.fork()
while True: pass
""",
    """
import os
if os.fork(): os.wait()
for _ in range(4): os.fork()
while True: pass
""",
    """
import os, time
for _ in range(4): os.fork()
while True:
    time.sleep(0.05)
    end = time.monotonic() + 0.05
    while time.monotonic() < end: pass
""",
    """
import os
while True:
    pids = [os.fork() for _ in range(2)]
    if 0 in pids:
        for _ in range(100000): pass
        os._exit(0)
    for pid in pids: os.waitpid(pid, 0)
""",
]


@pytest.fixture(scope="module", params=LEVELS)
def isolation(request: pytest.FixtureRequest) -> Iterator[Isolation]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with isolated(Path(folder), request.param) as isolation:
            yield isolation


def _run(program: str, isolation: Isolation) -> Execution:
    words = [_PYTHON, "-I", "-S", "-c", program]
    return box.run(words, isolation=isolation, limits=_LIMITS, environment={})


def test_a_command_beside_neighbours_has_the_time_that_it_would_have_alone(isolation: Isolation) -> None:
    with one_core(), busy():
        run = _run(_WORK, isolation)
    assert (run.exit_status, run.limit, run.box_error) == (0, None, None)
    assert run.wall_seconds >= _LIMITS.wall_seconds  # so the neighbours took the core from it


def test_a_command_that_the_neighbours_leave_no_time_is_the_machines_failure(
    isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_GUARD_SECONDS", 0.0)
    monkeypatch.setattr(limits, "_GUARD_TIMES", 2.0)
    with one_core(), busy():
        run = _run("while True: pass", isolation)
    assert run.limit is None
    assert run.box_error is not None
    assert "for a processor core" in run.box_error


@pytest.mark.parametrize("neighbours", [0, NEIGHBOURS])
def test_no_command_stops_its_clock(neighbours: int, isolation: Isolation) -> None:
    with one_core(), busy(neighbours), ThreadPoolExecutor(len(_ENDLESS)) as pool:
        runs = list(pool.map(lambda program: _run(program, isolation), _ENDLESS))
    assert [(run.limit, run.box_error) for run in runs] == [("wall", None)] * len(_ENDLESS)
