"""The client of a farm over HTTP, for Python programs; it needs only httpx.

    from farm.client import Client

    with Client() as farm:
        result = farm.check({"header": ..., "formal_statement": ..., "generation": ...})
        result.reward  # 1.0, 0.0, or None if unknown

`AsyncClient` has the same methods for asyncio. docs/use/rl.md has examples.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from farm.client.asked_fields import Options, Priority, Profile, Tier, Weaker
from farm.client.errors import (
    ClientError,
    Conflict,
    Fault,
    Forbidden,
    Invalid,
    NoService,
    NotAFarm,
    NotFound,
    Refused,
    ServiceFailed,
    TooLarge,
    Unanswered,
    Unauthorized,
    Unreachable,
)
from farm.client.requests import Fields, Item
from farm.client.results import (
    Answer,
    Batch,
    Bundle,
    Declaration,
    Declarations,
    Environment,
    Goal,
    Hole,
    Message,
    Position,
    Provenance,
    Result,
    Seconds,
)
from farm.client.states import State, Step

# Services and workers use the client's types, and do not wait for httpx, a seventh of what a worker imports.
if TYPE_CHECKING:
    from farm.client.asynchronous import AsyncClient
    from farm.client.sessions import AsyncSession, Session
    from farm.client.sync import Client

__all__ = [
    "Answer",
    "AsyncClient",
    "AsyncSession",
    "Batch",
    "Bundle",
    "Client",
    "ClientError",
    "Conflict",
    "Declaration",
    "Declarations",
    "Environment",
    "Fault",
    "Fields",
    "Forbidden",
    "Goal",
    "Hole",
    "Invalid",
    "Item",
    "Message",
    "NoService",
    "NotAFarm",
    "NotFound",
    "Options",
    "Position",
    "Priority",
    "Profile",
    "Provenance",
    "Refused",
    "Result",
    "Seconds",
    "ServiceFailed",
    "Session",
    "State",
    "Step",
    "Tier",
    "TooLarge",
    "Unanswered",
    "Unauthorized",
    "Unreachable",
    "Weaker",
]

_MODULES = {
    "AsyncClient": "asynchronous",
    "AsyncSession": "sessions",
    "Client": "sync",
    "Session": "sessions",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
