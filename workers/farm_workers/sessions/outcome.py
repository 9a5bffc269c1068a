"""Session step, values: the outcomes of tactics, and the roots of a session. Pure."""

from __future__ import annotations

from dataclasses import dataclass

#: The outcomes of a tactic, besides those that a fork reports (`farm_workers.images.holding`).
TIMEOUT, HEARTBEATS, MEMORY, CRASHED = "timeout", "heartbeats", "memory", "crashed"

#: A state: the number of its root, and the tactics that lead to it from there.
StateKey = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The outcome of one tactic.

    `goals` are the open goals as Lean prints them, `messages` Lean's other words, `message` the reason of
    a failure. `cpu_ms` is processor time in milliseconds. A tactic that left ``no_goals`` has proved nothing
    yet: only a sealed check of the whole text does.
    """

    outcome: str
    goals: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    message: str = ""
    cpu_ms: float = 0.0

    @property
    def has_state(self) -> bool:
        """Whether the tactic led to a state."""
        return self.outcome in ("goals", "no_goals")


@dataclass(frozen=True, kw_only=True, slots=True)
class RootGoals:
    """A sorry of the session's program: its place, whether it stands for a term, and the goals there."""

    line: int
    column: int
    is_term: bool
    goals: tuple[str, ...]


class NoSession(Exception):
    """A session cannot be opened: says why; `messages` are Lean's errors on its program."""

    def __init__(self, words: str, messages: tuple[str, ...] = ()) -> None:
        super().__init__(words)
        self.messages = messages


class SessionGone(Exception):
    """The processes of a session have ended; another one can be opened on the same program."""
