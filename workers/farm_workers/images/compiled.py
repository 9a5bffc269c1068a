"""Image step, compiled code: evaluates terms of type `Bool` by Lean's compiler, in the header's environment.

`Lean.Meta.nativeEqTrue` compiles a term and runs it, as the tactic `native_decide` does
(``src/Lean/Meta/Native.lean`` of Lean 4.35, run with that version). It is called again for a seal: no code of
the submission has run there, and in the header's environment a term can only refer to imported constants.

Their code can print, end the process, never end, or overwrite memory of the process. So each
term is compiled and run in a fork of the seal's process that has nothing open but one end of a pipe, can make
no system call that reaches anything else, and ends when the seal does.
"""

from __future__ import annotations

import os
import signal

from farm_workers.binding import table
from farm_workers.binding.lean import Callback
from farm_workers.binding.objects import NOTHING, LeanError, number_of, shared
from farm_workers.binding.table import Ability
from farm_workers.box import launch
from farm_workers.images.filters import Filter
from farm_workers.images.frontend import Frontend
from farm_workers.images.process import leave
from farm_workers.seal.evaluation import Compiled, Value

#: The longest value that is read from the pipe.
_MOST_BYTES = 64
#: Written before a term is evaluated: what goes wrong earlier is not the term's fault.
_BEGINS = b">"
#: The signals that people, service managers and Linux send; a term's code may send none.
_FROM_OUTSIDE = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL, signal.SIGTERM})


class Compiler:
    """Evaluates terms in the `context` of the last program that the frontend elaborated."""

    def __init__(self, frontend: Frontend) -> None:
        """Keep a `Lean.Elab.ContextInfo` of that program. Raises LeanError if Lean kept none."""
        self._lean = lean = frontend.lean
        if reason := lean.lacks(Ability.COMPILED):
            raise LeanError(reason)
        found: list[int] = []

        def visit(context: int, _info: int, accumulated: int) -> int:
            if not found:
                found.append(shared(context))
            return accumulated

        callback = Callback(visit)
        for tree in frontend.trees():
            lean.call(table.FOLD_TREE, lean.closure(callback), NOTHING, shared(tree))
        if not found:
            raise LeanError("Lean kept no context of a program")
        self.context = found[0]

    def apart(self, calls: Filter) -> Compiled:
        """Return a function that evaluates each term in a fork of this process, which installs the filter."""

        def evaluated(term: int) -> Value:
            reading, writing = os.pipe()
            parent = os.getpid()
            pid = os.fork()
            if pid == 0:
                leave(lambda: self._evaluate_alone(term, writing, calls, parent))
            os.close(writing)
            with open(reading, "rb") as pipe:  # noqa: PTH123
                said = pipe.read(_MOST_BYTES)
            _, status = os.waitpid(pid, 0)
            if said[:1] != _BEGINS or -os.waitstatus_to_exitcode(status) in _FROM_OUTSIDE:
                raise ChildProcessError("a process that evaluates terms failed, or was killed from outside")
            return _value(said[1:], status)

        return evaluated

    def _evaluate_alone(self, term: int, writing: int, calls: Filter, parent: int) -> int:
        """Evaluate a term in this process, a fork of a seal, and write its value to a pipe."""
        launch.prctl(launch.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return 1
        for descriptor in (1, 2):  # 0 leads nowhere already
            os.dup2(0, descriptor, inheritable=False)
        os.closerange(3, writing)
        os.closerange(writing + 1, launch.OPEN_FILES)
        calls.take()
        os.write(writing, _BEGINS)
        os.write(writing, self._evaluate(term).value.encode())
        return 0

    def _evaluate(self, term: int) -> Value:
        lean = self._lean
        lean.runtime(table.SET_HEARTBEATS)(NOTHING, NOTHING)  # 0: earlier heartbeats do not count
        action = lean.partly(table.EVALUATE, lean.name("farm"), shared(term), NOTHING)
        variables = lean.constant(table.NO_VARIABLES)
        try:
            result = lean.call(table.RUN_META, shared(self.context), variables, action)
        except LeanError:
            return Value.NOT_COMPILED
        return Value.TRUE if number_of(result) == lean.number(table.IS_TRUE) else Value.FALSE


def _value(said: bytes, status: int) -> Value:
    """Return the value of a term from the output and the exit status of the process that evaluated it."""
    if status == 0:
        values = {each.value.encode(): each for each in (Value.TRUE, Value.FALSE, Value.NOT_COMPILED)}
        return values.get(said, Value.ENDED)
    return Value.TIME if os.waitstatus_to_exitcode(status) == -signal.SIGXCPU else Value.ENDED
