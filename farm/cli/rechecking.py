"""The command that judges a run again under another environment and lists the changed lines: recheck."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli import runs
from farm.cli.flags import RecheckFlags, spread
from farm.cli.options import AsJson, SomeRun, Wait, print_json
from farm.connections import Connections
from farm.exit_status import ExitStatus

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.reports.changes import Change, Changes
    from farm.runs.recheck import Recheck
    from farm.runs.submit import Submitted
    from farm.store.queries import StoredRun
    from farm.store.rechecks import Turned


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm recheck k3m9 --environment mathlib-next")(spread(recheck))


def recheck(
    run: SomeRun,
    which: RecheckFlags,
    new_run: Annotated[
        bool, Option("--new-run", help="Judge again even if the same recheck was made before.")
    ] = False,
    most: Annotated[
        int, Option("-n", "--most", min=1, help="How many changed lines at most; --json shows all.")
    ] = 100,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Judge the lines of a run under another environment, and list the lines whose verdict changed.

    The manifests and the run stay as they are. The same recheck typed again continues the first one.
    """
    asked = which.asked()
    site = Connections.here()
    before = site.queries.run(run)
    with runs.may_stop():
        submitted = _load(site, before, asked, new_run=new_run)
    now = site.queries.run(submitted.run_id)
    back = f"See what changed: farm recheck {before.id} --environment {asked.environment} (same options)"
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
            f"Run {now.id}: this recheck was begun before, at {when}; "
            f"{tally.done} of {terminal.count(tally.total, 'line')} done. "
            "To judge all of them again, add --new-run"
        )
    else:
        lines = terminal.count(submitted.lines, "line")
        shared = f", {submitted.shared} shared with equal ones" if submitted.shared else ""
        terminal.say(f"Run {now.id}: judges {lines} of run {before.id} again{shared}")


def _tell(site: Connections, before: StoredRun, now: StoredRun, *, most: int, as_json: bool) -> None:
    """Print the changes; exits with LOST or UNJUDGED if a line was lost or not judged."""
    from farm.cli import terminal
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
            terminal.print_changes(now, found, changes, finding, most=most)
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
