"""The `farm` command: each command parses, does one thing, and prints.

Data goes to stdout, talk to stderr. Exit status: 0 all lines judged, 1 the farm failed (a server is down, a
bug), 2 bad usage or bad input, 3 some lines could not be judged, 4 too much waits already, 130 interrupted.
"""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from importlib.metadata import entry_points
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm import __version__
from farm.errors import FarmError, ServerDown, UsageError
from farm.program import AssemblyOptions
from farm.settings import Settings
from farm.site import Site

# What costs time to import is imported by the command that uses it: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.assurance import Assurance
    from farm.job import Priority
    from farm.judged import Judged
    from farm.prepare import SubmitOptions
    from farm.queries import Queries, Run, StoredManifest, Tally
    from farm.submit import Submitted

#: Exit status when some lines could not be judged.
SOME_UNJUDGED = 3

#: The version of what `--json` prints; a field may be added without a new one, never changed or taken away.
JSON_SCHEMA = 1

app = typer.Typer(
    name="farm",
    help="Judge machine-written Lean 4 proofs: manifests in, honest verdicts out.",
    epilog="Example: farm submit results/*.jsonl",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
database = typer.Typer(help="Look after the database.", no_args_is_help=True)
app.add_typer(database, name="db")

Manifests = Annotated[list[str], Argument(help="Manifests or globs: .jsonl, .jsonl.gz or .jsonl.zst.")]
RunId = Annotated[
    str | None, Argument(metavar="[RUN]", help="A run's id or how it begins; the newest by default.")
]
SomeRun = Annotated[str, Argument(metavar="RUN", help="A run's id or how it begins.")]
AsJson = Annotated[bool, Option("--json", help="Print JSON for scripts.")]
Profile = Annotated[str, Option(help="How answers become programs: farm, nemo-2025-11 or nemo-2025-08.")]
AnswerKey = Annotated[
    str | None,
    Option(help="The answer is the text after this; '' turns it off. By default the profile's own."),
]
CodeMode = Annotated[str, Option(help="Which code block counts: last or first.")]
Restate = Annotated[bool, Option(help="Put the manifest's header and statement before the proof.")]
Strip = Annotated[bool, Option(help="Take the statement away that the answer repeats.")]
Reassemble = Annotated[bool, Option(help="Assemble again where a line already has a predicted_proof.")]
CpuSeconds = Annotated[
    float | None,
    Option("--cpu", help="Seconds of processor time; twice the timeout by default.", show_default=False),
]
PolicyActions = Annotated[
    list[str] | None,
    Option(
        "--policy",
        metavar="RULE=ACTION",
        help="What becomes of a submission that a rule hits: reject, report or off. Can be given again.",
        show_default=False,
    ),
]
Tier = Annotated[str, Option(help="How sure a proved is: fast, strict (audited) or gold (replayed).")]
Confirm = Annotated[
    str | None, Option(help="Have what is proved judged once more: strict or gold.", show_default=False)
]
Axioms = Annotated[
    list[str] | None,
    Option(help="An axiom that proofs may rest on, besides Lean's own three. Can be given again."),
]
RequireStatement = Annotated[
    bool, Option("--require-statement", help="Refuse lines that do not say what they have to prove.")
]
AcceptAdvisories = Annotated[
    bool, Option("--accept-advisories", help="gold: let a Lean with known holes in its kernel do.")
]
PriorityClass = Annotated[
    str, Option("--priority", help="What comes before what: interactive, online or batch.")
]
Deadline = Annotated[
    str | None,
    Option(help="Cancel what has not begun after this time, such as 90s, 30m or 2h.", show_default=False),
]
StopOnFirstProof = Annotated[
    bool,
    Option("--stop-on-first-proof", help="Cancel the rest of a group (or name) once one is proved."),
]
Share = Annotated[bool, Option(help="Let equal checks, of other runs too, be one.")]
NewRun = Annotated[
    bool, Option("--new-run", help="Make another run where the same manifests were submitted before.")
]
Wait = Annotated[bool, Option(help="Wait for the verdicts.")]
Export = Annotated[bool, Option(help="Write the verdicts into the manifests at the end.")]
Output = Annotated[Path | None, Option("-o", "--output", help="Write to this file, not into the manifest.")]


def print_json(**facts: object) -> None:
    """Print an object with the schema's version as one line of JSON."""
    typer.echo(json.dumps({"schema": JSON_SCHEMA, **facts}, default=str))


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"farm {__version__}")
        raise typer.Exit


@app.command(epilog="Example: farm submit 'results/*.jsonl' --timeout 60")
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
    cpu: CpuSeconds = None,
    memory_mib: Annotated[int | None, Option(help="MiB of memory a check may use.")] = None,
    tier: Tier = "fast",
    confirm: Confirm = None,
    policy: PolicyActions = None,
    axiom: Axioms = None,
    require_statement: RequireStatement = False,
    accept_advisories: AcceptAdvisories = False,
    priority: PriorityClass = "batch",
    deadline: Deadline = None,
    stop_on_first_proof: StopOnFirstProof = False,
    share: Share = True,
    new_run: NewRun = False,
    wait: Wait = True,
    export: Export = True,
    as_json: AsJson = False,
) -> None:
    """Judge every line of manifests and write `proof_status` back into them.

    The same manifests with the same options are the same run: submitted again, it goes on where it is.
    """
    from farm.manifest import expand
    from farm.prepare import SubmitOptions

    site = Site.here()
    options = SubmitOptions(
        assembly=_assembly(
            profile,
            final_answer_key,
            extract_code_mode=extract_code_mode,
            restate_formal_statement=restate_formal_statement,
            strip_theorem_from_proof=strip_theorem_from_proof,
            reassemble=reassemble,
        ),
        environment=environment or site.settings.environment,
        wall_seconds=timeout,
        cpu_seconds=cpu,
        memory_mib=site.settings.memory_mib if memory_mib is None else memory_mib,
        assurance=_assurance(
            policy or (),
            axiom or (),
            tier=tier,
            confirm=confirm,
            requires_statement=require_statement,
            accepts_advisories=accept_advisories,
        ),
        priority=_priority(priority),
        deadline_seconds=_seconds(deadline),
        stop_on_first_proof=stop_on_first_proof,
        share=share,
    )
    submitted = _load(site, expand(manifests), options, new_run=new_run)
    with _may_leave(submitted.run_id):
        run = _say_stored(site, submitted)
        _call(site, run)
        if wait:
            _wait(site, run)
        else:
            _leave(run, as_json=as_json)
    if wait:
        _conclude(site, run, export=export, as_json=as_json)


def _priority(word: str) -> Priority:
    from farm.job import Priority

    if word.upper() not in Priority.__members__:
        classes = ", ".join(each.name.lower() for each in Priority)
        raise UsageError(f"--priority {word}: the classes are {classes}")
    return Priority[word.upper()]


def _seconds(duration: str | None) -> float | None:
    """Return the seconds that a duration such as 90s, 30m or 2h means."""
    if duration is None:
        return None
    found = re.fullmatch(r"(\d{1,7}(?:\.\d{1,3})?)([smhd]?)", duration, flags=re.ASCII)
    if found is None or not float(found[1]):
        raise UsageError(f"--deadline {duration}: give a time such as 90s, 30m, 2h or 1d")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[found[2]]


def _assembly(profile: str, final_answer_key: str | None, **options: object) -> AssemblyOptions:
    if final_answer_key is not None:
        options["final_answer_key"] = final_answer_key
    return AssemblyOptions(profile=profile, **options)  # type: ignore[arg-type] # each is the flag's own type


def _assurance(policy: Sequence[str], axioms: Sequence[str], **options: object) -> Assurance:
    from farm.assurance import Assurance
    from farm.challenge import ALLOWED_AXIOMS
    from farm.policy import Policy

    return Assurance(policy=Policy.parse(policy), axioms=(*ALLOWED_AXIOMS, *axioms), **options)  # type: ignore[arg-type] # as above


def _load(site: Site, paths: Sequence[Path], options: SubmitOptions, *, new_run: bool) -> Submitted:
    from farm import screen
    from farm.submit import submit as load

    with screen.busy("Preparing the farm"):
        known = site.environments()
    with screen.storing() as stored:
        limit = site.settings.queue_limit
        return load(site.store, paths, options, known=known, new_run=new_run, queue_limit=limit, seen=stored)


def _say_stored(site: Site, submitted: Submitted) -> Run:
    from farm import screen

    run, tally = site.queries.run(submitted.run_id), site.queries.tally(submitted.run_id)
    lines, manifests = screen.count(tally.total, "line"), screen.count(len(run.manifests), "manifest")
    if submitted.resumed:
        when = run.created_at.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        screen.say(
            f"Run {run.id}: submitted before, at {when}; {tally.done} of {lines} done. "
            "To have them all judged anew: --new-run"
        )
    else:
        shared = f", {tally.shared} shared with equal ones" if tally.shared else ""
        screen.say(f"Run {run.id}: stored {lines} of {manifests}{shared}")
    return run


def _call(site: Site, run: Run) -> None:
    """Call workers to a run; where that fails, idle workers find it by themselves a moment later."""
    from farm import broker, screen

    try:
        broker.call(site.broker, site.queries.queued_in(run.id))
    except ServerDown as error:
        screen.say(f"{error}; the run is stored, and begins when workers look for work by themselves")


@contextmanager
def _may_leave(run_id: str) -> Iterator[None]:
    """Tell a user who interrupts, from the moment the run is stored, how to come back to it."""
    from farm import screen

    try:
        yield
    except KeyboardInterrupt:
        screen.say(f"\nRun {run_id} goes on without you.")
        screen.say_how_to_come_back(run_id)
        raise typer.Exit(130) from None


def _leave(run: Run, *, as_json: bool) -> None:
    from farm import screen

    screen.say_how_to_come_back(run.id)
    if as_json:
        print_json(run=run.id)


def _wait(site: Site, run: Run) -> None:
    from farm import screen
    from farm.submit import watch

    with screen.RunProgress() as progress:
        for tally in watch(site.queries, run.id, trouble=progress.trouble):
            progress.show(tally)


def _conclude(site: Site, run: Run, *, export: bool, as_json: bool) -> None:
    if export:
        _export(site, run)
    _finish(site, run, as_json=as_json)


def _finish(site: Site, run: Run, *, as_json: bool) -> None:
    from farm import screen

    tally, solved = site.queries.tally(run.id), site.queries.solved(run.id)
    if as_json:
        print_json(**_facts(run, tally, solved))
    else:
        screen.print_tally(run, tally, solved)
    if tally.unjudged:
        lines = screen.count(tally.unjudged, "line")
        screen.say(f"{lines} could not be judged; see why: farm show {run.id} --verdict judge_error")
        raise typer.Exit(SOME_UNJUDGED)


def _facts(run: Run, tally: Tally, solved: tuple[int, int]) -> dict[str, object]:
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
        "shared": tally.shared,
        "confirmed": tally.confirmed,
        "overruled": dict(tally.overruled),
        "names": solved[1],
        "names_proved": solved[0],
    }


def _export(site: Site, run: Run) -> None:
    from farm import export, screen

    screen.say_exported(export.export(site.store, site.queries, run))


@app.command(epilog="Example: farm status k3m9 --wait")
def status(
    run: RunId = None,
    wait: Annotated[bool, Option("--wait", help="Wait for the verdicts.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show how far a run is and what its verdicts are."""
    site = Site.here()
    found = site.queries.run(run)
    if wait:
        with _may_leave(found.id):
            _wait(site, found)
    _finish(site, found, as_json=as_json)


@app.command(epilog="Example: farm cancel k3m9")
def cancel(run: SomeRun, as_json: AsJson = False) -> None:
    """Cancel what is unfinished of a run: what waits at once, what runs within two seconds."""
    from farm import revise, screen

    site = Site.here()
    found = site.queries.run(run)
    cancelled = revise.cancel(site.store, found.id)
    screen.say(f"Run {found.id}: cancelled {screen.count(cancelled, 'line')}")
    if as_json:
        print_json(run=found.id, cancelled=cancelled)


@app.command(epilog="Example: farm retry k3m9 --reason timeout --timeout 120")
def retry(
    run: SomeRun,
    reason: Annotated[
        list[str],
        Option(help="Which lines: those with this verdict, reason or status. Can be given again."),
    ],
    timeout: Annotated[
        float | None, Option(help="Seconds a check may take now; as before by default.", show_default=False)
    ] = None,
    memory_mib: Annotated[
        int | None, Option(help="MiB of memory a check may use now.", show_default=False)
    ] = None,
    wait: Wait = True,
    export: Export = True,
    as_json: AsJson = False,
) -> None:
    """Check lines of a run anew, with other limits if need be; only those are checked."""
    from farm import revise, screen
    from farm.job import Limits, require_possible

    for word in reason:
        _require_known(word, "--reason")
    usual = Limits()
    require_possible(wall_seconds=timeout or usual.wall_seconds, memory_mib=memory_mib or usual.memory_mib)
    site = Site.here()
    found = site.queries.run(run)
    chosen = revise.retry(site.store, found.id, reason, wall_seconds=timeout, memory_mib=memory_mib)
    screen.say(f"Run {found.id}: {screen.count(chosen, 'line')} to be checked anew")
    _call(site, found)
    if wait and chosen:
        with _may_leave(found.id):
            _wait(site, found)
        _conclude(site, found, export=export, as_json=as_json)
    elif as_json:
        print_json(run=found.id, lines=chosen)


@app.command(epilog="Example: farm sweep")
def sweep(as_json: AsJson = False) -> None:
    """Take back what dead workers held, and cancel what is past its deadline; workers do so themselves."""
    from farm import screen

    swept = Site.here().store.sweep(checker_version=__version__)
    screen.say(
        f"Took back {screen.count(swept.taken_back, 'check')}, "
        f"cancelled {screen.count(swept.past_deadline, 'line')} past a deadline"
    )
    if as_json:
        print_json(**asdict(swept))


@app.command("list", epilog="Example: farm list --most 5")
def list_runs(
    most: Annotated[int, Option(min=1, help="How many, newest first.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from farm import screen

    queries = Site.here().queries
    rows = [(run, queries.tally(run.id)) for run in queries.runs(most=most)]
    if as_json:
        print_json(runs=[_facts(run, tally, queries.solved(run.id)) for run, tally in rows])
    else:
        screen.print_runs(rows)


@app.command(epilog="Example: farm show k3m9 --verdict rejected; farm show k3m9 --line 12")
def show(
    run: RunId = None,
    line: Annotated[int | None, Option(help="Show this line of the manifest whole.")] = None,
    manifest: Annotated[int, Option(help="The manifest's place in the run, from 0.")] = 0,
    verdict: Annotated[str | None, Option(help="Only lines with this verdict, reason or status.")] = None,
    most: Annotated[int, Option(min=1, help="How many lines at most; --json shows all.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Show a run's lines, or one of them whole: its program, Lean's messages, every attempt."""
    from farm import screen

    _require_known(verdict, "--verdict")
    queries = Site.here().queries
    found = queries.run(run)
    number = _manifest(queries, found, manifest).number
    if line is not None:
        _show_line(queries, found, number, line, as_json=as_json)
        return
    with closing(queries.judged(found.id, number)) as every:
        judged = (job for job in every if verdict is None or verdict in job.words)
        if as_json:
            for job in judged:
                print_json(**_line_facts(found, job))
        else:
            screen.print_lines(islice(judged, most))
            if next(judged, None):
                screen.say(f"There are more: farm show {found.id} --most {10 * most}")


def _require_known(word: str | None, flag: str) -> None:
    from farm.job import Status
    from farm.verdict import Outcome, Reason

    known = [*Outcome, *Reason, *Status]
    if word is not None and word not in known:
        raise UsageError(f"{flag} {word} is no verdict, reason or status; those are {', '.join(known)}")


def _manifest(queries: Queries, run: Run, number: int) -> StoredManifest:
    stored = queries.manifests(run.id)
    if not 0 <= number < len(stored):
        raise UsageError(f"run {run.id} has no manifest {number}; give one from 0 to {len(stored) - 1}")
    return stored[number]


def _show_line(queries: Queries, run: Run, manifest: int, line: int, *, as_json: bool) -> None:
    from farm import screen

    job = queries.line(run.id, manifest, line)
    attempts = queries.attempts(run.id, manifest, line)
    if as_json:
        print_json(**_line_facts(run, job), attempts=[dict(attempt) for attempt in attempts])
    else:
        screen.print_line(job, attempts)


def _line_facts(run: Run, job: Judged) -> dict[str, object]:
    from farm.export import marking
    from farm.writeback.fields import fields

    facts: dict[str, object] = {"line": job.line, "name": job.name, "status": job.status}
    return facts if job.verdict is None else facts | fields(job, job.verdict, None, marking(run))


@app.command(epilog="Example: farm export k3m9 -o judged.jsonl")
def export(
    run: RunId = None,
    output: Output = None,
    manifest: Annotated[int, Option(help="With -o: the manifest's place in the run, from 0.")] = 0,
) -> None:
    """Write a run's verdicts into its manifests; lines without a verdict yet stay as they are."""
    from farm import screen
    from farm.export import export_to

    site = Site.here()
    found = site.queries.run(run)
    if output is None:
        _export(site, found)
        return
    stored = _manifest(site.queries, found, manifest)
    screen.say_exported([export_to(site.queries, found, stored, output)])


@app.command(epilog="Example: farm assemble results.jsonl -o assembled.jsonl --profile nemo-2025-11")
def assemble(
    manifests: Manifests,
    output: Output = None,
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
        extract_code_mode=extract_code_mode,
        restate_formal_statement=restate_formal_statement,
        strip_theorem_from_proof=strip_theorem_from_proof,
        reassemble=reassemble,
    )
    paths = expand(manifests)
    if output is not None and len(paths) > 1:
        raise UsageError(f"-o names one file and there are {len(paths)} manifests; assemble them one by one")
    for path in paths:
        lines = assemble_to(path, output or path, options)
        screen.say(f"Assembled {screen.count(lines, 'line')} into {output or path}")


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

    before, after = db.upgrade(Site.here().urls[0])
    was = "" if before == after else f", was {before or 'empty'}"
    screen.say(f"The database is at revision {after}{was}")


@app.command(epilog="Example: farm doctor")
def doctor(as_json: AsJson = False) -> None:
    """Look at every part the farm works with and say what is missing."""
    from farm import screen
    from farm.doctor import examine

    findings = examine(Site.here())
    if as_json:
        print_json(parts=[asdict(finding) for finding in findings])
    else:
        screen.print_findings(findings)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit status."""
    for point in entry_points(group="farm.commands"):
        join: Callable[[typer.Typer], None] = point.load()
        join(app)
    try:
        app(args=None if arguments is None else list(arguments), prog_name="farm")
    except FarmError as error:
        typer.echo(f"farm: {error}", err=True)
        raise SystemExit(error.exit_status) from error
    except Exception as error:  # the process edge: an unforeseen error is the farm's own, and says so
        traceback.print_exc()
        typer.echo("farm: an internal error; please report it with the lines above", err=True)
        raise SystemExit(1) from error
