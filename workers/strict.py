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
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from farm.challenge import Challenge
from farm.job import Limits
from workers import box
from workers.audit import FOLDERS, command
from workers.box.bubblewrap import python
from workers.box.cell import BoxFailed
from workers.box.isolation import Isolation, fresh_folder
from workers.environments import LeanEnvironment
from workers.ways.cold import Cold
from workers.ways.way import Question, Reply

#: What the farm does for itself may take its time and memory; the audit has limits of its own as well.
_CHALLENGE_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=1200.0, memory_mib=16384)
_REPLAY_LIMITS = Limits(wall_seconds=1800.0, cpu_seconds=3600.0, memory_mib=16384)
_AUDIT_LIMITS = Limits(wall_seconds=120.0, cpu_seconds=100.0, memory_mib=1536, output_kib=4096)
_MODULE, _REFUSED = "Module.olean", "refused"
_NAMES, _AXIOMS = "names", "axioms"
#: How a process of the audit ends that has an answer: nothing found, something found, a malformed file.
_ANSWERED = (0, 1, 4)


class BadChallenge(Exception):
    """The statement cannot be compiled; the message says why in Lean's words."""


class Strict:
    """Compiles and audits, for many threads; what is kept lies in `folder`.

    What is in the making lies in the isolation's own folder, which is cleared when its process is gone.
    """

    def __init__(self, isolation: Isolation, cold: Cold, folder: Path) -> None:
        self._isolation, self._cold, self._folder = isolation, cold, folder

    @contextlib.contextmanager
    def compiled(self, question: Question) -> Iterator[tuple[Reply, Path | None]]:
        """Have a program compiled; yield what came of it, and the module while the block lasts.

        There is a module only when the process ended by itself with status 0 and left a plain file.
        """
        with fresh_folder(self._isolation.folder) as workshop:
            made = workshop / "made"
            made.mkdir()
            reply = self._cold.ask(question, output=made / _MODULE)
            ended_well = reply.run.exit_status == 0 and reply.run.box_error is None
            yield reply, made / _MODULE if ended_well and _is_plain(made / _MODULE) else None

    def audit(
        self,
        module: Path | None,
        challenge: Challenge,
        axioms: Sequence[str],
        environment: LeanEnvironment,
        ask: Callable[[str, Limits], Question],
    ) -> dict[str, Any]:
        """Return what an audit of a module against its challenge finds; `ask` makes a question of a program.

        `axioms` are those that the proof may rest on.

        Raises `BadChallenge`, and `BoxFailed` when the audit itself fails, or Lean left no module.
        """
        if module is None:
            raise BoxFailed("Lean accepted the program and left no compiled module")
        stated = self._challenge(challenge, environment, ask)
        imported = self._imported(stated, environment)
        words = [str(module), "--challenge", str(stated)]
        words += ["--axioms", ",".join(axioms)]
        words += ["--imported", str(imported / _NAMES), "--imported-axioms", str(imported / _AXIOMS)]
        return self._run("__main__", words, visible=(module, stated, imported))

    def replay(self, module: Path | None, environment: LeanEnvironment) -> dict[str, Any]:
        """Return what the environment's checker says of a module: accepted, said, command.

        It is run in a box, the module and the environment's on ``LEAN_PATH``. In its command ``{module}``
        stands for the module's name and ``{olean}`` for its file. Status 0 accepts, 1 rejects. Raises
        `BoxFailed` for any other end, and when the environment has no checker.
        """
        if module is None or not environment.checker:
            raise BoxFailed(f"the environment {environment.name!r} has no checker that replays a module")
        given = {"{module}": module.stem, "{olean}": str(module)}
        words = [functools.reduce(_filled, given.items(), word) for word in environment.checker]
        folders = [str(module.parent), *environment.lean_path]
        run = box.run(
            words,
            isolation=self._isolation,
            limits=_REPLAY_LIMITS,
            environment={"LEAN_PATH": ":".join(folders)},
            visible=(*environment.folders, *environment.checker_folders, module.parent),
        )
        said = (run.stdout + run.stderr).decode(errors="replace").strip()[-500:]
        if run.box_error is not None or run.limit is not None or run.exit_status not in (0, 1):
            how = run.box_error or run.limit or f"status {run.exit_status}"
            raise BoxFailed(f"{words[0]} could not judge the compiled module ({how}): {said}")
        return {"accepted": run.exit_status == 0, "said": said, "command": environment.checker_name}

    def _challenge(
        self, challenge: Challenge, environment: LeanEnvironment, ask: Callable[[str, Limits], Question]
    ) -> Path:
        """Return the compiled challenge, which is made when there is none."""
        kept = self._kept("challenge", environment.digest, challenge.sha256)
        if not kept.exists():
            with self.compiled(ask(challenge.program, _CHALLENGE_LIMITS)) as (reply, module):
                _require_answer(reply.run)
                errors = [m.text for m in reply.answer.messages if m.severity == "error"]
                with self._keeping(kept) as folder:
                    if module is not None and not errors:
                        (folder / _MODULE).write_bytes(module.read_bytes())
                    else:
                        said = errors[0] if errors else "Lean did not compile it"
                        (folder / _REFUSED).write_text(said.partition("\n")[0][:500], encoding="utf-8")
        if (kept / _REFUSED).exists():
            raise BadChallenge((kept / _REFUSED).read_text(encoding="utf-8"))
        return kept / _MODULE

    def _imported(self, stated: Path, environment: LeanEnvironment) -> Path:
        """Return the folder with the names, and the axioms, of all that a compiled challenge imports."""
        imports = self._run("imports", [str(stated)], visible=(stated,))["imports"]
        kept = self._kept("imports", environment.digest, *imports)
        if not kept.exists():
            with fresh_folder(self._isolation.folder) as workshop:
                made = workshop / "made"
                made.mkdir()
                roots = _roots(environment)
                words = [str(stated), "--into", str(made), *map(str, roots)]
                self._run("imports", words, visible=(stated, *roots), writable=made)
                with self._keeping(kept) as folder:
                    for name in (_NAMES, _AXIOMS):
                        (folder / name).write_bytes((made / name).read_bytes())
        return kept

    def _run(
        self, what: str, words: Sequence[str], *, visible: Sequence[Path], writable: Path | None = None
    ) -> dict[str, Any]:
        run = box.run(
            command(python(), what, words),
            isolation=self._isolation,
            limits=_AUDIT_LIMITS,
            environment={},
            visible=(*FOLDERS, *visible),
            writable=writable,
        )
        with contextlib.suppress(ValueError):
            if run.box_error is None and run.exit_status in _ANSWERED:
                facts: dict[str, Any] = json.loads(run.stdout)
                return facts
        said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise BoxFailed(f"the audit failed: {run.box_error or run.limit or said or run.exit_status}")

    def _kept(self, *words: str) -> Path:
        return self._folder / hashlib.sha256("\0".join(words).encode()).hexdigest()

    @contextlib.contextmanager
    def _keeping(self, kept: Path) -> Iterator[Path]:
        """Give a folder to fill, which then becomes `kept`, whole, unless another one came first."""
        with fresh_folder(self._isolation.folder) as workshop:
            folder = workshop / "kept"
            folder.mkdir()
            yield folder
            for file in folder.iterdir():
                file.chmod(0o644)  # the audit's process is nobody
            folder.chmod(0o755)
            kept.parent.mkdir(parents=True, exist_ok=True)
            try:
                folder.rename(kept)
            except OSError:
                if not kept.exists():
                    raise


def _filled(word: str, place: tuple[str, str]) -> str:
    return word.replace(*place)


def _is_plain(module: Path) -> bool:
    try:
        return stat.S_ISREG(module.lstat().st_mode)
    except OSError:
        return False


def _require_answer(run: box.Run) -> None:
    """Raise BoxFailed when a challenge could not be compiled for a reason that is not its own."""
    if run.box_error is not None or run.limit is not None or run.exit_status not in (0, 1):
        raise BoxFailed(f"the challenge was not compiled: {run.box_error or run.limit or run.exit_status}")


def _roots(environment: LeanEnvironment) -> list[Path]:
    """Return the folders in which modules are looked up: the search path, then Lean's own library."""
    own = Path(environment.lean[0]).parent.parent / "lib" / "lean"
    return [*map(Path, environment.lean_path), *[own] * own.is_dir()]
