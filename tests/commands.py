"""What the tests of the command line share: running `farm` as a user does, and manifests to run it on."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

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


#: Starting Python and importing these costs a command most of its time, so it is done once for all commands:
#: each is forked from a process that has them, and then runs like any other.
_forking = multiprocessing.get_context("forkserver")
_forking.set_forkserver_preload(
    [
        *("__main__", "typer", "rich.progress", "rich.syntax"),
        *("sqlalchemy.orm", "sqlalchemy.dialects.postgresql", "psycopg", "redis"),
        *("celery.app.amqp", "celery.app.task", "kombu.transport.redis", "zstandard"),
        # What the farm's commands are made of; the commands themselves are imported by each.
        *("farm.broker", "farm.embedded", "farm.runs.export", "farm.runs.revise", "farm.runs.submit"),
        *("farm.judging.advisories", "farm.store.queries", "farm.store.transitions"),
    ]
)
_MODES = (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY)


def _command(words: list[str], environment: dict[str, str], files: list[str]) -> None:
    """Be the `farm` command: what runs in a process forked for it."""
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, (path, mode) in enumerate(zip(files, _MODES, strict=True)):
        os.dup2(os.open(path, mode), descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    from farm.cli.command import main

    main(words)


@dataclass(frozen=True)
class Running:
    """A `farm` command under way, what it says going to files."""

    process: subprocess.Popen[bytes]
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
            status = self._ended(words, files, seconds)
            stdout, stderr = (file.read_text() for file in files[1:])
        return subprocess.CompletedProcess(words, status, stdout, stderr)

    def _ended(self, words: list[str], files: list[Path], seconds: float) -> int:
        process = _forking.Process(target=_command, args=(words, self.environment, list(map(str, files))))
        process.start()
        seconds *= PATIENCE
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"farm {' '.join(words)} did not end within {seconds:g} s")
        return process.exitcode

    def json(self, *arguments: object, status: int = 0) -> Any:
        """Run a command with `--json` and return the one object that it prints."""
        ended = self(*arguments, "--json")
        assert ended.returncode == status, ended.stderr
        return json.loads(ended.stdout)

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
