"""Bench step: bare resident Lean, as fast as a short client can drive it: no limits, no box and no records.

It is what the farm is measured against, and serves nobody's checks: one process sees every program, so its
word is worth less than any verdict. It has a session of its own: on a busy machine Linux gives processor time
to sessions, not to processes (``kernel.sched_autogroup_enabled``).
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from farm_workers.bench.measure import BenchProgram, ExpectedWorth
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables

from farm.errors import FarmError

#: The shortest way to call Lean when all there is of it is a shared library.
_LAUNCHER = (
    "import ctypes, sys\n"
    "words = [b'lean', *map(str.encode, sys.argv[2:])]\n"
    "sys.exit(ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)"
    ".lean_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words, None)))"
)
#: One core, proofs in order, as the farm has it; and it reports at once, as everybody who drives one asks.
_RESIDENT = ("-j1", "-Dweak.Elab.async=false", "--worker", "-Dserver.reportDelayMs=0")
_URI = "file:///program.lean"


def launched(words: Sequence[str]) -> list[str]:
    """Return a command of Lean's as one that a system can run: Lean may be a shared library only."""
    if words[0].endswith(".so"):
        return [sys.executable, "-I", "-S", "-c", _LAUNCHER, *words]
    return list(words)


def variables(environment: LeanEnvironment) -> dict[str, str]:
    """Return the variables that Lean is started with."""
    return {"PATH": os.defpath, **environment_variables(environment)}


@contextlib.contextmanager
def resident(environment: LeanEnvironment, header: str) -> Iterator[Resident]:
    """Keep a bare resident Lean for a header."""
    with subprocess.Popen(
        launched([*environment.lean, *_RESIDENT]),
        env=variables(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        bufsize=0,
    ) as process:
        try:
            yield Resident(header, process)
        finally:
            process.kill()


class Resident:
    """The shortest client of a resident Lean; programs must begin with its header.

    What is said is that of the Language Server Protocol 3.17, with Lean's own request
    ``textDocument/waitForDiagnostics`` (``Lean/Data/Lsp/Extra.lean``).
    """

    def __init__(self, header: str, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.pid = process.pid
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
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

    def check(self, program: BenchProgram) -> ExpectedWorth:
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
        return ExpectedWorth.ERROR if b'"severity":1' in said else ExpectedWorth.PROVED

    def _body(self) -> bytes:
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end >= 0:
                begin = end + 4
                stop = begin + int(self._buffer[16:end])  # after "Content-Length: "
                if len(self._buffer) >= stop:
                    body, self._buffer = self._buffer[begin:stop], self._buffer[stop:]
                    return body
            data = os.read(self._stdout, 1 << 16)
            if not data:
                raise FarmError("bare resident Lean ended in the middle of a check")
            self._buffer += data

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._stdin, data) :]
        except BrokenPipeError as error:
            raise FarmError("bare resident Lean has ended") from error


def _frame(**fields: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **fields}, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
