"""Image step, one fork from outside: holds it within limits, watches and ends it, and reads its files."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import select
import signal
import socket
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from farm.judging.report import Execution
from farm.limits import Limits
from farm_workers.box import launch, procfs
from farm_workers.box.copy import as_file, taken
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.box.launch import FILE_BYTES
from farm_workers.box.leftovers import AT_ONCE, clear_away
from farm_workers.box.measured import Measured
from farm_workers.box.procfs import Usage
from farm_workers.box.sockets import socket_pair
from farm_workers.box.supervisor import CREDENTIALS, BoxFailed
from farm_workers.images import protocol

#: The most seconds until a fork is at its gate: a machine may be very busy.
_START_SECONDS = 30.0

#: A larger file besides a module was not written by the farm.
_WRITTEN_BYTES = 1 << 20

_NO_WORD = "an image exited before its fork"
#: An image's report of a fork's end: wait status, microseconds of the user's and of the system's time. An
#: image that has run untrusted code may send anything.
_ENDED = re.compile(rb"\d{1,5} \d{1,15} \d{1,15}")
_DESCRIPTOR = struct.Struct("i")

#: Sends an order with its descriptors to an image.
Send = Callable[[bytes, Sequence[int]], None]


class ImageGone(Exception):
    """The image ended before its fork was at the gate: nothing was done."""


class Fork(Measured):
    """A fork of an image, from its gate to its end; `farm_workers.box.once.watched` watches it.

    `stdout` and `stderr` are read ends of pipes, non-blocking; `over` becomes readable when it has ended.
    """

    def __init__(
        self,
        send: Send,
        what: bytes,
        request: Mapping[str, object],
        *,
        isolation: Isolation,
        limits: Limits,
        files: Sequence[int] = (),
        visible: Sequence[Path] = (),
    ) -> None:
        """Have an image fork for an order, and wait until the fork is at its gate.

        The fork reads `request` and its limits there; `files` are a seal's module, challenge and output file,
        or a module and the socket of an image, which stay the caller's. `visible` are the paths that a check
        may read. Raises ImageGone and BoxFailed.
        """
        self._what, self._isolation = what, isolation
        self._handle: int | None = None
        self._said = b""
        self._is_over = False
        self._folder: int | None = None
        self._place: Path | None = None
        self._files = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.callback(self._files.close)
            try:
                super().__init__(limits, is_grouped=isolation.groups is not None)
                self._start(send, {**request, **_bounds(limits, self._tasks.most)}, files, visible)
            except OSError as error:
                raise BoxFailed(f"{type(error).__name__}: {error}") from error
            undo.pop_all()

    def _start(
        self, send: Send, request: Mapping[str, object], files: Sequence[int], visible: Sequence[Path]
    ) -> None:
        self._group = None
        if self._isolation.groups is not None:
            self._group = self._isolation.groups.lend(self._limits)
            self._files.callback(self._isolation.groups.give_back, self._group)
        self._socket, theirs = socket_pair()
        self._files.enter_context(self._socket)
        self._files.callback(self._close_handle)
        self._files.callback(self._end_hard)
        self.over = self._socket.fileno()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with contextlib.ExitStack() as given:
            given.enter_context(theirs)
            asked = given.enter_context(as_file(json.dumps(request).encode()))
            self.stdout, stdout = self._pipe(given)
            self.stderr, stderr = self._pipe(given)
            doors = self._group.doors() if self._group else []
            place = self._workplace(given, visible) if self._what in protocol.IN_CELLS else []
            try:
                send(self._what, [theirs.fileno(), asked, stdout, stderr, *place, *files, *doors])
            except OSError as error:
                raise ImageGone(str(error)) from error
        self._wait_until_ready()

    def _pipe(self, given: contextlib.ExitStack) -> tuple[int, int]:
        reading, writing = os.pipe()
        self._files.callback(os.close, reading)
        given.callback(os.close, writing)
        os.set_blocking(reading, False)
        return reading, writing

    def _workplace(self, given: contextlib.ExitStack, visible: Sequence[Path]) -> list[int]:
        """Return the folder of a check and its rules; a check with its own mounts makes the folder there."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        given.callback(os.close, nothing)
        if self._isolation.namespaces:
            return [nothing, nothing]
        path = self._place = self._files.enter_context(fresh_folder(self._isolation.folder))
        if (user := user_of_checks(self._isolation)) >= 0:
            os.chown(path, user, user)
        folder = os.open(path, os.O_RDONLY)
        given.callback(os.close, folder)
        if self._isolation.walls is None:
            return [folder, nothing]
        return [folder, given.enter_context(self._isolation.walls.rules(visible, [path]))]

    def _wait_until_ready(self) -> None:
        self._socket.settimeout(_START_SECONDS)
        room = socket.CMSG_SPACE(CREDENTIALS.size) + socket.CMSG_SPACE(4)
        try:
            said, ancillary, flags, _ = self._socket.recvmsg(
                protocol.MOST_BYTES, room, socket.MSG_CMSG_CLOEXEC
            )
        except TimeoutError:
            raise ImageGone(f"a fork was not ready within {_START_SECONDS:g} s") from None
        except ConnectionResetError as error:
            raise ImageGone(str(error)) from error
        if said.startswith(protocol.FAILED):
            raise BoxFailed(_why(said))
        if said != protocol.READY:
            raise ImageGone("an image exited, or could not fork")
        for _, kind, data in ancillary:
            if kind == socket.SCM_RIGHTS:
                for (descriptor,) in _DESCRIPTOR.iter_unpack(data):
                    self._files.callback(os.close, descriptor)
                    self._folder = descriptor
            else:
                self.pid = CREDENTIALS.unpack(data)[0]
        # Linux drops a descriptor that this process has no room for: then the fork's files cannot be found.
        if flags & socket.MSG_CTRUNC or (self._what in protocol.IN_CELLS and self._folder is None):
            raise BoxFailed("the folder of a fork was not received: this process has no descriptor left")
        self._handle = os.pidfd_open(self.pid)  # it waits at its gate: the number is its own

    def go(self) -> None:
        """Open the gate: the fork's time begins."""
        with contextlib.suppress(OSError):  # it was killed: its end will report that
            self._socket.send(protocol.GO)

    def _sampled(self) -> Usage:
        return procfs.usage(self.pid, itself=True)

    def _processes(self) -> Iterable[int]:
        return [self.pid, *launch.descendants(self.pid)]

    def kill(self) -> None:
        """Kill it with all its descendants; may be called again."""
        self._to_be_gone()
        with contextlib.suppress(OSError):  # closing makes sure
            if self._group:
                self._group.kill()
        if self._handle is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _end_hard(self) -> None:
        """Kill the fork, unless it has ended."""
        if self._handle is not None and not self._said:
            self.kill()
            self._has_said(self._to_be_gone())

    def _has_said(self, seconds: float) -> bool:
        """Return whether the fork's end was reported within `seconds`: then all of its processes are dead."""
        poll = select.poll()  # unlike select it takes any descriptor
        poll.register(self._socket, select.POLLIN)
        if not self._said and poll.poll(seconds * 1000):
            self._is_over = True
            with contextlib.suppress(ConnectionResetError):
                self._said = self._socket.recv(protocol.MOST_BYTES)
        return bool(self._said)

    @property
    def is_told(self) -> bool:
        """Whether its image has reported the fork's end."""
        return _ENDED.fullmatch(self._said) is not None

    def _close_handle(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def close(self) -> None:
        """Kill the remaining processes, and close the fork. Raises BoxFailed if that fails.

        Processes that do not die at once, or whose image does not reply, are cleared away in the background.
        """
        try:
            self._end_hard()
            if self._handle is None or self._is_over:
                self._files.close()
            else:
                clear_away(self._files.pop_all(), "A fork")
        except OSError as error:
            raise BoxFailed(f"a fork could not be removed: {error}") from error

    def ended(self) -> Execution:
        """Kill its living processes, and return how it ended once none lives. Raises BoxFailed.

        If its image does not reply, this returns after a second at most, and processes may still live.
        """
        in_peace = self._has_said(0)
        try:
            if not in_peace:
                self._end_hard()
            if not self._is_over:
                return self._late_facts()
            if self._group:
                self._group.end(AT_ONCE)
            elif not in_peace and self._place is not None:  # without its image no parent can find the strays
                procfs.kill_strays(self._place, seconds=AT_ONCE)
            return self._end_facts()
        except OSError as error:
            self._is_over = False  # so that no thread waits for it any longer
            raise BoxFailed(f"a fork could not be killed: {error}") from error

    def _end_facts(self) -> Execution:
        said = self._said
        if not said or said.startswith(protocol.FAILED):
            return self._facts(None, 0.0, _why(said) if said else _NO_WORD)
        if not _ENDED.fullmatch(said):
            return self._facts(None, 0.0, "an image sent a malformed report of its fork's end")
        status, *spent = map(int, said.split())
        return self._facts(status, sum(spent) / 1e6, None)

    def left(self) -> BinaryIO | None:
        """Return a sealed copy of the module that it wrote, None if it wrote none; after `ended`.

        Raises BoxFailed, as `context` and `written` do, where a file cannot be read.
        """
        return self._taken(protocol.MODULE_NAME)

    def context(self) -> bytes | None:
        """Return the module that it wrote of a context, None if it wrote none; after `ended`."""
        return _content(self._taken(protocol.CONTEXT_NAME))

    def written(self, name: str, *, most_bytes: int = _WRITTEN_BYTES) -> bytes | None:
        """Return the file of a name that it wrote, None if it wrote none or a longer one; after `ended`."""
        return _content(self._taken(name, most_bytes))

    def _taken(self, name: str, most_bytes: int = FILE_BYTES) -> BinaryIO | None:
        if self._folder is None:
            return None
        try:
            return taken(name, self._folder, most_bytes=most_bytes)
        except OSError as error:
            raise BoxFailed(f"a file of a check could not be read: {error}") from error


def _content(file: BinaryIO | None) -> bytes | None:
    with file or contextlib.nullcontext():
        return None if file is None else file.read()


def user_of_checks(isolation: Isolation) -> int:
    """Return the user of a check, -1 if it keeps the worker's."""
    if isolation.namespaces is not None:
        user = isolation.namespaces.checks.user
        return -1 if user is None else user
    return -1 if isolation.user is None else isolation.user


def place_of_forks(isolation: Isolation) -> str:
    """Return the kind of place that an image's forks have."""
    if isolation.namespaces is not None:
        return protocol.CELLS
    if isolation.walls is None:
        return protocol.FOLDERS
    return protocol.SCOPES if isolation.walls.scopes else protocol.WALLS


def _why(said: bytes) -> str:
    return f"a fork {said.decode(errors='replace')}"


def _bounds(limits: Limits, tasks: int) -> dict[str, int]:
    """Return the limits for the kernel, a second line of defence behind the caller's watch."""
    endless = math.isinf(limits.cpu_seconds)
    return {
        "cpu_seconds": -1 if endless else math.ceil(limits.cpu_seconds) + 1,
        "memory_bytes": limits.memory_mib << 20,
        "tasks": tasks,
    }
