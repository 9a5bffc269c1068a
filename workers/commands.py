"""The commands that check on this machine: `farm worker` and `farm check`."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from farm import __version__
from farm.cli import SOME_UNJUDGED, AsJson, print_json
from farm.errors import UsageError
from farm.job import Limits, require_possible
from farm.settings import Settings
from farm.site import Site
from farm.verdict import Outcome, Report, Verdict, judge


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command("worker", epilog="Example: farm worker --concurrency 8")(worker)
    app.command(
        "check", epilog="Example: farm check Proof.lean; echo 'theorem t : True := trivial' | farm check -"
    )(check_file)


def worker(
    concurrency: Annotated[
        int | None, Option(help="Checks at once; one per core by default.", show_default=False)
    ] = None,
) -> None:
    """Check proofs on this machine until stopped; serves every environment installed here."""
    from farm import broker, db, log
    from farm.store import Store
    from workers.canary import require_sound
    from workers.environments import installed
    from workers.serve import serve
    from workers.tasks import Desk

    settings = Settings.load()
    log.configure(settings.log_level)
    database_url, broker_url = Site(settings).urls
    at_once = concurrency or settings.concurrency
    engine = db.connect(database_url, application="farm-worker", connections=at_once + 2)
    db.require_schema(engine)
    environments = installed(settings.home, settings.environments)
    for environment in environments.values():
        require_sound(environment)
    desk = Desk(
        store=Store(engine),
        environments=environments,
        name=f"{socket.gethostname()}:{os.getpid()}",
        lease_seconds=settings.lease_seconds,
    )
    serve(desk, broker.application(broker_url), concurrency=at_once)


def check_file(
    file: Annotated[str, Argument(help="A Lean file, or - for standard input.")],
    environment: Annotated[str | None, Option(help="The Lean environment.", show_default=False)] = None,
    timeout: Annotated[float, Option(help="Seconds the check may take.")] = 30.0,
    memory_mib: Annotated[int | None, Option(help="MiB of memory it may use.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Check one Lean program on this machine, without servers or a queue.

    The exit status is 0 when the program is proved, 1 when it is not, 3 when it could not be judged.
    """
    from workers.checker import check
    from workers.environments import installed

    settings = Settings.load()
    memory = settings.memory_mib if memory_mib is None else memory_mib
    require_possible(wall_seconds=timeout, memory_mib=memory)
    limits = Limits(wall_seconds=timeout, cpu_seconds=2 * timeout, memory_mib=memory)
    program = _text(file)
    environments = installed(settings.home, settings.environments)
    name = environment or settings.environment
    if name not in environments:
        raise UsageError(f"no environment is called {name!r}; this machine has: {', '.join(environments)}")
    report = check(program, environments[name], limits)
    verdict = judge(report)
    _print(file, report, verdict, as_json=as_json)
    if verdict.outcome is Outcome.JUDGE_ERROR:
        raise typer.Exit(SOME_UNJUDGED)
    if verdict.outcome is not Outcome.PROVED:
        raise typer.Exit(1)


def look(site: Site) -> str:
    """Return which Lean environments this machine has, after each has judged what is known of it."""
    from workers.canary import require_sound
    from workers.environments import installed

    environments = installed(site.settings.home, site.settings.environments)
    for environment in environments.values():
        require_sound(environment)
    return "; ".join(f"{each.name}: {each.toolchain}" for each in environments.values())


def _text(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; give a Lean file, or - for standard input") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: byte {error.start} is not UTF-8; save the file as UTF-8") from error


def _print(file: str, report: Report, verdict: Verdict, *, as_json: bool) -> None:
    from farm.screen import visible

    if as_json:
        print_json(
            verdict=verdict.outcome,
            reason=verdict.reason,
            detail=verdict.detail,
            proof_status=verdict.proof_status,
            wall_seconds=round(report.wall_seconds, 3),
            messages=[
                {"severity": m.severity, "line": m.line, "column": m.column, "text": m.text}
                for m in report.messages
            ],
            checker_version=__version__,
        )
        return
    for message in report.messages:
        typer.echo(visible(f"{file}:{message.line}:{message.column}: {message.severity}: {message.text}"))
    typer.echo(visible(f"{verdict.outcome} ({verdict.reason}): {verdict.detail}"))
