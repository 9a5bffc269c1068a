"""Resident way: one Lean that keeps its header and is given one program after the other.

Measured with Lean 4.35: while a text is elaborated endlessly, the next text was answered after 13 ms and the
header stayed. So a check that ran out of time costs its process only when that does not go quiet.
"""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import replace

from farm.job import Limits
from workers.box import once as box
from workers.box.cell import Cell
from workers.box.isolation import Isolation
from workers.environments import LeanEnvironment
from workers.lean import answer, environment_variables, resident_command
from workers.lsp import BrokenProtocol, Exchange, change, opening, wait
from workers.ways.conversation import ANSWERED, CANCELLED, DIED, Conversation, Talk
from workers.ways.way import RESIDENT, Doubtful, Question, Reply

#: A header may take its time and memory: it is the environment's, not the proof's.
_HEADER_LIMITS = Limits(wall_seconds=600.0, cpu_seconds=math.inf, memory_mib=1 << 20)
#: After so many checks, or grown by so much private memory, a process makes room for a fresh one.
MOST_CHECKS = 10_000
MOST_GROWTH_KIB = 512 << 10
#: Seconds that a process has to go quiet after its check was broken off; and how it is told that it has: by
#: so little processor time within so long.
GRACE = 0.5
_QUIET_LOOK, _QUIET_CPU = 0.02, 0.005
#: A limit of memory may be lower by twice this than it could be, so that few have to be set.
_STEP_MIB = 8
#: Two words that end before any colon: a command that has begun, of which nothing can be reused yet.
_NO_COMMAND_YET = re.compile(r"\s*[^\s:]*\s*[^\s:]*")


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning, in linear time."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class ResidentLean:
    """One ``lean --worker`` in a cell, with its header ready.

    Not for two threads at once. It dies with the thread that made it.
    """

    def __init__(self, environment: LeanEnvironment, header: str, isolation: Isolation) -> None:
        """Start Lean and wait until the header is ready.

        Raises Doubtful when Lean does not take the header, BoxFailed when there is no box for it.
        """
        self._isolation = isolation
        self._header = header
        self._version = 1
        self._checks = 0
        self._sound = True
        self._last = header
        self._most_mib = _HEADER_LIMITS.memory_mib
        theirs, ours = os.pipe()
        try:
            self._cell = Cell(
                resident_command(environment),
                isolation=isolation,
                limits=_HEADER_LIMITS,
                stdin=theirs,
                environment=environment_variables(environment),
                visible=environment.folders,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._conversation = Conversation(self._cell, ours)
        try:
            self._take_header()
        except BaseException:
            self.close()
            raise

    def _take_header(self) -> None:
        exchange = Exchange(1)
        try:
            talk = self._conversation.talk(opening(self._header) + wait(1), exchange, _HEADER_LIMITS)
            if talk.ended != ANSWERED:
                raise Doubtful(f"the header did not get ready: {talk.ended} {talk.stderr[:200]}")
            if any(m.severity == "error" for m in exchange.messages(self._header)):
                raise Doubtful("the header has an error")
        except BrokenProtocol as error:
            raise Doubtful(str(error)) from error
        self._ready_kib = self._memory_kib = self._cell.usage().memory_kib

    def ask(self, question: Question) -> Reply:
        """Give Lean a program that begins with its header, and return what came of it.

        Raises Doubtful when the process died, or its answer is not what the protocol promises.
        """
        self._checks += 1
        self._sound = False
        self._make_room(question.limits)
        text = self._fresh_start(question)
        self._version += 1
        self._last = question.program
        text += change(self._version, question.program) + wait(self._version)
        exchange = Exchange(self._version)
        try:
            talk = self._conversation.talk(text, exchange, question.limits, cancelled=question.cancelled)
            self._memory_kib = talk.memory_kib
            return self._reply(question, exchange, talk)
        except BrokenProtocol as error:
            raise Doubtful(str(error)) from error

    def _fresh_start(self, question: Question) -> bytes:
        """Return what takes Lean back to what programs may share, when it could reuse more than that.

        Lean reuses the commands, and even the tactics, that two texts begin with. It would not count their
        heartbeats again: the last program would change what this one may cost.
        """
        alike = _alike(self._last, question.program)
        if _NO_COMMAND_YET.fullmatch(question.program, min(question.prefix_end, alike), alike):
            return b""
        self._version += 1
        return change(self._version, question.program[: question.prefix_end])

    def _make_room(self, limits: Limits) -> None:
        """Allow as much memory as a fresh process would have beside its header."""
        room = limits.memory_mib - self._ready_kib // 1024
        if room <= 0:
            raise Doubtful("the header alone takes more memory than the check may use")
        most_mib = self._memory_kib // 1024 + room
        if not most_mib - 2 * _STEP_MIB < self._most_mib <= most_mib:
            self._cell.allow(most_mib - _STEP_MIB)
            self._most_mib = most_mib - _STEP_MIB
        self._cell.reset_peak()

    def _reply(self, question: Question, exchange: Exchange, talk: Talk) -> Reply:
        if talk.ended == DIED:
            raise Doubtful(f"the resident Lean died: {talk.stderr[:200]}")
        messages = exchange.messages(question.program) if exchange.published else []
        said = answer(messages, talk.stderr, mark=question.mark)
        run = self._facts(exchange, talk, failed=any(m.severity == "error" for m in messages))
        if talk.ended != ANSWERED:
            return Reply(run=run, answer=said, way=RESIDENT, stopped_at=exchange.working_on())
        if not exchange.published:
            raise Doubtful("Lean answered without a word about the program")
        self._sound = True
        return Reply(run=run, answer=said, way=RESIDENT)

    def _facts(self, exchange: Exchange, talk: Talk, *, failed: bool) -> box.Run:
        return box.Run(
            exit_status=int(failed) if talk.ended == ANSWERED else None,
            signal=None,
            wall_seconds=talk.wall_seconds,
            cpu_seconds=talk.cpu_seconds,
            peak_memory_kib=talk.peak_memory_kib,
            limit=None if talk.ended in (ANSWERED, CANCELLED) else talk.ended,
            oom_killed=talk.ended == "memory",
            process_limit_hit=talk.ended == "processes",
            stdout=b"",
            stderr=b"",
            output_bytes=exchange.size + talk.stderr_bytes,
            output_cut=talk.ended == "output",
            box_error="the check was cancelled" if talk.ended == CANCELLED else None,
            isolation=self._isolation.name,
        )

    @property
    def fit(self) -> bool:
        """Whether the last check ended as it should and the process may go on to the next one."""
        return (
            self._sound
            and self._checks < MOST_CHECKS
            and self._memory_kib <= self._ready_kib + MOST_GROWTH_KIB
        )

    def calm_down(self) -> bool:
        """Break off what Lean is doing; True when it goes quiet at once and is fit for the next check."""
        self._version += 1
        text = change(self._version, self._header) + wait(self._version)
        self._last = self._header
        limits = replace(_HEADER_LIMITS, wall_seconds=GRACE)
        try:
            ended = self._conversation.talk(text, Exchange(self._version), limits).ended
        except BrokenProtocol:
            return False
        self._sound = ended == ANSWERED and self._goes_quiet()
        return self.fit

    def _goes_quiet(self) -> bool:
        deadline = time.monotonic() + GRACE
        used = self._cell.usage().cpu_seconds
        while time.monotonic() < deadline:
            time.sleep(_QUIET_LOOK)  # what is measured is how much happens in this time
            now = self._cell.usage()
            last, used, self._memory_kib = used, now.cpu_seconds, now.memory_kib
            if used - last < _QUIET_CPU:
                return True
        return False

    def close(self) -> None:
        """End the process with all that belongs to it."""
        self._conversation.close()
        self._cell.close()
