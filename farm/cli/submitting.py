"""The command that takes manifests: submit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.cli import runs
from farm.cli.flags import OptionsOf, spread
from farm.cli.options import AsJson, Export, Force, Wait, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.judging.submit_options import SubmitOptions
from farm.settings import Settings
from farm.task import Kind

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.submit import Submitted
    from farm.store.queries import StoredRun

Manifests = Annotated[list[str], Argument(help="Manifests or globs: .jsonl, .jsonl.gz or .jsonl.zst.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Judge nothing: write the lines with the program that would be judged.")
]
DryOutput = Annotated[
    Path | None, Option("-o", "--output", help="With --dry-run: the file to write.", show_default=False)
]
Disprove = Annotated[bool, Option("--disprove", help="Answers have to prove that the statement is false.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm submit 'results/*.jsonl' --timeout 60")(spread(submit))


def submit(
    manifests: Manifests,
    said: Annotated[dict[str, Any], OptionsOf(SubmitOptions)],
    disprove: Disprove = False,
    wait: Wait = True,
    export: Export = True,
    dry_run: DryRun = False,
    output: DryOutput = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Judge every line of manifests and write `proof_status` back into them.

    The same manifests with the same options are the same run: submitted again, it goes on where it is.

    With --dry-run nothing is judged: a manifest's lines are written with `predicted_proof`, the program that
    would be judged. With --disprove, too, its statements are written as their negations, which Lean builds:
    lines with `negates`, the line of the statement, and no answer, for a search or a model.
    """
    from farm.manifest.entries import expand

    if dry_run:
        _dry_run(expand(manifests), said, output, disprove=disprove, force=force, as_json=as_json)
        return
    if output is not None or force:
        raise UsageError(
            "-o and --force belong to --dry-run; to write verdicts elsewhere: "
            "farm submit MANIFEST --no-export, then farm export RUN -o FILE"
        )
    connections = Connections.here()
    options = _options(connections.settings, said, disprove=disprove)
    paths = expand(manifests)
    if wait and export:
        runs.require_exportable(paths)
    with runs.may_stop():
        submitted = _load(connections, paths, options)
    with runs.may_leave(submitted.run_id):
        run = _say_stored(connections, submitted)
        runs.call(connections, run)
        runs.say_unserved(connections, run)
        if wait:
            runs.wait(connections, run)
        else:
            runs.leave(run, as_json=as_json)
    if wait:
        runs.conclude(connections, run, exports=export, as_json=as_json)


def _options(usual: Settings, said: Mapping[str, Any], *, disprove: bool) -> SubmitOptions:
    if disprove and said.get("task", Kind.DISPROVE) != Kind.DISPROVE:
        raise UsageError(f"--disprove and --task {said['task']} contradict each other; give one of them")
    given = {"environment": usual.environment, "memory_mib": usual.memory_mib, **said}
    return SubmitOptions.of(given | ({"task": Kind.DISPROVE} if disprove else {}))


def _load(connections: Connections, paths: Sequence[Path], options: SubmitOptions) -> Submitted:
    from farm.cli import terminal
    from farm.runs.submit import submit as load

    with terminal.busy("Preparing the farm"):
        known = connections.environments()
    return runs.storing(
        lambda stored: load(
            connections.store,
            paths,
            options,
            known=known,
            queue_limit=connections.settings.queue_limit,
            seen=stored,
        )
    )


def _say_stored(connections: Connections, submitted: Submitted) -> StoredRun:
    from farm.cli import terminal

    run = connections.queries.run(submitted.run_id)
    if submitted.resumed:
        tally = connections.queries.tally(run.id)
        when = run.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        terminal.say(
            f"Run {run.id}: submitted before, at {when}; "
            f"{tally.done} of {terminal.count(tally.total, 'line')} done. "
            f"To judge all of them again: farm rejudge {run.id}"
        )
    else:
        lines = terminal.count(submitted.lines, "line")
        manifests = terminal.count(len(run.manifests), "manifest")
        shared = f", {submitted.shared} shared with equal ones" if submitted.shared else ""
        terminal.say(f"Run {run.id}: stored {lines} of {manifests}{shared}")
    return run


def _dry_run(
    paths: Sequence[Path],
    said: Mapping[str, Any],
    output: Path | None,
    *,
    disprove: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write what would be judged of a manifest."""
    from farm.cli import terminal
    from farm.manifest.outputs import require_free
    from farm.runs.export import assemble_to
    from farm.runs.negate import negate

    options = _options(Settings.load(), said, disprove=disprove)
    if output is None:
        raise UsageError("--dry-run writes the lines to a file: add -o FILE; it may be the manifest")
    if len(paths) > 1:
        raise UsageError(f"-o names one file, but there are {len(paths)} manifests; give them one by one")
    negates = options.task.kind is Kind.DISPROVE
    require_free(output, *([] if negates else paths), force=force)
    lines = negate(paths[0], output) if negates else assemble_to(paths[0], output, options.assembly)
    if as_json:
        print_json(output=str(output), lines=lines)
    else:
        terminal.say(f"Wrote {terminal.count(lines, 'negation' if negates else 'line')} to {output}")
