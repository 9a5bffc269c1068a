"""A fork server, inside its box: forks for each request, waits, clears away, and answers.

Standard input is one end of a socket that keeps messages apart (SOCK_SEQPACKET). A request is one message:
a JSON object with ``words``, ``cpu_seconds`` (whole, -1 for any number) and ``output`` (the name of a file
to hand over, or null), and with it the file descriptors of the work's stdin, stdout and stderr, then any
others. The answer is ``{"status": wait status, "cpu_seconds": float}``, with the file's descriptor where the
work ended with status 0 and left it. The first message of all is `READY`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import shutil
import signal
import socket
import stat
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

READY = b"ready"
MOST_BYTES, MOST_FILES = 1 << 16, 8
# From <linux/prctl.h>.
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36

#: What is done for one request, in a process and an empty folder of its own: takes the words and the
#: descriptors of the further files, and returns the exit status.
Work = Callable[[list[str], list[int]], int]


def serve(work: Work) -> None:
    """Answer requests until nobody can ask any more."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # Whoever does the work is the same user: it must not read or trace the process that serves the next one.
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    with socket.socket(fileno=os.dup(0)) as asker:
        asker.send(READY)
        while True:
            message, files, _, _ = socket.recv_fds(asker, MOST_BYTES, MOST_FILES)
            if not message:
                return
            _answer(asker, json.loads(message), files, work)


def _answer(asker: socket.socket, request: dict[str, Any], files: Sequence[int], work: Work) -> None:
    folder = tempfile.mkdtemp(dir=os.getcwd())  # noqa: PTH109 - as it is, links and all
    try:
        pid = os.fork()
        if pid == 0:
            _do(request, files, folder, work)
        for file in files:
            os.close(file)
        _, status, used = os.wait4(pid, 0)
        _end_strays()
        answer = {"status": status, "cpu_seconds": used.ru_utime + used.ru_stime}
        with contextlib.ExitStack() as stack:
            output = _output(folder, request["output"]) if status == 0 else None
            if output is not None:
                stack.callback(os.close, output)
            socket.send_fds(asker, [json.dumps(answer).encode()], [] if output is None else [output])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _do(request: dict[str, Any], files: Sequence[int], folder: str, work: Work) -> NoReturn:
    status = 1
    try:
        for number, file in enumerate(files[:3]):
            os.dup2(file, number)
        further = [_moved(file, 100 + place) for place, file in enumerate(files[3:])]
        os.closerange(3, 100)
        os.closerange(100 + len(further), 1 << 12)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.chdir(folder)
        if request["cpu_seconds"] >= 0:
            _, hard = resource.getrlimit(resource.RLIMIT_CPU)
            resource.setrlimit(resource.RLIMIT_CPU, (request["cpu_seconds"], hard))
        status = work(request["words"], further)
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - this process must not become a second server
        traceback.print_exc()
    finally:
        os._exit(status)


def _moved(file: int, to: int) -> int:
    os.dup2(file, to)
    return to


def _output(folder: str, name: str | None) -> int | None:
    """Open what the work left under a name, if it is a plain file."""
    if name is None:
        return None
    try:
        file = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # noqa: PTH118
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    return None


def _end_strays() -> None:
    """Kill and reap whatever the work left behind: as subreaper this process is its parent by then."""
    while True:
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):  # noqa: PTH208
        with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/children", "rb") as file:  # noqa: PTH123
            found += map(int, file.read().split())
    return found
