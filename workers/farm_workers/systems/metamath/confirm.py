"""Metamath step, second verifier: has ``metamath`` verify the proofs that the farm's verifier accepted.

It reads the database and a batch of blocks in one process: reading takes a second, a proof milliseconds. It
ends with status 0 whatever it finds, prints nothing for an unknown label, and may prompt for input: so only
the one line that it prints for a good proof counts as yes, only its own words for an error in that proof as
no, and any other output as no answer. A batch without an answer is halved, until the block that causes it is
alone.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from farm.limits import Limits
from farm.log import logger
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.box.supervisor import BoxFailed
from farm_workers.systems.metamath.environment import MetamathEnvironment
from farm_workers.systems.metamath.gate import renamed

_log = logger(__name__)

#: At most this many proofs are verified in one process.
MOST_TOGETHER = 64
_LIMITS = Limits(wall_seconds=120.0, cpu_seconds=60.0, memory_mib=4096, output_kib=4096, processes=8)
#: The beginning of the line that `metamath` prints after it has read a source without an error.
_READ = "No errors were found.  However, proofs were not checked."
_PROMPT = "MM> "
#: Begins in its working folder, in which files have plain names: a path would have to be quoted.
_SHELL = ("/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh")
_DATABASE, _MAIN = "database.mm", "main.mm"


@dataclass(frozen=True, kw_only=True, slots=True)
class Confirmation:
    """The result of `metamath` for one proof: whether it accepts it, and its first words if it does not.

    With a `limit`, ``time`` or ``memory``, it exceeded its own limits.
    """

    accepted: bool
    said: str = ""
    limit: str | None = None


class NoAnswer(Exception):
    """A batch had no answer; `limit` is the limit that the program came to, if it did."""

    def __init__(self, why: str, limit: str | None = None) -> None:
        super().__init__(why)
        self.limit = limit


_Asked = tuple[str, "Future[Confirmation]"]


class Confirmer:
    """Has the proofs of one environment verified, by a thread of its own; thread-safe."""

    def __init__(self, environment: MetamathEnvironment, isolation: Isolation) -> None:
        self._environment, self._isolation = environment, isolation
        self._changed = threading.Condition()
        self._waiting: deque[_Asked] = deque()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="confirmer", daemon=True)
        self._thread.start()

    def ask(self, program: str) -> Future[Confirmation]:
        """Return the future result for a block; a failure of the farm is raised there as BoxFailed."""
        asked: Future[Confirmation] = Future()
        with self._changed:
            if self._closed:
                asked.set_exception(BoxFailed("the confirmer is closed"))
                return asked
            self._waiting.append((program, asked))
            self._changed.notify()
        return asked

    def close(self) -> None:
        """End the process; pending blocks fail with BoxFailed."""
        with self._changed:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
            self._changed.notify()
        self._thread.join()
        for _, asked in left:
            asked.set_exception(BoxFailed("the confirmer was closed"))

    def _work(self) -> None:
        while batch := self._gathered():
            try:
                self._answer(batch)
            except Exception as error:  # noqa: BLE001 # the thread's edge: waiting callers need an answer
                _log.exception("Proofs could not be confirmed")
                for _, asked in batch:
                    if not asked.done():
                        asked.set_exception(BoxFailed(f"{type(error).__name__}: {error}"))

    def _gathered(self) -> list[_Asked]:
        """Wait for proofs and return them; none when this is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if self._closed:
                return []
            return [self._waiting.popleft() for _ in range(min(MOST_TOGETHER, len(self._waiting)))]

    def _answer(self, batch: Sequence[_Asked]) -> None:
        """Answer a batch, by halves if it has no answer as a whole."""
        if self._closed:
            raise BoxFailed("the confirmer was closed")
        try:
            answers = self._confirmed([program for program, _ in batch])
        except NoAnswer as error:
            if len(batch) > 1:
                _log.warning("%d proofs are confirmed in halves: %s", len(batch), error)
                middle = len(batch) // 2
                self._answer(batch[:middle])
                self._answer(batch[middle:])
            elif error.limit is None:
                batch[0][1].set_exception(BoxFailed(str(error)))
            else:
                batch[0][1].set_result(Confirmation(accepted=False, limit=error.limit))
            return
        for (_, asked), answer in zip(batch, answers, strict=True):
            asked.set_result(answer)

    def _confirmed(self, programs: Sequence[str]) -> list[Confirmation]:
        """Return the result of each program. Raises NoAnswer."""
        prefix = f"farm-{secrets.token_hex(8)}"
        labels = [f"{prefix}-{number}" for number in range(len(programs))]
        blocks = [renamed(program, label) for program, label in zip(programs, labels, strict=True)]
        source = f"$[ {_DATABASE} $]\n" + "\n".join(blocks) + "\n"
        with fresh_folder(self._isolation.folder) as workshop:
            folder = workshop / "shown"
            folder.mkdir()
            folder.chmod(0o755)  # a box reads it as another user, whatever this process's umask is
            (folder / _DATABASE).symlink_to(self._environment.database)
            (folder / _MAIN).write_text(source, encoding="ascii")
            (folder / _MAIN).chmod(0o644)
            said = self._said(folder, labels)
        return [_read(said, label) for label in labels]

    def _said(self, folder: Path, labels: Sequence[str]) -> dict[str, list[str]]:
        """Return the lines of each command's answer, by the command. Raises NoAnswer."""
        program, database = self._environment.program, self._environment.database
        asked = [_verify(label) for label in labels]
        commands = ["set scroll continuous", f"read {_MAIN}", *asked, "exit"]
        run = box.run(
            [*_SHELL, str(folder), str(program), *commands],
            isolation=self._isolation,
            limits=_LIMITS,
            environment={},
            visible=[folder, database, program],
            cancelled=lambda: self._closed,
        )
        if run.limit in {"wall", "cpu", "memory"}:
            raise NoAnswer(
                f"metamath came to its {run.limit} limit", "memory" if run.limit == "memory" else "time"
            )
        if run.box_error is not None or run.limit is not None or run.exit_status != 0:
            raise NoAnswer(
                f"metamath ended with {run.box_error or run.limit or run.exit_status or run.signal}"
            )
        return _answers(run.stdout.decode(errors="replace"), commands)


def _verify(label: str) -> str:
    return f"verify proof {label}"


def _answers(output: str, commands: Sequence[str]) -> dict[str, list[str]]:
    """Return the lines that follow each command's echo. Raises NoAnswer for unexpected ones."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in output.splitlines():
        if "Please answer" in line:
            raise NoAnswer("metamath prompted for input")
        if line.startswith(_PROMPT):
            lines = sections.setdefault(line.removeprefix(_PROMPT), [])
        else:
            lines.append(line)
    if list(sections) != list(commands):
        raise NoAnswer("metamath did not carry out every command")
    read = sections[commands[1]]
    if not any(line.startswith(_READ) for line in read) or any(line.startswith("?") for line in read):
        raise NoAnswer(f"metamath could not read the proofs: {_first(read, '?')}")
    return sections


def _read(said: dict[str, list[str]], label: str) -> Confirmation:
    """Return the result for one label. Raises NoAnswer if the output is neither yes nor no."""
    lines = said[_verify(label)]
    if lines == [f"{label} "]:
        return Confirmation(accepted=True)
    if lines[:1] == [f"{label} "] and any(line.startswith("?Error") for line in lines):
        return Confirmation(accepted=False, said=" ".join(lines[1:])[:1000])
    raise NoAnswer(f"metamath printed an unexpected answer: {' '.join(lines)[:200]}")


def _first(lines: Sequence[str], mark: str) -> str:
    return next((line for line in lines if line.startswith(mark)), " ".join(lines)[:200])
