"""The sweep of `farm worker --sweep`: what every worker does from time to time, once and by hand."""

from __future__ import annotations

from dataclasses import asdict

from farm.cli.options import print_json
from farm.connections import Connections


def sweep(*, now: bool, as_json: bool) -> None:
    """Requeue the checks of dead workers and cancel lines past their deadline."""
    from farm.cli import terminal
    from farm.runs.sweep import sweep as sweeping

    connections = Connections.here()
    lease = connections.settings.lease_seconds

    def say(expired: int) -> None:
        terminal.say(
            f"{terminal.count(expired, 'lease')} ran out, or soon will. If PostgreSQL was away, the workers "
            f"may be alive: waiting {lease:g} s (FARM_LEASE_SECONDS) for them to extend their leases; "
            "--now does not wait"
        )

    swept = sweeping(connections.store, connections.queries, lease_seconds=lease, waits=None if now else say)
    terminal.say(
        f"Requeued {terminal.count(swept.taken_back, 'check')}, "
        f"cancelled {terminal.count(swept.past_deadline, 'line')} past a deadline"
    )
    if as_json:
        print_json(**asdict(swept))
