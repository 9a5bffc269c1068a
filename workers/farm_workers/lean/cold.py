"""Cold way: starts a fresh Lean for each program, which reads every module that the program imports."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

from farm.judging.report import Execution
from farm_workers import cache
from farm_workers.box import once as box
from farm_workers.box.copy import taken
from farm_workers.box.isolation import Isolation, fresh_folder
from farm_workers.environments.lean_environment import environment_variables
from farm_workers.lean.messages import (
    LIST,
    MODULE,
    compile_command,
    completes,
    is_its_only_error,
    reports_error,
    with_end_mark,
)
from farm_workers.lean.way import COLD, Question, Reply, stops_in_header

#: The reading time of at most this many headers is cached.
_MOST_HEADERS = 1000


class Cold:
    """Runs a fresh Lean for each program; thread-safe.

    The clock of a check starts when its imports have been read, but a fresh process does not report that
    moment. Reading takes no longer than the shortest run so far with the same header, so that duration is
    added to the limits of time. A header that was never read is run alone first, because its modules may come
    from the disk.
    """

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._shortest: cache.Cache[bytes, Execution] = cache.Cache(most=_MOST_HEADERS)

    def compile(self, question: Question) -> Reply:
        """Run Lean on the program to its end, or to a limit, and have the module written."""
        if self._shortest.get(_key(question)) is None:
            with self._run(question.instead(question.header)).module or contextlib.nullcontext():
                pass
        return self._run(self._with_reading(question))

    def _run(self, question: Question) -> Reply:
        reply = _in_a_process(question, self._isolation)
        run = reply.report.run
        if run.is_undisturbed and run.exit_status is not None:
            known = self._shortest.get(_key(question))
            if known is None or run.counted_seconds < known.counted_seconds:
                self._shortest.put(_key(question), run)
        return reply

    def _with_reading(self, question: Question) -> Question:
        """Return a question whose limits allow for reading its imports again."""
        reading = self._shortest.get(_key(question))
        return question if reading is None else question.allowing(reading)


def _key(question: Question) -> bytes:
    return cache.key(question.environment.digest, question.header)


def _in_a_process(question: Question, isolation: Isolation) -> Reply:
    """Run the command `lean` on a program.

    The mark stands behind the program. If Lean cannot parse the two apart, it gets the program alone, and
    that reply counts: such a program is incomplete, unless the mark was the only error. A Lean that did not
    get to the text is not asked about it again.
    """
    program, mark = question.program, question.mark
    run, module, declared = _in_a_box(question, with_end_mark(program, mark), isolation)
    has_end = False
    if _has_failed(run) and not completes(run.stdout, program=program, mark=mark):
        unread = Reply.of(question, run, COLD, lambda: None)
        if not reports_error(run.stdout) or stops_in_header(question, unread.report):
            return unread
        has_end = is_its_only_error(run.stdout, program=program, mark=mark)
        run, module, declared = _in_a_box(question, program, isolation)
    reply = Reply.of(question, run, COLD, lambda: module)
    return replace(reply.with_end() if has_end else reply, declared=declared)


def _has_failed(run: Execution) -> bool:
    return run.is_undisturbed and run.exit_status == 1


def _in_a_box(
    question: Question, text: str, isolation: Isolation
) -> tuple[Execution, BinaryIO | None, tuple[str, ...] | None]:
    """Run `lean` on a text with the question's options and limits.

    Return the run's facts and, after a run that ended well, the module, and the program's declarations if the
    question keeps them.
    """
    environment = question.environment
    with fresh_folder(isolation.folder) as workshop:
        made = workshop / "made"
        made.mkdir()
        run = box.run(
            compile_command(environment, made / MODULE, lists=question.keeps_examples),
            isolation=isolation,
            stdin=text.encode(),
            limits=question.limits,
            environment=environment_variables(environment),
            visible=environment.folders,
            writable=made,
            cancelled=question.cancelled,
        )
        if not run.is_undisturbed or run.exit_status != 0:
            return run, None, None
        declared = declared_names(taken(made / LIST)) if question.keeps_examples else None
        return run, taken(made / MODULE), declared


# The process that wrote the file ran the program: a list can only count against a program. It names a
# constant of the module like an `example`, which the module does not contain.


#: The longest list that is read.
_MOST_BYTES = 16 << 20
#: How the name of a constant began before lists had a version of 2 or more.
_FIRST_FORM = "c:"


class _Unreadable(ValueError):
    """A list has an unknown form, or is incomplete."""


def declared_names(file: BinaryIO | None) -> tuple[str, ...] | None:
    """Return the constants that a list defines. The file is closed.

    None for a malformed list, and for the list of a program that uses the code of Lean's elaborator: lists do
    not contain the declarations of such code.
    """
    if file is None:
        return None
    with file:
        content = file.read(_MOST_BYTES + 1)
    try:
        return tuple(_defined(json.loads(content))) if len(content) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        return None


def _defined(said: object) -> Iterator[str]:
    references = said.get("references") if isinstance(said, dict) else None
    if not isinstance(references, dict):
        raise _Unreadable
    for key, each in references.items():
        if not isinstance(each, dict) or "definition" not in each:
            raise _Unreadable
        if (name := _constant(key)) is not None and each["definition"] is not None:
            yield name


def _constant(key: str) -> str | None:
    """Return the name of the constant that a key stands for, None for a local variable."""
    if key.startswith(("c:", "f:")):
        return _own(name := key.removeprefix(_FIRST_FORM), name) if key.startswith(_FIRST_FORM) else None
    said = json.loads(key)
    if not isinstance(said, dict) or not said.keys() & {"c", "f"}:
        raise _Unreadable
    if "c" not in said:
        return None
    constant = said["c"]
    if not isinstance(constant, dict):
        raise _Unreadable
    return _own(constant.get("n"), constant.get("m"))


def _own(name: object, module: object) -> str:
    """Return the name of a constant that is in no module of Lean's elaborator."""
    if not isinstance(name, str) or not isinstance(module, str):
        raise _Unreadable
    if module == "Lean" or module.startswith("Lean."):
        raise _Unreadable
    return name
