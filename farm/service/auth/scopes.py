"""Service step, scopes: what the key of a request may, asked before its body is read."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request

from farm.errors import Forbidden
from farm.store.keys import Key, Scope


@dataclass(frozen=True, slots=True)
class RequireScope:
    """Gives the key of a request, which has a scope."""

    scope: Scope

    async def __call__(self, request: Request) -> Key:
        """Return the key; raises `Forbidden` for one that has not the scope."""
        found: Key = request.state.key
        if self.scope not in found.scopes:
            raise Forbidden(f"the key {found.name} has not the scope {self.scope}; use another key")
        return found
