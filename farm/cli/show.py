"""The commands that read the lines of runs, and print or write them: show and export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli import runs
from farm.cli.flags import LineFlags, spread
from farm.cli.options import AsJson, Force, Output, RunId, print_json
from farm.connections import Connections
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.export import Exported
    from farm.store.queries import Queries, StoredManifest, StoredRun
    from farm.store.records import Judged


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm show k3m9 --verdict rejected; farm show k3m9 --line 12")(spread(show))
    app.command(epilog="Example: farm export k3m9 -o judged.jsonl")(export)


def show(
    which: LineFlags,
    run: RunId = None,
    line: Annotated[int | None, Option(help="Show this line of the manifest whole.")] = None,
    manifest: Annotated[int, Option(help="The manifest's place in the run, from 0.")] = 0,
    name: Annotated[str | None, Option(help="Only lines of this name.")] = None,
    most: Annotated[
        int, Option("-n", "--most", min=1, help="How many lines at most; --json shows all.")
    ] = 100,
    explain: Annotated[
        bool, Option("--explain", help="With --line: mark Lean's errors in the program, and give a hint.")
    ] = False,
    program: Annotated[
        bool, Option("--program", help="With --line: print its program alone, for other commands.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the lines of a run, or one line in full: its program, Lean's messages, every attempt."""
    pick = which.pick()
    queries = Connections.here().queries
    found = queries.run(run)
    number = _manifest(queries, found, manifest).number if found.manifests or manifest else 0
    for flag, is_given in (("--explain", explain), ("--program", program)):
        if is_given and line is None:
            raise UsageError(f"{flag} is for one line; name it with --line")
    if program and (explain or as_json):
        raise UsageError("--program prints nothing else; leave out --explain and --json")
    if program and line is not None:
        _print_program(queries.line(found.id, number, line))
    elif line is not None:
        _show_line(queries, found, number, line, explain=explain, as_json=as_json)
    else:
        with closing(queries.judged(found.id, number)) as every:
            judged = (job for job in every if pick.has(job) and (name is None or name == job.name))
            _show_lines(found, judged, most=most, as_json=as_json)


def _show_lines(run: StoredRun, judged: Iterator[Judged], *, most: int, as_json: bool) -> None:
    from farm.cli import run_tables, terminal

    if as_json:
        for job in judged:
            print_json(**_line_facts(run, job))
        return
    run_tables.print_lines(islice(judged, most))
    if next(judged, None):
        terminal.say(f"More lines: farm show {run.id} -n {10 * most}")


def _manifest(queries: Queries, run: StoredRun, number: int) -> StoredManifest:
    stored = queries.manifests(run.id)
    if not stored:
        raise UsageError(f"run {run.id} has no manifests; see its lines: farm show {run.id} --json")
    if not 0 <= number < len(stored):
        raise UsageError(f"run {run.id} has no manifest {number}; give one from 0 to {len(stored) - 1}")
    return stored[number]


def _show_line(
    queries: Queries, run: StoredRun, manifest: int, line: int, *, explain: bool, as_json: bool
) -> None:
    from farm.cli import run_tables, terminal

    job = queries.line(run.id, manifest, line)
    attempts = queries.attempts(run.id, manifest, line)
    if as_json:
        more = {"explanation": _explained(job)} if explain else {}
        print_json(**_line_facts(run, job), attempts=[dict(attempt) for attempt in attempts], **more)
    elif explain:
        terminal.out.print(terminal.visible(_explained(job)), highlight=False, markup=False)
    else:
        run_tables.print_line(job, attempts)


def _print_program(job: Judged) -> None:
    """Print the judged program as it is; to a terminal without characters that it would obey."""
    from farm.cli import terminal

    text = terminal.visible(job.program) if terminal.out.is_terminal else job.program
    typer.echo(text.encode("utf-8", "backslashreplace"), nl=False)


def _explained(job: Judged) -> str:
    from farm.service.answers import result

    return result(job, index=0, key=None, accept=(), waits_for=None).explain(job.program)


def _line_facts(run: StoredRun, job: Judged) -> dict[str, object]:
    from farm.runs.export import marking
    from farm.runs.writeback.fields import fields

    facts: dict[str, object] = {"line": job.line, "name": job.name, "status": job.status}
    return facts if job.verdict is None else facts | fields(job, job.verdict, None, marking(run))


def export(
    run: RunId = None,
    output: Output = None,
    manifest: Annotated[int, Option(help="With -o: the manifest's place in the run, from 0.")] = 0,
    source: Annotated[
        Path | None,
        Option(help="With -o: where the manifest is now, if it was moved.", show_default=False),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the verdicts of a run into its manifests; lines without a verdict stay as they are."""
    from farm.cli import terminal
    from farm.manifest.outputs import require_free
    from farm.runs.export import export_to

    if source is not None and output is None:
        raise UsageError("--source needs -o: it names the file to read, and -o the one to write")
    site = Connections.here()
    found = site.queries.run(run)
    stored = _manifest(site.queries, found, manifest)
    if output is None:
        written = runs.export(site, found)
    else:
        require_free(output, source or stored.path, force=force)
        written = [export_to(site.queries, found, stored, output, source=source)]
        terminal.say_exported(written[0])
        if written[0].is_partial:
            terminal.say(_partial(found, stored, output))
    if as_json:
        print_json(run=found.id, written=[_written(file) for file in written])


def _written(file: Exported) -> dict[str, object]:
    """Return the facts of an exported file, for scripts."""
    facts: dict[str, object] = {"path": str(file.path), "verdicts": file.lines}
    return facts | {"partial": True} if file.is_partial else facts


def _partial(run: StoredRun, manifest: StoredManifest, output: Path) -> str:
    """Return the remedy for a manifest that has moved or changed."""
    from farm.cli.terminal import visible

    which = f" --manifest {manifest.number}" if manifest.number else ""
    return visible(
        f"{manifest.path} is gone or has changed since it was submitted, so these lines have only name, line "
        f"number, program and verdict. If it was moved, write whole lines with: farm export {run.id}{which} "
        f"-o {output} --source ITS-NEW-PLACE"
    )
