"""BenchExec, with which tool competitions measure, runs the same programs and must come to the same facts.

It holds each in control groups and a container of its own; the box does in the strongest isolation that this
machine offers. Not among the programs: one that fills a folder in memory. The box calls that a memory limit;
with BenchExec it takes its own first process along, and nothing is known of the run.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation

from farm.limits import Limits
from tests.processes import PATIENCE, eventually, processes

RUNEXEC = Path(sys.executable).with_name("runexec")
#: A Python that any container can run, as long as its own folder can be seen.
PYTHON = str(Path(sys.executable).resolve())
#: A number of seconds to sleep by which what was started here is told from all else.
ENDLESS = f"600.{os.getpid()}"
#: BenchExec's words for the limits that the box knows.
REASONS = {None: None, "walltime": "wall", "cputime": "cpu", "memory": "memory"}
MIB = 1 << 20
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What both tell of one run; `ended` is the exit status or minus the signal where no limit came first."""

    limit: str | None
    ended: int | None
    wall_seconds: float
    cpu_seconds: float
    memory_mib: float


_ROOMY = Limits(wall_seconds=60.0, cpu_seconds=30.0, memory_mib=128)
_SHORT_WALL = Limits(wall_seconds=1.0, cpu_seconds=30.0, memory_mib=128)
_SHORT_CPU = Limits(wall_seconds=60.0, cpu_seconds=1.0, memory_mib=128)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A program, its limits, and what is true of it by its making."""

    program: str
    limits: Limits = _ROOMY
    limit: str | None = None
    ended: int | None = None


Judge = Callable[[Case], Facts]

_BURN = "import time\nwhile time.process_time() < {seconds}: pass\n"
_FILL = "import time; block = b'1' * {mib} * (1 << 20)"

CASES = {
    "ends well": Case(program="", ended=0),
    "has a status": Case(program="raise SystemExit(3)", ended=3),
    "crashes": Case(program="import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", ended=-11),
    "aborts": Case(program="import os; os.abort()", ended=-6),
    "works for a while": Case(program=_BURN.format(seconds=1.0), ended=0),
    "works in two processes": Case(
        program=f"import os; child = os.fork()\n{_BURN.format(seconds=0.7)}if child: os.wait()", ended=0
    ),
    "takes memory": Case(program=_FILL.format(mib=64), ended=0),
    "never ends": Case(program="while True: pass", limits=_SHORT_CPU, limit="cpu"),
    "never ends in a grandchild": Case(
        program=f"import os, time\nif os.fork() or os.fork(): time.sleep({ENDLESS})\nwhile True: pass",
        limits=_SHORT_CPU,
        limit="cpu",
    ),
    "sleeps": Case(program=f"import time; time.sleep({ENDLESS})", limits=_SHORT_WALL, limit="wall"),
    "stops itself": Case(
        program="import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", limits=_SHORT_WALL, limit="wall"
    ),
    "is deaf": Case(
        program="import signal, time\n"
        "for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(each, signal.SIG_IGN)\n"
        f"time.sleep({ENDLESS})",
        limits=_SHORT_WALL,
        limit="wall",
    ),
    "takes too much memory": Case(program=_FILL.format(mib=512), limit="memory"),
    "takes too much memory together": Case(
        program=f"import os; os.fork(); os.fork()\n{_FILL.format(mib=48)}; time.sleep({ENDLESS})",
        limit="memory",
    ),
    "takes too much shared memory": Case(
        program="import mmap; block = mmap.mmap(-1, 512 << 20)\n"
        "for _ in range(512): block.write(b'1' * (1 << 20))",
        limit="memory",
    ),
    "leaves a process behind": Case(
        program=f"import os, time\nif not os.fork() and not os.fork(): os.setsid(); time.sleep({ENDLESS})",
        ended=0,
    ),
}


def _command(case: Case) -> list[str]:
    return [PYTHON, "-I", "-S", "-c", case.program]


def _runexec(command: list[str], limits: Limits, log: Path) -> subprocess.CompletedProcess[str]:
    options = {
        "--walltimelimit": f"{limits.wall_seconds:.0f}",
        "--timelimit": f"{limits.cpu_seconds:.0f}",
        "--memlimit": f"{limits.memory_mib * MIB}",
        # By default the root is below an overlay, which not every file system can be.
        "--read-only-dir": "/",
        "--hidden-dir": "/home",
        "--output": str(log),
    }
    words = [word for option in options.items() for word in option]
    with _entry() as entry:
        return subprocess.run(
            [*entry, RUNEXEC, "--quiet", *words, "--", *command],
            cwd="/",  # it must be there inside, too, where /tmp is another one
            check=False,
            capture_output=True,
            text=True,
        )


@contextlib.contextmanager
def _entry() -> Iterator[list[str]]:
    """Give the start of a command line that BenchExec can work behind.

    Of version 2 it wants a control group in which it is alone, and where processor time is limited too.
    """
    if not (CGROUPS / "cgroup.controllers").exists():
        yield []
        return
    group = CGROUPS / f"oracle-{os.getpid()}"
    group.mkdir()
    yield ["sh", "-c", 'echo 0 > "$0/cgroup.procs" && exec "$@"', str(group)]
    below = [folder for folder, _, _ in os.walk(group, topdown=False)]
    for folder in below:
        Path(folder).rmdir()


def _why_not(log: Path) -> str | None:
    """Return why BenchExec does not work here, None when it does."""
    try:
        tried = _runexec(["true"], _ROOMY, log)
    except OSError as error:
        return f"BenchExec does not work here: {error}"
    return None if "returnvalue=0" in tried.stdout else f"BenchExec does not work here: {tried.stderr}"


@pytest.fixture(scope="module")
def benchexec(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """BenchExec's judgement; in CI it must be possible here, elsewhere the tests are skipped without it."""
    log = tmp_path_factory.mktemp("benchexec") / "output.log"
    if why := _why_not(log):
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)

    def judge(case: Case) -> Facts:
        done = _runexec(_command(case), case.limits, log)
        told = dict(line.split("=", 1) for line in done.stdout.splitlines())
        assert "walltime" in told, done.stderr
        limit = REASONS[told.get("terminationreason")]
        status = int(told["returnvalue"]) if "returnvalue" in told else -int(told["exitsignal"])
        return Facts(
            limit=limit,
            ended=None if limit else status,
            wall_seconds=float(told["walltime"].removesuffix("s")),
            cpu_seconds=float(told["cputime"].removesuffix("s")),
            memory_mib=int(told["memory"].removesuffix("B")) / MIB,
        )

    return judge


@pytest.fixture(scope="module")
def boxed(isolation: Isolation) -> Judge:
    """The box's judgement, in control groups and namespaces as BenchExec's."""
    isolation.require("cgroup+bwrap")

    def judge(case: Case) -> Facts:
        run = box.run(
            _command(case),
            isolation=isolation,
            limits=case.limits,
            environment={},
            visible=[Path(sys.base_prefix)],
        )
        assert run.box_error is None, run
        status = run.exit_status if run.signal is None else -run.signal
        return Facts(
            limit=run.limit,
            ended=None if run.limit else status,
            wall_seconds=run.wall_seconds,
            cpu_seconds=run.cpu_seconds,
            memory_mib=run.peak_memory_kib / 1024,
        )

    return judge


#: The cases that every change tries; those that wait for a limit are long.
_SHORT = ("works for a while", "never ends in a grandchild", "takes too much memory together")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=() if name in _SHORT else pytest.mark.long)
        for name, case in CASES.items()
    ],
)
def test_the_box_and_benchexec_agree(case: Case, benchexec: Judge, boxed: Judge) -> None:
    theirs, ours = benchexec(case), boxed(case)
    assert (ours.limit, ours.ended) == (theirs.limit, theirs.ended) == (case.limit, case.ended)
    assert ours.memory_mib == pytest.approx(theirs.memory_mib, rel=0.05, abs=4)
    if case.limit == "cpu":  # BenchExec looks at it about once a second
        assert min(ours.cpu_seconds, theirs.cpu_seconds) >= case.limits.cpu_seconds
    if case.limit == "wall":
        assert min(ours.wall_seconds, theirs.wall_seconds) >= case.limits.wall_seconds
    eventually(lambda: not [each for each in processes() if ENDLESS in each.command])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.limit in (None, "wall")])
def test_the_box_and_benchexec_measure_the_same_processor_time(
    name: str, benchexec: Judge, boxed: Judge
) -> None:
    theirs, ours = benchexec(CASES[name]), boxed(CASES[name])
    assert ours.cpu_seconds == pytest.approx(theirs.cpu_seconds, rel=0.15, abs=0.1 * PATIENCE)


def test_neither_lets_a_program_reach_a_server_on_this_machine(benchexec: Judge, boxed: Judge) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        connect = Case(program=f"import socket; socket.create_connection({address}, 20)", ended=1)
        assert subprocess.run(_command(connect), check=False).returncode == 0
        assert benchexec(connect).ended == boxed(connect).ended == connect.ended
