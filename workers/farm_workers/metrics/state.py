"""Metrics step, the state: describes the current state of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from farm.store.environments import Pending


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerState:
    """The current state of a worker; `images` are those that can fork, by environment, with bytes.

    `serving` names the environments that it serves, `pending` its others.
    """

    version: str
    worker: str
    isolation: str
    way: str
    slots: int
    busy: int
    leases: int
    is_healthy: bool
    is_broker_up: bool
    is_database_up: bool
    images: Sequence[tuple[str, int]]
    serving: Sequence[str] = ()
    pending: Sequence[Pending] = ()
