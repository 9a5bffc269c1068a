"""The commands that look after the farm itself: down, doctor and db."""

from __future__ import annotations

from dataclasses import asdict

import typer

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.settings import Settings


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm down")(down)
    app.command(epilog="Example: farm doctor")(doctor)
    database = typer.Typer(help="Manage the database.", no_args_is_help=True)
    database.command("upgrade", epilog="Example: farm db upgrade")(db_upgrade)
    app.add_typer(database, name="db")


def down() -> None:
    """Stop the servers and the worker that the farm started on this machine; nothing is lost."""
    from farm import embedded
    from farm.cli import terminal

    home = Settings.load().home
    stopped = embedded.down(home)
    terminal.say("Stopped" if stopped else "Nothing was running")
    if stopped and (home / "http.json").exists():
        terminal.say("A `farm serve` of this folder that still runs starts them again; end it as well")


def db_upgrade() -> None:
    """Migrate the database to this farm's schema; safe to start on many nodes at once."""
    from farm.cli import terminal
    from farm.store import postgres

    before, after = postgres.upgrade(Connections.here().urls[0])
    was = "" if before == after else f", was {before or 'empty'}"
    terminal.say(f"The database is at revision {after}{was}")


def doctor(as_json: AsJson = False) -> None:
    """Inspect every part that the farm needs and report what is missing.

    The exit status is 1 when a part does not work, so it serves as a health check: also when no worker was
    heard of for FARM_LEASE_SECONDS. A part that works and is not safe (`weak`) does not change it.
    """
    from farm.cli import terminal
    from farm.cli.doctor import examine

    findings = examine(Connections.here())
    if as_json:
        print_json(parts=[asdict(finding) for finding in findings])
    else:
        terminal.print_findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)
