"""Bench step: bare Lean, as fast as a short client can drive it, with no limits, no box and no records.

It is the floor that the farm is measured against: `Processes` is the shell loop of a user without the farm,
`Resident` the shortest client of ``lean --worker``. Lean itself gets the same options as from the farm, but
for when it reports, and a session of its own: on a busy machine Linux gives processor time to sessions, not
to processes (``kernel.sched_autogroup_enabled``).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from farm.errors import FarmError
from workers.bench.programs import Program, Worth
from workers.environments import LeanEnvironment
from workers.lean import (
    REPORT_DELAY_MS,
    cold_command,
    environment_variables,
    resident_command,
    save_snapshot_command,
    snapshot_command,
)

#: The shortest way to call Lean when all there is of it is a shared library.
_LAUNCHER = (
    "import ctypes, sys\n"
    "words = [b'lean', *map(str.encode, sys.argv[2:])]\n"
    "sys.exit(ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)"
    ".lean_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))"
)


def launched(words: Sequence[str]) -> list[str]:
    """Return a command of `workers.lean` as one that a system can run: Lean may be a shared library only."""
    if words[0].endswith(".so"):
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words]
    return list(words)


def variables(environment: LeanEnvironment) -> dict[str, str]:
    """Return the variables that Lean is started with."""
    return {"PATH": os.defpath, **environment_variables(environment)}


def save_snapshot(environment: LeanEnvironment, header: str, folder: Path) -> Path | None:
    """Save the snapshot of a header in a folder; None when this Lean has no such thing."""
    source, snapshot = folder / "Header.lean", folder / "header.snap"
    source.write_text(header, encoding="utf-8")
    said = subprocess.run(
        launched(save_snapshot_command(environment, snapshot, source)),
        env=variables(environment),
        capture_output=True,
        check=False,
    )
    return snapshot if said.returncode == 0 and snapshot.exists() else None


class Processes:
    """Checks each program in a process of its own, with a snapshot of its header if there is one.

    The program and the answer are files in memory, so that the client has nothing to do until the process
    ends.
    """

    def __init__(self, environment: LeanEnvironment, snapshot: Path | None = None) -> None:
        words = cold_command(environment) if snapshot is None else snapshot_command(environment, snapshot)
        self._words = launched(words)
        self._variables = variables(environment)

    def check(self, program: Program) -> Worth:
        """Run one program."""
        with _file_in_memory() as stdin, _file_in_memory() as stdout:
            os.write(stdin, program.text.encode())
            os.lseek(stdin, 0, os.SEEK_SET)
            pid = os.posix_spawn(
                self._words[0],
                self._words,
                self._variables,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, stdin, 0),
                    (os.POSIX_SPAWN_DUP2, stdout, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
                setsid=True,
            )
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            said = os.pread(stdout, os.fstat(stdout).st_size, 0)
        if status not in (0, 1):
            raise FarmError(f"bare Lean ended with status {status}")
        return worth_of_process(said)


@contextlib.contextmanager
def _file_in_memory() -> Iterator[int]:
    descriptor = os.memfd_create("bench")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def worth_of_process(said: bytes) -> Worth:
    """Read what ``lean --json`` said of a program."""
    return _worth(said, error=b'"severity":"error"')


def _worth(said: bytes, *, error: bytes) -> Worth:
    if error in said:
        return Worth.ERROR
    return Worth.SORRY if b"declaration uses" in said else Worth.PROVED


@contextlib.contextmanager
def resident(
    environment: LeanEnvironment, header: str, report_delay_ms: int = REPORT_DELAY_MS
) -> Iterator[Resident]:
    """Keep a bare resident Lean for a header; it waits so long before it begins to report."""
    with subprocess.Popen(
        launched(resident_command(environment, report_delay_ms)),
        env=variables(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    ) as process:
        assert process.stdin is not None  # noqa: S101 - both are pipes
        assert process.stdout is not None  # noqa: S101
        try:
            yield Resident(header, process.stdin.fileno(), process.stdout.fileno(), pid=process.pid)
        finally:
            process.kill()


_URI = "file:///program.lean"


class Resident:
    """The shortest client of a resident Lean; programs must begin with its header.

    It writes to `stdin` and reads from `stdout`, which may be non-blocking. `pid` is the process, for those
    who look at its memory.
    """

    def __init__(self, header: str, stdin: int, stdout: int, *, pid: int) -> None:
        self.pid = pid
        self._stdin, self._stdout = stdin, stdout
        self._buffer = b""
        self._version = 1
        document = {"uri": _URI, "languageId": "lean", "version": 1, "text": header}
        self._write(
            _frame(id=0, method="initialize", params={"capabilities": {}})
            + _frame(
                method="textDocument/didOpen",
                params={"textDocument": document, "dependencyBuildMode": "never"},
            )
        )

    def check(self, program: Program) -> Worth:
        """Replace the text by a program and wait for all that Lean says of it."""
        self._version += 1
        document = {"uri": _URI, "version": self._version}
        self._write(
            _frame(
                method="textDocument/didChange",
                params={"textDocument": document, "contentChanges": [{"text": program.text}]},
            )
            + _frame(id=self._version, method="textDocument/waitForDiagnostics", params=document)
        )
        said, answer = b"", b'{"id":%d,"jsonrpc":"2.0","result"' % self._version
        while not (body := self._body()).startswith(answer):
            if b"/publishDiagnostics" in body:
                said = body
        return _worth(said, error=b'"severity":1')

    def _body(self) -> bytes:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end >= 0:
                begin = end + 4
                stop = begin + int(self._buffer[16:end])  # after "Content-Length: "
                if len(self._buffer) >= stop:
                    body, self._buffer = self._buffer[begin:stop], self._buffer[stop:]
                    return body
            self._buffer += self._read()

    def _read(self) -> bytes:
        try:
            data = os.read(self._stdout, 1 << 16)
        except BlockingIOError:
            select.select([self._stdout], [], [])
            return self._read()
        if not data:
            raise FarmError("bare resident Lean ended in the middle of a check")
        return data

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._stdin, data) :]


def _frame(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
