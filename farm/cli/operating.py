"""The commands that maintain the farm itself: down, doctor and db."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli import roles
from farm.cli.help import CommandGroup
from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.exit_status import ExitStatus
from farm.settings import Settings

if TYPE_CHECKING:
    from farm.cli.doctor import Diagnosis

#: The width of the column with the name of a part.
_PART_WIDTH = 22


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm down")(down)
    app.command(epilog="Example: farm doctor")(doctor)
    database = typer.Typer(
        cls=CommandGroup, help="Manage the database.", no_args_is_help=True, rich_markup_mode=None
    )
    database.command("upgrade", epilog="Example: farm db upgrade")(db_upgrade)
    database.command("reader", epilog="Example: farm db reader --password-file reader.txt")(db_reader)
    roles.add_to(database)
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
    from farm import log
    from farm.cli import terminal
    from farm.store import postgres

    connections = Connections.here()
    if connections.settings.log_format == "json":  # the farm's own worker writes this output to its log
        log.configure(connections.settings.log_level, "json")
    before, after = postgres.upgrade(connections.urls[0])
    was = "" if before == after else f", was {before or 'empty'}"
    terminal.say(f"The database is at revision {after}{was}")


def db_reader(
    password_file: Annotated[
        Path | None,
        Option(help="File with the role's password in its first line; without, the password stays as it is."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the role farm_reader, which can read the views of the schema report and nothing else."""
    from farm.cli import terminal
    from farm.store.reader import ROLE, make_reader

    password = None if password_file is None else _first_line(password_file)
    is_new = make_reader(Connections.here().engine, password=password)
    said = "was created" if is_new else "was there already"
    terminal.say(f"The role {ROLE} {said}; it can read the views of the schema report")
    if as_json:
        print_json(role=ROLE, is_new=is_new)


def _first_line(path: Path) -> str:
    try:
        line = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--password-file {path}: cannot be read ({error}); name a text file") from error
    if not line:
        raise UsageError(f"--password-file {path}: the first line is empty; write the password there")
    return line


def doctor(as_json: AsJson = False) -> None:
    """Inspect every part that the farm needs and report what is missing.

    The exit status is 1 when a part does not work, so it serves as a health check: also when no worker has
    reported for FARM_LEASE_SECONDS. A part that works but is not safe (`weak`) does not change it.
    """
    from farm.cli.doctor import examine

    findings = []
    for finding in examine(Connections.here()):
        findings.append(finding)
        if not as_json:
            _print_finding(finding)
    if as_json:
        print_json(parts=[asdict(finding) for finding in findings])
    if not all(finding.ok for finding in findings):
        raise typer.Exit(ExitStatus.FARM_FAILED)


#: The width of the column with the name of a part.
_PART_WIDTH = 22


def _print_finding(finding: Diagnosis) -> None:
    """Print the finding about one part, its words in a column of their own."""
    from rich.table import Table
    from rich.text import Text

    from farm.cli.terminal import out, visible

    word, style = ("works", "green") if finding.ok else ("broken", "bold red")
    word, style = ("weak", "yellow") if finding.ok and finding.weak else (word, style)
    row = Table.grid(padding=(0, 2))
    row.add_column(width=_PART_WIDTH, overflow="fold")
    row.add_column(width=len("broken"))
    row.add_column(overflow="fold")
    row.add_row(Text(visible(finding.part)), Text(word, style=style), Text(visible(finding.words)))
    out.print(row)
