"""Box step: runs one command within limits, leaves nothing of it behind, and returns facts.

What holds a command here is called ``rlimit``: a process tree with a supervisor at its root
(`workers.launch`), resource limits, memory and processor time watched from ``/proc``, and bounded output. It
needs no privilege and no cgroup. It stops accidents and clumsy attacks; it is no wall against code that means
harm, which can still read files and use the network as the worker's user can.

"The box failed" (`Run.box_error`) and "the command failed" are two different facts.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from farm.job import Limits
from workers import launch

ISOLATION = "rlimit"

#: One written file; Lean's own largest ones, compiled modules, stay well below.
FILE_BYTES = 256 << 20
OPEN_FILES = 4096
#: RLIMIT_DATA counts what is reserved: Lean sets some 6 GiB aside for thread stacks and arenas before it uses
#: any. The limit on top of that only stops a single huge request, before sampling could see it.
RESERVED_BYTES = 8 << 30

#: Seconds between two looks at the tree: soon at first, for most checks are short, then rarely.
FIRST_SAMPLE, SLOWEST_SAMPLE = 0.01, 0.05
#: Seconds that the supervisor has to kill and reap the tree before the box does it.
GRACE = 3.0
_CHUNK = 1 << 16
_CHILDREN = Path("/proc/thread-self/children")
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """The facts of one command that ran in a box.

    One of `exit_status` and `signal` is a number unless the box failed or a limit came first. `limit` is
    ``wall``, ``cpu``, ``memory``, ``output``, ``processes`` or None. `peak_memory_kib` is private memory of
    the whole tree, as sampled; `cpu_seconds` is user and system time of the whole tree, the killed ones
    included. `output_bytes` counts what was written to both streams, kept or not; `stdout` and `stderr`
    together hold no more than the limit.
    """

    exit_status: int | None
    signal: int | None
    wall_seconds: float
    cpu_seconds: float
    peak_memory_kib: int
    limit: str | None
    stdout: bytes
    stderr: bytes
    output_bytes: int
    output_cut: bool
    box_error: str | None
    isolation: str = ISOLATION


def never() -> bool:
    """Say that nobody cancels."""
    return False


def run(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    limits: Limits,
    environment: Mapping[str, str],
    folder: Path,
    cancelled: Callable[[], bool] = never,
) -> Run:
    """Run `command` to its end or to a limit, and return once nothing of it is alive.

    It works in a fresh folder made in `folder` and removed at the end, and sees exactly `environment` besides
    PATH, LANG, and HOME and TMPDIR, which name that folder. `cancelled` is asked about every 50 ms; when it
    says yes, the command is killed and that is the `box_error`. Can be called from many threads at once. What
    goes wrong with the box is told in `Run.box_error`; nothing is raised for it.
    """
    if not _CHILDREN.exists():
        return _failed(
            f"this kernel has no {_CHILDREN} (CONFIG_PROC_CHILDREN), without which nothing is watched"
        )
    try:
        with fresh_folder(folder) as here, _Box(limits) as box:
            box.start(command, stdin, _clean(environment, here), here)
            box.watch(cancelled)
            return box.facts()
    except OSError as error:
        return _failed(f"{type(error).__name__}: {error}")


@contextlib.contextmanager
def fresh_folder(parent: Path) -> Iterator[Path]:
    """Make an empty folder in `parent`; remove it with all that is in it, whatever its modes, at the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="farm-check-", dir=parent)
    try:
        yield Path(folder)
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    try:
        shutil.rmtree(folder)
    except (OSError, RecursionError):  # closed folders, or a thousand in each other: these two take them
        for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*command, folder], check=False, capture_output=True)
        if Path(folder).exists():
            raise


def _clean(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    here = str(folder)
    path = "/usr/local/bin:/usr/bin:/bin"
    return {
        "PATH": path,
        "LANG": "C.UTF-8",
        "HOME": here,
        "TMPDIR": here,
        **environment,
    }


#: The facts of a command that was never started.
NOT_RUN = Run(
    exit_status=None,
    signal=None,
    wall_seconds=0.0,
    cpu_seconds=0.0,
    peak_memory_kib=0,
    limit=None,
    stdout=b"",
    stderr=b"",
    output_bytes=0,
    output_cut=False,
    box_error=None,
)


def _failed(why: str) -> Run:
    return replace(NOT_RUN, box_error=why)


class _Output:
    """What came through the pipes: stdout and stderr as far as allowed, and the supervisor's result."""

    def __init__(self, most_bytes: int) -> None:
        self.room = most_bytes
        self.written = 0
        self.cut = False
        self.kept = {"stdout": bytearray(), "stderr": bytearray(), "result": bytearray()}

    def add(self, name: str, data: bytes) -> None:
        """Take what was read from one pipe."""
        if name == "result":
            self.kept[name] += data
            return
        self.written += len(data)
        self.cut = self.cut or len(data) > self.room
        self.kept[name] += data[: self.room]
        self.room -= min(self.room, len(data))


class _Box:
    """One command under way: its supervisor, its pipes and what was seen of it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._files = contextlib.ExitStack()
        self._selector = self._files.enter_context(selectors.DefaultSelector())
        self._output = _Output(limits.output_kib * 1024)
        self._peak_kib = 0
        self._cpu_seconds = self._wall_seconds = 0.0
        self._over = False
        self._limit: str | None = None
        self._error: str | None = None
        self._started = time.monotonic()
        self._killed_at: float | None = None
        self._process: subprocess.Popen[bytes]
        self._folder: Path

    def __enter__(self) -> _Box:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def start(
        self, command: Sequence[str], stdin: bytes, environment: Mapping[str, str], folder: Path
    ) -> None:
        """Start the supervisor, which starts the command."""
        result, tell = os.pipe()
        self._listen("result", self._files.enter_context(os.fdopen(result, "rb", 0)))
        self._folder = folder
        self._started = time.monotonic()
        with os.fdopen(tell, "wb", 0), _as_file(stdin) as source:
            self._process = subprocess.Popen(
                [*_supervisor(tell, self._limits), *command],
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment,
                pass_fds=(tell,),
                start_new_session=True,
                bufsize=0,
            )
        self._files.enter_context(self._process)  # closes its pipes and waits for it
        self._files.callback(self._kill_hard)
        self._listen("stdout", self._process.stdout)
        self._listen("stderr", self._process.stderr)

    def _listen(self, name: str, pipe: IO[bytes] | None) -> None:
        assert pipe is not None  # noqa: S101 - it was asked for
        os.set_blocking(pipe.fileno(), False)
        self._selector.register(pipe, selectors.EVENT_READ, name)

    def watch(self, cancelled: Callable[[], bool]) -> None:
        """Read all output and keep the limits until the supervisor has ended all of the command's tree."""
        interval = FIRST_SAMPLE
        next_sample = self._started + interval
        while not self._over:
            self._read(next_sample - time.monotonic())
            now = time.monotonic()
            if now >= next_sample:
                interval = min(2 * interval, SLOWEST_SAMPLE)
                next_sample = now + interval
                self._look(now, cancelled)
        while self._read(0) and time.monotonic() < now + GRACE:
            pass  # what was written before the end is still in the pipes
        self._kill_hard()
        if not self._output.kept["result"]:
            _kill_strays(self._folder)
        self._wall_seconds = time.monotonic() - self._started

    def _read(self, seconds: float) -> bool:
        """Read what comes within `seconds`; False when nothing did."""
        ready = self._selector.select(max(0.0, seconds))
        for key, _ in ready:
            data = os.read(key.fd, _CHUNK)
            self._output.add(key.data, data)
            if not data:
                self._selector.unregister(key.fd)
                self._over = self._over or key.data == "result"
        return bool(ready)

    def _look(self, now: float, cancelled: Callable[[], bool]) -> None:
        """Sample the tree, and have it ended when a limit is passed."""
        if self._killed_at is not None:
            if now > self._killed_at + GRACE:
                self._error = self._error or "the supervisor did not end the command in time"
                self._kill_hard()
            return
        usage = _usage(self._process.pid)
        self._peak_kib = max(self._peak_kib, usage.memory_kib)
        self._cpu_seconds = max(self._cpu_seconds, usage.cpu_seconds)
        self._limit = self._exceeded(now - self._started, usage)
        if cancelled():
            self._error = "the check was cancelled"
        if self._limit or self._error:
            self._killed_at = now
            self._process.send_signal(signal.SIGTERM)  # the supervisor kills the tree
            self._process.send_signal(signal.SIGCONT)  # even when something in the tree has stopped it

    def _exceeded(self, wall_seconds: float, usage: _Usage) -> str | None:
        limits = self._limits
        if usage.memory_kib > limits.memory_mib * 1024:
            return "memory"
        if usage.processes > limits.processes:
            return "processes"
        if usage.cpu_seconds > limits.cpu_seconds:
            return "cpu"
        return "wall" if wall_seconds > limits.wall_seconds else None

    def _kill_hard(self) -> None:
        """Kill what is left of the tree, then its supervisor: nothing, unless that failed at its work."""
        if self._process.poll() is not None:
            return
        deadline = time.monotonic() + GRACE
        while launch.kill_tree(self._process.pid) and time.monotonic() < deadline:
            time.sleep(0.001)
        self._process.kill()

    def facts(self) -> Run:
        """Return what was seen, once the command is over."""
        ended = self._ended()
        if ended.cpu_seconds is not None:
            self._cpu_seconds = ended.cpu_seconds
        limit = self._limit or ("cpu" if ended.signal == signal.SIGXCPU else None)
        return Run(
            exit_status=ended.exit_status,
            signal=ended.signal,
            wall_seconds=self._wall_seconds,
            cpu_seconds=self._cpu_seconds,
            peak_memory_kib=self._peak_kib,
            limit=limit or ("output" if self._output.cut else None),
            stdout=bytes(self._output.kept["stdout"]),
            stderr=bytes(self._output.kept["stderr"]),
            output_bytes=self._output.written,
            output_cut=self._output.cut,
            box_error=self._error or (None if limit else ended.error),
        )

    def _ended(self) -> _Ended:
        """Read the supervisor's result line, or what it says went wrong before the command was there."""
        text = self._output.kept["result"].decode(errors="replace").strip()
        if text.startswith(launch.CANNOT_RUN):
            return _Ended(error=text.partition("\n")[0])
        words = text.split()
        if len(words) != 3:
            return _Ended(error="the supervisor died before the command ended")
        status, user_us, system_us = map(int, words)
        return _Ended(
            exit_status=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            cpu_seconds=(user_us + system_us) / 1e6,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Ended:
    """How the command ended, as the supervisor tells it; or the error that kept it from telling."""

    exit_status: int | None = None
    signal: int | None = None
    cpu_seconds: float | None = None
    error: str | None = None


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[int]:
    """Give `content` as a file in memory: unlike a pipe it needs nobody who writes it."""
    descriptor = os.memfd_create("stdin")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _supervisor(tell: int, limits: Limits) -> list[str]:
    numbers = (
        tell,
        os.getpid(),
        math.ceil(limits.cpu_seconds) + 1,  # the box looks first; this is for what it does not see
        (limits.memory_mib << 20) + RESERVED_BYTES,
        FILE_BYTES,
        OPEN_FILES,
    )
    return [sys.executable, "-I", "-S", launch.__file__, *map(str, numbers)]


def _kill_strays(folder: Path) -> None:
    """Kill what a killed supervisor left: whatever works in the box's folder, or has it as its home.

    Nothing else tells these from strangers once their parent is gone; one that hides from both stays.
    """
    deadline = time.monotonic() + GRACE
    while (strays := _strays(folder)) and time.monotonic() < deadline:
        for pid in strays:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _strays(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended, or belongs to somebody else
            at_home = f"HOME={folder}\0".encode() in (process / "environ").read_bytes()
            if at_home or (process / "cwd").readlink().is_relative_to(folder):
                found.append(int(process.name))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class _Usage:
    """What a process tree uses at one moment."""

    processes: int
    memory_kib: int
    cpu_seconds: float


def _usage(supervisor: int) -> _Usage:
    """Look at the processes below the supervisor; those that are gone are in its own count of children."""
    tree = launch.descendants(supervisor)
    ticks = _ticks(supervisor, _REAPED) + sum(_ticks(pid, _ALL) for pid in tree)
    return _Usage(
        processes=len(tree),
        memory_kib=sum(map(_private_kib, tree)),
        cpu_seconds=ticks / _TICKS,
    )


#: Places of utime, stime, cutime and cstime in /proc/PID/stat after the command's name, proc(5).
_ALL = slice(11, 15)
_REAPED = slice(13, 15)


def _ticks(pid: int, places: slice) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # it has just ended
        return 0
    return sum(map(int, text.rpartition(b")")[2].split()[places]))


_PRIVATE = (b"RssAnon:", b"RssShmem:", b"VmSwap:")


def _private_kib(pid: int) -> int:
    """Return a process's own memory in KiB: not the files that it maps, such as compiled Lean modules."""
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(_PRIVATE))
