"""A malicious Lean: the files and rights that it gets, and that the box leaves none of its processes."""

from __future__ import annotations

import gc
import os
import socket
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.judging.forgeable import is_forgeable
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from tests.isolation_levels import groups, open_files
from tests.processes import eventually, family

CASES = Path(__file__).parents[1] / "cases" / "verdict"
HEADER = "prelude\nimport Core\n"
TRUE = HEADER + "theorem t : True := True.intro\n"
LIMITS = Limits(wall_seconds=30.0, memory_mib=256, output_kib=64, processes=32)
SHORT = replace(LIMITS, wall_seconds=1.0)
#: Without a control group a page that forked processes share counts for each of them.
ROOMY = replace(LIMITS, memory_mib=1024)

#: A program in place of Lean: it takes what it is given, and says nothing by itself. A header is first read
#: alone; imports do no harm.
_LEAN = """\
import json, os, signal, socket, sys, time
if "--stdin" not in sys.argv:
    sys.exit(1)
if b"theorem" not in sys.stdin.buffer.read():
    sys.exit(0)
"""

HARM = {
    "prints_messages_of_its_own": (
        """
        message = {"severity": "information", "data": "fine", "pos": {"line": 1, "column": 0}}
        for stream in (1, 2):
            os.write(stream, json.dumps(message).encode() + b"\\n")
        """,
        Reason.STOPPED_EARLY,
    ),
    "prints_what_is_no_text": (
        "os.write(1, bytes(range(256)) * 8); os.write(2, b'\\xff\\xfe\\0')",
        Reason.STOPPED_EARLY,
    ),
    "floods_stdout": ("[os.write(1, b'x' * 65535 + b'\\n') for _ in range(1600)]", Reason.OUTPUT_LIMIT),
    "floods_stderr": ("[os.write(2, b'x' * 65535 + b'\\n') for _ in range(1600)]", Reason.OUTPUT_LIMIT),
    "writes_a_line_of_ten_megabytes": ("sys.stdout.write('x' * (10 << 20))", Reason.OUTPUT_LIMIT),
    "stops_itself": ("os.kill(os.getpid(), signal.SIGSTOP)", Reason.WALL_LIMIT),
    "ignores_every_polite_signal": (
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(0.01)
        """,
        Reason.WALL_LIMIT,
    ),
    "takes_memory_at_once": ("held = b'x' * (1 << 30)", Reason.MEMORY_LIMIT),
    "takes_memory_by_and_by": (
        """
        held = []
        while True:
            held.append(b"x" * (1 << 20))
            time.sleep(0.0002)
        """,
        Reason.MEMORY_LIMIT,
    ),
    "forks_without_end": (
        """
        for _ in range(100):
            if os.fork() == 0:
                time.sleep(60)
        time.sleep(60)
        """,
        Reason.PROCESS_LIMIT,
    ),
    "leaves_a_child_that_holds_its_streams": (
        """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        """,
        Reason.STOPPED_EARLY,
    ),
    "aborts": ("os.abort()", Reason.CRASH),
    "ends_with_an_unknown_status": ("os._exit(3)", Reason.CRASH),
    "is_killed": ("os.kill(os.getpid(), signal.SIGKILL)", Reason.KILLED),
}


def in_place_of_lean(folder: Path, body: str) -> LeanEnvironment:
    """Make an environment whose Lean does this once it is given a program."""
    program = folder / "lean.py"
    program.write_text(_LEAN + textwrap.dedent(body).strip() + "\n")
    return LeanEnvironment(
        name="hostile",
        digest=str(program),
        toolchain="",
        lean=(os.path.realpath(sys.executable), "-I", "-S", str(program)),
        lean_path=(),
        header="",
        visible=(str(program),),
    )


def ours() -> set[int]:
    return {each.pid for each in family(os.getpid())} - {os.getpid()}


@pytest.fixture
def own_checker(isolation: Isolation, tmp_path: Path) -> Iterator[Checker]:
    with Checker(isolation, home=tmp_path / "home") as found:
        yield found


@pytest.mark.parametrize("name", HARM)
def test_harm_gets_its_verdict_and_leaves_nothing(
    own_checker: Checker, isolation: Isolation, tmp_path: Path, name: str
) -> None:
    body, expected = HARM[name]
    within = {Reason.WALL_LIMIT: SHORT, Reason.PROCESS_LIMIT: ROOMY}.get(expected, LIMITS)
    before = groups(isolation)
    report = own_checker.check(
        Check.of(program="theorem t : True", limits=within), in_place_of_lean(tmp_path, body), way="cold"
    )
    assert judge(report).reason is expected, report
    own_checker.close()
    assert not [each for each in family(os.getpid()) if "lean.py" in each.command]
    assert groups(isolation) <= before


def test_what_the_farm_knows_is_not_told(
    own_checker: Checker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_DATABASE_URL", "postgresql://user:secret@host/name")
    body = "print(dict(os.environ), file=sys.stderr)"
    report = own_checker.check(
        Check.of(program="theorem t : True", limits=LIMITS), in_place_of_lean(tmp_path, body), way="cold"
    )
    assert "LEAN_PATH" in report.answer.foreign_output
    assert "secret" not in report.answer.foreign_output
    assert "FARM_" not in report.answer.foreign_output


def test_servers_on_loopback_cannot_be_reached(
    own_checker: Checker, isolation: Isolation, tmp_path: Path
) -> None:
    if is_forgeable(isolation.name):  # in CI only where the level is lower on purpose: see the fixture
        pytest.skip("with neither namespaces nor Landlock the network is open")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        body = f"socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), timeout=5)"
        report = own_checker.check(
            Check.of(program="theorem t : True", limits=LIMITS), in_place_of_lean(tmp_path, body), way="cold"
        )
    assert "Error" in report.answer.foreign_output


def test_files_are_gone_with_the_check_that_wrote_them(
    own_checker: Checker, isolation: Isolation, tmp_path: Path
) -> None:
    places = [f"farm-left-over-{os.getpid()}"]
    if isolation.namespaces:
        places.append(f"/tmp/{places[0]}")
    write = f"[open(place, 'x').close() for place in {places}]"
    for _ in range(2):
        report = own_checker.check(
            Check.of(program="theorem t : True", limits=LIMITS), in_place_of_lean(tmp_path, write), way="cold"
        )
        assert judge(report).reason is Reason.STOPPED_EARLY, report
    assert not any(Path(place).exists() for place in places)


# Many of them.


def _program(case: str) -> str:
    return (CASES / case / "program.lean").read_text()


MIXED: list[tuple[str, Limits, set[Reason]]] = [
    (_program("timeout/endless_instances"), Limits(wall_seconds=0.1), {Reason.WALL_LIMIT}),
    (_program("rejected/crash"), Limits(), {Reason.CRASH}),
    (_program("rejected/panic"), Limits(), {Reason.CRASH}),
    (_program("memory_limit/doubling_string"), Limits(memory_mib=128), {Reason.MEMORY_LIMIT}),
    (_program("rejected/exit_before_the_theorem"), Limits(), {Reason.STOPPED_EARLY}),
    (_program("rejected/output_flood"), Limits(output_kib=16), {Reason.OUTPUT_LIMIT}),
    (_program("timeout/endless_instances"), Limits(cpu_seconds=0.1), {Reason.CPU_LIMIT}),
]


def _judged(check: Callable[[str, Limits], Report], number: int) -> tuple[Reason, set[Reason]]:
    if number % 3:
        text = f"{TRUE}-- {number}\n" if number % 2 else f"{HEADER}theorem f{number} : False := True.intro\n"
        return judge(check(text, Limits())).reason, {Reason.OK if number % 2 else Reason.ERROR}
    text, limits, expected = MIXED[number // 3 % len(MIXED)]
    return judge(check(text, limits)).reason, expected


def _others() -> set[str]:
    """Return the open files but those of control groups: these are kept for the next checks."""
    return {name for name in open_files() if "/sys/fs/cgroup/" not in name}


def _cells(isolation: Isolation) -> int:
    return len({each.name for each in groups(isolation)})


#: Enough for each kind of harm to be done fourteen times.
MANY = 300


@pytest.mark.long
@pytest.mark.timeout(600)
def test_hundreds_of_checks_of_which_every_third_misbehaves_leave_nothing(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    gc.collect()  # what tests before this one left to be collected is none of its business
    before = ours(), _others(), set(isolation.folder.iterdir())
    kept = max(_cells(isolation), 2)
    threads = threading.active_count()
    with Checker(isolation, home=tmp_path, concurrency=2) as checker, ThreadPoolExecutor(2) as pool:
        check = lambda text, limits: checker.check(Check.of(program=text, limits=limits), core)  # noqa: E731
        for got, expected in pool.map(lambda number: _judged(check, number), range(MANY)):
            assert got in expected
    eventually(lambda: threading.active_count() <= threads)
    assert (ours(), _others(), set(isolation.folder.iterdir())) == before
    assert _cells(isolation) <= kept
    assert [path.name for path in tmp_path.rglob("*") if path.suffix == ".lock"] == []
