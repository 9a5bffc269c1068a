"""Challenge step: statements compiled by the farm itself, kept in this process's memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from farm.challenge import Challenge
from farm.job import Limits
from workers.box.supervisor import BoxFailed
from workers.leans import Leans
from workers.ways.way import Question, Reply

#: What the farm does for itself may take its time and memory.
_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=1200.0, memory_mib=16384)
#: So much of compiled statements is kept; one takes some 10 KiB.
_MOST_BYTES = 256 << 20

#: Makes a question of a program, about the same Lean.
Ask = Callable[[str, Limits], Question]


class BadChallenge(Exception):
    """The statement cannot be compiled; the message says why in Lean's words."""


class Challenges:
    """Compiles statements, each once as long as it is kept; for many threads.

    They are compiled as programs are and never leave the memory of this process, which no check can reach.
    """

    def __init__(self, leans: Leans) -> None:
        self._leans = leans
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, str], bytes | str] = OrderedDict()
        self._bytes = 0

    def compiled(self, challenge: Challenge, digest: str, ask: Ask) -> bytes:
        """Return the module of a statement in the environment with a digest.

        Raises BadChallenge when Lean refuses it, and BoxFailed when nothing was found out.
        """
        key = digest, challenge.sha256
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is None:
            found = self._compiled(ask(challenge.program, _LIMITS))
            self._keep(key, found)
        if isinstance(found, str):
            raise BadChallenge(found)
        return found

    def _compiled(self, question: Question) -> bytes | str:
        """Return the module, or what is wrong with the statement in Lean's words."""
        with self._leans.compiled(question) as reply:
            _require_answer(reply)
            errors = [m.text for m in reply.answer.messages if m.severity == "error"]
            if reply.module is not None and not errors:
                return reply.module.read()
            return (errors[0] if errors else "Lean did not compile it").partition("\n")[0][:500]

    def _keep(self, key: tuple[str, str], found: bytes | str) -> None:
        with self._lock:
            self._bytes += len(found) - len(self._kept.get(key, b""))
            self._kept[key] = found
            while self._bytes > _MOST_BYTES and len(self._kept) > 1:
                self._bytes -= len(self._kept.popitem(last=False)[1])


def _require_answer(reply: Reply) -> None:
    """Raise BoxFailed when a statement could not be compiled for a reason that is not its own."""
    run = reply.run
    if run.box_error is not None or run.limit is not None or run.exit_status not in (0, 1):
        raise BoxFailed(f"the challenge was not compiled: {run.box_error or run.limit or run.exit_status}")
