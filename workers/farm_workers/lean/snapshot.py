"""Snapshot way: a fresh Lean for each program, which loads the state after its header from a file."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from farm.judging.report import Execution
from farm.log import logger
from farm_workers import cache
from farm_workers.box import once as box
from farm_workers.box.isolation import FRESH, Isolation, fresh_folder, remove
from farm_workers.environments.lean_environment import environment_variables
from farm_workers.lean.cold import in_a_process
from farm_workers.lean.messages import save_snapshot_command
from farm_workers.lean.way import FIRST_LOAD, Doubtful, Question, Reply

_log = logger(__name__)

#: At most this many snapshots are kept on disk, whatever their size, and this many refused headers in memory.
_MOST, _MOST_REFUSED = 1000, 1000
#: A temporary file that is older than this belongs to a killed worker.
_LEFT_SECONDS = 6 * FIRST_LOAD.wall_seconds


class Snapshot:
    """Runs a fresh Lean for each program, which loads its header from a snapshot in `folder`.

    Lean does not check that a snapshot belongs to its imports, so its name is made of the environment's
    digest and folders and the header's text. Each is made once, however many threads and processes ask for it
    at the same time. Those least recently used are removed when all take more than `most_mib`, or are more
    than a thousand.
    """

    def __init__(self, isolation: Isolation, folder: Path, *, most_mib: int) -> None:
        self._isolation = isolation
        self._folder = folder
        self._most_bytes = most_mib << 20
        self._refused: cache.Cache[Path, bool] = cache.Cache(most=_MOST_REFUSED)

    def compile(self, question: Question) -> Reply:
        """Run Lean on the program, and have the module written.

        Raises Doubtful when there is no snapshot, or Lean dies with it.
        """
        reply = in_a_process(question, self._isolation, self.of(question))
        run, answer = reply.report.run, reply.report.answer
        names_its_error = run.exit_status == 1 and answer.messages
        if run.is_undisturbed and run.exit_status != 0 and not names_its_error:
            raise Doubtful("Lean crashed while using a snapshot")
        return reply

    def of(self, question: Question) -> Path:
        """Return the snapshot of the question's header, made if it is missing.

        Raises Doubtful if it cannot be made.
        """
        environment = question.environment
        # It has the paths of the modules, and in another process a descriptor's number is another file.
        if not self._isolation.keeps_paths(environment.folders):
            raise Doubtful("a snapshot cannot name modules in folders that are closed to the user of checks")
        # A snapshot names the files that it was made from, wherever the home is moved to.
        key = "\0".join((environment.digest, *environment.lean_path, question.header))
        folder = self._folder / hashlib.sha256(key.encode()).hexdigest()
        try:
            os.utime(folder)  # it is in use: others go first
        except FileNotFoundError:
            self._make(question, folder)
        return folder / _FILE

    def _make(self, question: Question, folder: Path) -> None:
        self._require_possible(folder)
        try:
            with self._alone(folder):
                self._require_possible(folder)  # another thread may just have tried
                if not folder.exists():
                    self._save(question, folder)
                    self._make_room(folder)
        except OSError as error:
            raise Doubtful(f"could not store a snapshot: {error}") from error

    def _require_possible(self, folder: Path) -> None:
        if self._refused.get(folder):
            raise Doubtful("no snapshot of this header can be made")

    @contextlib.contextmanager
    def _alone(self, folder: Path) -> Iterator[None]:
        """Lock the making of a snapshot, against threads of this process and other processes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        name = folder.with_suffix(".lock")
        with name.open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                yield
            finally:
                name.unlink(missing_ok=True)  # those that wait for the lock find the snapshot made

    def _save(self, question: Question, folder: Path) -> None:
        with fresh_folder(self._folder) as workshop:
            header = workshop / "Header.lean"
            header.write_text(question.header, encoding="utf-8")
            header.chmod(0o644)
            made = workshop / "made"
            made.mkdir()
            run = box.run(
                save_snapshot_command(question.environment, made / _FILE, header),
                isolation=self._isolation,
                limits=FIRST_LOAD,
                environment=environment_variables(question.environment),
                visible=(*question.environment.folders, header),
                writable=made,
                cancelled=question.cancelled,
            )
            if run.exit_status != 0 or not (made / _FILE).is_file():
                self._refuse(folder, run)
            made.rename(folder)

    def _refuse(self, folder: Path, run: Execution) -> None:
        """Remember that a header has no snapshot: this toolchain cannot make one, or it has an error."""
        if run.box_error is None and run.exit_status is not None:
            self._refused.put(folder, True)
        said = (run.stdout + run.stderr).decode(errors="replace").strip()
        _log.info("Could not create a snapshot of a header: %s", run.box_error or run.limit or said[:200])
        raise Doubtful("could not create a snapshot of this header")

    def _make_room(self, newest: Path) -> None:
        """Remove the files of killed workers, then the least recently used snapshots; never the newest."""
        for pattern in (f"{FRESH}*", "*.lock"):
            for left in self._folder.glob(pattern):
                _remove_old(left)
        kept = [file.parent for file in self._folder.glob(f"*/{_FILE}")]
        snapshots = sorted((each.stat().st_mtime, each, _bytes_in(each)) for each in kept)
        number, size = len(snapshots), sum(each for _, _, each in snapshots)
        for _, folder, its in snapshots:
            if (size > self._most_bytes or number > _MOST) and folder != newest:
                number, size = number - 1, size - its
                shutil.rmtree(folder, ignore_errors=True)  # another worker may be at it as well


def _bytes_in(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _remove_old(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # its worker has just removed it
        if time.time() - path.stat().st_mtime > _LEFT_SECONDS:
            path.unlink() if path.suffix == ".lock" else remove(path)


#: Lean writes the dependencies of a snapshot beside it.
_FILE = "header.snap"
