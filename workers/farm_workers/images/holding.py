"""Image step, sessions: a fork of an image that holds states of proofs, and forks to run tactics on them.

It is in a cell of its own, with the rights of a check. The worker sends it orders (`STEP`, `END`), each with
the number of a fork; an order to step has a socket and a request. The fork runs the tactics, writes a line of
JSON for each as it ends, and then holds the new states itself: it takes orders on that socket. A fork whose
socket the worker closes ends; `END` kills one that runs a tactic for too long.

The tactics run their own code here, so the worker believes no answer, and seals each proof.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import time
from collections.abc import Sequence
from typing import NoReturn, TypedDict

from farm_workers.binding.objects import LeanError
from farm_workers.box.sockets import socket_of
from farm_workers.images.child import Surroundings, confined_image, limit
from farm_workers.images.frontend import Frontend
from farm_workers.images.process import leave
from farm_workers.images.tactics import State, TacticFailed, Tactics

#: Orders to a holder, each followed by the number of a fork: so many bytes, for the socket keeps no bounds.
STEP, END = b"s", b"e"
ORDER_BYTES = 9
#: The outcomes of a tactic that a fork reports.
GOALS, NO_GOALS, ERROR, SKIPPED = "goals", "no_goals", "error", "skipped"
#: The answer to a path that cannot be taken again.
LOST = "lost"
MOST_MESSAGES, _MESSAGE_CHARACTERS = 16, 16_384


class StepAsked(TypedDict):
    """The request of a step: tactics to try on the state that `path` leads to from a held state."""

    state: int
    path: Sequence[str]
    tactics: Sequence[str]
    heartbeats: int | None
    first_success: bool


def hold_in(frontend: Frontend, place: Surroundings, files: Sequence[int]) -> NoReturn:
    """Run as a session: elaborate its program, and hold the states at the sorries, to the end."""
    given = confined_image(place, files)
    if given is None:
        os._exit(1)
    asked, worker = given
    limit(asked, place.data_bytes)
    try:
        accepted = frontend.elaborate(asked["program"], None)
        roots = Tactics(frontend).roots(asked["program"]) if accepted else []
        tactics = Tactics(frontend)
    except LeanError as error:
        _say(worker, {"error": str(error)})
        os._exit(1)
    _silence()
    said = [
        {
            "line": each.line,
            "column": each.column,
            "is_term": each.is_term,
            "goals": tactics.printed(each.state),
        }
        for each in roots
    ]
    _say(worker, {"accepted": accepted, "roots": said})
    Holder(frontend, tactics, [each.state for each in roots], worker).serve()


def _silence() -> None:
    """Discard the output of tactics: a full pipe would stop them."""
    for stream in (1, 2):
        os.dup2(0, stream)


def _say(worker: socket.socket, answer: dict[str, object]) -> None:
    worker.sendall(json.dumps(answer).encode() + b"\n")


class Holder:
    """Holds states, and forks for each order."""

    def __init__(
        self, frontend: Frontend, tactics: Tactics, states: Sequence[State], worker: socket.socket
    ) -> None:
        self._frontend, self._tactics = frontend, tactics
        self._states, self._worker = states, worker
        self._forks: dict[int, int] = {}
        self._poll = select.poll()
        self._poll.register(worker, select.POLLIN)

    def serve(self) -> NoReturn:
        """Take orders until the worker closes the socket, then end."""
        gc.freeze()
        # The kernel reaps its forks, and the orphans of holders that ended before their own forks.
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor != self._worker.fileno():
                    self._forget(descriptor)
                elif not self._take_order():
                    os._exit(0)

    def _take_order(self) -> bool:
        order, files, _, _ = socket.recv_fds(self._worker, ORDER_BYTES, 2)
        if not order:
            return False
        number = int(order[1:])
        if order[:1] == END:
            self._end(number)
            return True
        # Without room for a process or its files, the worker finds its socket closed and asks again. A fork
        # that has ended already is reaped.
        with contextlib.suppress(OSError, ValueError):
            self._begin(number, files)
        for file in files:
            os.close(file)
        return True

    def _begin(self, number: int, files: Sequence[int]) -> None:
        """Fork for an order. Raises OSError and, where Linux dropped a file of it, ValueError."""
        answers, request = files
        pid = os.fork()
        if pid == 0:
            leave(lambda: self._step(answers, request))
        handle = os.pidfd_open(pid)
        self._forks[handle] = number
        self._poll.register(handle, select.POLLIN)

    def _end(self, number: int) -> None:
        """Kill a fork; one that has ended is not there any more."""
        for handle, known in self._forks.items():
            if known == number:
                with contextlib.suppress(ProcessLookupError):  # it was reaped
                    signal.pidfd_send_signal(handle, signal.SIGKILL)

    def _forget(self, handle: int) -> None:
        """Forget a fork that has ended."""
        del self._forks[handle]
        self._poll.unregister(handle)
        os.close(handle)

    # In a fork

    def _step(self, answers: int, request: int) -> int:
        """Run the tactics of a request, then hold the new states."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # tactics may wait for processes of their own
        self._worker.close()
        for handle in self._forks:
            os.close(handle)
        with open(request, encoding="utf-8") as file:
            asked: StepAsked = json.load(file)
        worker = socket_of(answers)
        self._frontend.begin()
        try:
            led = self._led(self._states[asked["state"]], asked["path"])
        except TacticFailed as error:
            _say(worker, {"outcome": LOST, "message": str(error)})
            return 1
        _say(worker, {"outcome": "ready"})
        before = led[-1] if led else self._states[asked["state"]]
        states = [*led, *self._tried(before, asked, worker)]
        if states:
            Holder(self._frontend, self._tactics, states, worker).serve()
        return 0

    def _led(self, state: State, path: Sequence[str]) -> list[State]:
        """Return the states on a path, which are held as well: the path need not be taken again."""
        states: list[State] = []
        for tactic in path:
            state = self._tactics.without_messages(self._tactics.step(state, tactic))
            states.append(state)
        return states

    def _tried(self, before: State, asked: StepAsked, worker: socket.socket) -> list[State]:
        """Try the tactics one after the other, reporting each; return the new states."""
        states: list[State] = []
        for tactic in asked["tactics"]:
            if asked["first_success"] and states:
                _say(worker, {"outcome": SKIPPED})
                continue
            began = time.process_time()
            answer = self._tried_one(before, tactic, asked["heartbeats"], states)
            answer["cpu_ms"] = round(1000 * (time.process_time() - began), 3)
            _say(worker, answer)
        return states

    def _tried_one(
        self, before: State, tactic: str, heartbeats: int | None, states: list[State]
    ) -> dict[str, object]:
        try:
            after = self._tactics.step(before, tactic, heartbeats)
        except TacticFailed as error:
            return {"outcome": ERROR, "message": str(error)[:_MESSAGE_CHARACTERS]}
        messages = self._tactics.messages(after)[:MOST_MESSAGES]
        states.append(self._tactics.without_messages(after))
        outcome = NO_GOALS if after.is_closed else GOALS
        return {"outcome": outcome, "goals": self._tactics.printed(after), "messages": messages}
