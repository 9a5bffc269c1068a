"""The report of `farm report`: as text, as tables for papers, as JSON and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from farm.cli.options import print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.exit_status import ExitStatus
from farm.files import write_whole

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.report import RunsReport
    from farm.reports.tables import Table
    from farm.store.queries import StoredRun


def report(
    run: Sequence[str] | None,
    *,
    by: str | None,
    against: str | None,
    html: Path | None,
    form: str | None,
    table: str | None,
    as_json: bool,
) -> None:
    """Report on the verdicts of runs."""
    from farm.cli import terminal
    from farm.reports.report import report as reported
    from farm.reports.tables import tables

    require_form(form, table, as_json=as_json)
    queries = Connections.here().queries
    runs = queries.chosen(run)
    other = None if against is None else queries.run(against)
    if html is not None:
        _require_writable(html, runs)
    with terminal.busy("reporting"):
        found = reported(queries, runs, by=by, against=other)
    if html is not None:
        _write(html, found)
    if as_json:
        print_json(**found.facts())
    elif form is not None:
        print_formatted(list(tables(found)), form, table)
    else:
        from farm.cli.report_tables import print_report

        print_report(found)
    if found.total.unknown.judge_error:
        raise typer.Exit(ExitStatus.UNJUDGED)


def require_form(form: str | None, table: str | None, *, as_json: bool) -> None:
    """Raise `UsageError` for an unknown format, or for options that exclude each other."""
    if form is None and table is not None:
        raise UsageError("--table belongs to --format; add --format csv, markdown or latex")
    if form is not None and as_json:
        raise UsageError("--json and --format exclude each other; leave one out")
    if form is not None and form not in ("csv", "markdown", "latex"):
        raise UsageError(f"--format {form}: choose csv, markdown or latex")


def print_formatted(every: Sequence[Table], form: str, word: str | None) -> None:
    """Print tables in a format, or one of them. Raises `UsageError` for one that is not there."""
    from farm.reports.formats import FORMATS

    chosen = [each for each in every if word in (None, each.word)]
    if not chosen:
        raise UsageError(
            f"--table {word}: the report has no such table; it has {', '.join(each.word for each in every)}"
        )
    typer.echo(FORMATS[form](chosen), nl=False)


def _require_writable(path: Path, runs: Sequence[StoredRun]) -> None:
    """Raise `UsageError` if the page cannot be written, before anything is read."""
    if not path.parent.is_dir():
        raise UsageError(f"--html {path}: there is no folder {path.parent}; make it, or give another file")
    if path.exists() and not path.is_file():
        raise UsageError(f"--html {path}: this is no regular file; give the name of a file")
    manifests = {manifest.resolve() for run in runs for manifest in run.manifests}
    if path.resolve() in manifests:
        raise UsageError(f"--html {path}: this is a manifest of the run; give another file")


def _write(path: Path, found: RunsReport) -> None:
    """Write the page, whole or not at all."""
    from farm.cli import terminal
    from farm.reports.html import page

    text = page(found, made_at=datetime.now().astimezone())
    try:
        write_whole(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise UsageError(
            f"--html {path}: the page cannot be written: {error.strerror}; "
            "free space, give yourself permission there, or give another file"
        ) from error
    terminal.say(f"Wrote the report to {path}")
