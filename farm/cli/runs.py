"""The parts of commands that act on a run: wait for it, write its verdicts, print them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from farm.cli.options import print_json
from farm.connections import Connections
from farm.errors import CutOff, FarmError, NotExported, ServerDown
from farm.exit_status import ExitStatus

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.runs.export import Exported
    from farm.runs.submit import Submitted
    from farm.runs.summary import Summary
    from farm.store.queries import StoredRun, Tally


#: How often a command begins to store a run.
_MOST_BEGUN = 5


def call(connections: Connections, run: StoredRun) -> None:
    """Call workers to a run; if that fails, idle workers find it by polling a moment later."""
    from farm import broker
    from farm.cli import terminal

    try:
        broker.call(connections.broker, connections.courtesies.queued_in(run.id))
    except ServerDown as error:
        terminal.say(f"{error}; the run is stored, and starts when workers poll for work")


def say_unserved(connections: Connections, run: StoredRun) -> None:
    """Print the environments and tiers that a run waits for because no worker serves them.

    A PostgreSQL that does not answer is no error here: the next step waits for it, or reports it.
    """
    from farm.cli import terminal
    from farm.runs.submit import unserved_words

    with suppress(ServerDown):
        if words := unserved_words(
            connections.courtesies, run.id, seconds=connections.settings.lease_seconds
        ):
            terminal.say(f"Run {run.id} waits: {words}")


def storing(load: Callable[[Callable[[int], None]], Submitted]) -> Submitted:
    """Store a run by calling `load` with what counts lines; begin again where the connection was cut off.

    PostgreSQL ends the transaction of a machine that slept, and nothing of the run is stored then.
    """
    from farm.cli import terminal

    for _ in range(_MOST_BEGUN - 1):
        try:
            with terminal.storing() as stored:
                return load(stored)
        except CutOff as error:
            terminal.say(f"{error}; nothing was stored, so the submit begins again")
    with terminal.storing() as stored:
        return load(stored)


def may_leave(run_id: str, *, back: str = "") -> AbstractContextManager[None]:
    """On an interrupt inside the block, print how to follow the stored run, or `back` instead."""
    from farm.cli.terminal import how_to_come_back

    return _telling(f"\nRun {run_id} continues in the background.\n{back or how_to_come_back(run_id)}")


def may_stop() -> AbstractContextManager[None]:
    """On an interrupt inside the block, print that no run was stored."""
    # An interrupt while PostgreSQL commits may come too late.
    return _telling("\nNothing was stored, unless farm status --runs shows the run already.")


@contextmanager
def _telling(words: str) -> Iterator[None]:
    """On an interrupt inside the block, print these words."""
    from farm.cli import terminal

    try:
        yield
    except BaseException as error:
        if not is_interrupt(error):
            raise
        terminal.say(words)
        raise typer.Exit(ExitStatus.INTERRUPTED) from None


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is an interrupt, or follows from one during a library's cleanup."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def leave(run: StoredRun, *, back: str = "", as_json: bool) -> None:
    """Print how to follow a run that continues; `back` replaces the usual words."""
    from farm.cli import terminal

    terminal.say(back or terminal.how_to_come_back(run.id))
    if as_json:
        print_json(run=run.id)


def wait(connections: Connections, run: StoredRun) -> None:
    """Show the progress of a run until every line has its verdict."""
    from farm.cli import terminal
    from farm.runs.submit import watch

    with terminal.judging() as show:
        for tally in watch(
            connections.queries, run.id, completions=connections.completions, trouble=terminal.say
        ):
            show(tally)


def conclude(connections: Connections, run: StoredRun, *, exports: bool, as_json: bool) -> None:
    """Write verdicts into the manifests, if that is wanted, and finish, whatever becomes of the writing.

    Raises `NotExported` at the end where the verdicts could not be written.
    """
    try:
        if exports:
            export(connections, run)
    except FarmError as error:
        with suppress(typer.Exit):  # of the two exit statuses, the one that asks for more to be done
            finish(connections, run, as_json=as_json)
        raise NotExported(str(error)) from error
    finish(connections, run, as_json=as_json)


def finish(connections: Connections, run: StoredRun, *, as_json: bool) -> None:
    """Print the verdicts of a run; exits with UNJUDGED if the farm failed on some lines."""
    from farm.cli import run_tables
    from farm.runs.summary import Summary

    summary = Summary.of(connections.queries, run)
    if as_json:
        print_json(**facts(run, summary))
    else:
        run_tables.print_summary(run, summary)
    require_judged(run, summary.tally)


def require_judged(run: StoredRun, tally: Tally) -> None:
    """Exit with UNJUDGED, and print how to see the reasons, if lines of a run could not be judged."""
    from farm.cli import terminal

    if tally.unjudged:
        lines = terminal.count(tally.unjudged, "line")
        terminal.say(f"{lines} could not be judged; see why: farm show {run.id} --verdict judge_error")
        raise typer.Exit(ExitStatus.UNJUDGED)


def facts(run: StoredRun, summary: Summary) -> dict[str, object]:
    """Return the progress of a run, for scripts."""
    tally = summary.tally
    return {
        **progress(run, tally),
        "shared": tally.shared,
        "tier": run.tier,
        "tiers": dict(tally.tiers),
        "statement_unchecked": tally.unchecked,
        "trusts_the_compiler": tally.trusting,
        "rests_on_sorry": tally.open_below,
        "known_holes": dict(summary.holed),
        "forgeable": summary.forgeable,
        "contested": summary.contested,
        "unrebuilt": tally.unrebuilt,
        "predicted_proof_brought": summary.brought,
        **asdict(summary.solved),
    }


def progress(run: StoredRun, tally: Tally) -> dict[str, object]:
    """Return the facts of a run that are cheap to read, for scripts."""
    return {
        "run": run.id,
        "submitted_at": run.created_at.isoformat(),
        "manifests": [str(path) for path in run.manifests],
        "rechecks": run.rechecks,
        "lines": tally.total,
        "statuses": dict(tally.statuses),
        "verdicts": [
            {"verdict": verdict, "reason": reason, "lines": number}
            for (verdict, reason), number in sorted(tally.verdicts.items())
        ],
    }


def export(connections: Connections, run: StoredRun) -> list[Exported]:
    """Write the present verdicts into the run's manifests, and return the written files."""
    from farm.cli import terminal
    from farm.runs.export import export as exporting

    written = []
    for file in exporting(connections.store, connections.queries, run):
        terminal.say_exported(file)
        written.append(file)
    return written


def require_exportable(paths: Iterable[Path]) -> None:
    """Raise `ManifestError` if the final export could not write a manifest; print which lose their links."""
    from farm.cli import terminal
    from farm.runs.export import parted
    from farm.runs.export import require_exportable as required

    paths = list(paths)
    required(paths)
    for words in parted(paths):
        terminal.say(words)
