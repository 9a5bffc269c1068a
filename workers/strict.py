"""Strict step: compiles a program and its challenge, each by a fresh Lean in a box, and has both audited.

The audit (`workers.audit`) reads the two modules as data in a process of its own, in a box as well, that runs
nothing of either. A challenge is compiled once per environment and kept in the farm's home, and so are the
names that its imports declare.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from farm.challenge import Challenge
from farm.job import Limits
from farm.log import logger
from workers import audit, forks
from workers.box import once as box
from workers.box.bubblewrap import python
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation, fresh_folder, remove
from workers.environments import KernelChecker, LeanEnvironment
from workers.forks.audit import IMPORTS
from workers.forks.server import PerThread, Program, ServerGone
from workers.ways.cold import Cold
from workers.ways.forked import Forked
from workers.ways.way import Doubtful, Question, Reply

_log = logger(__name__)

#: What the farm does for itself may take its time and memory; the audit has limits of its own as well.
_CHALLENGE_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=1200.0, memory_mib=16384)
_AUDIT_LIMITS = Limits(wall_seconds=120.0, cpu_seconds=100.0, memory_mib=1536, output_kib=4096)
_MODULE, _REFUSED, _IMPORTS = "Module.olean", "refused", "imports"
_NAMES, _AXIOMS = "names", "axioms"
#: Raised when what is kept is kept in another way.
_FORMAT = "2"
#: How a process of the audit ends that has an answer: nothing found, something found, a malformed file.
_ANSWERED = (0, 1, 4)
#: A server that has ended since it was last asked has a successor, which is asked once.
_TURNS = 2
#: So many challenges are kept; after so many new ones it is looked whether there are more.
_MOST_KEPT, _LOOK_AFTER = 50_000, 1_000


class BadChallenge(Exception):
    """The statement cannot be compiled; the message says why in Lean's words."""


class KernelLimit(Exception):
    """The kernel ended without an answer; the message is ``time``, ``memory`` or ``depth``."""


class Strict:
    """Compiles and audits, for many threads; what is kept lies in `folder`.

    What is in the making lies in the isolation's own folder, which is cleared when its process is gone.
    """

    def __init__(self, isolation: Isolation, *, cold: Cold, forked: Forked, servers: PerThread, folder: Path):
        self._isolation, self._cold, self._forked = isolation, cold, forked
        self._servers = servers
        self._kept = Kept(folder, isolation)

    @contextlib.contextmanager
    def compiled(self, question: Question) -> Iterator[tuple[Reply, BinaryIO | None]]:
        """Have a program compiled; yield what came of it, and the module while the block lasts.

        There is a module only when the process ended by itself with status 0 and left a plain file.
        """
        with contextlib.ExitStack() as stack:
            try:
                reply, module = self._forked.compile(question)
            except Doubtful as doubt:
                _log.debug("A fresh Lean compiles: %s", doubt)
                workshop = stack.enter_context(fresh_folder(self._isolation.folder))
                reply, module = self._cold.compile(question, workshop)
            if module is not None:
                stack.enter_context(module)
            yield reply, module

    def require(
        self, challenge: Challenge, environment: LeanEnvironment, ask: Callable[[str, Limits], Question]
    ) -> None:
        """Raise `BadChallenge` when the statement does not compile; the answer is kept, as for an audit."""
        self._challenge(challenge, environment, ask)

    def audit(
        self,
        module: BinaryIO | None,
        challenge: Challenge | None,
        axioms: Sequence[str],
        environment: LeanEnvironment,
        ask: Callable[[str, Limits], Question],
    ) -> dict[str, Any]:
        """Return what an audit of a module against its challenge finds; `ask` makes a question of a program.

        Without a challenge all of the module is judged. `axioms` are those that the proof may rest on. Raises
        `BadChallenge`, and `BoxFailed` when the audit itself fails, or Lean left no module.
        """
        if module is None:
            raise BoxFailed("Lean accepted the program and left no compiled module")
        words = ["fd:0", "--axioms", ",".join(axioms), "--imported", "fd:1", "--imported-axioms", "fd:2"]
        if challenge is None:
            with self._copied(module) as copy:
                imported, more = self._imported(copy, self._imports(module), environment), []
        else:
            stated = self._challenge(challenge, environment, ask)
            imports = json.loads((stated / _IMPORTS).read_text(encoding="utf-8"))
            imported, more = self._imported(stated / _MODULE, imports, environment), [stated / _MODULE]
            words += ["--challenge", "fd:3"]
        with contextlib.ExitStack() as stack:
            paths = (imported / _NAMES, imported / _AXIOMS, *more)
            files = [module, *(stack.enter_context(path.open("rb")) for path in paths)]
            return _facts(self._audited(words, [file.fileno() for file in files]), _ANSWERED)

    def _imports(self, module: BinaryIO) -> list[str]:
        imports: list[str] = _facts(self._audited([IMPORTS], [module.fileno()]), (0,))["imports"]
        return imports

    @contextlib.contextmanager
    def _copied(self, module: BinaryIO) -> Iterator[Path]:
        """Give a copy of a module that a box can be shown, while the block lasts."""
        with fresh_folder(self._isolation.folder) as workshop:
            shown = workshop / "shown"
            shown.mkdir()
            shown.chmod(0o755)  # whoever reads it in a box is nobody, whatever this process's umask is
            _copy(module, shown / _MODULE)
            yield shown / _MODULE

    def _audited(self, words: Sequence[str], files: Sequence[int]) -> box.Run:
        program = Program(
            command=tuple(forks.command(python(), "audit", [])),
            variables=(),
            visible=(*forks.FOLDERS, *audit.FOLDERS),
        )
        for _ in range(_TURNS):
            with contextlib.suppress(ServerGone):
                return self._servers.get(program).run(words, files=files, limits=_AUDIT_LIMITS)[0]
        raise BoxFailed("the audit failed: its server ended, and a fresh one too")

    def replay(self, module: BinaryIO | None, environment: LeanEnvironment, limits: Limits) -> dict[str, Any]:
        """Return what the environment's checker says of a module: accepted, said, checker.

        It is run in a box, the module and the environment's on ``LEAN_PATH``. Raises `KernelLimit` when it
        exceeds one, and `BoxFailed` when it has no answer, or the environment no checker.
        """
        checker = environment.checker
        if module is None or checker is None:
            raise BoxFailed(f"the environment {environment.name!r} has no checker that replays a module")
        with self._copied(module) as file:
            run = self._replayed(file, environment, checker, limits)
        said = (run.stdout + run.stderr).decode(errors="replace").strip()[-500:]
        if (limit := _kernel_limit(run, said)) is not None:
            raise KernelLimit(limit)
        if run.box_error is not None or run.exit_status not in (0, 1):
            how = run.box_error or f"status {run.exit_status}"
            raise BoxFailed(f"the checker could not judge the compiled module ({how}): {said}")
        return {"accepted": run.exit_status == 0, "said": said, "checker": checker.name}

    def _replayed(
        self, file: Path, environment: LeanEnvironment, checker: KernelChecker, limits: Limits
    ) -> box.Run:
        path = ":".join(environment.lean_path)
        given = {"{module}": file.stem, "{olean}": str(file), "{path}": path}
        folders = [str(file.parent), *environment.lean_path]
        return box.run(
            [functools.reduce(_filled, given.items(), word) for word in checker.command],
            isolation=self._isolation,
            limits=limits,
            environment={"LEAN_PATH": ":".join(folders)},
            visible=(*environment.folders, *checker.visible, file.parent),
        )

    def _challenge(
        self, challenge: Challenge, environment: LeanEnvironment, ask: Callable[[str, Limits], Question]
    ) -> Path:
        """Return the folder with the compiled challenge, which is made when there is none."""
        kept = self._kept.find("challenge", environment.digest, challenge.sha256)
        if not kept.exists():
            with self.compiled(ask(challenge.program, _CHALLENGE_LIMITS)) as (reply, module):
                _require_answer(reply.run)
                errors = [m.text for m in reply.answer.messages if m.severity == "error"]
                with self._kept.keeping(kept) as folder:
                    if module is not None and not errors:
                        _copy(module, folder / _MODULE)
                        imports = json.dumps(self._imports(module))
                        (folder / _IMPORTS).write_text(imports, encoding="utf-8")
                    else:
                        said = errors[0] if errors else "Lean did not compile it"
                        (folder / _REFUSED).write_text(said.partition("\n")[0][:500], encoding="utf-8")
        if (kept / _REFUSED).exists():
            raise BadChallenge((kept / _REFUSED).read_text(encoding="utf-8"))
        return kept

    def _imported(self, module: Path, imports: Sequence[str], environment: LeanEnvironment) -> Path:
        """Return the folder with the names, and the axioms, of all that a compiled module imports."""
        kept = self._kept.find("imports", environment.digest, *imports)
        if not kept.exists():
            with fresh_folder(self._isolation.folder) as workshop:
                made = workshop / "made"
                made.mkdir()
                roots = _roots(environment)
                words = [str(module), "--into", str(made), *map(str, roots)]
                self._index(words, visible=(module.parent, *roots), writable=made)
                with self._kept.keeping(kept) as folder:
                    for name in (_NAMES, _AXIOMS):
                        (folder / name).write_bytes((made / name).read_bytes())
        return kept

    def _index(self, words: Sequence[str], *, visible: Sequence[Path], writable: Path) -> None:
        run = box.run(
            audit.command(python(), "imports", words),
            isolation=self._isolation,
            limits=_CHALLENGE_LIMITS,
            environment={},
            visible=(*audit.FOLDERS, *visible),
            writable=writable,
        )
        _facts(run, (0,))


class Kept:
    """Folders that are made once and kept; those least recently used go when there are too many."""

    def __init__(self, folder: Path, isolation: Isolation) -> None:
        self._folder, self._isolation = folder, isolation
        self._lock = threading.Lock()
        self._new = 0

    def find(self, *words: str) -> Path:
        """Return the folder for these words, which need not be there yet."""
        kept = self._folder / hashlib.sha256("\0".join((_FORMAT, *words)).encode()).hexdigest()
        with contextlib.suppress(FileNotFoundError):
            os.utime(kept)
        return kept

    @contextlib.contextmanager
    def keeping(self, kept: Path) -> Iterator[Path]:
        """Give a folder to fill, which then becomes `kept`, whole, unless another one came first."""
        with fresh_folder(self._isolation.folder) as workshop:
            folder = workshop / "kept"
            folder.mkdir()
            folder.chmod(0o755)  # whoever reads it in a box is nobody
            yield folder
            for file in folder.iterdir():
                file.chmod(0o644)
            kept.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.rename(kept)
            except OSError:
                if not kept.exists():
                    raise
        self._make_room()

    def _make_room(self) -> None:
        with self._lock:
            self._new += 1
            if self._new % _LOOK_AFTER:
                return
        found = sorted(self._folder.iterdir(), key=_used_at)
        for folder in found[: max(0, len(found) - _MOST_KEPT)]:
            remove(folder)


def _used_at(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another worker has just removed it
        return 0.0


_KERNEL_LIMITS = {"wall": "time", "cpu": "time", "memory": "memory"}


def _kernel_limit(run: box.Run, said: str) -> str | None:
    """Return the limit at which the kernel ended, if it did."""
    if run.limit is not None:
        return _KERNEL_LIMITS.get(run.limit, "depth")
    return "depth" if "deep recursion" in said and run.exit_status != 0 else None


def _facts(run: box.Run, answered: Sequence[int]) -> dict[str, Any]:
    """Return what a process of the audit printed. Raises BoxFailed when it has no answer."""
    with contextlib.suppress(ValueError):
        if run.box_error is None and run.limit is None and run.exit_status in answered:
            facts: dict[str, Any] = json.loads(run.stdout)
            return facts
    said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    raise BoxFailed(f"the audit failed: {run.box_error or run.limit or said or run.exit_status}")


def _copy(module: BinaryIO, to: Path) -> None:
    module.seek(0)
    to.write_bytes(module.read())
    to.chmod(0o644)


def _filled(word: str, place: tuple[str, str]) -> str:
    return word.replace(*place)


def _require_answer(run: box.Run) -> None:
    """Raise BoxFailed when a challenge could not be compiled for a reason that is not its own."""
    if run.box_error is not None or run.limit is not None or run.exit_status not in (0, 1):
        raise BoxFailed(f"the challenge was not compiled: {run.box_error or run.limit or run.exit_status}")


def _roots(environment: LeanEnvironment) -> list[Path]:
    """Return the folders in which modules are looked up: the search path, then Lean's own library."""
    own = Path(environment.lean[0]).parent.parent / "lib" / "lean"
    return [*map(Path, environment.lean_path), *[own] * own.is_dir()]
