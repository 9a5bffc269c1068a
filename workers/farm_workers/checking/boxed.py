"""Sealing step in boxes: audits modules where Lean cannot be forked, and runs an environment's checkers.

The audit (`farm_workers.audit`) is a process of its own, which reads the module as data and runs no code from
it. It contains no Lean that could look up imported constants, so it gets a list of their names. The list is
made once per environment and set of imports, and cached in this process's memory.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from farm.documents import decoded
from farm.judging.audit import COMPARED, UNCHECKED, UNREBUILT, Audit, Replay
from farm.judging.report import Execution
from farm.judging.tiers import Tier
from farm.limits import Limits
from farm_workers import audit, cache
from farm_workers.box import once as box
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.box.supervisor import BoxFailed
from farm_workers.checking.seals import KernelLimit, Sealable, asked_of
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment, module_folders
from farm_workers.lean.way import FIRST_LOAD, Question

_AUDIT_LIMITS = Limits(wall_seconds=120.0, cpu_seconds=100.0, memory_mib=1536, output_kib=4096)
_MODULE, _CHALLENGE, _NAMES, _AXIOMS = "Module.olean", "Challenge.olean", "names", "axioms"
_PARENT = "Parent.olean"
_DECLARED, _ANSWERS, _EXPORT = "declared", "answers", "export.ndjson"
#: Exit statuses of an audit that printed an answer: no finding, some findings, a malformed file.
_ANSWERED = (0, 1, 4)
#: The most lists of imported names in the cache, and their most bytes; Mathlib's list takes some 20 MB.
_MOST_LISTS, _MOST_LISTS_BYTES = 16, 512 << 20

_Lists = tuple[bytes, bytes]
_T = TypeVar("_T")


class Boxed:
    """Audits and replays modules in boxes; thread-safe."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._lists: cache.Cache[bytes, _Lists] = cache.Cache(
            most=_MOST_LISTS, most_bytes=_MOST_LISTS_BYTES, size=lambda lists: sum(map(len, lists))
        )

    def seal(self, sealable: Sealable) -> Audit:
        """Return the audit of a module, with replays by the environment's checkers on the tier kernel.

        Raises KernelLimit when the audit or a checker exceeds a limit, and BoxFailed when the farm fails.
        """
        with open(sealable.module, "rb", closefd=False) as file:
            file.seek(0)
            module = file.read()
        others = {_CHALLENGE: sealable.challenge, _PARENT: sealable.parent}
        known = {name: content for name, content in others.items() if content is not None}
        with self._shown({_MODULE: module, **known}) as shown:
            audit = replace(
                self._audited(sealable, shown),
                module_sha256=hashlib.sha256(module).hexdigest(),
                statement=UNCHECKED if sealable.challenge is None else COMPARED,
            )
            if sealable.assurance.tier != Tier.KERNEL:
                return audit
            if not audit.accepted:  # the checkers map the submission's bytes, so they are spared faulty ones
                return audit.unchecked
            environment = sealable.question.environment
            found = self._replayed(shown / _MODULE, sealable.question, environment.checkers)
        replay, second, *further = [*found, None]
        is_accepted = all(each.accepted for each in found)
        audit = replace(audit, trusts=(*audit.trusts, UNREBUILT)) if is_accepted else audit.unchecked
        return replace(audit, replay=replay, second=second, further=tuple(filter(None, further)))

    def replays(
        self, module: bytes, question: Question, checkers: Sequence[KernelChecker]
    ) -> Sequence[Replay]:
        """Return the answers of checkers about a module, up to the first that rejects it.

        Raises KernelLimit when one exceeds the question's limits, and BoxFailed without an answer.
        """
        with self._shown({_MODULE: module}) as shown:
            return self._replayed(shown / _MODULE, question, checkers)

    @contextlib.contextmanager
    def _shown(self, files: Mapping[str, bytes]) -> Iterator[Path]:
        """Yield a new folder with these files, which every box may read."""
        with fresh_folder(self._isolation.folder) as workshop:
            shown = workshop / "shown"
            shown.mkdir()
            shown.chmod(0o755)  # a box reads it as another user, and this process's umask may forbid that
            for name, content in files.items():
                _write(shown / name, content)
            yield shown

    def _audited(self, sealable: Sealable, shown: Path) -> Audit:
        assurance, environment = sealable.assurance, sealable.question.environment
        stated = shown / (_MODULE if sealable.challenge is None else _CHALLENGE)
        for name, content in zip((_NAMES, _AXIOMS), self._imported(stated, environment), strict=True):
            _write(shown / name, content)
        words = [str(shown / _MODULE), "--axioms", ",".join(assurance.axioms)]
        words += ["--imported", str(shown / _NAMES), "--imported-axioms", str(shown / _AXIOMS)]
        words += ["--native"] * assurance.native + ["--states"] * sealable.states
        words += _asked(sealable, shown)
        if sealable.forbidden:
            words += ["--forbidden", ",".join(sealable.forbidden)]
        if sealable.challenge is not None:
            words += ["--challenge", str(shown / _CHALLENGE)]
        if sealable.parts_from is not None:
            words += ["--parts-from", ":".join(map(str, sealable.parts_from))]
        if sealable.answers is not None:
            _write(shown / _ANSWERS, json.dumps(sealable.answers).encode("utf-8", "surrogatepass"))
            words += ["--answers", str(shown / _ANSWERS)]
        if sealable.declared is not None:
            _write(shown / _DECLARED, "\n".join(sealable.declared).encode("utf-8", "surrogatepass"))
            words += ["--declared", str(shown / _DECLARED)]
        for option, place in (("--ends", sealable.ends), ("--negates", sealable.ends_above)):
            if place is not None:
                words += [option, ":".join(map(str, place))]
        run = self._run("__main__", words, limits=_AUDIT_LIMITS, visible=_visible(sealable, shown))
        if run.limit is not None:
            raise KernelLimit.of(run, kernel_asked=False)
        return _printed(run, _ANSWERED, functools.partial(decoded, Audit))

    def _imported(self, module: Path, environment: LeanEnvironment) -> _Lists:
        """Return the names of a module's imported constants, and of the axioms among them, one a line."""
        listed = self._run("imports", [str(module)], limits=_AUDIT_LIMITS, visible=[module.parent])
        key = cache.key(environment.digest, *_printed(listed, (0,), operator.itemgetter("imports")))
        known = self._lists.get(key)
        if known is None:
            known = self._indexed(module, environment)
            self._lists.put(key, known)
        return known

    def _indexed(self, module: Path, environment: LeanEnvironment) -> _Lists:
        with fresh_folder(self._isolation.folder) as workshop:
            made = workshop / "made"
            made.mkdir()
            roots = module_folders(environment)
            words = [str(module), "--into", str(made), *map(str, roots)]
            visible = [module.parent, *roots]
            run = self._run("imports", words, limits=FIRST_LOAD, visible=visible, writable=made)
            _printed(run, (0,), bool)
            return (made / _NAMES).read_bytes(), (made / _AXIOMS).read_bytes()

    def _run(
        self,
        program: str,
        words: Sequence[str],
        *,
        limits: Limits,
        visible: Sequence[Path],
        writable: Path | None = None,
    ) -> Execution:
        return box.run(
            audit.command(python(), program, words),
            isolation=self._isolation,
            limits=limits,
            environment={},
            visible=(*audit.FOLDERS, *visible),
            writable=writable,
        )

    def _replayed(
        self, module: Path, question: Question, checkers: Sequence[KernelChecker]
    ) -> Sequence[Replay]:
        if not checkers:
            raise BoxFailed(f"the environment {question.environment.name!r} has no checker to replay modules")
        found = list[Replay]()
        for checker in checkers:
            answer = self._replay(module, question, checker)
            if not answer.accepted:  # it may have failed to read a file: only a second rejection counts
                answer = self._replay(module, question, checker)
            found.append(answer)
            if not answer.accepted:
                break
        return found

    def _replay(self, module: Path, question: Question, checker: KernelChecker) -> Replay:
        run = self._checked(module, checker, question)
        said = (run.stdout + run.stderr).decode(errors="replace").strip()[-500:]
        if run.limit is not None:
            raise KernelLimit.of(run)
        if "deep recursion" in said and run.exit_status != 0:
            raise KernelLimit("depth")
        if run.box_error is not None or run.exit_status not in (0, 1):
            how = run.box_error or f"status {run.exit_status}"
            raise BoxFailed(f"the checker could not judge the compiled module ({how}): {said}")
        return Replay(accepted=run.exit_status == 0, said=said, checker=checker.name)

    def _checked(self, module: Path, checker: KernelChecker, question: Question) -> Execution:
        if not checker.reads_export:
            return self._commanded(module, checker, question)
        with fresh_folder(self._isolation.folder) as workshop:
            made = workshop / "made"
            made.mkdir()
            self._export(module, made / _EXPORT, question)
            with self._shown({_EXPORT: (made / _EXPORT).read_bytes()}) as shown:
                return self._commanded(module, checker, question, shown / _EXPORT)

    def _export(self, module: Path, into: Path, question: Question) -> None:
        """Write the export of a module. Raises KernelLimit beyond the question's limits, and BoxFailed."""
        roots = module_folders(question.environment)
        run = self._run(
            "export",
            [str(module), str(into), *map(str, roots)],
            limits=question.limits,
            visible=[module.parent, *roots],
            writable=into.parent,
        )
        if run.limit is not None:
            raise KernelLimit.of(run)
        if run.box_error is not None or run.exit_status != 0:
            said = run.stderr.decode(errors="replace").strip()[-500:]
            how = run.box_error or f"status {run.exit_status}"
            raise BoxFailed(f"the module could not be exported for a checker ({how}): {said}")

    def _commanded(
        self, module: Path, checker: KernelChecker, question: Question, export: Path | None = None
    ) -> Execution:
        """Return the run of a checker's command on a module, and on its export if there is one."""
        environment = question.environment
        given = {
            "{module}": module.stem,
            "{olean}": str(module),
            "{path}": ":".join(environment.lean_path),
            **({} if export is None else {"{export}": str(export)}),
        }
        shown = [] if export is None else [export.parent]
        return box.run(
            [functools.reduce(_filled, given.items(), word) for word in checker.command],
            isolation=self._isolation,
            limits=question.limits,
            environment={"LEAN_PATH": ":".join([str(module.parent), *environment.lean_path])},
            visible=(*environment.folders, *checker.visible, module.parent, *shown),
            cancelled=question.cancelled,
        )


def _visible(sealable: Sealable, shown: Path) -> list[Path]:
    return [shown] if sealable.table is None else [shown, sealable.table]


def _asked(sealable: Sealable, shown: Path) -> list[str]:
    """Return the words for the task of a line and for its environment's library."""
    asked = asked_of(sealable)
    words = [f"--permit-sorry={name}" for name in asked.get("permitted", ())]
    words += ["--declarations"] * asked.get("lists", False)
    words += ["--permit-library-sorries"] * sealable.question.environment.permits_library_sorries
    if sealable.table is not None:
        words += ["--dependencies", str(sealable.table)]
    if (begins := asked.get("statement_from")) is not None:
        words += ["--statement-from", ":".join(map(str, begins))]
    for option, place in (("--hole", asked.get("hole")), ("--hole-below", asked.get("hole_below"))):
        if sealable.parent is not None and place is not None:
            words += [option, ":".join(map(str, place))]
    return words + (["--parent", str(shown / _PARENT)] if sealable.parent is not None else [])


def _printed(run: Execution, answered: Sequence[int], read: Callable[[Any], _T]) -> _T:
    """Return `read` of the JSON that an audit process printed; raises BoxFailed if it printed none."""
    with contextlib.suppress(ValueError):
        if run.is_undisturbed and run.exit_status in answered:
            return read(json.loads(run.stdout))
    said = run.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    raise BoxFailed(f"the audit failed: {run.box_error or run.limit or said or run.exit_status}")


def _write(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o644)


def _filled(word: str, place: tuple[str, str]) -> str:
    return word.replace(*place)
