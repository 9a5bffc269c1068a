"""The commands that take manifests: submit, assemble and negate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm.asked import made
from farm.assembly.program import AssemblyOptions
from farm.cli import runs
from farm.cli.flags import OptionsOf, spread
from farm.cli.options import AsJson, Export, Force, Output, Wait, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.judging.submit_options import SubmitOptions
from farm.task import Kind

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.submit import Submitted
    from farm.settings import Settings
    from farm.store.queries import StoredRun

Manifests = Annotated[list[str], Argument(help="Manifests or globs: .jsonl, .jsonl.gz or .jsonl.zst.")]
Disprove = Annotated[bool, Option("--disprove", help="Answers have to prove that the statement is false.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm submit 'results/*.jsonl' --timeout 60")(spread(submit))
    example = "Example: farm assemble results.jsonl -o assembled.jsonl --profile nemo-2025-11"
    app.command(epilog=example)(spread(assemble))
    app.command(epilog="Example: farm negate problems.jsonl -o negations.jsonl")(negate)


def submit(
    manifests: Manifests,
    said: Annotated[dict[str, Any], OptionsOf(SubmitOptions)],
    disprove: Disprove = False,
    wait: Wait = True,
    export: Export = True,
    as_json: AsJson = False,
) -> None:
    """Judge every line of manifests and write `proof_status` back into them.

    The same manifests with the same options are the same run: submitted again, it goes on where it is.
    """
    from farm.manifest.entries import expand

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


def assemble(
    manifests: Manifests,
    said: Annotated[dict[str, Any], OptionsOf(AssemblyOptions)],
    output: Output = None,
    force: Force = False,
) -> None:
    """Write the lines of manifests with `predicted_proof` set, without checking them."""
    from farm.cli import terminal
    from farm.manifest.entries import expand
    from farm.manifest.outputs import require_free
    from farm.runs.export import assemble_to

    options = made(AssemblyOptions, said)
    paths = expand(manifests)
    if output is not None and len(paths) > 1:
        raise UsageError(f"-o names one file, but there are {len(paths)} manifests; assemble them one by one")
    if output is not None:
        require_free(output, *paths, force=force)
    for path in paths:
        lines = assemble_to(path, output or path, options)
        terminal.say(f"Assembled {terminal.count(lines, 'line')} into {output or path}")


def negate(
    manifest: Annotated[Path, Argument(help="A manifest with statements.")],
    output: Annotated[Path, Option("-o", "--output", help="The manifest to write.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the negations of a manifest's statements: a proof of a line shows that its statement is false.

    Lean builds each negation, so nothing of a statement is reworded. Lines have `negates`, the line of the
    statement, and no answer: search for proofs, or have a model write them.
    """
    from farm.cli import terminal
    from farm.manifest.outputs import require_free
    from farm.runs.negate import negate as negated

    require_free(output, force=force)
    lines = negated(manifest, output)
    if as_json:
        print_json(output=str(output), lines=lines)
    else:
        terminal.say(f"Wrote {terminal.count(lines, 'negation')} to {output}")
