"""What the tests of the command line share: running `farm` as a user does, and manifests to run it on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import IO, Any, Protocol

from tests.processes import PATIENCE

HEADER = "prelude\nimport Core\n\n"

#: Programs by the verdict and the reason they get; `{n}` makes them different from each other.
PROGRAMS = {
    ("proved", "ok"): "theorem t{n} : True := True.intro\n",
    ("rejected", "error"): "theorem t{n} : False := True.intro\n",
    ("rejected", "has_sorry"): "theorem t{n} : False := sorry\n",
    ("timeout", "wall_limit"): (
        "theorem t{n} (a b c : Nat) : a + b + c = c + b + a := by\n  repeat rw [Nat.add_comm]\n"
    ),
}
PROVED, WRONG, ADMITTED, ENDLESS = PROGRAMS


#: Starting Python and importing modules costs a command most of its time, so it is done once for all of them:
#: each is forked from a process that has imported what commands are made of, and then runs like any other.
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(
    [
        *("__main__", "encodings.ascii", "typer._adapters", "typer._click.decorators"),
        *("rich.progress", "rich.syntax", "rich._emoji_codes"),
        *("sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "psycopg", "redis"),
        *("celery.app.amqp", "celery.app.task", "kombu.transport.redis", "zstandard"),
        *(point.module for group in ("farm.commands", "farm.doctor") for point in entry_points(group=group)),
        *("farm.cli.command", "farm.cli.live_tables", "farm.api", "farm.broker", "farm.embedded"),
        *("farm.runs.export", "farm.runs.recheck", "farm.runs.revise", "farm.runs.submit"),
        *("farm.judging.advisories", "farm.store.queries", "farm.store.transitions"),
        *("farm_workers.loop.process", "farm_workers.machine.adding", "farm_workers.machine.opening"),
        *("celery.bin.worker", "celery.worker.consumer"),
        *("uvicorn", "farm.service.app", "farm.service.server"),
    ]
)
_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


def _command(words: list[str], environment: dict[str, str], files: list[str]) -> None:
    """Be the `farm` command: what runs in a process forked for it."""
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, (path, mode) in enumerate(zip(files, _MODES, strict=True)):
        os.dup2(os.open(path, mode), descriptor)
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    sys.argv = ["farm", *words]
    from farm.__main__ import main

    main()


class Process(Protocol):
    """A process of the tests: what they use of `subprocess.Popen`."""

    @property
    def pid(self) -> int: ...

    @property
    def returncode(self) -> Any: ...

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def terminate(self) -> None: ...

    def kill(self) -> None: ...


class Forked:
    """A `farm` command in a process that was forked for it."""

    def __init__(self, words: list[str], environment: dict[str, str], files: Sequence[Path]) -> None:
        self._words = words
        given = (words, environment, list(map(str, files)))
        self._process = _forking.Process(target=_command, args=given)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self._process.exitcode
        if status is None:
            raise subprocess.TimeoutExpired(["farm", *self._words], timeout or 0.0)
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@dataclass(frozen=True)
class Running:
    """A `farm` command under way, what it says going to files."""

    process: Process
    out: Path
    err: Path

    @property
    def said(self) -> str:
        return self.err.read_text()

    def ended(self, *, seconds: float = 60.0) -> int:
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"it did not end within {seconds:g} s; it said: {self.said}") from error


@dataclass(frozen=True)
class Command:
    """The `farm` command with settings of its own: no variable of whoever runs the tests reaches it."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def having(self, **settings: str) -> Command:
        return replace(self, settings={**self.settings, **settings})

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("FARM_")}
        return {**inherited, "COLUMNS": "200", **self.settings}

    def __call__(
        self, *arguments: object, stdin: bytes = b"", seconds: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("stdin", "stdout", "stderr")]
            for file, content in zip(files, (stdin, b"", b""), strict=True):
                file.write_bytes(content)
            words = list(map(str, arguments))
            process = Forked(words, self.environment, files)
            try:
                status = process.wait(seconds * PATIENCE)
            finally:
                process.kill()
                process.wait()
            stdout, stderr = (file.read_text() for file in files[1:])
        return subprocess.CompletedProcess(words, status, stdout, stderr)

    def json(self, *arguments: object, status: int = 0) -> Any:
        """Run a command with `--json` and return the one object that it prints."""
        ended = self(*arguments, "--json")
        assert ended.returncode == status, ended.stderr
        return json.loads(ended.stdout)

    @contextmanager
    def forked(self, folder: Path, *arguments: object) -> Iterator[Running]:
        """Start a command as `started` does, but in a process that has imported all already.

        Its command line, as the kernel shows it, is another one.
        """
        folder.mkdir(exist_ok=True)
        out, err = folder / "stdout", folder / "stderr"
        for file in (out, err):
            file.write_bytes(b"")
        process = Forked([*map(str, arguments)], self.environment, (Path(os.devnull), out, err))
        try:
            yield Running(process, out, err)
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def started(self, folder: Path, *arguments: object, prefix: Sequence[str] = ()) -> Iterator[Running]:
        """Start a command whose output goes to files in a folder; it is gone at the end of the block."""
        folder.mkdir(exist_ok=True)
        out, err = folder / "stdout", folder / "stderr"
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = self._popen(
                [*prefix, sys.executable, "-P", "-m", "farm", *map(str, arguments)], stdout, stderr
            )
        try:
            yield Running(process, out, err)
        finally:
            process.kill()
            process.wait()

    def _popen(self, words: list[str], stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            env=self.environment,
            start_new_session=True,
        )


def entry(kind: tuple[str, str], number: int, **more: object) -> dict[str, object]:
    """Return a manifest line whose program gets this verdict and reason; an endless one soon."""
    limit = {"timeout": 0.7} if kind == ENDLESS else {}
    return {
        "name": f"t{number}",
        "predicted_proof": HEADER + PROGRAMS[kind].format(n=number),
        **limit,
        **more,
    }


def write(path: Path, *entries: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def verdicts(path: Path) -> list[tuple[str, str]]:
    """Return the verdict and the reason of each line of an exported manifest."""
    return [(line["farm"]["verdict"], line["farm"]["reason"]) for line in lines(path)]
