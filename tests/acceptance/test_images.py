"""Images and the cells they fork: what a check finds in one, what it leaves, what an image lives through."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import platform
import shlex
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from farm_workers import images
from farm_workers.box import attempts, bubblewrap, procfs, promises
from farm_workers.box import once as box
from farm_workers.box.copy import as_file
from farm_workers.box.isolation import Isolation, fresh_folder, prepared
from farm_workers.box.landlock import SCOPES_ABI
from farm_workers.box.readable_paths import is_open
from farm_workers.box.seccomp import MACHINES, REFUSED_IN_CELLS
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables
from farm_workers.images import protocol
from farm_workers.images.forking import watched
from farm_workers.images.image import Image, NoImage, lean_image
from farm_workers.images.images import Images, NotWanted
from farm_workers.images.recipe import Recipe
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.forked import Forked
from farm_workers.lean.way import Question, Reply

from farm.judging.job import Check
from farm.judging.verdict import OUTCOMES, Outcome, Reason, judge
from farm.lean_text.header import header_end
from farm.limits import Limits
from tests.isolation_levels import LEVELS, Mark, groups, isolated, limits
from tests.no_namespaces import PREFIX
from tests.processes import CODE, PATIENCE, Process, eventually, family, process

HEADER = "prelude\nimport Core\n"
KEY = Recipe(header=HEADER[: header_end(HEADER)] + "\n")
TRUE = HEADER + "theorem t : True := True.intro\n"
CASES = Path(__file__).parents[1] / "cases" / "verdict"
ENDLESS = (CASES / "timeout" / "endless_instances" / "program.lean").read_text()
DOUBLING = (CASES / "memory_limit" / "doubling_string" / "program.lean").read_text()
NATIVE = tomllib.loads((resources.files("farm_workers.exploits") / "native.toml").read_text())["parts"]
PYTHON = bubblewrap.python()
SOON = 20.0 * PATIENCE


@pytest.fixture(scope="module", params=LEVELS)
def level(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """Every level that this machine has."""
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


@pytest.fixture(scope="module", params=["cgroup", "cgroup+bwrap"])
def grouped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """The levels with control groups."""
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


@pytest.fixture(scope="module", params=["bwrap", "cgroup+bwrap", "in a user namespace"])
def closed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Isolation]:
    """The levels with namespaces, and the way that an ordinary user has to make them."""
    level = "bwrap" if " " in request.param else request.param
    with isolated(tmp_path_factory.mktemp("work"), level) as isolation:
        if " " in request.param:
            assert isolation.namespaces is not None
            last = bubblewrap.candidates(isolation.namespaces.launcher)[-1]
            isolation = replace(isolation, namespaces=last)
        yield isolation


class Lean:
    """Forks of images at one level: `ask` compiles a program there."""

    def __init__(self, isolation: Isolation, core: LeanEnvironment) -> None:
        self.isolation, self.core = isolation, core
        self.images = Images(isolation, lean_image, most=2)
        self.modules: list[BinaryIO] = []
        self._forked = Forked(isolation, self.images)

    def ask(self, program: str, within: Limits | None = None, cancelled: box.Cancelled = box.never) -> Reply:
        question = Question.of(program, self.core, within or limits(memory_mib=1024), cancelled)
        reply = self._forked.compile(question)
        if reply.module is not None:
            self.modules.append(reply.module)
        return reply

    def image(self, cancelled: Callable[[], bool] = box.never) -> Any:
        return self.images.lease(self.core, KEY, cancelled)

    def pid(self) -> int:
        """Return the process id of the image: it is the parent of its forks."""
        with self.image() as image:
            fork = image.check({"program": TRUE, "module": None}, limits())
            try:
                return procfs.parent(fork.pid)
            finally:
                fork.close()


def served() -> list[Process]:
    """Return the images below this process: neither their boxes nor their keepers and forks."""
    words = "from farm_workers.images.serve import main"
    found = [each for each in family(os.getpid()) if words in each.command]
    found = [each for each in found if "launch.pyc" not in each.command and each.program != "bwrap"]
    return [each for each in found if each.parent not in {other.pid for other in found}]


@contextmanager
def set_at_the_end(event: threading.Event) -> Iterator[None]:
    """Set an event whatever happens, so that nobody waits for what it cancels."""
    try:
        yield
    finally:
        event.set()


def lean_of(isolation: Isolation, core: LeanEnvironment) -> Iterator[Lean]:
    lean = Lean(isolation, core)
    try:
        image = lean.pid()
        yield lean
    finally:
        lean.images.close()
        for module in lean.modules:
            module.close()
    assert process(image) is None


@pytest.fixture(scope="module")
def lean(level: Isolation, core: LeanEnvironment) -> Iterator[Lean]:
    yield from lean_of(level, core)


@pytest.fixture
def grouped_lean(grouped: Isolation, core: LeanEnvironment) -> Iterator[Lean]:
    yield from lean_of(grouped, core)


def shell(script: str, then: str = "pause 100000 v", *, call: str = "toItsEnd") -> str:
    """Return a program that runs a script for the shell, beside Lean, to its end, and then does something."""
    parts = "".join(NATIVE[name] for name in ("elaborator", "exit", "shell"))
    encoded = base64.b64encode(script.encode()).decode()
    words = json.dumps(f"echo {encoded} | base64 -d > .script; . ./.script")
    return f"""{HEADER}{parts}
@[extern "native"] opaque IO.Process.output
  (args : IO.Process.SpawnArgs) (input : Option String) (now : Lean.Syntax) : Done
def toItsEnd (words : String) (now : Lean.Syntax) : Done :=
  IO.Process.output ⟨⟨.null, .piped, .inherit⟩, "/bin/sh",
    Array.push (Array.push (Array.mkEmpty 2) "-c") words, none, Array.mkEmpty 0, true, true⟩ none now
@[command_elab commandCheat!] def run : CommandElab := fun stx ctx state _ =>
  match {call} {words} stx with
  | .ok v => {then}
  | .error e => .error e
cheat!
theorem t : True := True.intro
"""


ON, OUT, HANG = ".ok .missing", "exit v", "pause 100000 v"


# What a check finds in its cell, where there are namespaces.

LOOK = """
import ctypes, json, os, resource, socket, stat
libc = ctypes.CDLL(None, use_errno=True)
def tried(what):
    try:
        return what()
    except OSError as error:
        return type(error).__name__
def capabilities():
    sets = (ctypes.c_uint32 * 6)()
    assert libc.capget((ctypes.c_uint32 * 2)(0x20080522, 0), sets) == 0
    return list(sets)
def descriptors():
    found = {}
    for number in range(4096):
        try:
            found[number] = os.fstat(number)
        except OSError:
            pass
    nothing = os.stat("/dev/null")
    return {n: "null" if s.st_rdev == nothing.st_rdev else stat.S_IFMT(s.st_mode) for n, s in found.items()}
def sibling():
    pid = libc.syscall(CLONE, 0x8000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid
facts = {
    "capabilities": capabilities(),
    "bounding": [libc.prctl(23, number, 0, 0, 0) for number in range(38)],
    "no_new_privileges": libc.prctl(39, 0, 0, 0, 0),
    "filter": libc.prctl(21, 0, 0, 0, 0),
    "proc": os.listdir("/proc"),
    "terminals": os.listdir("/dev/pts"),
    "descriptors": descriptors(),
    "sockets": [tried(lambda: socket.socket(family).close()) for family in (1, 2, 10, 16, 40)],
    "files": sorted(os.listdir("/tmp")),
    "home": [os.environ["HOME"], os.environ["TMPDIR"], os.getcwd()],
    "new_namespace": [libc.unshare(kind) for kind in (0x10000000, 0x20000000, 0x00020000)],
    "keeper": [
        tried(lambda: os.kill(1, 0)), libc.ptrace(16, 1, None, None),
        libc.syscall(438, 0, 0, 0), libc.syscall(310, 1, None, 0, None, 0, 0),
    ],
    "others": [
        tried(lambda: os.pidfd_open(1)), tried(lambda: os.kill(os.getpid(), 19)),
        tried(lambda: os.setpriority(0, 0, 19)), tried(lambda: os.sched_setaffinity(0, {0})),
    ],
    "adopting": [libc.prctl(36, 0, 0, 0, 0), libc.prctl(36, 1, 0, 0, 0)],
    "sibling": sibling(),
    "limits_of_keeper": libc.prlimit(1, 7, (ctypes.c_uint64 * 2)(0, 0), None),
    "signals": [
        libc.setrlimit(0, (ctypes.c_uint64 * 2)(1, 1)), libc.fcntl(1, 10, 9),
        libc.syscall(TIMER, 0, None, None), libc.syscall(CLONE, 9, 0, 0, 0, 0),
    ],
    "user": os.getuid(),
}
json.dump(facts, open("Module.olean", "w"))
"""


@pytest.fixture(scope="module")
def inside(closed: Isolation, core: LeanEnvironment) -> Iterator[dict[str, Any]]:
    """What a program finds out about its cell."""
    for lean in lean_of(closed, core):
        here = MACHINES[platform.machine()]
        look = LOOK.replace("CLONE", str(here.clone))
        look = look.replace("TIMER", str(REFUSED_IN_CELLS["timer_create"][here.place - 1]))
        encoded = base64.b64encode(look.encode()).decode()
        look = f"""{PYTHON} -I -S -c 'import base64; exec(base64.b64decode("{encoded}"))'"""
        reply = lean.ask(shell(look, OUT))
        assert reply.module is not None, reply
        yield json.loads(reply.module.read())


def test_a_check_has_no_capability_and_can_gain_none(inside: dict[str, Any]) -> None:
    assert set(inside["capabilities"]) == {0}
    assert not any(each == 1 for each in inside["bounding"])
    assert inside["no_new_privileges"] == 1


def test_a_check_has_a_filter_of_system_calls(inside: dict[str, Any]) -> None:
    assert inside["filter"] == 2
    assert inside["new_namespace"] == [-1, -1, -1]


def test_a_check_sees_no_process_and_no_terminal(inside: dict[str, Any]) -> None:
    assert (inside["proc"], inside["terminals"]) == ([], [])


def test_a_check_has_its_output_and_nothing_else_open(inside: dict[str, Any]) -> None:
    pipe = 0o010000
    kinds = inside["descriptors"]
    assert [kinds.pop(number) for number in "012"] == ["null", pipe, pipe]
    assert set(kinds.values()) <= {"null"}


def test_a_check_can_make_no_socket(inside: dict[str, Any]) -> None:
    assert inside["sockets"] == 5 * ["OSError"]


def test_a_check_begins_in_a_folder_of_its_own_which_is_its_home(inside: dict[str, Any]) -> None:
    assert inside["files"] == [".script"]
    assert inside["home"] == 3 * ["/tmp"]


def test_a_check_cannot_stop_trace_or_read_its_keeper(inside: dict[str, Any]) -> None:
    signals, traced = inside["keeper"][:1], inside["keeper"][1:]
    if inside["user"] == bubblewrap.NOBODY and os.geteuid() == 0:
        assert set(signals) <= {"PermissionError", None}
    assert traced == [-1, -1, -1]


def test_a_check_cannot_stop_or_slow_a_process(inside: dict[str, Any]) -> None:
    assert inside["others"] == 4 * ["PermissionError"]


def test_a_check_cannot_say_who_gets_its_orphans(inside: dict[str, Any]) -> None:
    assert inside["adopting"] == [-1, -1]


def test_a_check_makes_no_sibling_and_sets_no_limits_of_its_keeper(inside: dict[str, Any]) -> None:
    assert (inside["sibling"], inside["limits_of_keeper"]) == (-1, -1)


def test_a_check_cannot_have_the_kernel_send_it_a_signal_of_its_choice(inside: dict[str, Any]) -> None:
    assert inside["signals"] == 4 * [-1]


@pytest.mark.parametrize("version", [5, 7])
def test_a_fork_without_namespaces_keeps_the_promises_of_its_level(
    core: LeanEnvironment, tmp_path: Path, version: int
) -> None:
    """The probe that a worker runs when it starts runs in a check; an older kernel compares process ids."""
    with isolated(tmp_path / "work", "landlock") as isolation, fresh_folder(isolation.folder) as folder:
        assert isolation.walls is not None
        older = replace(isolation, walls=replace(isolation.walls, abi=min(version, isolation.walls.abi)))
        with promises.targets(folder, isolation.user) as targets:
            for lean in lean_of(older, core):
                targets |= {"processes": [os.getpid(), lean.pid()], "parent": False}
                source = base64.b64encode(Path(attempts.__file__).read_bytes()).decode()
                python = PYTHON if is_open(Path(PYTHON)) else "/usr/bin/python3"  # behind a closed folder
                probe = f"""{python} -I -S -c 'import base64; exec(base64.b64decode("{source}"))'"""
                words = shlex.quote(json.dumps(targets))
                reply = lean.ask(shell(f"{probe} {words} > Module.olean", OUT))
                assert reply.module is not None, reply
                if version < SCOPES_ABI:
                    with (
                        lean.image() as image,
                        socket.socket() as ours,
                        pytest.raises(NoImage, match=r"Linux 6\.12"),
                    ):
                        image.session({}, limits(), ours)
                worked = json.loads(reply.module.read())
    assert worked == {name: [] for name in promises.BROKEN}


def test_the_cells_of_an_image_do_not_see_each_other(
    closed: Isolation, core: LeanEnvironment, mark: Mark
) -> None:
    for lean in lean_of(closed, core):
        done = threading.Event()
        with ThreadPoolExecutor(1) as pool, set_at_the_end(done):
            other = pool.submit(
                lean.ask, shell(f"touch here; {mark.sleep}"), limits(wall_seconds=60.0), done.is_set
            )
            eventually(mark.found)
            looked = lean.ask(shell("ls > Module.olean", OUT)).module
            assert looked is not None
            assert looked.read() == b"Module.olean\n"
            assert lean.ask(shell("kill -ABRT -1")).report.run.signal == signal.SIGABRT
            assert mark.found()
            done.set()
            assert other.result().report.run.box_error == box.CANCELLED


# What it leaves.


def test_what_leaves_its_session_is_dead_when_the_check_ends(lean: Lean, mark: Mark) -> None:
    script = f"(trap '' TERM HUP INT; setsid {mark.sleep} & setsid setsid {mark.sleep} &) > /dev/null 2>&1"
    reply = lean.ask(shell(script, ON))
    assert reply.report.run.exit_status == 0, reply
    assert mark.found() == []


def test_the_processor_time_of_all_that_came_of_a_check_counts(lean: Lean) -> None:
    burn = "setsid sh -c 'while :; do :; done' > /dev/null 2>&1 &"
    reply = lean.ask(shell(burn, HANG), limits(cpu_seconds=1.0, wall_seconds=60.0, memory_mib=1024))
    assert reply.report.run.limit == "cpu"
    assert reply.report.run.cpu_seconds > 1.0


def test_the_memory_of_all_that_came_of_a_check_counts(lean: Lean) -> None:
    before = lean.pid()
    reply = lean.ask(shell("head -c 2000000000 /dev/zero | tail | wc -c", ON))
    assert reply.report.run.limit == "memory"
    assert lean.ask(TRUE).report.run.limit is None
    assert lean.pid() == before


def test_want_of_memory_in_lean_itself_is_the_checks_limit_and_the_image_lives(lean: Lean) -> None:
    before = lean.pid()
    reply = lean.ask(DOUBLING, limits(memory_mib=200))
    assert (reply.report.run.limit, reply.report.run.box_error) == ("memory", None)
    again = lean.ask(TRUE)
    assert (again.report.run.limit, again.report.run.exit_status) == (None, 0)
    assert again.report.run.peak_memory_kib < 100 << 10
    assert lean.pid() == before


def test_too_many_processes_are_the_checks_limit_and_the_image_lives(lean: Lean, mark: Mark) -> None:
    before = lean.pid()
    many = f"for i in $(seq 100); do {mark.sleep} & done > /dev/null 2>&1; wait"
    reply = lean.ask(shell(many), limits(processes=32, memory_mib=4096))
    assert (reply.report.run.limit, reply.report.run.box_error) == ("processes", None)
    assert mark.found() == []
    again = lean.ask(TRUE)
    assert (again.report.run.limit, again.report.run.exit_status) == (None, 0)
    assert lean.pid() == before


@pytest.mark.parametrize(
    "level", ["landlock", "cgroup+bwrap", pytest.param("cgroup", marks=pytest.mark.long)]
)
def test_a_fork_bomb_is_over_at_its_limit(
    core: LeanEnvironment, tmp_path: Path, mark: Mark, level: str
) -> None:
    with isolated(tmp_path, level) as isolation:
        for lean in lean_of(isolation, core):
            bomb = f"f() {{ f | f & {mark.sleep}; }}; f"
            reply = lean.ask(shell(bomb), limits(processes=32, memory_mib=1 << 16))
            assert reply.report.run.limit == "processes"
            eventually(lambda: mark.found() == [])
            assert lean.ask(TRUE).report.run.exit_status == 0


def test_a_check_that_stops_all_it_can_ends_at_its_wall_time(lean: Lean, mark: Mark) -> None:
    stop = f"{mark.sleep} & kill -STOP $PPID $!; kill -STOP $$"
    reply = lean.ask(shell(stop), limits(wall_seconds=0.3))
    assert (reply.report.run.limit, reply.report.run.box_error) == ("wall", None)
    assert mark.found() == []


def test_a_flood_on_both_streams_is_bounded(lean: Lean) -> None:
    flood = "yes >&2 & yes >&2 & head -c 10000000 /dev/zero >&2; kill -ABRT $PPID"
    reply = lean.ask(shell(flood, call="shell"), limits(memory_mib=1024))
    assert reply.report.run.limit == "output"
    assert len(reply.report.answer.foreign_output) <= 64 << 10


def test_messages_before_a_kill_are_there(lean: Lean) -> None:
    early = HEADER + "theorem early : False := nothing\n" + ENDLESS.removeprefix(HEADER)
    reply = lean.ask(early, limits(wall_seconds=1.0))
    assert reply.report.run.limit == "wall"
    assert [each.line for each in reply.report.answer.messages] == [3]


# The module that it leaves.

NOT_TAKEN = {
    "a link": "ln -s /etc/ld.so.cache Module.olean",
    "a link to a file beside it": "echo x > other; ln -s other Module.olean",
    "a pipe": "mkfifo Module.olean",
    "a folder": "mkdir Module.olean",
    "a file without end": "truncate -s 300M Module.olean || truncate -s 0 Module.olean",
    "an empty file": ": > Module.olean",
    "nothing": "true",
}


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_is_no_plain_file_of_a_fitting_size_is_no_module(lean: Lean, name: str) -> None:
    reply = lean.ask(shell(NOT_TAKEN[name], OUT))
    assert reply.report.run.exit_status == 0, reply
    assert reply.module is None


def test_a_large_file_with_holes_is_taken_whole(lean: Lean) -> None:
    reply = lean.ask(shell("truncate -s 200M Module.olean", OUT))
    assert reply.module is not None
    with reply.module as module:
        assert os.fstat(module.fileno()).st_size == 200 << 20


def test_a_module_that_is_still_written_to_is_taken_once_and_stays_what_it_was(
    lean: Lean, mark: Mark
) -> None:
    more = f"(trap '' TERM; while echo x >> Module.olean; do :; done; {mark.sleep}) > /dev/null 2>&1 &\n"
    wait = "while ! test -s Module.olean; do :; done"
    reply = lean.ask(shell(more + wait, OUT))
    assert reply.module is not None
    with reply.module as module:
        first = module.read()
        assert set(first.split()) == {b"x"}
        assert module.seek(0) == 0
        assert module.read() == first
        sealed = fcntl.fcntl(module, fcntl.F_GET_SEALS)
    assert sealed == fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL


def test_a_check_that_was_killed_leaves_no_module(lean: Lean) -> None:
    reply = lean.ask(shell("echo x > Module.olean; kill -ABRT $PPID"))
    assert (reply.report.run.signal, reply.report.run.box_error, reply.module) == (signal.SIGABRT, None, None)


# The gate.


def test_a_cell_is_in_its_group_before_anything_is_read(grouped_lean: Lean) -> None:
    request = {"program": TRUE, "module": None}
    with grouped_lean.image() as image:
        fork = image.check(request, limits())
        try:
            inside = [each for each in groups(grouped_lean.isolation) if fork.pid in _members(each)]
            assert len(inside) == len(set(grouped_lean.isolation.groups.folders.values()))  # type: ignore[union-attr]
            assert [each.pid for each in family(fork.pid)] == [fork.pid]
            run = watched(fork, limits(), grouped_lean.isolation)
        finally:
            fork.close()
    assert run.exit_status == 0


def _members(folder: Path) -> list[int]:
    return [int(word) for word in (folder / "cgroup.procs").read_text().split()]


def test_a_cell_that_is_not_let_go_on_ends(lean: Lean) -> None:
    with lean.image() as image:
        fork = image.check({"program": TRUE, "module": None}, limits())
        pid = fork.pid
        fork.close()
    assert process(pid) is None


# Keepers: process 1 of the pid namespaces of cells, one check after the other.


def test_more_checks_at_once_than_an_image_has_keepers_have_a_namespace_each(
    closed: Isolation, core: LeanEnvironment
) -> None:
    for lean in lean_of(closed, core):
        with lean.image() as image, ExitStack() as at_once:
            forks = [image.check({"program": TRUE, "module": None}, limits()) for _ in range(7)]
            for fork in forks:
                at_once.enter_context(closing(fork))
            spaces = {Path(f"/proc/{fork.pid}/ns/pid").readlink() for fork in forks}
            runs = [watched(fork, limits(), closed) for fork in forks]
        assert len(spaces) == 7
        assert [run.exit_status for run in runs] == 7 * [0]
        before = len(family(lean.pid()))
        assert lean.ask(TRUE).report.run.exit_status == 0
        assert len(family(lean.pid())) == before


def test_what_one_check_leaves_is_dead_before_the_next_has_its_namespace(
    closed: Isolation, core: LeanEnvironment, mark: Mark
) -> None:
    for lean in lean_of(closed, core):
        for _ in range(6):
            left = lean.ask(shell(f"(setsid setsid {mark.sleep} &) > /dev/null 2>&1", ON))
            assert left.report.run.exit_status == 0
            assert mark.found() == []
            assert lean.ask(TRUE).report.run.exit_status == 0


def test_a_keeper_that_is_killed_costs_no_verdict(closed: Isolation, core: LeanEnvironment) -> None:
    for lean in lean_of(closed, core):
        image = lean.pid()
        keepers = [each.pid for each in family(image) if each.parent == image]
        assert keepers
        for keeper in keepers:
            os.kill(keeper, signal.SIGKILL)
        for _ in keepers:
            with suppress(BoxFailed):
                run = lean.ask(TRUE).report.run
                assert run.exit_status == 0 or run.box_error  # which is tried again, and no verdict
        assert lean.ask(TRUE).report.run.exit_status == 0
        assert lean.pid() == image


# What an image must not have.


def _said_by_an_image(core: LeanEnvironment, folder: Path, before: str) -> bytes:
    """Return the answer of an image that did something before it began, in a folder that it may write to."""
    assert core.library is not None
    words = images.command(PYTHON, ["folders", "-1", "", ""], core.library, core.lean[1:])
    words[words.index("-c") + 1] = f"{before}; {words[words.index('-c') + 1]}"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (
        ours,
        subprocess.Popen(words, stdin=theirs, env=environment_variables(core), cwd=folder),
        as_file(KEY.header.encode()) as file,
    ):
        theirs.close()
        ours.settimeout(60 * PATIENCE)
        socket.send_fds(ours, [protocol.RECIPE], [file])
        said = ours.recv(protocol.MOST_BYTES)
        ours.shutdown(socket.SHUT_RDWR)
    return said


@pytest.mark.parametrize(
    ("before", "why"),
    [
        ("import mmap; held = mmap.mmap(-1, 4096)", b"writable shared memory"),
        ("import os; held = os.memfd_create('x')", b"an unknown descriptor: /memfd:x"),
        ("held = open('/etc/passwd')", b"an unknown descriptor: /etc/passwd"),
    ],
)
def test_an_image_does_not_serve_with_what_its_forks_would_share(
    core: LeanEnvironment, tmp_path: Path, before: str, why: bytes
) -> None:
    assert _said_by_an_image(core, tmp_path, "pass") == protocol.READY
    assert why in _said_by_an_image(core, tmp_path, before)


# What an image lives through, and how it ends.


def test_a_fork_that_fails_is_the_farms_failure_and_costs_nobody_else_anything(grouped_lean: Lean) -> None:
    image = grouped_lean.pid()
    alone = len(family(image))
    (folder,) = {
        each
        for each in groups(grouped_lean.isolation)
        if image in _members(each) and (each / "pids.max").exists()
    }
    done = threading.Event()
    with ThreadPoolExecutor(1) as pool, set_at_the_end(done):
        other = pool.submit(
            grouped_lean.ask, ENDLESS, limits(wall_seconds=60.0, cpu_seconds=60.0), done.is_set
        )
        eventually(lambda: len(family(image)) > alone)
        most = (folder / "pids.max").read_text()
        (folder / "pids.max").write_text((folder / "pids.current").read_text())
        try:
            with pytest.raises(BoxFailed, match="BlockingIOError"):
                grouped_lean.ask(TRUE)
        finally:
            (folder / "pids.max").write_text(most)
        assert not other.done()
        done.set()
        assert other.result().report.run.box_error == box.CANCELLED
    assert grouped_lean.ask(TRUE).report.run.exit_status == 0
    assert grouped_lean.pid() == image


def test_a_header_that_has_an_error_without_end_is_told_as_a_fresh_lean_tells_it(lean: Lean) -> None:
    program = f"prelude\nimport {100_000 * 'A'}\ntheorem t : True := True.intro\n"
    leans = LeanRunner(lean.isolation, way="forked", most_images=1)
    question = Question.of(program, lean.core, limits(output_kib=1024), box.never)
    try:
        with leans.compiled(question) as reply, leans.compiled(replace(question, way="cold")) as cold:
            assert reply.report.answer.messages == cold.report.answer.messages
            assert reply.report.answer.messages
    finally:
        leans.close()


def test_lines_of_a_header_that_end_in_two_characters_are_read_once(lean: Lean) -> None:
    program = TRUE.replace("\n", "\r\n")
    with lean.images.lease(lean.core, Recipe(header=program[: header_end(program)] + "\n"), box.never):
        reply = lean.ask(program + "#print axioms nothing\r\n")
    assert [each.line for each in reply.report.answer.messages if each.severity == "error"] == [4]


def test_threads_that_ask_at_once_share_one_image(level: Isolation, core: LeanEnvironment) -> None:
    images_ = Images(level, lean_image, most=1)
    before = {each.pid for each in served()}

    def pid(_: int) -> Image:
        with images_.lease(core, KEY, box.never) as image:
            return image

    try:
        with ThreadPoolExecutor(4) as pool:
            assert len(set(pool.map(pid, range(4)))) == 1
        assert len({each.pid for each in served()} - before) == 1
    finally:
        images_.close()


def test_images_that_are_too_large_together_make_room_for_the_one_last_asked_for(
    level: Isolation, core: LeanEnvironment
) -> None:
    headers = [KEY, Recipe(header=KEY.header.replace("import", " import"))]
    for most_mib, left in ((1, 1), (8192, 2)):
        images_ = Images(level, lean_image, most=4, most_mib=most_mib)
        before = {each.pid for each in served()}
        try:
            for header in headers:
                with images_.lease(core, header, box.never) as image:
                    assert image.memory_kib > 1024
            with images_.lease(core, headers[-1], box.never) as again:
                assert again is image
            assert len({each.pid for each in served()} - before) == left
        finally:
            images_.close()


def test_closing_does_not_wait_for_an_import_and_leaves_nobody_waiting(
    level: Isolation, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "command", lambda *_: ["sleep", "1000"])
    before = {each.pid for each in family(os.getpid())}
    images_ = Images(level, lean_image, most=1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: images_.lease(core, KEY, box.never).__enter__())
        eventually(lambda: any(each.program == "sleep" for each in family(os.getpid())))
        images_.close()
        with pytest.raises(BoxFailed, match="closed"):
            waiting.result(SOON)
    with pytest.raises(BoxFailed, match="closed"), images_.lease(core, KEY, box.never):
        pass
    assert {each.pid for each in family(os.getpid())} <= before


def test_who_cancels_does_not_wait_for_an_import(
    level: Isolation, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "command", lambda *_: ["sleep", "1000"])
    images_ = Images(level, lean_image, most=1)
    try:
        with pytest.raises(NotWanted), images_.lease(core, KEY, lambda: True):
            pass
    finally:
        images_.close()


def test_an_image_that_nobody_waits_for_makes_room_while_it_is_made(
    level: Isolation, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    images_ = Images(level, lean_image, most=1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(images, "command", lambda *_: ["sleep", "1000"])
            images_.prewarm(core, Recipe(header="prelude\n"))
            eventually(lambda: any(each.program == "sleep" for each in family(os.getpid())))
        with images_.lease(core, KEY, box.never) as image:
            assert image.wait(0)
        assert not any(each.program == "sleep" for each in family(os.getpid()))
    finally:
        images_.close()


def test_an_image_that_dies_without_a_word_is_made_again_for_the_next(
    level: Isolation, core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    images_ = Images(level, lean_image, most=1)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(images, "command", lambda *_: ["false"])
            with pytest.raises(NoImage), images_.lease(core, KEY, box.never):
                pass
        with images_.lease(core, KEY, box.never) as image:
            assert image.wait(0)
    finally:
        images_.close()


HOLDER = """
import json, sys
from pathlib import Path
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import prepared
from farm_workers.machine.environments import installed
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.lean.forked import Forked
from farm_workers.lean.way import Question
with prepared(Path(sys.argv[1]), most=sys.argv[2]) as isolation:
    core = installed(Path(sys.argv[3]), None, isolation).sound["core"]
    groups = [str(folder) for folder in set(isolation.groups.folders.values())] if isolation.groups else []
    print(json.dumps([str(isolation.folder), *groups]), flush=True)
    question = Question.of(sys.stdin.read(), core, Limits(wall_seconds=100), box.never)
    reply = Forked(isolation, Images(isolation, lean_image, most=1)).compile(question)
    print(json.dumps([isolation.name, reply.report.run.exit_status]), flush=True)
"""


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the core library is compiled by the first who looks for it."""
    return tmp_path_factory.mktemp("environments")


def test_a_worker_that_is_killed_takes_its_images_along_and_the_next_its_things(
    request: pytest.FixtureRequest, level: Isolation, mark: Mark, tmp_path: Path, environments: Path
) -> None:
    most = request.node.callspec.params["level"]
    words = [sys.executable, "-c", HOLDER, str(tmp_path / "work"), most, str(environments)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        made = [Path(path) for path in json.loads(holder.stdout.readline())]
        holder.stdin.write(shell(f"(setsid {mark.sleep} &) ; {mark.sleep}"))
        holder.stdin.close()
        eventually(lambda: len([each for each in mark.found() if each.program == "sleep"]) == 2, seconds=60)
        members = family(holder.pid)
        holder.kill()
        holder.wait()
    eventually(lambda: not [each for each in members if _alive(each)])
    assert mark.found() == []
    with prepared(tmp_path / "work", most=most):
        assert not any(map(Path.exists, made))


def _alive(member: Process) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return member.alive
    return False


# Where no namespaces are to be had.


def test_where_namespaces_are_denied_checks_are_forked_all_the_same(tmp_path: Path) -> None:
    words = [
        *PREFIX,
        sys.executable,
        "-c",
        HOLDER,
        tmp_path / "work",
        "cgroup+bwrap",
        tmp_path / "environments",
    ]
    env = {**os.environ, "PYTHONPATH": CODE}
    said = subprocess.run(list(map(str, words)), input=TRUE, capture_output=True, text=True, env=env)
    assert said.returncode == 0, said.stderr
    level, status = json.loads(said.stdout.splitlines()[-1])
    assert "bwrap" not in level
    assert status == 0


# A program that crashes in a fork is given to a fresh Lean as well. This one tells them apart: a cell of an
# image has no /proc.

CRASH_IN_A_FORK = "if [ -e /proc/self ]; then {}; else kill -ABRT $PPID; fi"


def two_faced(closed: Isolation, core: LeanEnvironment, folder: Path, in_a_fresh_lean: str) -> list[Reason]:
    """Return the reasons that such a program gets three times."""
    check = Check.of(program=shell(CRASH_IN_A_FORK.format(in_a_fresh_lean), OUT))
    with Checker(closed, home=folder) as checker:
        return [judge(checker.check(check, core)).reason for _ in range(3)]


def test_a_program_that_is_killed_where_it_is_not_forked_has_crashed(
    closed: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    assert two_faced(closed, core, tmp_path, "kill -KILL $PPID") == 3 * [Reason.CRASH]


def test_a_program_that_ends_where_it_is_not_forked_is_judged_by_that_and_costs_one_image(
    closed: Isolation, core: LeanEnvironment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (found,) = set(two_faced(closed, core, tmp_path, "true"))
    assert len([each for each in caplog.messages if "image is given up" in each]) == 1
    assert found is not Reason.CRASH
    assert OUTCOMES[found] is Outcome.REJECTED
