"""Box step: starts `farm_workers.box.launch`, exchanges messages with it, and takes its result."""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.limits import Limits
from farm_workers.box import launch, procfs
from farm_workers.box.readable_paths import NO_PATHS, ReadablePaths
from farm_workers.box.sockets import socket_pair

#: Seconds for the supervisor to kill and reap the tree before the box does it.
GRACE = 3.0
#: Seconds until a supervisor that has not started is given up: a machine may be very busy.
START_SECONDS = 30.0

#: Process id, user and group as a socket delivers them: struct ucred of unix(7).
CREDENTIALS = struct.Struct("iII")
_MOST_BYTES = 1 << 16


class BoxFailed(Exception):
    """The farm failed to make, watch or end a box; this is no fact about the command."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BoxResult:
    """A supervisor's result: the command's wait status and the tree's processor time, or an error."""

    status: int | None = None
    cpu_seconds: float = 0.0
    error: str | None = None


NO_RESULT = BoxResult(error="the supervisor died before the command ended")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """A command that a box is to hold within limits of memory, processes, files, stack and cores.

    It begins in an empty folder of its own, and sees exactly `environment` besides PATH, LANG, and HOME and
    TMPDIR, which name that folder. `visible`: files and folders that it may read besides the system's;
    `writable`: one folder that it may write to, at its own path, besides its own and, in namespaces, /tmp;
    its content is untrusted, links to other places included. Only namespaces and Landlock keep other files
    from it. A `trusted` command belongs to the farm and never runs a submission itself: it may make
    namespaces and mounts for its children, which must give up that right. If ``limits.cpu_seconds`` is
    finite, a hard limit of processor time backs the caller's watch. `stack_bytes` is for its main thread.
    """

    words: Sequence[str]
    limits: Limits
    environment: Mapping[str, str] = field(default_factory=dict)
    visible: Sequence[Path] = ()
    writable: Path | None = None
    trusted: bool = False
    stack_bytes: int = launch.STACK_BYTES


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """The setting of a supervisor: its program and prefix, its working folder, the user of its command.

    `reads_all`: that user may read all files, whatever their modes. `readable` are descriptors of such files.
    `walls` are descriptors of Landlock's rules and of the filter of system calls for the command, if they
    separate it from others. `joins` are file descriptors of the files by which the command joins its control
    group; `pass_fds` those that `prefix` refers to. `meanwhile` is called while the supervisor starts.
    """

    program: Sequence[str]
    prefix: Sequence[str] = ()
    folder: Path | None = None
    user: int | None = None
    reads_all: bool = False
    stack_bytes: int = launch.STACK_BYTES
    readable: ReadablePaths = NO_PATHS
    walls: Sequence[int] = ()
    joins: Sequence[int] = ()
    pass_fds: Sequence[int] = ()
    meanwhile: Callable[[], None] | None = None


class BoxSupervisor:
    """A supervisor: its command waits at the gate, runs after `go`, and gives a result."""

    def __init__(self, command: Command, setting: Setting, *, stdin: int) -> None:
        """Start it and wait until its command is at the gate. Raises BoxFailed if it does not get there."""
        self._files = contextlib.ExitStack()
        self._handle: int | None = None
        self._error: str | None = None
        with contextlib.ExitStack() as undo:
            undo.callback(self.close)
            self._start(command, setting, stdin)
            if setting.meanwhile:
                setting.meanwhile()
            self._wait_until_ready()
            if setting.prefix:
                self._find()
            undo.pop_all()

    def _start(self, command: Command, setting: Setting, stdin: int) -> None:
        self._socket, theirs = socket_pair()
        self._files.enter_context(self._socket)
        self._files.callback(self._close_handle)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs:
            numbers = _numbers(theirs.fileno(), setting, command.limits, trusted=command.trusted)
            self._process = subprocess.Popen(
                [*setting.prefix, *setting.program, *numbers, *command.words],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=setting.folder,
                env=command.environment,
                pass_fds=(theirs.fileno(), *setting.joins, *setting.walls, *setting.pass_fds),
                start_new_session=True,
                bufsize=0,
            )
        self.pid = self._process.pid
        self._files.enter_context(self._process)  # closes its pipes and waits for it
        self._files.callback(self.kill_hard)
        assert self._process.stdout and self._process.stderr  # noqa: S101 # both are pipes
        self.stdout, self.stderr = self._process.stdout.fileno(), self._process.stderr.fileno()
        self.over = self._socket.fileno()
        for descriptor in (self.stdout, self.stderr):
            os.set_blocking(descriptor, False)

    def _wait_until_ready(self) -> None:
        self._socket.settimeout(START_SECONDS)
        try:
            said, ancillary, _, _ = self._socket.recvmsg(_MOST_BYTES, socket.CMSG_SPACE(CREDENTIALS.size))
        except TimeoutError:
            raise BoxFailed(f"the supervisor did not start within {START_SECONDS:g} s") from None
        if said != launch.READY:
            raise BoxFailed(said.decode(errors="replace") or self._last_words())
        self.command_pid = CREDENTIALS.unpack(ancillary[0][2])[0]

    def _find(self) -> None:
        """Find the supervisor that bubblewrap started: it is the parent of the command."""
        self.pid = procfs.parent(self.command_pid)
        self._handle = os.pidfd_open(self.pid)  # it is not our child: its number could be reused
        if procfs.parent(self.pid) != self._process.pid:
            raise BoxFailed("the supervisor died before the command started")

    def _last_words(self) -> str:
        """Return why the supervisor did not start; stderr has no output of a command yet."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE)
        with contextlib.suppress(BlockingIOError):
            if text := os.read(self.stderr, _MOST_BYTES).decode(errors="replace").strip():
                return f"the supervisor did not start: {text}"
        return f"the supervisor did not start (exit status {self._process.returncode})"

    def go(self) -> None:
        """Open the gate."""
        with contextlib.suppress(BrokenPipeError):  # it was killed: the result will report that
            self._socket.send(launch.GO)

    def end(self) -> None:
        """Have the supervisor kill the command's tree, even if a process in the tree has stopped it."""
        for number in (signal.SIGTERM, signal.SIGCONT):
            if self._handle is None:
                self._process.send_signal(number)
            else:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._handle, number)

    def result(self, seconds: float) -> BoxResult | None:
        """Return the supervisor's result; None if none comes within `seconds`."""
        self._socket.settimeout(seconds)
        try:
            while said := self._received():
                if not said.startswith(launch.CANNOT_RUN):
                    return BoxResult(error=self._error) if self._error else _result(said)
                self._error = said  # the command failed at the gate; the result follows
        except (TimeoutError, BlockingIOError):
            return None
        return BoxResult(error=self._error) if self._error else NO_RESULT

    def _received(self) -> str:
        """Return the next message, empty at the end."""
        try:
            said = self._socket.recv(_MOST_BYTES)
        except ConnectionResetError:  # raised once if the peer left a message unread: continue
            said = self._socket.recv(_MOST_BYTES)
        return said.decode(errors="replace")

    def kill_hard(self) -> None:
        """Kill the rest of the tree, then its supervisor, if the supervisor failed to do so."""
        if self._process.poll() is not None:
            return
        if self._handle is None:
            deadline = time.monotonic() + GRACE
            while launch.kill_tree(self._process.pid) and time.monotonic() < deadline:
                time.sleep(0.001)
        else:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            select.select([self._handle], [], [], GRACE)  # process 1 ends when its namespace is empty
        self._process.kill()

    def _close_handle(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def close(self) -> None:
        """Kill the remaining processes and close the pipes; returns when the supervisor is gone."""
        self._files.close()


def _numbers(box: int, setting: Setting, limits: Limits, *, trusted: bool) -> list[str]:
    """Return the supervisor's arguments before the command."""
    numbers = (
        box,
        ",".join(map(str, setting.joins)) or "-",
        ",".join(map(str, setting.walls)) or "-",
        -1 if setting.user is None else setting.user,
        int(setting.reads_all),
        # A second line of defence: the box notices the limit first.
        -1 if math.isinf(limits.cpu_seconds) else math.ceil(limits.cpu_seconds) + 1,
        (limits.memory_mib << 20) + launch.RESERVED_BYTES,
        launch.FILE_BYTES,
        launch.OPEN_FILES,
        setting.stack_bytes,
        # A control group counts them more narrowly, and a trusted command has children for many checks.
        -1 if setting.joins or trusted else procfs.most_tasks(),
    )
    return [str(number) for number in numbers]


def _result(said: str) -> BoxResult:
    status, user_us, system_us = map(int, said.split())
    return BoxResult(status=status, cpu_seconds=(user_us + system_us) / 1e6)
