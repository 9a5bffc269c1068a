"""A fork server, from outside: has something done by a fresh fork within limits, and returns facts."""

from __future__ import annotations

import contextlib
import json
import math
import os
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from farm.job import Limits
from workers.box import once as box
from workers.box.cell import BoxFailed, Cell, Ended
from workers.box.isolation import Isolation
from workers.box.once import FIRST_LOOK, SLOWEST_LOOK, Watch, as_file
from workers.box.procfs import Usage
from workers.forks.serve import MOST_BYTES, READY

#: Seconds that a server has to get ready, and to say what became of work that is over.
_START_SECONDS, _ANSWER_SECONDS = 60.0, 5.0
#: A server makes room for a fresh one after so much work: nothing of it is to grow for ever.
MOST_FORKS = 5_000
_UNLIMITED = Limits(wall_seconds=math.inf, cpu_seconds=math.inf, memory_mib=1 << 20)


class ServerGone(Exception):
    """The server ended, or did not answer: nothing is known of what it was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """What a fork server runs, its environment variables, and what it may read."""

    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    visible: tuple[Path, ...]


class Server:
    """One fork server in a cell; not for two threads at once. It dies with the thread that made it."""

    def __init__(self, program: Program, isolation: Isolation) -> None:
        """Start the server and wait until it is ready. Raises BoxFailed."""
        self._isolation, self._forks, self.fit = isolation, 0, True
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_START_SECONDS)
        with contextlib.ExitStack() as undo:
            undo.callback(self._socket.close)
            with theirs:
                self._cell = Cell(
                    program.command,
                    isolation=isolation,
                    limits=_UNLIMITED,
                    stdin=theirs.fileno(),
                    environment=dict(program.variables),
                    visible=program.visible,
                )
            undo.callback(self._cell.close)
            if self._received()[0] != READY:
                raise BoxFailed("a fork server did not get ready")
            undo.pop_all()
        self._socket.settimeout(_ANSWER_SECONDS)
        self._ready = self._cell.usage()

    def run(
        self,
        words: Sequence[str],
        *,
        limits: Limits,
        stdin: bytes = b"",
        files: Sequence[int] = (),
        output: str | None = None,
        cancelled: Callable[[], bool] = box.never,
    ) -> tuple[box.Run, BinaryIO | None]:
        """Have a fork work on `words` and `files`, and return once nothing of it is alive.

        Returns the facts, and the file `output` where the work ended with status 0 and left it, which is the
        caller's to close. A server that had to be ended is not `fit` any more. Raises ServerGone and
        BoxFailed.
        """
        self._forks += 1
        self.fit = False
        self._cell.allow(self._ready.memory_kib // 1024 + limits.memory_mib)
        self._cell.reset_peak()
        with contextlib.ExitStack() as ours:
            request = {"words": list(words), "cpu_seconds": math.ceil(limits.cpu_seconds), "output": output}
            work = self._begun(request, stdin, files, ours)
            watch = Watch(work, limits, SLOWEST_LOOK if self._isolation.groups else FIRST_LOOK)
            watch.until_over(cancelled)
            answer, output_file = self._answer() if work.alive else (None, None)
            run = watch.facts(work.ended(answer), self._isolation.name)
        if answer is None and run.limit is None and run.box_error == _GONE:
            raise ServerGone(_GONE)
        in_peace = answer is not None and run.limit is None and run.box_error is None
        self.fit = in_peace and self._forks < MOST_FORKS
        if output_file is not None and not in_peace:
            output_file.close()
            output_file = None
        return run, output_file

    def _begun(
        self, request: dict[str, object], stdin: bytes, files: Sequence[int], ours: contextlib.ExitStack
    ) -> _Work:
        with contextlib.ExitStack() as theirs:
            given = [theirs.enter_context(as_file(stdin))]
            read = []
            for _ in range(2):
                reading, writing = os.pipe()
                ours.callback(os.close, reading)
                theirs.callback(os.close, writing)
                os.set_blocking(reading, False)
                read.append(reading)
                given.append(writing)
            try:
                socket.send_fds(self._socket, [json.dumps(request).encode()], [*given, *files])
            except OSError as error:
                raise ServerGone(_GONE) from error
        stdout, stderr = read
        return _Work(self._cell, self._ready, stdout=stdout, stderr=stderr, over=self._socket.fileno())

    def _answer(self) -> tuple[dict[str, Any] | None, BinaryIO | None]:
        message, files = self._received()
        if not message:
            return None, None
        return json.loads(message), open(files[0], "rb") if files else None  # noqa: PTH123

    def _received(self) -> tuple[bytes, list[int]]:
        try:
            message, files, _, _ = socket.recv_fds(self._socket, MOST_BYTES, 1)
        except OSError:
            return b"", []
        return message, files

    def close(self) -> None:
        """End the server with all that belongs to it."""
        self._socket.close()
        self._cell.close()


_GONE = "a fork server ended"


class _Work:
    """What is going on in the cell of a fork server since something was asked of it."""

    def __init__(self, cell: Cell, ready: Usage, *, stdout: int, stderr: int, over: int) -> None:
        self._cell, self._ready = cell, ready
        self._before = cell.usage()
        self.stdout, self.stderr, self.over = stdout, stderr, over
        self.alive = True

    @property
    def seen(self) -> Usage:
        """What it used at the last look."""
        now = self._cell.seen
        return replace(
            now,
            cpu_seconds=now.cpu_seconds - self._before.cpu_seconds,
            memory_kib=max(0, now.memory_kib - self._ready.memory_kib),
            peak_memory_kib=max(0, now.peak_memory_kib - self._ready.memory_kib),
        )

    def breach(self) -> str | None:
        """Return the limit that was hit, if one was."""
        return self._cell.breach()

    def kill(self) -> None:
        """End it, and the server with it."""
        self.alive = False
        self._cell.kill()

    def ended(self, answer: dict[str, Any] | None) -> Ended:
        """Return how it ended, by the server's answer if there is one."""
        self._cell.usage()
        breach = self._cell.breach()
        status = None if answer is None else answer["status"]
        return Ended(
            exit_status=None if status is None or not os.WIFEXITED(status) else os.WEXITSTATUS(status),
            signal=None if status is None or not os.WIFSIGNALED(status) else os.WTERMSIG(status),
            cpu_seconds=self.seen.cpu_seconds if answer is None else answer["cpu_seconds"],
            peak_memory_kib=self.seen.peak_memory_kib,
            oom_killed=breach == "memory",
            process_limit_hit=breach == "processes",
            error=_GONE if answer is None else None,
        )


class PerThread:
    """Fork servers, one of each program for each thread that asks, made when they are first needed."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._lock = threading.Lock()
        self._all: dict[tuple[int, Program], Server] = {}

    def get(self, program: Program) -> Server:
        """Return this thread's server, a fresh one where the last is not fit. Raises BoxFailed."""
        key = threading.get_ident(), program
        with self._lock:
            known = self._all.pop(key, None)
        if known is not None and not known.fit:
            known.close()
            known = None
        server = known or Server(program, self._isolation)
        with self._lock:
            self._all[key] = server
        return server

    def close(self) -> None:
        """End all servers; nothing may be asked any more."""
        with self._lock:
            servers = list(self._all.values())
            self._all.clear()
        for server in servers:
            server.close()
