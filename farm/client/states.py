"""States of unfinished proofs, and the outcomes of tactics, as both clients and `farm.Farm` return them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A state: its id, the open goals, and the tactics that lead to it from its root.

    `root` is the number of the sorry where the tactics begin; for the state of a root itself `line`, from 1,
    and `column`, from 0, are its place in the program. A state without goals is no proof: only a sealed check
    of the whole text is (`prove`). `is_term`: the sorry stands for a term, and not for a tactic.
    """

    id: str
    root: int
    tactics: tuple[str, ...]
    goals: tuple[str, ...]
    line: int = 0
    column: int = 0
    is_term: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """The outcome of a tactic; `state` is the id of the state after it, None if it failed.

    `outcome` is ``goals``, ``no_goals``, ``error``, ``timeout``, ``heartbeats``, ``memory``, ``crashed``,
    ``skipped``, or ``lost`` for a state that cannot be made again. `message` is the reason of a failure,
    `messages` are Lean's other words, such as suggestions. `cpu_ms` is processor time in milliseconds.
    """

    tactic: str
    outcome: str
    state: str | None = None
    goals: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    message: str = ""
    cpu_ms: float = 0.0
