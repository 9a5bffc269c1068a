"""Image step, one image from outside: a process that has imported a header and forks on demand.

It is in a box of its own, or was forked from another image to read on.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from farm.limits import Limits
from farm.log import logger
from farm_workers import images
from farm_workers.box import launch
from farm_workers.box.bubblewrap import python
from farm_workers.box.cell import Cell
from farm_workers.box.copy import as_file
from farm_workers.box.isolation import Isolation
from farm_workers.box.measured import OUT_OF_MEMORY
from farm_workers.box.sockets import socket_pair
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables
from farm_workers.images import protocol
from farm_workers.images.fork import Fork, ImageGone, place_of_forks, user_of_checks
from farm_workers.images.recipe import Recipe
from farm_workers.metrics import events

#: Seconds that an image may take to import its header: the largest libraries take a minute on a slow disk.
_START_SECONDS = 600.0
#: The most seconds for an image to read untrusted text: a slower text is read by each check.
_READING_SECONDS = 120.0
#: An image works for many lines: no line's limits hold for it.
UNLIMITED = Limits(
    wall_seconds=math.inf, cpu_seconds=math.inf, memory_mib=1 << 20, processes=1 << 14, output_kib=1024
)
#: The limits of an image that runs untrusted code, over its whole life, its forks not counted. This module
#: compares the processor time with its limit: a kernel's limit would apply to its forks as well.
#: The files of a seal without a program with a hole.
_WITHOUT_PARENT = 2
_LIMITED = Limits(wall_seconds=math.inf, cpu_seconds=math.inf, processes=64, output_kib=1024)
_MOST_CPU_SECONDS = 300.0
#: How often the usage of such an image is compared with its limits.
_WATCH_SECONDS = 5.0
#: How often the thread that makes an image looks whether it is still needed.
_LOOK_SECONDS = 0.1
_MOST_SAID = 4096
#: The parent image may have ended; its replacement is tried once.
_TURNS = 2


_log = logger(__name__)

#: Starts an image's process, given the image and its end of the socket; puts the resources that live as long
#: as the process on the stack, the process itself last.
Source = Callable[["Image", socket.socket, contextlib.ExitStack], Cell | Fork]


class NoImage(Exception):
    """No image can be made of a header: the message has the reason."""


class ImageDied(NoImage):
    """An image died before it was ready, without a reason: the next one may succeed."""


class Image:
    """One image; thread-safe. It lives until it is closed, and dies with this process.

    `memory_kib` is its private memory when it was ready, 0 before that. `visible` are the paths that it and
    its forks may read besides the system's. `turn` is a lock, held during a fork of an image that can have
    only one at a time.
    """

    def __init__(
        self,
        name: str,
        recipe: Recipe,
        isolation: Isolation,
        source: Source,
        *,
        start_seconds: float | None = None,
    ) -> None:
        """Begin to make it, in a thread of its own; `wait` for it."""
        most = _READING_SECONDS if recipe.runs_code else _START_SECONDS
        self._start_seconds = most if start_seconds is None else start_seconds
        self._name, self.isolation, self._source = name, isolation, source
        self.recipe = recipe
        self.turn = threading.Lock() if recipe.runs_code else None
        self.begun_at = time.monotonic()
        self._made, self._closing = threading.Event(), threading.Event()
        self._error: Exception | None = None
        self._process: Cell | Fork | None = None
        self._socket: socket.socket | None = None
        self.memory_kib = 0
        self.visible: Sequence[Path] = ()
        self._thread = threading.Thread(target=self._live, name="image", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Return whether it is ready, after at most `seconds`. Raises NoImage and BoxFailed."""
        ready = self._made.wait(seconds)
        if self._error is not None:
            raise self._error
        return ready

    @property
    def is_ready(self) -> bool:
        """Whether it can fork, as far as is known."""
        return self._made.is_set() and self._error is None

    @property
    def has_failed(self) -> bool:
        """Whether it could not be made, or ended too early."""
        return self._error is not None

    def check(self, request: Mapping[str, object], limits: Limits) -> Fork:
        """Fork for a check. Raises ImageGone and BoxFailed."""
        fork = Fork(
            self._send,
            protocol.CHECK,
            request,
            isolation=self.isolation,
            limits=limits,
            visible=self.visible,
        )
        events.forked(self._name, "check")
        return fork

    def seal(
        self,
        request: Mapping[str, object],
        limits: Limits,
        files: Sequence[int],
        into: int | None = None,
        table: int | None = None,
    ) -> Fork:
        """Fork for a seal; `files` are a module, a challenge and, for an answer to a hole, its program's.

        Raises ImageGone and BoxFailed.

        The sealed module is written to `into`, a file in memory, if it is given. `table` is the file with the
        table of dependencies.
        """
        request = {
            **request,
            "with_sealed": into is not None,
            "with_parent": len(files) > _WITHOUT_PARENT,
            "with_table": table is not None,
        }
        three = [*files, *files[:1]][: _WITHOUT_PARENT + 1]
        files = [*three, *(files[0] if each is None else each for each in (into, table))]
        fork = Fork(self._send, protocol.SEAL, request, isolation=self.isolation, limits=limits, files=files)
        events.forked(self._name, "seal")
        return fork

    def task(self, request: Mapping[str, object], limits: Limits) -> Fork:
        """Fork for a task, which only computes. Raises ImageGone and BoxFailed."""
        fork = Fork(self._send, protocol.TASK, request, isolation=self.isolation, limits=limits)
        events.forked(self._name, "check")
        return fork

    def image(self, recipe: Recipe, theirs: socket.socket) -> Fork:
        """Fork an image that reads more. Raises ImageGone, NoImage and BoxFailed."""
        fork = partial(Fork, self._send, isolation=self.isolation)
        if not recipe.runs_code:
            with as_file(recipe.module) as module, contextlib.ExitStack() as opened:
                table = opened.enter_context(recipe.table.open("rb")).fileno() if recipe.table else module
                files = [module, table, theirs.fileno()]
                has_table = {"with_table": recipe.table is not None}
                return fork(protocol.ON_MODULE, has_table, limits=UNLIMITED, files=files)
        if self.isolation.namespaces is None:
            raise NoImage("without namespaces no image runs untrusted code")
        asked = {"context": recipe.context}
        return fork(protocol.ON_CONTEXT, asked, limits=_LIMITED, files=[theirs.fileno()])

    def session(self, request: Mapping[str, object], limits: Limits, theirs: socket.socket) -> Fork:
        """Fork a session, whose socket is `theirs`. Raises ImageGone, NoImage and BoxFailed."""
        if self.isolation.walls is not None and not self.isolation.walls.scopes:
            raise NoImage(
                "this Linux is older than 6.12: without namespaces it cannot keep a session from signalling "
                "other processes; use Linux 6.12 or newer, or a machine with namespaces"
            )
        fork = Fork(
            self._send,
            protocol.SESSION,
            request,
            isolation=self.isolation,
            limits=limits,
            files=[theirs.fileno()],
            visible=self.visible,
        )
        events.forked(self._name, "session")
        return fork

    def _send(self, what: bytes, files: Sequence[int]) -> None:
        if self._socket is None:
            raise BrokenPipeError("the image is closed")
        socket.send_fds(self._socket, [what], list(files))

    def is_closing(self) -> bool:
        """Whether no check needs it any more."""
        return self._closing.is_set()

    def _live(self) -> None:
        """Make the image, keep it until no check needs it, and end it."""
        try:
            with contextlib.ExitStack() as files:
                self._make(files)
                self._made.set()
                self._tell("made")
                self._stay()
        except (NoImage, BoxFailed, OSError) as error:
            failed = error if isinstance(error, NoImage | BoxFailed) else BoxFailed(str(error))
            self._error = self._error or failed
            self._tell("failed" if isinstance(failed, ImageDied | BoxFailed) else "refused")
        finally:
            self._made.set()

    def _stay(self) -> None:
        """Wait until no check needs it. Raises ImageDied if it exceeds its limits."""
        assert self._process is not None  # noqa: S101 - it was just made
        while not self._closing.wait(_WATCH_SECONDS if self.recipe.runs_code else None):
            used = self._process.usage().cpu_seconds
            if used > _MOST_CPU_SECONDS or self._process.breach():
                _log.warning("An image of a context for %s goes over its limits, and is ended", self._name)
                raise ImageDied("an image went over its limits")

    def _tell(self, result: str) -> None:
        """Count the image's result, unless it is being closed."""
        if not self._closing.is_set():
            events.image_begun(self._name, result, time.monotonic() - self.begun_at)

    def _make(self, files: contextlib.ExitStack) -> None:
        ours, theirs = socket_pair()
        files.enter_context(ours)
        with theirs:
            self._process = self._source(self, theirs, files)
        if self.recipe.origin is None:
            self._tell_header(ours)
        said = self._answer(ours)
        if not said:
            raise ImageDied(f"an image exited: {self._why()}")
        if said.startswith(protocol.FAILED):  # of this machine: the next one may succeed
            raise ImageDied(said.removeprefix(protocol.FAILED).decode(errors="replace")[:_MOST_SAID])
        if said != protocol.READY:
            raise NoImage(said.decode(errors="replace")[:_MOST_SAID])
        ours.settimeout(None)
        self.memory_kib = self._process.usage().memory_kib
        self._socket = ours

    def _tell_header(self, ours: socket.socket) -> None:
        with as_file(self.recipe.header.encode("utf-8", "surrogatepass")) as header:
            try:
                socket.send_fds(ours, [protocol.RECIPE], [header])
            except (BrokenPipeError, ConnectionResetError):
                _log.debug("An image ended before it read its header; its answer will say so")

    def _answer(self, ours: socket.socket) -> bytes:
        """Return the image's answer to its recipe, nothing if it died."""
        ours.settimeout(_LOOK_SECONDS)
        deadline = time.monotonic() + self._start_seconds
        while not self._closing.is_set():
            try:
                return ours.recv(protocol.MOST_BYTES)
            except ConnectionResetError:  # it died before it read anything
                return b""
            except TimeoutError:
                pass
            if time.monotonic() > deadline:
                raise NoImage(f"an image was not ready within {self._start_seconds:g} s")
        raise BoxFailed("an image was closed before it was ready")

    def _why(self) -> str:
        assert self._process is not None  # noqa: S101 - it was just made
        return OUT_OF_MEMORY if self._process.is_starved else self._said()

    def _said(self) -> str:
        """Return the last line of the image's standard error."""
        assert self._process is not None  # noqa: S101 - it was just made
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._process.stderr, _MOST_SAID).decode(errors="replace")
            return said.strip().rpartition("\n")[2]
        return "nothing"

    def end(self) -> None:
        """Begin to end the image with all of its forks."""
        self._socket = None
        self._closing.set()

    def close(self) -> None:
        """End the image with all of its forks."""
        self.end()
        self._thread.join()


def in_box(command: Callable[[], Command]) -> Source:
    """Return the source of an image in its own box, which runs `command()`; that may raise NoImage."""

    def begun(image: Image, theirs: socket.socket, files: contextlib.ExitStack) -> Cell:
        held = command()
        image.visible = held.visible
        cell = Cell(held, isolation=image.isolation, stdin=theirs.fileno())
        files.callback(cell.close)
        return cell

    return begun


def forked_from(
    origin: Callable[[Callable[[], bool]], AbstractContextManager[Image]], replace: Callable[[Image], None]
) -> Source:
    """Return the source of an image that is forked from another one."""

    def begun(image: Image, theirs: socket.socket, files: contextlib.ExitStack) -> Fork:
        for _ in range(_TURNS):
            parent = files.enter_context(origin(image.is_closing))
            try:
                fork = parent.image(image.recipe, theirs)
            except ImageGone:
                replace(parent)
                continue
            files.callback(fork.close)
            fork.go()
            return fork
        raise ImageDied("the image of a header exited, and so did its replacement")

    return begun


def words(isolation: Isolation) -> list[str]:
    """Return the arguments of an image: the kind of its forks' places, and the user of a check."""
    return [place_of_forks(isolation), str(user_of_checks(isolation))]


def lean_image(environment: LeanEnvironment, isolation: Isolation, _recipe: Recipe) -> Command:
    """Return the command that starts an image of a Lean. Raises NoImage if the farm cannot fork it."""
    library = environment.library
    if library is None:
        raise NoImage("the farm does not know the shared library of this Lean")
    if not environment.forks:
        raise NoImage(f"this Lean does not fit the farm; see: farm environments fit {environment.name}")
    fit = environment.fit
    way, description = (fit.way, fit.description) if fit else ("", "")
    where = [*words(isolation), way, description]
    return Command(
        words=images.command(python(), where, library, environment.lean[1:]),
        limits=UNLIMITED,
        environment=environment_variables(environment),
        visible=(*images.FOLDERS, *environment.folders, *([Path(description)] if description else [])),
        trusted=True,
        stack_bytes=launch.THREAD_STACK_BYTES,
    )
