"""Metrics step, the port: serves a registry over HTTP to whoever reaches the address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server
from prometheus_client.registry import Collector

from farm.errors import UsageError

#: Where metrics are served unless somebody names another address.
LOOPBACK = "127.0.0.1"


@contextmanager
def exposed(registry: Collector, *, address: str, port: int) -> Iterator[str]:
    """Serve metrics inside the block and give their URL; port 0 takes a free one.

    Raises `UsageError` when nobody can listen there.
    """
    try:
        server, thread = start_http_server(port, address, registry)
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"cannot serve metrics on {shown(address)}:{port}: {getattr(error, 'strerror', None) or error}; "
            "choose another address or port, such as --metrics-port 0 for a free one"
        ) from error
    try:
        yield f"http://{shown(address)}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def shown(address: str) -> str:
    """Return an address as a URL has it."""
    return f"[{address}]" if ":" in address else address
