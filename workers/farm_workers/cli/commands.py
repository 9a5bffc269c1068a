"""The commands that check on this machine: `farm worker` and `farm check`; `farm environments` joins them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.assembly.challenge import Challenge
from farm.assembly.declaration import read_target
from farm.cli.options import (
    AllParts,
    AsJson,
    CpuSeconds,
    Native,
    PolicyActions,
    TierName,
    print_json,
)
from farm.connections import Connections
from farm.documents import encoded
from farm.errors import UsageError
from farm.exit_status import ExitStatus
from farm.files import write_whole
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Verdict, judge
from farm.lean_text.header import header_end
from farm.limits import CPU_PER_WALL, Limits, require_possible
from farm.settings import WAYS, Settings
from farm.version import farm_version
from farm_workers.cli import (
    bundling,
    claims,
    datasets,
    environments,
    extracting,
    mending,
    reporting,
    sweeping,
)
from farm_workers.cli.programs import program_text

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm_workers.environments.environment import Environment
    from farm_workers.environments.lean_environment import LeanEnvironment
    from farm_workers.machine.opening import Machine


File = Annotated[str, Argument(help="A Lean file, or - for standard input.")]
EnvironmentName = Annotated[str | None, Option(help="The Lean environment.", show_default=False)]
Timeout = Annotated[float, Option(help="Seconds the check may take.")]
MemoryMib = Annotated[int | None, Option(help="MiB of memory it may use.", show_default=False)]
Way = Annotated[
    str | None,
    Option(help="How Lean is run: forked, prepared or cold; FARM_WAY by default.", show_default=False),
]
ChallengeFile = Annotated[
    Path | None,
    Option(help="A Lean file with the statement to be proved, `sorry` for a proof.", show_default=False),
]
SealedFile = Annotated[
    Path | None,
    Option(
        "--sealed",
        help="Write the module that the kernel was given into this file, for other kernels.",
        show_default=False,
    ),
]
RequireStatement = Annotated[bool, Option("--require-statement", help="Refuse to check without a challenge.")]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command("worker", epilog="Example: farm worker --concurrency 8")(worker)
    app.command(
        "check",
        epilog="Example: echo 'prelude import Core theorem t : True := .intro' | farm check -",
    )(check_file)
    bundling.add_to(app)
    datasets.add_to(app)
    claims.add_to(app)
    extracting.add_to(app)
    mending.add_to(app)
    reporting.add_to(app)
    environments.add_to(app)


def worker(
    concurrency: Annotated[
        int | None, Option(min=1, help="Checks at once; one per core by default.", show_default=False)
    ] = None,
    metrics_port: Annotated[
        int | None,
        Option(
            min=0, max=65535, help="Serve metrics for Prometheus; 0 takes a free port.", show_default=False
        ),
    ] = None,
    metrics_address: Annotated[
        str | None,
        Option(help="Address of the metrics; anyone who reaches it may read them.", show_default="127.0.0.1"),
    ] = None,
    sweep: Annotated[
        bool,
        Option(
            "--sweep",
            help="Check nothing: requeue the checks of dead workers and cancel lines past their deadline, "
            "which every worker does from time to time.",
        ),
    ] = False,
    now: Annotated[
        bool,
        Option(
            "--now",
            help="With --sweep: do not wait for workers that may only have lost PostgreSQL for a while.",
        ),
    ] = False,
    as_json: Annotated[bool, Option("--json", help="With --sweep: print JSON for scripts.")] = False,
) -> None:
    """Check proofs on this machine until stopped; serves each environment when it is found fit to judge here.

    It examines one that is not fit again and again. The exit status is 2 when the settings cannot be met,
    such as an isolation that this machine does not have, a port that is taken, or tables of environments
    that are all wrong, and 1 when PostgreSQL does not answer for half a minute.

    It raises its limit of open files as far as it may, and runs no more checks at once than that allows.
    """
    if sweep:
        sweeping.sweep(now=now, as_json=as_json)
        return
    if now or as_json:
        raise UsageError(f"{'--now' if now else '--json'} belongs to --sweep; add --sweep, or leave it out")
    from farm import log, tracing
    from farm_workers.machine.descriptors import checks_at_once, raise_limit
    from farm_workers.machine.opening import remove_leftovers

    settings = Settings.load()
    log.configure(settings.log_level, settings.log_format)
    tracing.begin("farm-worker")
    settings = replace(
        settings,
        concurrency=checks_at_once(concurrency or settings.concurrency, raise_limit()),
        metrics_port=settings.metrics_port if metrics_port is None else metrics_port,
        metrics_address=metrics_address or settings.metrics_address,
    )
    # Until Celery listens to signals: whatever is begun is taken down in order. `farm.__main__` blocks both.
    signal.signal(signal.SIGTERM, _leave)
    remove_leftovers(settings)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})
    with _metrics(settings):
        _work(settings)


@contextmanager
def _metrics(settings: Settings) -> Iterator[None]:
    """Serve metrics inside the block where the settings name a port for them."""
    from farm.log import logger
    from farm_workers.metrics.events import served

    if settings.metrics_port is None:
        yield
        return
    with served(address=settings.metrics_address, port=settings.metrics_port) as url:
        logger(__name__).info("Metrics are served on %s", url)
        yield


def _work(settings: Settings) -> None:
    from farm import broker
    from farm.completions import Publisher
    from farm.store import postgres
    from farm.store.transitions import Store
    from farm_workers.loop.backoff import retrying_at_start
    from farm_workers.loop.context import CONNECTIONS
    from farm_workers.loop.declaring import Declaring
    from farm_workers.loop.process import new_context, serve
    from farm_workers.loop.starting import Starting
    from farm_workers.loop.stepping import Stepping
    from farm_workers.machine.environments import require_names
    from farm_workers.machine.fitting import with_fit
    from farm_workers.machine.opening import OF_A_WORKER, demanded, opened

    database_url, broker_url = Connections(settings).urls
    with (
        opened(
            settings, concurrency=settings.concurrency, minimum=demanded(settings, OF_A_WORKER)
        ) as machine,
        Publisher(broker_url) as publisher,
    ):
        engine = postgres.connect(
            database_url, application="farm-worker", connections=CONNECTIONS, works=True
        )
        retrying_at_start(lambda: postgres.require_schema(engine))
        require_names(machine.configured)
        starting = Starting(
            machine.configured,
            examine=machine.judges.require_sound,
            prepare=partial(with_fit, home=settings.home, isolation=machine.isolation, way=settings.way),
            afterwards=partial(_tell_of_probes, machine, settings.home),
        )
        context = new_context(
            Store(engine, max_failures=settings.attempts),
            {},
            machine.judges,
            name=f"{socket.gethostname()}:{os.getpid()}",
            lease_seconds=settings.lease_seconds,
            concurrency=settings.concurrency,
            completed=publisher.publish,
            pending=starting.pending,
        )
        app = broker.application(broker_url)
        stepping = Stepping(context, broker_url)
        stepping.start()
        declaring = Declaring(context, broker_url, settings.home)
        declaring.start()
        try:
            serve(context, app, grace_seconds=settings.grace_seconds, starting=starting)
        finally:
            declaring.stop()
            stepping.stop()


def _tell_of_probes(machine: Machine, home: Path, environment: Environment) -> None:
    from farm_workers.environments.lean_environment import LeanEnvironment
    from farm_workers.machine.probes import tell

    if isinstance(environment, LeanEnvironment):
        tell(environment, home, machine.checker)


def _leave(_number: int, _frame: object) -> None:
    raise SystemExit(0)


def check_file(
    file: File,
    environment: EnvironmentName = None,
    timeout: Timeout = 30.0,
    cpu: CpuSeconds = None,
    memory_mib: MemoryMib = None,
    way: Way = None,
    policy: PolicyActions = None,
    challenge: ChallengeFile = None,
    tier: TierName = "kernel",
    native: Native = False,
    require_statement: RequireStatement = False,
    require_all_parts: AllParts = False,
    sealed: SealedFile = None,
    as_json: AsJson = False,
) -> None:
    """Check one Lean program on this machine, without servers or a queue.

    The exit status is 0 when the program is proved, 4 when it is not, 3 when it could not be judged, and 1
    when the farm failed. A file for the sealed module is written only if the program is proved.
    """
    from farm.lean_text.policy.screen import Policy

    settings = Settings.load()
    if way is not None and way not in WAYS:
        raise UsageError(f"--way {way}: Lean is run in one of these ways: {', '.join(WAYS)}")
    if require_statement and challenge is None:
        raise UsageError("--require-statement: no statement was given; name its file with --challenge")
    check = Check.of(
        limits=_limits(settings, timeout, cpu, memory_mib),
        program=program_text(file),
        challenge=None if challenge is None else _challenge(program_text(str(challenge))),
        assurance=Assurance(
            tier=tier,
            native=native,
            policy=Policy.parse(policy or ()),
            requires_all_parts=require_all_parts,
        ),
    )
    kept = list[bytes]()
    keep = None if sealed is None else kept.append
    report = _checked(check, settings, way, environment or settings.environment, keep)
    verdict = judge(report)
    _print(file, report, verdict, as_json=as_json)
    if verdict.outcome is not Outcome.PROVED:
        raise typer.Exit(
            ExitStatus.UNJUDGED if verdict.outcome is Outcome.JUDGE_ERROR else ExitStatus.NOT_PROVED
        )
    if sealed is not None:
        _write_sealed(sealed, kept)


def _write_sealed(file: Path, kept: Sequence[bytes]) -> None:
    if not kept:
        raise UsageError(
            "--sealed: nothing was sealed; that needs a Lean that can be forked, and the tier kernel or audit"
        )
    try:
        write_whole(file, kept[-1])
    except OSError as error:
        raise UsageError(f"--sealed {file}: {error.strerror}; name a file that can be written") from error


def _checked(
    check: Check,
    settings: Settings,
    way: str | None,
    environment: str,
    keep: Callable[[bytes], None] | None,
) -> Report:
    from farm_workers.machine.opening import opened

    with opened(settings, way=way) as machine:
        machine.installed.require_any()
        chosen = machine.installed.lean(environment)
        if check.assurance is not None:
            _require_tier(check.assurance.tier, chosen)
        return machine.checker.check(check, chosen, keep=keep)


def _require_tier(tier: str, environment: LeanEnvironment) -> None:
    if tier not in environment.tiers:
        raise UsageError(
            f"the environment {environment.name!r} does not support the tier {tier}; "
            f"check with --tier {environment.tiers[0]}, or name a checker in its table"
        )


def _limits(settings: Settings, timeout: float, cpu: float | None, memory_mib: int | None) -> Limits:
    memory = settings.memory_mib if memory_mib is None else memory_mib
    require_possible(wall_seconds=timeout, memory_mib=memory, cpu_seconds=cpu)
    return Limits(
        wall_seconds=timeout, cpu_seconds=CPU_PER_WALL * timeout if cpu is None else cpu, memory_mib=memory
    )


def _challenge(program: str) -> Challenge:
    target = read_target(program[header_end(program) :])
    if not target.core:
        raise UsageError(
            "--challenge: it contains no theorem; write the statement with `:= sorry` as its proof"
        )
    return Challenge(program=program, name=target.name)


def _print(file: str, report: Report, verdict: Verdict, *, as_json: bool) -> None:
    from farm.cli.terminal import visible

    if as_json:
        print_json(
            verdict=verdict.outcome,
            reason=verdict.reason,
            detail=verdict.detail,
            proof_status=verdict.proof_status,
            tier=report.tier,
            statement=report.statement if verdict.outcome is Outcome.PROVED else None,
            trusts=report.trusts,
            rests_on_sorry_of=report.rests_on_sorry_of,
            way=report.way,
            isolation=report.run.isolation,
            wall_seconds=round(report.run.wall_seconds, 3),
            waited_seconds=round(report.run.waited_seconds, 3),
            cpu_seconds=round(report.run.cpu_seconds, 3),
            peak_memory_mib=round(report.run.peak_memory_kib / 1024, 1),
            messages=[
                {"severity": m.severity, "line": m.line, "column": m.column, "text": m.text}
                for m in report.answer.messages
            ],
            audit=None if report.audit is None else encoded(report.audit),
            policy=[
                {"rule": h.rule, "action": h.action, "line": h.line, "column": h.column, "text": h.text}
                for h in report.hits
            ],
            checker_version=farm_version(),
        )
        return
    for message in report.answer.messages:
        typer.echo(visible(f"{file}:{message.line}:{message.column}: {message.severity}: {message.text}"))
    for hit in report.hits:
        typer.echo(
            visible(f"{file}:{hit.line}:{hit.column}: policy {hit.action}: {hit.text} (rule {hit.rule})")
        )
    for words in report.audit.words if report.audit else ():
        typer.echo(visible(words))
    typer.echo(_facts(report))
    typer.echo(visible(f"{verdict.outcome} ({verdict.reason}): {verdict.detail}"))


def _facts(report: Report) -> str:
    run = report.run
    return (
        f"tier {report.tier}, way {report.way}, isolation {run.isolation}, {run.wall_seconds:.2f} s, "
        f"{run.cpu_seconds:.2f} s of processor time, {run.peak_memory_kib / 1024:.0f} MiB"
    )
