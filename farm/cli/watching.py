"""The commands that show the whole farm: workers and top."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from farm.cli import runs
from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import ServerDown

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from farm.sessions.wire import Beat
    from farm.store.overview import AtWork
    from farm.store.rates import Rates
    from farm.store.workers import Worker

#: Seconds between two updates of `farm top`.
_REFRESH_SECONDS = 1.0


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm workers --json")(workers)
    app.command(epilog="Example: farm top")(top)


def workers(as_json: AsJson = False) -> None:
    """List the workers: environments, load, current check, and seconds since their last heartbeat."""
    from farm.cli import live_tables, terminal
    from farm.store.overview import Overview
    from farm.store.workers import Workers

    engine = Connections.here().engine
    found = Workers(engine).all()
    at_work = live_tables.by_worker(Overview(engine).at_work())
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


def top(as_json: AsJson = False) -> None:
    """Show the farm at work, updated every second, until q or Ctrl-C; without a terminal, once.

    It shows the rate of verdicts by result, the waiting checks, and each worker's current check. With --json
    it prints that once.
    """
    from farm.cli import terminal
    from farm.store.overview import Overview
    from farm.store.rates import Rates

    connections = Connections.here()
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
