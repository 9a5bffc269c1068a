"""The commands that change a run: cancel, retry and sweep."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from typer import Option

from farm.cli import runs
from farm.cli.flags import ChangeFlags, LineFlags, spread
from farm.cli.options import AsJson, Export, SomeRun, Wait, print_json
from farm.connections import Connections


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm cancel k3m9")(cancel)
    app.command(epilog="Example: farm retry k3m9 --verdict timeout --timeout 120")(spread(retry))
    app.command(epilog="Example: farm sweep")(sweep)


def cancel(run: SomeRun, as_json: AsJson = False) -> None:
    """Cancel the unfinished checks of a run: waiting ones at once, running ones within two seconds."""
    from farm.cli import terminal
    from farm.runs import revise

    site = Connections.here()
    found = site.queries.run(run)
    cancelled = revise.cancel(site.store, found.id)
    terminal.say(f"Run {found.id}: cancelled {terminal.count(cancelled, 'line')}")
    if as_json:
        print_json(run=found.id, cancelled=cancelled)


def retry(
    run: SomeRun,
    which: LineFlags,
    changes: ChangeFlags,
    wait: Wait = True,
    export: Export = True,
    as_json: AsJson = False,
) -> None:
    """Check lines of a run again, with other limits or on a stronger tier; only those are checked."""
    from farm.cli import terminal
    from farm.runs import revise

    pick = which.pick()
    changes.require_possible()
    site = Connections.here()
    found = site.queries.run(run)
    export = export and not found.rechecks  # whose verdicts are written only by `farm export`
    if wait and export:
        runs.require_exportable(found.manifests)
    assurance = changes.assurance(found)
    tier = None
    if assurance is not None:
        tier = revise.Stronger(assurance=assurance, known=site.environments())
    chosen = revise.retry(
        site.store,
        found.id,
        pick,
        tier=tier,
        wall_seconds=changes.timeout,
        cpu_seconds=changes.cpu,
        memory_mib=changes.memory_mib,
    )
    terminal.say(f"Run {found.id}: {terminal.count(chosen, 'line')} will be checked again")
    runs.call(site, found)
    if wait and chosen:
        with runs.may_leave(found.id):
            runs.wait(site, found)
        runs.conclude(site, found, exports=export, as_json=as_json)
    elif as_json:
        print_json(run=found.id, lines=chosen)


def sweep(
    now: Annotated[
        bool, Option("--now", help="Do not wait for workers that may only have lost PostgreSQL for a while.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Requeue the checks of dead workers and cancel lines past their deadline; workers also do this."""
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
