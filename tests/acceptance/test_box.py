"""What a command can do in a box, and what is left of it afterwards: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from farm.job import Limits
from tests.processes import eventually
from workers import box

LIMITS = Limits(wall_seconds=20.0, cpu_seconds=10.0, memory_mib=256, output_kib=64, processes=16)
#: Ends at once when things go well, and by itself when they do not.
LONG = "sleep 60"
Shell = Callable[..., box.Run]


def limits(**changes: float) -> Limits:
    return Limits(**{name: changes.get(name, getattr(LIMITS, name)) for name in LIMITS.__slots__})


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run a shell script in a box whose folder is in `tmp_path`."""

    def run(script: str, within: Limits = LIMITS, **more: object) -> box.Run:
        return box.run(["sh", "-c", script], limits=within, environment={}, folder=tmp_path, **more)

    return run


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def own_children() -> set[str]:
    return {
        pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()
    }


def open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())


def pids(run: box.Run) -> list[int]:
    return [int(word) for word in run.stdout.split()]


# How a command ends.


def test_a_command_that_ends_well_gives_its_output_and_status(shell: Shell) -> None:
    run = shell("cat; echo to stderr >&2", stdin="α\n".encode())
    assert (run.exit_status, run.signal, run.limit, run.box_error) == (0, None, None, None)
    assert (run.stdout, run.stderr) == ("α\n".encode(), b"to stderr\n")
    assert (run.output_bytes, run.output_cut) == (13, False)


def test_an_exit_status_is_a_fact(shell: Shell) -> None:
    assert shell("exit 7").exit_status == 7


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGPIPE, signal.SIGTERM])
def test_a_signal_that_the_box_did_not_send_is_told_apart_from_a_limit(shell: Shell, number: int) -> None:
    run = shell(f"kill -{number} $$")
    assert (run.signal, run.exit_status, run.limit, run.box_error) == (number, None, None, None)


def test_a_large_input_that_nobody_reads_blocks_nothing(shell: Shell) -> None:
    assert shell("exit 0", stdin=b"x" * (8 << 20)).exit_status == 0


def test_a_command_that_is_not_there_is_the_boxes_failure(tmp_path: Path) -> None:
    run = box.run(["no-such-command"], limits=LIMITS, environment={}, folder=tmp_path)
    assert run.box_error is not None
    assert "no-such-command" in run.box_error


def test_a_folder_that_cannot_be_made_is_the_boxes_failure(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = box.run(["true"], limits=LIMITS, environment={}, folder=tmp_path / "file" / "folder")
    assert run.box_error is not None


# Limits.


def test_the_wall_limit_ends_a_command_that_ignores_every_polite_signal(shell: Shell) -> None:
    run = shell(f"trap '' TERM INT HUP; {LONG}", limits(wall_seconds=0.2))
    assert (run.limit, run.signal) == ("wall", signal.SIGKILL)
    assert 0.2 <= run.wall_seconds < 5


def test_the_wall_limit_ends_a_command_that_closed_its_streams(shell: Shell) -> None:
    assert shell(f"exec >&- 2>&- <&-; {LONG}", limits(wall_seconds=0.2)).limit == "wall"


def test_the_wall_limit_ends_a_command_that_stopped_itself_and_its_supervisor(shell: Shell) -> None:
    assert shell("kill -STOP $PPID; kill -STOP $$", limits(wall_seconds=0.2)).limit == "wall"


def test_processor_time_is_limited(shell: Shell) -> None:
    run = shell("while :; do :; done", limits(cpu_seconds=0.3))
    assert run.limit == "cpu"
    assert 0.3 <= run.cpu_seconds < 3


def test_processor_time_of_the_whole_tree_is_limited(shell: Shell) -> None:
    spin = "while :; do :; done"
    run = shell(f"({spin}) & ({spin}) & {LONG}", limits(cpu_seconds=0.3))
    assert run.limit == "cpu"


def test_processor_time_of_children_that_are_gone_is_counted(shell: Shell) -> None:
    count = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
    one, orphan = shell(f"sh -c '{count}'"), shell(f"(setsid sh -c '{count}; kill -9 '$$ &) ; {LONG}")
    assert one.cpu_seconds > 0.02
    assert orphan.cpu_seconds > one.cpu_seconds / 4


def test_private_memory_is_limited(tmp_path: Path) -> None:
    grow = "kept = []\nwhile True: kept.append(bytearray(1 << 20))"
    run = box.run([sys.executable, "-c", grow], limits=LIMITS, environment={}, folder=tmp_path)
    assert (run.limit, run.signal) == ("memory", signal.SIGKILL)
    assert run.peak_memory_kib > LIMITS.memory_mib * 1024


def test_a_single_huge_request_for_memory_is_refused(tmp_path: Path) -> None:
    ask = "bytearray(64 << 30)"
    run = box.run([sys.executable, "-c", ask], limits=LIMITS, environment={}, folder=tmp_path)
    assert b"MemoryError" in run.stderr


def test_mapped_files_are_nobodys_memory(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (LIMITS.memory_mib << 20))
    read = f"import mmap; f = open({str(tmp_path / 'large')!r}, 'rb'); m = mmap.mmap(f.fileno(), 0, prot=1); "
    hold = "sum(m[i] for i in range(0, len(m), 4096)); import time; time.sleep(0.2)"
    run = box.run([sys.executable, "-c", read + hold], limits=LIMITS, environment={}, folder=tmp_path)
    assert (run.exit_status, run.limit) == (0, None)
    assert 0 < run.peak_memory_kib < 64 << 10


@pytest.mark.parametrize("stream", ["", ">&2"])
def test_a_flood_is_read_to_its_end_counted_and_cut(shell: Shell, stream: str) -> None:
    run = shell(f"head -c 100000000 /dev/zero {stream}")
    assert (run.exit_status, run.limit, run.output_bytes, run.output_cut) == (0, "output", 100_000_000, True)
    assert len(run.stdout) + len(run.stderr) == LIMITS.output_kib * 1024


def test_output_that_fills_the_limit_exactly_is_not_cut(shell: Shell) -> None:
    run = shell(f"head -c {LIMITS.output_kib * 1024} /dev/zero")
    assert (run.limit, run.output_cut, len(run.stdout)) == (None, False, LIMITS.output_kib * 1024)


def test_a_file_without_end_is_not_written(tmp_path: Path) -> None:
    run = box.run(["cp", "/dev/zero", "f"], limits=LIMITS, environment={}, folder=tmp_path)
    assert run.signal == signal.SIGXFSZ


def test_a_tree_with_too_many_processes_is_ended(shell: Shell) -> None:
    run = shell(f"i=0; while [ $i -lt 40 ]; do setsid {LONG} & i=$((i+1)); done; echo $!; wait")
    assert run.limit == "processes"


def test_no_core_file_is_written(shell: Shell) -> None:
    assert shell("ulimit -c").stdout == b"0\n"


def test_a_cancelled_command_is_ended_and_says_so(shell: Shell) -> None:
    run = shell(LONG, cancelled=lambda: True)
    assert run.box_error == "the check was cancelled"


# What is left behind.


@pytest.mark.parametrize(
    "start",
    [
        f"sh -c '{{up}}; {LONG}' &",
        f"setsid sh -c '{{up}}; {LONG}' &",
        f"(setsid sh -c '{{up}}; exec {LONG}' &)",
        f"(setsid sh -c '{{up}}; exec env - {LONG}' >/dev/null 2>&1 &)",
        f"setsid sh -c 'trap \"\" TERM HUP; {{up}}; {LONG}' &",
        f"sh -c '{{up}}; kill -STOP $$; {LONG}' &",
        f"(setsid sh -c '{LONG} & {{up}}; kill -STOP $$' &)",
    ],
    ids=["child", "session", "double fork", "no trace", "deaf", "stopped", "stopped in its own session"],
)
def test_no_child_outlives_its_command(shell: Shell, start: str) -> None:
    up = "echo $$ > up"  # waits until the command reads it
    run = shell(f"mkfifo up; {start.format(up=up)}\nread pid < up; echo $pid")
    assert (run.exit_status, run.limit, run.box_error) == (0, None, None)
    assert not alive(*pids(run))


def test_no_child_outlives_a_limit(shell: Shell) -> None:
    run = shell(f"setsid {LONG} & echo $!; (setsid {LONG} & echo $!); {LONG}", limits(wall_seconds=0.3))
    assert run.limit == "wall"
    assert len(pids(run)) == 2
    assert not any(map(alive, pids(run)))


def test_a_supervisor_killed_from_inside_takes_the_command_along(shell: Shell) -> None:
    run = shell(f"setsid {LONG} & echo $!; {LONG} & echo $! $$; kill -KILL $PPID; {LONG}")
    assert run.box_error == "the supervisor died before the command ended"
    assert len(pids(run)) == 3
    eventually(lambda: not any(map(alive, pids(run))))


def test_when_the_worker_is_killed_its_boxes_die_with_all_their_children(tmp_path: Path) -> None:
    tell = f"echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid"
    script = f"(setsid sh -c '{tell}; {LONG}' &); {LONG}"
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; from farm.job import Limits; from workers import box\n"
            "box.run(['sh', '-c', sys.argv[1]], limits=Limits(), environment={}, folder=Path(sys.argv[2]))",
            script,
            str(tmp_path),
        ]
    )
    eventually((tmp_path / "pid").exists)
    escaped = int((tmp_path / "pid").read_text())
    assert alive(escaped)
    worker.kill()
    worker.wait()
    eventually(lambda: not alive(escaped))


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p a/b; touch a/b/c .hidden; ln -s / root; mkfifo pipe",
        "mkdir -p a/b; touch a/b/c; chmod 0 a/b a .",
        "for n in $(seq 1200); do mkdir d; cd d; done",
        "touch file; kill -9 $$",
    ],
)
def test_the_folder_is_removed_with_all_that_is_in_it(shell: Shell, tmp_path: Path, script: str) -> None:
    assert shell(script).box_error is None
    assert list(tmp_path.iterdir()) == []


def test_each_command_begins_in_an_empty_folder_of_its_own(shell: Shell, tmp_path: Path) -> None:
    first, second = (shell("ls -a; pwd; echo $HOME $TMPDIR; touch left").stdout.decode() for _ in range(2))
    assert first != second
    here = first.split()[2]
    assert first.split() == [".", "..", here, here, here]
    assert Path(here).parent == tmp_path


def test_no_file_descriptor_and_no_process_is_left_in_the_worker(shell: Shell) -> None:
    shell("true")
    before, children = open_files(), own_children()
    for _ in range(5):
        shell("head -c 1000000 /dev/zero; setsid sleep 60 &")
        shell(LONG, limits(wall_seconds=0.05))
    assert open_files() == before
    assert own_children() == children


# What a command can see.


def test_the_farms_environment_is_not_passed_on(
    shell: Shell,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARM_DATABASE_URL", "postgresql://secret")
    names = {line.partition("=")[0] for line in shell("env").stdout.decode().split("\n") if line}
    assert names <= {"PATH", "LANG", "HOME", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_"}


def test_no_open_file_of_the_worker_is_passed_on(tmp_path: Path) -> None:
    secret = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(secret, True)
    listed = "import os; print(*[n for n in range(3, 99) if os.path.exists(f'/proc/self/fd/{n}')])"
    run = box.run([sys.executable, "-c", listed], limits=LIMITS, environment={}, folder=tmp_path)
    os.close(secret)
    assert run.stdout == b"\n"


def test_no_privilege_can_be_gained(shell: Shell) -> None:
    assert b"NoNewPrivs:\t1" in shell("cat /proc/self/status").stdout


def test_the_kernel_would_kill_it_before_the_worker_when_memory_runs_out(shell: Shell) -> None:
    assert shell("cat /proc/self/oom_score_adj").stdout == b"1000\n"


def test_many_boxes_at_once_keep_apart(shell: Shell) -> None:
    together = threading.Barrier(6, timeout=20)

    def one(number: int) -> box.Run:
        together.wait()
        return shell(f"setsid sh -c 'sleep 60' & echo {number}; exit {number}")

    with ThreadPoolExecutor(6) as pool:
        runs = list(pool.map(one, range(6)))
    assert [(r.exit_status, r.stdout) for r in runs] == [(n, f"{n}\n".encode()) for n in range(6)]
