"""The commands that change a run, or judge its lines again: cancel and rejudge."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli import runs
from farm.cli.flags import LineFlags, RejudgeFlags, spread
from farm.cli.options import AsJson, Export, SomeRun, Wait, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.exit_status import ExitStatus

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.changes import Change, Changes
    from farm.runs.pick import Pick
    from farm.runs.recheck import Recheck
    from farm.runs.submit import Submitted
    from farm.store.queries import StoredRun
    from farm.store.rechecks import Turned


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm cancel k3m9")(cancel)
    example = "farm rejudge k3m9 --environment mathlib-next; farm rejudge k3m9 --in-place --verdict timeout"
    app.command(epilog=f"Example: {example}")(spread(rejudge))


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


def rejudge(
    run: SomeRun,
    flags: RejudgeFlags,
    lines: LineFlags,
    in_place: Annotated[
        bool,
        Option("--in-place", help="Judge lines of the run itself again: those of --verdict and its like."),
    ] = False,
    most: Annotated[
        int, Option("-n", "--most", min=1, help="How many changed lines at most; --json shows all.")
    ] = 100,
    wait: Wait = True,
    export: Export = True,
    as_json: AsJson = False,
) -> None:
    """Judge the lines of a run again, by default in another run, and list the lines whose verdict changed.

    The manifests and the run stay as they are. The same command typed again continues the first one. With
    --in-place lines of the run itself are judged again, with other limits or on a stronger tier, and their
    new verdicts replace the old ones.
    """
    pick = lines.pick()
    if in_place:
        flags.require_in_place()
        _in_place(run, flags, pick, wait=wait, exports=export, as_json=as_json)
        return
    if not pick.is_empty:
        raise UsageError("--verdict, --reason and --status pick lines of the run itself; add --in-place")
    _apart(run, flags, most=most, wait=wait, as_json=as_json)


def _in_place(run: str, flags: RejudgeFlags, pick: Pick, *, wait: bool, exports: bool, as_json: bool) -> None:
    """Judge lines of a run again; their verdicts become those of the run."""
    from farm.cli import terminal
    from farm.runs import revise

    flags.require_possible()
    site = Connections.here()
    found = site.queries.run(run)
    exports = exports and not found.rechecks  # whose verdicts are written only by `farm export`
    if wait and exports:
        runs.require_exportable(found.manifests)
    assurance = flags.assurance(found)
    tier = None
    if assurance is not None:
        tier = revise.Stronger(assurance=assurance, known=site.environments())
    chosen = revise.retry(
        site.store,
        found.id,
        pick,
        tier=tier,
        wall_seconds=flags.timeout,
        cpu_seconds=flags.cpu,
        memory_mib=flags.memory_mib,
    )
    terminal.say(f"Run {found.id}: {terminal.count(chosen, 'line')} will be checked again")
    runs.call(site, found)
    if wait and chosen:
        with runs.may_leave(found.id):
            runs.wait(site, found)
        runs.conclude(site, found, exports=exports, as_json=as_json)
    elif as_json:
        print_json(run=found.id, lines=chosen)


def _apart(run: str, flags: RejudgeFlags, *, most: int, wait: bool, as_json: bool) -> None:
    """Judge the lines of a run in another run, and compare their verdicts."""
    asked = flags.asked()
    site = Connections.here()
    before = site.queries.run(run)
    with runs.may_stop():
        submitted = _load(site, before, asked, new_run=flags.new_run)
    now = site.queries.run(submitted.run_id)
    environment = f" --environment {asked.environment}" if asked.environment else ""
    back = f"See what changed: farm rejudge {before.id}{environment} (same options)"
    with runs.may_leave(now.id, back=back):
        _say_stored(site, now, before, submitted)
        runs.call(site, now)
        runs.say_unserved(site, now)
        if not wait:
            runs.leave(now, back=back, as_json=as_json)
            return
        runs.wait(site, now)
        _tell(site, before, now, most=most, as_json=as_json)


def _load(site: Connections, before: StoredRun, asked: Recheck, *, new_run: bool) -> Submitted:
    from farm.cli import terminal
    from farm.runs.recheck import recheck as load

    with terminal.busy("Preparing the farm"):
        known = site.environments()
    return runs.storing(
        lambda stored: load(
            site.store,
            before,
            asked,
            known=known,
            new_run=new_run,
            queue_limit=site.settings.queue_limit,
            seen=stored,
        )
    )


def _say_stored(site: Connections, now: StoredRun, before: StoredRun, submitted: Submitted) -> None:
    from farm.cli import terminal

    if submitted.resumed:
        tally = site.queries.tally(now.id)
        when = now.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        terminal.say(
            f"Run {now.id}: this was begun before, at {when}; "
            f"{tally.done} of {terminal.count(tally.total, 'line')} done. "
            "To judge all of them once more, add --new-run"
        )
    else:
        lines = terminal.count(submitted.lines, "line")
        shared = f", {submitted.shared} shared with equal ones" if submitted.shared else ""
        terminal.say(f"Run {now.id}: judges {lines} of run {before.id} again{shared}")


def _tell(site: Connections, before: StoredRun, now: StoredRun, *, most: int, as_json: bool) -> None:
    """Print the changes; exits with LOST or UNJUDGED if a line was lost or not judged."""
    from farm.cli import run_tables
    from farm.reports.changes import Changes
    from farm.store.rechecks import turned

    def finding(line: Turned) -> str:
        return site.queries.line(now.id, line.manifest, line.line).detail()

    changes = Changes()
    with closing(turned(site.queries.engine, before.id, now.id)) as lines:
        found = _changed(lines, changes)
        if as_json:
            for change, line in found:
                print_json(**_line_facts(now, change, line), detail=finding(line) or None)
            print_json(**_facts(before, now, changes))
        else:
            run_tables.print_changes(now, found, changes, finding, most=most)
            _print_next(before, now, changes)
    if changes.lost:
        raise typer.Exit(ExitStatus.LOST)
    if changes.unjudged:
        raise typer.Exit(ExitStatus.UNJUDGED)


def _changed(lines: Iterator[Turned], changes: Changes) -> Iterator[tuple[Change, Turned]]:
    """Count lines, and yield the changed ones."""
    from farm.reports.changes import Change

    for line in lines:
        change = changes.add(line.before, line.now)
        if change is not Change.SAME:
            yield change, line


def _print_next(before: StoredRun, now: StoredRun, changes: Changes) -> None:
    """Print the next steps."""
    from farm.cli import terminal

    if changes.unjudged:
        lines = terminal.count(changes.unjudged, "line")
        terminal.say(f"{lines} could not be judged; see why: farm show {now.id} --verdict judge_error")
    where = "The manifests keep the verdicts of before" if now.manifests else f"Run {before.id} is unchanged"
    write = f"; write the new ones: farm export {now.id}" if now.manifests else ""
    terminal.say(f"{where}{write}. See a line: farm show {now.id} --line N")


def _line_facts(now: StoredRun, change: Change, line: Turned) -> dict[str, object]:
    """Return the two verdicts of a line, for scripts."""
    path = str(now.manifests[line.manifest]) if now.manifests else None
    sides = {
        side: {"status": judged.status, "verdict": judged.verdict, "reason": judged.reason}
        for side, judged in (("before", line.before), ("now", line.now))
    }
    return {
        "change": change,
        "manifest": path,
        "line": line.line,
        "name": line.name,
        **sides,
    }


def _facts(before: StoredRun, now: StoredRun, changes: Changes) -> dict[str, object]:
    """Return the counts of all changes, for scripts."""
    from farm.reports.changes import Change

    return {
        "run": now.id,
        "rechecks": before.id,
        "environment": now.options["environment"],
        "environment_digest": now.options["recheck"]["digest"],
        "tier": now.tier,
        "tier_before": before.tier,
        "lines": changes.lines,
        "changes": {change: changes.of(change) for change in Change},
        "turns": [each._asdict() for each in changes.counts()],
    }
