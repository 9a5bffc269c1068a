"""The `farm` command: each command parses, does one thing, and prints.

Data goes to stdout, talk to stderr. Exit status: 0 all lines judged, 1 the farm failed (a server is down, a
bug), 2 bad usage or bad input, 3 some lines could not be judged, 130 interrupted.
"""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from farm import __version__
from farm.errors import FarmError, ServerDown, UsageError
from farm.settings import Settings

# What costs time to import is imported by the command that uses it: `farm --help` answers at once.
if TYPE_CHECKING:
    from celery import Celery
    from sqlalchemy import Engine

    from farm.queries import Queries, Run
    from farm.store import Store

#: Exit status when some lines could not be judged.
SOME_UNJUDGED = 3

#: The version of what `--json` prints; a field may be added without a new one, never changed or taken away.
JSON_SCHEMA = 1

#: Seconds without a worker's sign of life before a waiting user is told.
_UNSERVED_SECONDS = 60.0

app = typer.Typer(
    name="farm",
    help="Judge machine-written Lean 4 proofs: manifests in, honest verdicts out.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="Look after the database.", no_args_is_help=True)
app.add_typer(database, name="db")

Manifests = Annotated[
    list[str], Argument(help="Manifests, as paths or globs: .jsonl, .jsonl.gz or .jsonl.zst.")
]
RunId = Annotated[
    str | None, Argument(metavar="[RUN]", help="A run's id or how it begins; the newest by default.")
]
AsJson = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Profile = Annotated[str, Option(help="How answers become programs: farm, nemo-2025-11 or nemo-2025-08.")]
AnswerKey = Annotated[
    str | None,
    Option(
        help="The answer is the text after this; empty turns it off. The profile's own by default.",
        show_default=False,
    ),
]
CodeMode = Annotated[str, Option(help="Which code block counts: last or first.")]
Restate = Annotated[bool, Option(help="Put the manifest's header and statement before the proof.")]
Strip = Annotated[bool, Option(help="Take the proof's own statement away.")]
Reassemble = Annotated[bool, Option(help="Assemble again where a line already has a predicted_proof.")]


@dataclass(frozen=True)
class Farm:
    """The servers a command works with; nothing is connected before it is used."""

    settings: Settings

    @cached_property
    def urls(self) -> tuple[str, str]:
        """The database's and the broker's URL; starts the farm's own servers when none are configured."""
        from farm import embedded

        if self.settings.database_url and self.settings.broker_url:
            return self.settings.database_url, self.settings.broker_url
        settings = self.settings
        servers = embedded.ensure(settings.home, settings.idle_minutes, servers=settings.servers)
        return servers.database_url, servers.broker_url

    @cached_property
    def engine(self) -> Engine:
        """The way to the database, which is at the revision this farm needs."""
        from farm import db

        engine = db.connect(self.urls[0], application="farm")
        db.require_schema(engine)
        return engine

    @cached_property
    def store(self) -> Store:
        """Changes of state."""
        from farm.store import Store

        return Store(self.engine)

    @cached_property
    def queries(self) -> Queries:
        """Questions to the store."""
        from farm.queries import Queries

        return Queries(self.engine)

    @cached_property
    def broker(self) -> Celery:
        """The queues."""
        from farm import broker

        return broker.application(self.urls[1])


def _farm() -> Farm:
    return Farm(Settings.load())


def print_json(**facts: object) -> None:
    """Print an object with the schema's version as one line of JSON."""
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **facts}, ensure_ascii=True, default=str))


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"farm {__version__}")
        raise typer.Exit


@app.command(epilog="Example: farm submit results/*.jsonl --timeout 60")
def submit(
    manifests: Manifests,
    profile: Profile = "farm",
    final_answer_key: AnswerKey = None,
    extract_code_mode: CodeMode = "last",
    restate_formal_statement: Restate = True,
    strip_theorem_from_proof: Strip = True,
    reassemble: Reassemble = False,
    environment: Annotated[str | None, Option(help="The Lean environment; a line's own wins.")] = None,
    timeout: Annotated[float, Option(help="Seconds a check may take; a line's own wins.")] = 30.0,
    memory_mib: Annotated[
        int | None, Option(help="MiB of memory a check may use.", show_default=False)
    ] = None,
    wait: Annotated[bool, Option(help="Wait for the verdicts.")] = True,
    export: Annotated[bool, Option(help="Write the verdicts into the manifests at the end.")] = True,
    as_json: AsJson = False,
) -> None:
    """Judge every line of manifests and write `proof_status` back into them."""
    from farm import screen
    from farm.broker import require_broker
    from farm.manifest import expand
    from farm.submit import Sending, SubmitOptions
    from farm.submit import submit as load

    farm = _farm()
    options = SubmitOptions(
        assembly=_assembly(
            profile,
            final_answer_key,
            extract_code_mode,
            restate_formal_statement,
            strip_theorem_from_proof,
            reassemble,
        ),
        environment=environment or farm.settings.environment,
        wall_seconds=_positive("--timeout", timeout),
        memory_mib=int(_positive("--memory-mib", memory_mib or farm.settings.memory_mib)),
    )
    paths = expand(manifests)
    require_broker(farm.broker)
    known = _known_environments(farm)
    with screen.storing() as stored:
        run_id = load(farm.store, paths, options, known=known, seen=stored)
    run = farm.queries.run(run_id)
    screen.say(f"Run {run.id}: {farm.queries.tally(run.id).total} lines of {len(paths)} manifests are stored")
    sending = Sending(farm.broker, farm.store, run.id)
    sending.start()
    if not wait:
        sending.join()
        screen.say(f"Follow it: farm status {run.id}\nWrite its verdicts: farm export {run.id}")
        if as_json:
            print_json(run=run.id)
        return
    _wait(farm, run)
    if export:
        _export(farm, run)
    _finish(farm, run, as_json=as_json)


def _assembly(*options: Any) -> Any:
    from farm.program import AssemblyOptions

    profile, key, mode, restate, strip, reassemble = options
    chosen = {} if key is None else {"final_answer_key": key}
    return AssemblyOptions(
        profile=profile,
        extract_code_mode=mode,
        restate_formal_statement=restate,
        strip_theorem_from_proof=strip,
        reassemble=reassemble,
        **chosen,
    )


def _positive(flag: str, value: float) -> float:
    if not 0 < value < 10**9:
        raise UsageError(f"{flag} is {value:g}; give a number above 0")
    return value


def _known_environments(farm: Farm) -> list[str]:
    """Return the environments workers serve; waits for the first worker of a farm just set up."""
    from farm import screen

    known = farm.queries.environments()
    if not known and not farm.settings.database_url:
        screen.say("Preparing Lean, once")
        pause = threading.Event()
        waited = 0.0
        while not known and waited < _UNSERVED_SECONDS:
            pause.wait(0.1)
            waited += 0.1
            known = farm.queries.environments()
    return list(known)


def _wait(farm: Farm, run: Run) -> None:
    from farm import screen
    from farm.submit import watch

    told: set[str] = set()

    def down(error: ServerDown) -> None:
        if str(error) not in told:
            told.add(str(error))
            screen.say(f"{error}\nWaiting for it")

    try:
        with screen.RunProgress() as progress:
            for tally in watch(farm.queries, run.id, down=down):
                told.clear()
                progress.show(tally)
    except KeyboardInterrupt:
        screen.say(
            f"\nRun {run.id} goes on without you.\nFollow it: farm status {run.id} --wait\n"
            f"Write its verdicts: farm export {run.id}"
        )
        raise typer.Exit(130) from None


def _finish(farm: Farm, run: Run, *, as_json: bool) -> None:
    from farm import screen

    tally, solved = farm.queries.tally(run.id), farm.queries.solved(run.id)
    if as_json:
        print_json(**_facts(run, tally, solved))
    else:
        screen.print_tally(run, tally, solved)
    if tally.unjudged:
        screen.say(
            f"{tally.unjudged} lines could not be judged; see why: farm show {run.id} --verdict judge_error"
        )
        raise typer.Exit(SOME_UNJUDGED)


def _facts(run: Run, tally: Any, solved: tuple[int, int]) -> dict[str, object]:
    return {
        "run": run.id,
        "submitted_at": run.created_at.isoformat(),
        "manifests": [str(path) for path in run.manifests],
        "lines": tally.total,
        "statuses": dict(tally.statuses),
        "verdicts": [
            {"verdict": verdict, "reason": reason, "lines": number}
            for (verdict, reason), number in sorted(tally.verdicts.items())
        ],
        "names": solved[1],
        "names_proved": solved[0],
    }


def _export(farm: Farm, run: Run) -> None:
    from farm import export, screen

    screen.say_exported(export.export(farm.store, farm.queries, run))


@app.command(epilog="Example: farm status k3m9 --wait")
def status(
    run: RunId = None,
    wait: Annotated[bool, Option("--wait", help="Wait for the verdicts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how far a run is and what its verdicts are."""
    farm = _farm()
    found = farm.queries.run(run)
    if wait:
        _wait(farm, found)
    _finish(farm, found, as_json=as_json)


@app.command("list", epilog="Example: farm list --most 5")
def list_runs(
    most: Annotated[int, Option(help="How many, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from farm import screen

    queries = _farm().queries
    rows = [(run, queries.tally(run.id)) for run in queries.runs(most=most)]
    if as_json:
        print_json(runs=[_facts(run, tally, queries.solved(run.id)) for run, tally in rows])
    else:
        screen.print_runs(rows)


@app.command(epilog="Example: farm show k3m9 --verdict rejected; farm show k3m9 --line 12")
def show(
    run: RunId = None,
    line: Annotated[
        int | None, Option(help="Show this manifest line whole: program, messages, attempts.")
    ] = None,
    manifest: Annotated[int, Option(help="The manifest's place in the run, from 0.")] = 0,
    verdict: Annotated[str | None, Option(help="Only lines with this verdict, reason or status.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show a run's lines, or one of them whole."""
    from farm import screen

    queries = _farm().queries
    found = queries.run(run)
    if line is not None:
        _show_line(queries, found, manifest, line, as_json=as_json)
        return
    judged = (
        job
        for job in queries.judged(found.id, manifest)
        if verdict is None or verdict in (job.status, *_words(job))
    )
    if as_json:
        for job in judged:
            print_json(**_line_facts(found, job))
    else:
        screen.print_lines(judged)


def _words(job: Any) -> tuple[str, ...]:
    return () if job.verdict is None else (job.verdict.outcome, job.verdict.reason)


def _line_facts(run: Run, job: Any) -> dict[str, object]:
    from farm.export import fields

    facts = {"line": job.line, "name": job.name, "status": job.status}
    return facts if job.verdict is None else facts | fields(run, job, job.verdict, {})


def _show_line(queries: Queries, run: Run, manifest: int, line: int, *, as_json: bool) -> None:
    from farm import screen

    job = queries.line(run.id, manifest, line)
    attempts = queries.attempts(run.id, manifest, line)
    if as_json:
        print_json(**_line_facts(run, job), attempts_made=[dict(attempt) for attempt in attempts])
        return
    screen.print_lines([job])
    screen.print_program(job.program)
    for message in job.verdict.messages if job.verdict else ():
        screen.out.print(
            f"{message.line}:{message.column}: {message.severity}: {message.text}",
            markup=False,
            highlight=False,
        )
    for code, field, at_line, column in job.warnings:
        screen.out.print(f"warning: {code} in {field}, line {at_line}, column {column}", highlight=False)
    for attempt in attempts:
        screen.out.print(
            f"attempt {attempt['number']} on {attempt['worker']}: {attempt['outcome'] or 'running'}",
            highlight=False,
        )


@app.command(epilog="Example: farm export k3m9 -o judged.jsonl")
def export(
    run: RunId = None,
    output: Annotated[
        Path | None, Option("-o", "--output", help="Write to this file instead of the manifest.")
    ] = None,
    manifest: Annotated[int, Option(help="With -o: the manifest's place in the run, from 0.")] = 0,
) -> None:
    """Write a run's verdicts into its manifests; lines without a verdict yet stay as they are."""
    from farm import screen
    from farm.export import export_to

    farm = _farm()
    found = farm.queries.run(run)
    if output is None:
        _export(farm, found)
        return
    stored = {m.number: m for m in farm.queries.manifests(found.id)}
    if manifest not in stored:
        raise UsageError(f"run {found.id} has no manifest {manifest}; give one from 0 to {len(stored) - 1}")
    screen.say_exported([export_to(farm.queries, found, stored[manifest], output)])


@app.command(epilog="Example: farm assemble results.jsonl -o assembled.jsonl --profile nemo-2025-11")
def assemble(
    manifests: Manifests,
    output: Annotated[
        Path | None, Option("-o", "--output", help="Write to this file instead of the manifest.")
    ] = None,
    profile: Profile = "farm",
    final_answer_key: AnswerKey = None,
    extract_code_mode: CodeMode = "last",
    restate_formal_statement: Restate = True,
    strip_theorem_from_proof: Strip = True,
    reassemble: Reassemble = False,
) -> None:
    """Write the lines of manifests with `predicted_proof` set, without checking them."""
    from farm import screen
    from farm.export import assemble_to
    from farm.manifest import expand

    options = _assembly(
        profile,
        final_answer_key,
        extract_code_mode,
        restate_formal_statement,
        strip_theorem_from_proof,
        reassemble,
    )
    paths = expand(manifests)
    if output is not None and len(paths) > 1:
        raise UsageError(f"-o names one file and there are {len(paths)} manifests; assemble them one by one")
    for path in paths:
        lines = assemble_to(path, output or path, options)
        screen.say(f"Assembled {lines} lines into {output or path}")


@app.command(epilog="Example: farm down")
def down() -> None:
    """Stop the servers and the worker that the farm started on this machine; nothing is lost."""
    from farm import embedded, screen

    stopped = embedded.down(Settings.load().home)
    screen.say("Stopped" if stopped else "Nothing was running")


@database.command("upgrade", epilog="Example: farm db upgrade")
def db_upgrade() -> None:
    """Bring the database to this farm's revision; safe to start on many nodes at once."""
    from farm import db, screen

    before, after = db.upgrade(_farm().urls[0])
    screen.say(
        f"The database is at revision {after}" + ("" if before == after else f", was {before or 'empty'}")
    )


@app.command(epilog="Example: farm doctor")
def doctor(as_json: AsJson = False) -> None:
    """Look at every part the farm works with and say what is missing."""
    from farm import screen
    from farm.broker import require_broker
    from farm.doctor import examine

    farm = _farm()
    findings = examine(
        {
            "settings": lambda: f"home {farm.settings.home}, environment {farm.settings.environment}",
            "PostgreSQL": lambda: farm.engine.url.render_as_string(),
            "Redis": lambda: require_broker(farm.broker),
            "workers": farm.queries.signs_of_life,
        }
    )
    if as_json:
        print_json(parts=[asdict(finding) for finding in findings])
    else:
        screen.print_findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _join_commands() -> None:
    for point in entry_points(group="farm.commands"):
        join: Callable[[typer.Typer], None] = point.load()
        join(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    _join_commands()
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="farm")
    except FarmError as error:
        typer.echo(f"farm: {error}", err=True)
        sys.exit(error.exit_status)
    except Exception:  # noqa: BLE001 # the process edge: an unforeseen error is the farm's own, and says so
        traceback.print_exc()
        typer.echo("farm: an internal error; please report it with the lines above", err=True)
        sys.exit(1)
