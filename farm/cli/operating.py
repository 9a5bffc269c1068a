"""The commands that look after the farm itself: down, doctor and db."""

from __future__ import annotations

from dataclasses import asdict

import typer

from farm.cli.options import AsJson, print_json
from farm.settings import Settings
from farm.site import Site


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm down")(down)
    app.command(epilog="Example: farm doctor")(doctor)
    database = typer.Typer(help="Look after the database.", no_args_is_help=True)
    database.command("upgrade", epilog="Example: farm db upgrade")(db_upgrade)
    app.add_typer(database, name="db")


def down() -> None:
    """Stop the servers and the worker that the farm started on this machine; nothing is lost."""
    from farm import embedded, screen

    stopped = embedded.down(Settings.load().home)
    screen.say("Stopped" if stopped else "Nothing was running")


def db_upgrade() -> None:
    """Bring the database to this farm's revision; safe to start on many nodes at once."""
    from farm import db, screen

    before, after = db.upgrade(Site.here().urls[0])
    was = "" if before == after else f", was {before or 'empty'}"
    screen.say(f"The database is at revision {after}{was}")


def doctor(as_json: AsJson = False) -> None:
    """Look at every part the farm works with and say what is missing."""
    from farm import screen
    from farm.doctor import examine

    findings = examine(Site.here())
    if as_json:
        print_json(parts=[asdict(finding) for finding in findings])
    else:
        screen.print_findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)
