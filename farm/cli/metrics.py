"""The command that serves the farm's metrics to Prometheus."""

from __future__ import annotations

import signal
import sys
import threading
from typing import Annotated

import typer
from typer import Option

from farm.connections import Connections


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm metrics --port 9701")(metrics)


def metrics(
    once: Annotated[bool, Option("--once", help="Print the metrics to standard output and end.")] = False,
    port: Annotated[int, Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 9701,
    address: Annotated[
        str, Option(help="Address to listen on; anyone who reaches it may read.")
    ] = "127.0.0.1",
) -> None:
    """Serve the metrics of the farm's queue, checks and runs; docs/reference/metrics.md lists them.

    Workers serve their own metrics: farm worker --metrics-port 9700.
    """
    from farm import log
    from farm.cli import terminal
    from farm.metrics.farm import FarmMetrics, exposition, registered
    from farm.metrics.port import exposed
    from farm.store import postgres, readings

    connections = Connections.here()
    log.configure(connections.settings.log_level, connections.settings.log_format)
    # A database that is down, or of another revision, gives `farm_up` 0 and no error at the start.
    engine = postgres.connect(connections.urls[0], application=postgres.signed("farm-metrics"))
    told = FarmMetrics(lambda: readings.read(engine))
    if once:
        sys.stdout.write(exposition(told)[0].decode())
        return
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    with exposed(registered(told), address=address, port=port) as url:
        terminal.say(f"Metrics are served on {url}")
        stopping.wait()
