"""Searches written for other tools, over sessions: the public REPL's requests, and PyPantograph's calls.

    repl = Repl(Client(), header="import Mathlib")
    first = repl.run({"cmd": "theorem t (p : Prop) (h : p) : p := by sorry"})["sorries"][0]["proofState"]
    repl.run({"tactic": "exact h", "proofState": first})["goals"]  # []

Names and shapes are those of leanprover-community/repl (its README) and of PyPantograph's `Server`. Both call
an empty list of goals a proof; here only `prove` seals one. Pickles are not offered: a state is its tactics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from farm.client.errors import Invalid
from farm.client.results import Result
from farm.client.sessions import Session
from farm.client.states import State, Step
from farm.client.sync import Client

_OPEN, _COMPLETED = "Incomplete: open goals remain", "Completed"


@dataclass(frozen=True, slots=True)
class _Known:
    """A state by its number: its session, and its id there."""

    session: Session
    state: str


class _Sessions:
    """The sessions of one user, and the numbers of their states."""

    def __init__(self, client: Client, *, header: str, environment: str | None, seconds: float) -> None:
        self._client, self._header = client, header
        self._environment, self._seconds = environment, seconds
        self._states: list[_Known] = []

    def opened(self, text: str) -> list[tuple[int, State]]:
        """Open a session on a text, and return the number of each of its roots."""
        program = f"{self._header}\n{text}" if self._header else text
        session = self._client.session({"program": program}, environment=self._environment)
        return [(self._noted(session, root.id), root) for root in session.roots]

    def stepped(self, number: int, tactic: str) -> tuple[int | None, Step]:
        """Try a tactic; return the number of the new state, None if it failed. Raises LookupError."""
        known = self.known(number)
        (step,) = known.session.step(known.state, tactic, seconds=self._seconds)
        return None if step.state is None else self._noted(known.session, step.state), step

    def known(self, number: int) -> _Known:
        """Return a state by its number. Raises LookupError."""
        if not 0 <= number < len(self._states):
            raise LookupError(f"Unknown proof state {number}")
        return self._states[number]

    def prove(self, *numbers: int) -> Result:
        """Have the whole text of states of one session checked and sealed."""
        known = [self.known(each) for each in numbers]
        return known[0].session.prove(*(each.state for each in known))

    def close(self) -> None:
        """End all sessions."""
        for session in {each.session.id: each.session for each in self._states}.values():
            session.close()

    def _noted(self, session: Session, state: str) -> int:
        self._states.append(_Known(session, state))
        return len(self._states) - 1


class Repl:
    """Answers requests of the public REPL: ``cmd`` with ``env``, and ``tactic`` with ``proofState``."""

    def __init__(
        self, client: Client, *, header: str = "", environment: str | None = None, seconds: float = 10.0
    ) -> None:
        self._sessions = _Sessions(client, header=header, environment=environment, seconds=seconds)
        self._texts: list[str] = []

    def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a request; one that fails has a ``message``."""
        try:
            return self._tactic(request) if "tactic" in request else self._command(request)
        except LookupError as error:
            return {"message": str(error)}

    def _command(self, request: Mapping[str, Any]) -> dict[str, Any]:
        above = "" if request.get("env") is None else self._text(int(request["env"]))
        text = f"{above}{request['cmd']}\n"
        try:
            roots = self._sessions.opened(text)
        except Invalid as error:
            return {"messages": [{"severity": "error", "data": str(error)}], "env": self._noted(text)}
        sorries = [
            {
                "proofState": number,
                "pos": {"line": root.line, "column": root.column},
                "goal": "\n\n".join(root.goals),
            }
            for number, root in roots
        ]
        return {"sorries": sorries, "env": self._noted(text)}

    def _tactic(self, request: Mapping[str, Any]) -> dict[str, Any]:
        number, step = self._sessions.stepped(int(request["proofState"]), str(request["tactic"]))
        if number is None:
            return {"message": f"Lean error:\n{step.message}"}
        status = _OPEN if step.goals else _COMPLETED
        answer = {"proofState": number, "goals": list(step.goals), "proofStatus": status}
        said = [{"severity": "info", "data": each} for each in step.messages]
        return {**answer, "messages": said} if said else answer

    def _text(self, number: int) -> str:
        if not 0 <= number < len(self._texts):
            raise LookupError("Unknown environment.")
        return self._texts[number]

    def _noted(self, text: str) -> int:
        self._texts.append(text)
        return len(self._texts) - 1

    def prove(self, *proof_states: int) -> Result:
        """Have the whole text of proof states checked and sealed: one for each sorry of its command."""
        return self._sessions.prove(*proof_states)

    def close(self) -> None:
        """End all sessions."""
        self._sessions.close()


class TacticFailure(Exception):  # PyPantograph's name
    """A tactic failed: has Lean's words."""


@dataclass(frozen=True, slots=True)
class GoalState:
    """A state of PyPantograph's kind: its number, and its goals as Lean prints them."""

    state_id: int
    goals: tuple[str, ...]

    @property
    def is_solved(self) -> bool:
        """Whether no goal is open, which is no proof before it is sealed."""
        return not self.goals


class Server:
    """Answers PyPantograph's calls about goals."""

    def __init__(
        self, client: Client, *, header: str = "", environment: str | None = None, seconds: float = 10.0
    ) -> None:
        self._sessions = _Sessions(client, header=header, environment=environment, seconds=seconds)

    def goal_start(self, expr: str) -> GoalState:
        """Return the state whose goal is a type."""
        return self.load_sorry(f"theorem goal_start : {expr} := by sorry\n")[0]

    def load_sorry(self, content: str) -> list[GoalState]:
        """Return the state at each sorry of a text."""
        return [GoalState(number, root.goals) for number, root in self._sessions.opened(content)]

    def goal_tactic(self, state: GoalState, tactic: str) -> GoalState:
        """Return the state after a tactic. Raises TacticFailure."""
        number, step = self._sessions.stepped(state.state_id, tactic)
        if number is None:
            raise TacticFailure(step.message)
        return GoalState(number, step.goals)

    def prove(self, *states: GoalState) -> Result:
        """Have the whole text of states checked and sealed: one for each sorry of its text."""
        return self._sessions.prove(*(each.state_id for each in states))

    def close(self) -> None:
        """End all sessions."""
        self._sessions.close()
