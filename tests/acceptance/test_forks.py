"""Fork servers in boxes of every level: what work can do, and that the next work finds nothing of it."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from farm.job import Limits
from tests.levels import LEVELS, groups, isolated, open_files, own_children
from workers import forks
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation
from workers.forks.server import PerThread, Program, Server, ServerGone

PYTHON = os.path.realpath(sys._base_executable)
#: A server whose work is to run the Python program that is its first word.
SERVE = """
import os, sys
sys.path.insert(0, {root!r})
from workers.forks.serve import serve
secret = "the server's own"
def work(words, files):
    exec(words[0], {{"files": files, "os": os, "sys": sys}})
    return 0
serve(work)
"""
ROOT = str(Path(forks.__file__).parents[2])
LIMITS = Limits(wall_seconds=20.0, cpu_seconds=20.0, memory_mib=128)
PROGRAM = Program(
    command=(PYTHON, "-I", "-S", "-c", SERVE.format(root=ROOT)), variables=(), visible=forks.FOLDERS
)


@pytest.fixture(scope="module", params=LEVELS)
def isolation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Isolation]:
    with isolated(tmp_path_factory.mktemp("work"), request.param) as isolation:
        yield isolation


@pytest.fixture
def server(isolation: Isolation) -> Iterator[Server]:
    server = Server(PROGRAM, isolation)
    yield server
    server.close()


Ask = Callable[..., str]


@pytest.fixture
def ask(server: Server) -> Ask:
    """Have a Python program done, and return what it printed."""

    def run(program: str, **more: object) -> str:
        run, file = server.run([program], limits=LIMITS, **more)  # type: ignore[arg-type]
        assert file is None
        assert (run.exit_status, run.limit, run.box_error, run.stderr) == (0, None, None, b"")
        return run.stdout.decode()

    return run


def test_work_gets_its_words_its_input_and_its_files(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("from a file")
    with (tmp_path / "file").open("rb") as file:
        program = "print(sys.stdin.read(), os.read(files[0], 100).decode())"
        assert ask(program, stdin=b"from stdin", files=[file.fileno()]) == "from stdin from a file\n"


def test_what_work_leaves_under_the_right_name_is_handed_over(server: Server) -> None:
    run, file = server.run(["open('made', 'w').write('work')"], limits=LIMITS, output="made")
    assert run.exit_status == 0
    assert file is not None
    with file:
        assert file.read() == b"work"


@pytest.mark.parametrize(
    "program",
    [
        "pass",
        "os.symlink('/etc/passwd', 'made')",
        "os.mkfifo('made')",
        "os.mkdir('made')",
        "open('made', 'w').write('work'); os._exit(1)",
        "open('made', 'w').write('work'); os.kill(os.getpid(), 9)",
        "open('made', 'w').write('work'); raise ValueError",
    ],
)
def test_only_a_plain_file_of_work_that_ended_well_is_handed_over(server: Server, program: str) -> None:
    _, file = server.run([program], limits=LIMITS, output="made")
    assert file is None
    assert server.fit


def test_how_work_ends_is_told(server: Server) -> None:
    run, _ = server.run(["os._exit(7)"], limits=LIMITS)
    assert (run.exit_status, run.signal, run.box_error) == (7, None, None)
    run, _ = server.run(["os.kill(os.getpid(), 11)"], limits=LIMITS)
    assert (run.exit_status, run.signal, run.box_error) == (None, 11, None)
    run, _ = server.run(["raise SystemError('what it was')"], limits=LIMITS)
    assert run.exit_status == 1
    assert b"what it was" in run.stderr


def test_work_begins_as_the_work_before_it_did(ask: Ask) -> None:
    ask("sys.modules['left'] = 1; os.environ['LEFT'] = '1'; open('left', 'w'); os.umask(0o123)")
    assert ask("print('left' in sys.modules, 'LEFT' in os.environ, os.listdir('.'), oct(os.umask(0)))") in (
        "False False [] 0o22\n",
        "False False [] 0o77\n",
    )


def test_work_has_no_file_of_the_server_or_of_the_work_before(ask: Ask) -> None:
    assert ask("print(sorted(map(int, os.listdir('/proc/self/fd')))[:3])") == "[0, 1, 2]\n"
    listed = "print(len([f for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)]))"
    first = ask(listed)
    for _ in range(3):
        assert ask(listed) == first


def test_work_cannot_read_the_server(ask: Ask) -> None:
    read = """
try:
    open(f"/proc/{os.getppid()}/mem", "rb")
except OSError as error:
    print(type(error).__name__)
"""
    assert ask(read) == "PermissionError\n"


def test_nothing_that_work_started_is_there_for_the_next(ask: Ask) -> None:
    leave = """
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                pass
        os._exit(0)
"""
    children = """
import time
children = open(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read().split()
print(children == [str(os.getpid())])
"""
    ask(leave)
    assert ask(children) == "True\n"


LIMITED = {
    "wall": ("while True: import time; time.sleep(1)", dataclasses.replace(LIMITS, wall_seconds=0.5)),
    "cpu": ("while True: pass", dataclasses.replace(LIMITS, cpu_seconds=0.5)),
    "memory": ("kept = [b'x' * (1 << 20) for _ in range(1 << 12)]", LIMITS),
    "output": ("print('x' * (1 << 22))", LIMITS),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_a_limit_ends_work_and_is_named(server: Server, limit: str) -> None:
    program, limits = LIMITED[limit]
    run, file = server.run([program], limits=limits)
    assert (run.limit, run.box_error, file) == (limit, None, None)


def test_what_is_not_wanted_any_more_ends(server: Server) -> None:
    run, _ = server.run(["while True: pass"], limits=LIMITS, cancelled=lambda: True)
    assert run.box_error == "the check was cancelled"
    assert not server.fit


def test_work_that_kills_its_server_has_no_answer(server: Server) -> None:
    with pytest.raises(ServerGone):
        server.run(["os.kill(os.getppid(), 9)"], limits=LIMITS)
    assert not server.fit


def test_a_program_that_does_not_serve_is_told(isolation: Isolation) -> None:
    program = dataclasses.replace(PROGRAM, command=(PYTHON, "-c", "pass"))
    with pytest.raises(BoxFailed, match="did not get ready"):
        Server(program, isolation)


def test_a_thread_keeps_its_server_until_it_is_not_fit(isolation: Isolation) -> None:
    servers = PerThread(isolation)
    try:
        first = servers.get(PROGRAM)
        assert servers.get(PROGRAM) is first
        with pytest.raises(ServerGone):
            first.run(["os.kill(os.getppid(), 9)"], limits=LIMITS)
        second = servers.get(PROGRAM)
        assert second is not first
        run, _ = second.run(["print('there')"], limits=LIMITS)
        assert run.stdout == b"there\n"
    finally:
        servers.close()


def test_a_hundred_works_leave_nothing(isolation: Isolation) -> None:
    before = open_files(), own_children(), groups(isolation)
    server = Server(PROGRAM, isolation)
    for number in range(100):
        run, _ = server.run([f"print({number})"], limits=LIMITS, stdin=b"x" * 1000)
        assert run.stdout == f"{number}\n".encode()
    server.close()
    assert (open_files(), own_children(), groups(isolation)) == before
