"""Session step, the wire: the names and messages with which services ask workers over Redis.

A request is one JSON object on a list: that of a worker which has the session, or that of an environment,
which all its workers take from. The worker answers on the list that the request names: first that it has
begun, then with the result, one for each list of tactics as it ends. Redis keeps a session's program and
states for an hour, so any worker can make it again. A proof counts only when a check has sealed it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired, TypedDict

#: Seconds that a session's program and tactics are kept after its last use.
KEPT_SECONDS = 3600
#: Seconds after which a worker that says nothing counts as gone, and how often it says something.
ALIVE_SECONDS, ALIVE_EACH = 5, 1.0
#: The most tactics of one list, their characters, and the lists of one call.
MOST_TACTICS, MOST_TACTIC_CHARACTERS, MOST_LISTS = 64, 100_000, 64
#: The most tactics of one state, and of one session.
MOST_DEPTH, MOST_STEPS = 1000, 1_000_000
#: The most characters of one state's tactics, and of all that is kept of a session.
MOST_PATH_CHARACTERS, MOST_KEPT_CHARACTERS = 1_000_000, 256_000_000
#: The most and the usual seconds for each tactic, and the most for all of a call.
MOST_SECONDS, USUAL_SECONDS, MOST_CALL_SECONDS = 60.0, 5.0, 900.0
#: The most characters of goals and messages in the answer to a call.
MOST_ANSWER_CHARACTERS = 32_000_000

OPEN, STEP, CLOSE = "open", "step", "close"


class Beat(TypedDict):
    """A worker's report of the last second: its sessions, and the tactics that it tried and killed."""

    sessions: int
    steps: int
    killed: int


class Attempt(TypedDict):
    """Tactics to try on one state, which is the number of a root and the tactics from there."""

    root: int
    path: list[str]
    tactics: list[str]


class Asked(TypedDict):
    """A request to a worker; `seconds` and `heartbeats` limit each tactic."""

    id: str
    answers: str
    session: str
    environment: str
    do: str
    attempts: NotRequired[list[Attempt]]
    seconds: NotRequired[float]
    heartbeats: NotRequired[int | None]
    first_success: NotRequired[bool]


class Tried(TypedDict):
    """The outcome of one tactic, as `farm_workers.sessions.outcome.Outcome`."""

    outcome: str
    goals: Sequence[str]
    messages: Sequence[str]
    message: str
    cpu_ms: float


class Root(TypedDict):
    """A sorry of the session's program; `is_term`: it stands for a term, and not for a tactic."""

    line: int
    column: int
    is_term: bool
    goals: Sequence[str]


class Answered(TypedDict):
    """An answer of a worker: that it has begun, the outcomes of the list `number`, or another result."""

    id: str
    worker: str
    begun: NotRequired[bool]
    roots: NotRequired[list[Root]]
    number: NotRequired[int]
    tried: NotRequired[list[Tried]]
    refused: NotRequired[str]
    messages: NotRequired[list[str]]
    failed: NotRequired[str]


def of_worker(worker: str) -> str:
    """Return the list of requests to one worker."""
    return f"farm:sessions:worker:{worker}"


def of_environment(environment: str) -> str:
    """Return the list of requests that any worker of an environment may take."""
    return f"farm:sessions:environment:{environment}"


def alive(worker: str) -> str:
    """Return the key that exists while a worker takes requests; its value is a `Beat`."""
    return f"farm:sessions:alive:{worker}"


def kept(session: str) -> str:
    """Return the key of a session's program, owner and worker."""
    return f"farm:session:{session}"


def states(session: str) -> str:
    """Return the key of the states that a session has reached."""
    return f"farm:session:{session}:states"
