"""The scope that a handler requires of the request's key, checked before the body is read."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from farm.errors import Forbidden
from farm.store.keys import Key, Scope


@dataclass(frozen=True, slots=True)
class RequireScope:
    """A dependency that returns the key of a request if the key has this scope."""

    scope: Scope

    async def __call__(self, request: Request) -> Key:
        """Return the key; raises `Forbidden` if the key lacks the scope."""
        found: Key = request.state.key
        if self.scope not in found.scopes:
            raise Forbidden(f"the key {found.name} lacks the scope {self.scope}; use another key")
        return found
