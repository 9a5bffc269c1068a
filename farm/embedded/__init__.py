"""The farm's own servers: PostgreSQL, Valkey and a worker in one folder, for users without own servers.

`farm.embedded.client` is the interface for commands. It starts `farm.embedded.supervisor`, a background
process that runs the `farm.embedded.pair` of servers, each of them a `farm.embedded.child`, in one
`farm.embedded.home`, from the `farm.embedded.binaries` found on this machine.
"""

from __future__ import annotations

from farm.embedded.client import Facts, Servers, down, ensure, follow, status

__all__ = ["Facts", "Servers", "down", "ensure", "follow", "status"]
