"""The command that shows how far a run is, or the farm: status."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli import runs
from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import ServerDown, UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from farm.runs.farm_status import FarmStatus
    from farm.sessions.wire import Beat
    from farm.store.overview import AtWork
    from farm.store.queries import Queries
    from farm.store.rates import Rates
    from farm.store.workers import Worker

#: Seconds between two updates of `farm status --watch`.
_REFRESH_SECONDS = 1.0


def add_to(app: typer.Typer) -> None:
    """Add this module's command to the `farm` command."""
    app.command(epilog="Example: farm status k3m9 --wait; farm status --workers; farm status --watch")(status)


def status(
    run: Annotated[
        str | None,
        Argument(
            metavar="[RUN]",
            help="Id of a run, or a prefix of it; by default the whole farm, or with --wait the newest run.",
        ),
    ] = None,
    wait: Annotated[bool, Option("--wait", help="Wait for the verdicts.")] = False,
    of_runs: Annotated[bool, Option("--runs", help="List runs, newest first.")] = False,
    most: Annotated[int, Option("-n", "--most", min=1, help="With --runs: how many.")] = 20,
    of_workers: Annotated[
        bool,
        Option(
            "--workers",
            help="List the workers: environments, load, current check, and seconds since the last heartbeat.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        Option(
            "--watch",
            help="Show the farm at work, updated every second, until q or Ctrl-C; without a terminal, once.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the progress and the verdicts of a run, or without one the unfinished work of the whole farm.

    Without a run, --json prints the newest run as with one, and beside it the unfinished work. --watch shows
    the rate of verdicts by result, the waiting checks, and each worker's current check; with --json it prints
    that once.
    """
    _require_one(
        {"RUN": run is not None or wait, "--runs": of_runs, "--workers": of_workers, "--watch": watch}
    )
    site = Connections.here()
    if of_runs:
        _list(site, most=most, as_json=as_json)
    elif of_workers:
        _workers(site, as_json=as_json)
    elif watch:
        _watch(site, as_json=as_json)
    elif run is None and not wait:
        _show_farm(site, as_json=as_json)
    else:
        _show_run(site, run, wait=wait, as_json=as_json)


def _require_one(views: Mapping[str, bool]) -> None:
    given = [name for name, is_given in views.items() if is_given]
    if len(given) > 1:
        raise UsageError(
            f"{' and '.join(given)} show different things; give one of them. "
            "To follow one run: farm status RUN --wait"
        )


def _show_run(site: Connections, run: str | None, *, wait: bool, as_json: bool) -> None:
    found = site.queries.run(run)
    if wait:
        with runs.may_leave(found.id):
            runs.wait(site, found)
    runs.say_unserved(site, found)
    runs.finish(site, found, as_json=as_json)


def _show_farm(site: Connections, *, as_json: bool) -> None:
    from farm.runs.farm_status import FarmStatus

    found = FarmStatus.of(site.queries)
    if as_json:
        print_json(**_farm_facts(site.queries, found))
    else:
        _print_farm(found)
    if found.newest is not None:
        runs.require_judged(*found.newest)


def _farm_facts(queries: Queries, found: FarmStatus) -> dict[str, object]:
    from farm.runs.summary import Summary

    newest = found.newest and found.newest[0]
    return {
        **(runs.facts(newest, Summary.of(queries, newest)) if newest else {}),
        "unfinished_runs": [runs.progress(*each) for each in found.unfinished],
        "unfinished_batches": found.left.batches,
        "unfinished_items": found.left.items,
        "newest_finished_run": found.newest_finished and found.newest_finished[0].id,
        "queues": [
            {
                "environment": each.environment,
                "class": each.priority.name.lower(),
                "tier": each.tier,
                "waiting": each.waiting,
                "oldest_seconds": round(each.oldest_seconds, 3),
                "workers": sum(worker.takes(each.environment, each.tier) for worker in found.workers),
            }
            for each in found.queues
        ],
    }


def _print_farm(found: FarmStatus) -> None:
    from farm.cli import live_tables, run_tables, terminal

    if found.unfinished:
        run_tables.print_runs(found.unfinished)
    for words in live_tables.unfinished_batches(found.left):
        terminal.out.print(words, highlight=False)
    if found.queues:
        terminal.out.print(live_tables.queues_table(found.queues, found.workers))
    if not (found.unfinished or found.left.batches or found.queues):
        terminal.out.print("Nothing is unfinished.")
    if found.newest_finished is not None:
        run_tables.print_ended(*found.newest_finished)
    for words in live_tables.unserved(found.queues, found.workers):
        terminal.say(words)


def _list(site: Connections, *, most: int, as_json: bool) -> None:
    from farm.cli import run_tables
    from farm.runs.summary import Summary

    found = site.queries.runs(most=most)
    if as_json:
        print_json(runs=[runs.facts(run, Summary.of(site.queries, run)) for run in found])
    else:
        run_tables.print_runs((run, site.queries.tally(run.id)) for run in found)


def _workers(site: Connections, *, as_json: bool) -> None:
    from farm.cli import live_tables, terminal
    from farm.store.overview import Overview
    from farm.store.workers import Workers

    found = Workers(site.engine).all()
    at_work = live_tables.by_worker(Overview(site.engine).at_work())
    if as_json:
        print_json(workers=[_facts(each, at_work.get(each.name, [])) for each in found])
        return
    if not found:
        terminal.say(live_tables.NO_WORKERS)
        return
    terminal.out.print(live_tables.workers_table(found, at_work))
    for words in live_tables.remedies(found):
        terminal.say(words)


def _facts(worker: Worker, at_work: list[AtWork]) -> dict[str, object]:
    """Return the facts of a worker, for scripts."""
    return {
        **asdict(worker),
        "age_seconds": round(worker.age_seconds, 3),
        "silent_seconds": round(worker.silent_seconds, 3),
        "silent": worker.is_silent,
        "checks": [
            {
                "check": each.check_id,
                "attempt": each.attempt,
                "environment": each.environment,
                "seconds": round(each.seconds, 3),
                "run": each.run_id,
                "line": each.line,
                "name": each.name,
            }
            for each in at_work
        ],
    }


def _watch(connections: Connections, *, as_json: bool) -> None:
    from farm.cli import terminal
    from farm.store.overview import Overview
    from farm.store.rates import Rates

    rates = Rates(Overview(connections.engine))
    if as_json:
        print_json(**_pictured(connections, rates))
    elif terminal.out.is_terminal:
        _keep_showing(connections, rates)
    else:
        terminal.out.print(_picture(connections, rates))


def _pictured(connections: Connections, rates: Rates) -> dict[str, object]:
    """Return the content of the live display, for scripts; all workers, each with its longest check."""
    from farm.cli import live_tables
    from farm.store.overview import Overview
    from farm.store.workers import Workers

    overview, found = Overview(connections.engine), Workers(connections.engine).all()
    rates.look()
    live = [each for each in found if not each.is_silent]
    at_work = live_tables.by_worker(overview.at_work())
    minute = rates.verdicts(seconds=60)
    sessions = _sessions(connections, live)
    return {
        "checks_per_second": round(sum(minute.values()) / 60, 3),
        "threads": sum(each.threads for each in live),
        "busy": sum(each.busy for each in live),
        "verdicts": {"last_60_seconds": minute, "last_300_seconds": rates.verdicts(seconds=300)},
        "sessions": sessions
        and {
            "open": sessions["sessions"],
            "steps_per_second": sessions["steps"],
            "killed_per_second": sessions["killed"],
        },
        "queues": [
            {
                **asdict(each),
                "priority": each.priority.name.lower(),
                "oldest_seconds": round(each.oldest_seconds, 3),
                "workers": sum(worker.takes(each.environment, each.tier) for worker in found),
            }
            for each in overview.queues(most=live_tables.MOST_COUNTED)
        ],
        "workers": [_facts(each, at_work.get(each.name, [])) for each in found],
    }


def _keep_showing(connections: Connections, rates: Rates) -> None:
    from rich.live import Live

    from farm.cli import keyboard, terminal

    try:
        with keyboard.pressed() as key, Live(console=terminal.out, screen=True, auto_refresh=False) as live:
            live.update(_picture(connections, rates), refresh=True)
            while key(_REFRESH_SECONDS) not in ("q", "Q"):
                live.update(_picture_or_trouble(connections, rates), refresh=True)
    except BaseException as error:
        if not runs.is_interrupt(error):
            raise


def _picture_or_trouble(connections: Connections, rates: Rates) -> RenderableType:
    """Return the live display, or the reason why it is not available at the moment."""
    from farm.cli.terminal import visible

    try:
        return _picture(connections, rates)
    except ServerDown as error:
        return visible(f"{error}; looking again every second")


def _picture(connections: Connections, rates: Rates) -> RenderableType:
    from farm.cli import live_tables
    from farm.store.overview import Overview
    from farm.store.workers import Workers

    overview, workers = Overview(connections.engine), Workers(connections.engine).all()
    rates.look()
    return live_tables.top(
        minute=rates.verdicts(seconds=60),
        minutes=rates.verdicts(seconds=300),
        queues=overview.queues(most=live_tables.MOST_COUNTED),
        workers=workers,
        sessions=_sessions(connections, [each for each in workers if not each.is_silent]),
        at_work=live_tables.by_worker(overview.longest_at_work(most=live_tables.MOST_SHOWN)),
    )


def _sessions(connections: Connections, workers: Sequence[Worker]) -> Beat | None:
    """Return what the workers do in sessions, None while Redis does not answer."""
    try:
        return connections.sessions.at_work([each.name for each in workers])
    except ServerDown:
        return None
