"""The commands about this machine's Lean environments: `farm environments` and its subcommands."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from farm.cli.help import CommandGroup
from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import EnvironmentDiffers, FarmError, ServerDown, UsageError
from farm.exit_status import ExitStatus
from farm.kinds import Kind
from farm.settings import Settings

# Slow imports stand in the commands that need them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm_workers.binding.signatures import Description
    from farm_workers.environments.fit import Fit
    from farm_workers.environments.making import Making, Source
    from farm_workers.machine.adding import Added, VerifiedEnvironment
    from farm_workers.machine.inventory import Listed

Name = Annotated[str, Argument(help="The environment, as lines and --environment name it.")]

MathlibVersion = Annotated[
    str | None,
    Option("--mathlib", help="Fetch this release of Mathlib, with its Lean.", show_default=False),
]
LeanVersion = Annotated[
    str | None, Option("--lean", help="Install this release of Lean alone.", show_default=False)
]
WorkspacePath = Annotated[
    Path | None, Option("--workspace", help="Use this workspace, which Lake has built.", show_default=False)
]
BundleFile = Annotated[
    Path | None,
    Option("--from", help="Unpack this bundle, from farm environments pack.", show_default=False),
]
Folder = Annotated[
    Path | None, Option("--dir", help="Folder for its files.", show_default="FARM_HOME/workspaces/NAME")
]
Headers = Annotated[
    list[str] | None,
    Option("--header", help="Header that workers import at start. Repeatable.", show_default=False),
]
Audit = Annotated[
    bool, Option("--audit/--no-audit", help="Audit compiled modules; without, only the tier lean.")
]
PrintOnly = Annotated[bool, Option("--print", help="Print the commands, and run nothing.")]

#: With less free space (GiB) `add` warns before it fetches Mathlib.
_GIB_OF_MATHLIB = 10
#: The columns of the list.
_LISTED = ("environment", "Lean", "digest", "headers", "tiers", "checker", "state")


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    group = typer.Typer(
        cls=CommandGroup,
        epilog="Example: farm environments --json",
        invoke_without_command=True,
        rich_markup_mode=None,
    )
    group.callback()(list_environments)
    group.command("add", epilog="Example: farm environments add mathlib-4.22 --mathlib v4.22.0")(add)
    group.command("fit", epilog="Example: farm environments fit mathlib-4.22")(fit)
    group.command("probe", epilog="Example: farm environments probe mathlib-4.22")(probe)
    group.command("verify", epilog="Example: farm environments verify mathlib-4.22")(verify)
    group.command("pack", epilog="Example: farm environments pack mathlib-4.22 mathlib-4.22.farm")(pack)
    group.command("remove", epilog="Example: farm environments remove mathlib-4.22 --delete-files")(remove)
    group.command("declare", epilog="Example: farm environments declare mathlib-4.22")(declare)
    app.add_typer(group, name="environments")


def add(
    name: Name,
    mathlib: MathlibVersion = None,
    lean: LeanVersion = None,
    workspace: WorkspacePath = None,
    bundle: BundleFile = None,
    folder: Folder = None,
    header: Headers = None,
    audit: Audit = True,
    print_only: PrintOnly = False,
    as_json: AsJson = False,
) -> None:
    """Install a Lean environment on this machine, try it, and write its table into farm.toml.

    A second call after a failure goes on where the first one stopped. The table is written last, when all
    known programs were judged correctly. The exit status is 1 when a step fails.
    """
    from farm_workers.environments.making import require_name
    from farm_workers.machine.adding import add as added

    require_name(name)
    source = _source(mathlib, lean, workspace, bundle)
    settings = Settings.load()
    place = (folder or settings.home / "workspaces" / name).absolute()
    if print_only:
        _print_plan(settings, name, source, place)
        return
    if mathlib is not None:
        _warn_of_a_small_disk(place)
    with _making(settings, name, place) as making:
        done = added(settings, making, source, headers=header or (), audited=audit)
    _print_added(settings, done, as_json=as_json)


def _source(mathlib: str | None, lean: str | None, workspace: Path | None, bundle: Path | None) -> Source:
    """Return the one source that was named; raises UsageError for none or several."""
    from farm_workers.environments.lake import tag
    from farm_workers.environments.making import Bundle, Mathlib, Release, Workspace

    named: list[Source] = []
    if mathlib is not None:
        named.append(Mathlib(tag(mathlib)))
    if lean is not None:
        named.append(Release(tag(lean)))
    if workspace is not None:
        named.append(Workspace(workspace.absolute()))
    if bundle is not None:
        named.append(Bundle(bundle.absolute()))
    if len(named) != 1:
        raise UsageError("give one of --mathlib VERSION, --lean VERSION, --workspace PATH and --from BUNDLE")
    return named[0]


@contextmanager
def _making(settings: Settings, name: str, folder: Path) -> Iterator[Making]:
    """Lock this environment inside the block; an error of the disk becomes one sentence."""
    from farm.cli import terminal
    from farm_workers.environments.making import Making, alone

    try:
        with alone(settings.home, name) as held:
            yield Making(name=name, folder=folder, held=held, say=terminal.say, following=terminal.following)
    except OSError as error:
        where = error.filename or folder
        raise FarmError(f"{where}: {error.strerror}; mend that, and repeat the command") from error


def _print_plan(settings: Settings, name: str, source: Source, folder: Path) -> None:
    """Print the commands that `add` would run, as a shell script, and its other steps as comments."""
    from farm_workers.machine.adding import environments_file

    typer.echo(f"# {name}: {source.words}")
    for command in source.commands(folder):
        before = "" if str(command.folder) == "/" else f"cd {shlex.quote(str(command.folder))} && "
        typer.echo(f"{before}{command.line}")
    typer.echo(
        f"# Then: judge the known programs, and add [environments.{name}] to {environments_file(settings)}"
    )


def _warn_of_a_small_disk(folder: Path) -> None:
    import shutil

    from farm.cli import terminal

    there = next(each for each in (folder, *folder.parents) if each.exists())
    free = shutil.disk_usage(there).free >> 30
    if free < _GIB_OF_MATHLIB:
        terminal.say(
            f"{there} has {free} GiB free, and Mathlib with its Lean may need {_GIB_OF_MATHLIB} and more; "
            "--dir names another folder"
        )


def _print_added(settings: Settings, done: Added, *, as_json: bool) -> None:
    from farm.cli import terminal
    from farm_workers.machine.adding import environments_file

    environment, examined, slow = done.environment, done.examined, done.storage and done.storage.warning()
    if as_json:
        print_json(
            name=environment.name,
            toolchain=environment.toolchain,
            digest=environment.digest,
            tiers=environment.tiers,
            works=done.works,
            mib_per_second=done.storage and round(done.storage.mib_per_second, 1),
        )
    else:
        typer.echo(f"{environment.name}: {environment.toolchain}, digest {environment.digest[:12]}")
        typer.echo(f"all {examined.canaries} known programs judged correctly in {done.seconds:.1f} s")
        for what, words in done.works.items():
            typer.echo(f"{what}: {words}")
    if slow:
        terminal.say(f"Slow storage: {slow}")
    terminal.say(
        f"Its table is in {environments_file(settings)}. Restart the workers of this machine to serve it; "
        "the farm's own worker restarts at the next farm submit"
    )


def fit(
    name: Name,
    again: Annotated[
        bool, Option("--again", help="Try again, even where an earlier result is kept.")
    ] = False,
    description: Annotated[
        Path | None,
        Option(
            help="Bind Lean's functions as this file describes them, not as the toolchain's modules do.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find out how this machine can fork the Lean of an environment, and print what it found.

    Each way to fork is tried with programs of known verdict, beside a fresh Lean, in a box. The result is
    kept with the environment's digest, in a file that you can send. The exit status is 1 if no way fits: Lean
    is then run in another way, which is slower and otherwise equal.
    """
    from farm.cli import terminal
    from farm_workers.environments.fit import path_of, save
    from farm_workers.machine.environments import installed
    from farm_workers.machine.fitting import fitted
    from farm_workers.machine.opening import isolated
    from farm_workers.machine.probes import probed
    from farm_workers.systems.lean.judge import checker

    settings, given, is_kept = Settings.load(), _description(description), True
    with isolated(settings) as isolation:
        found = installed(settings.home, settings.environments, isolation).lean(name)
        known = None if again or given else found.fit
        if known is None:
            known = fitted(found, settings.home, isolation, terminal.say, given=given)
            is_kept = bool(known.way) or given is None
            if is_kept:
                save(settings.home, known)
        with checker(isolation, settings, 1) as judge:
            probes = probed(replace(found, fit=known), settings.home, judge, again=again)
    file = path_of(settings.home, known.digest)
    if as_json:
        facts = {"name": name, "fits": bool(known.way), "file": str(file), **known.document}
        print_json(**facts, probes=probes and asdict(probes))
    else:
        _print_fit(name, known)
        if probes:
            typer.echo(terminal.visible(f"probes: {probes.words}"))
    if is_kept:
        terminal.say(f"This is kept in {file}; restart the workers of this machine")
    else:
        terminal.say("Nothing of this is kept: a description of your own counts only if it fits")
    if not known.way:
        raise typer.Exit(ExitStatus.FARM_FAILED)


def _description(path: Path | None) -> Description | None:
    """Return the description in a file; raises UsageError for a file that is none."""
    from farm_workers.binding.description import NotDescribed, decoded

    try:
        return None if path is None else decoded(path.read_text(encoding="utf-8"))
    except (NotDescribed, OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"--description {path}: {why}; see docs/develop/add-a-lean-release.md") from error


def _print_fit(name: str, known: Fit) -> None:
    from farm.cli import terminal

    typer.echo(f"{name}: {known.lean}, {known.words}")
    for each in known.tried:
        for why in each.why:
            typer.echo(f"{each.way}: {terminal.visible(why)}")
    for ability, why in known.lacking.items():
        typer.echo(f"lacks {ability}: {terminal.visible(why)}")
    misfits = f", of which it cannot read {len(known.misfits)} or more" if known.misfits else ""
    typer.echo(f"{known.cases} programs judged; the audit read {known.modules} compiled modules{misfits}")
    for misfit in known.misfits:
        typer.echo(f"audit: {terminal.visible(misfit)}")


def probe(
    name: Name,
    again: Annotated[bool, Option("--again", help="Judge again what is known already.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge the lines that must be proved in an environment: the manifest that its table names as probes.

    The exit status is 4 if one is not proved, since the library is then another one than the dataset's, and 3
    if the farm failed at one.
    """
    from farm.cli import terminal
    from farm_workers.machine.opening import opened
    from farm_workers.machine.probes import MOST_NAMED, probed

    settings = Settings.load()
    with opened(settings) as machine:
        environment = machine.installed.lean(name)
        found = probed(environment, settings.home, machine.checker, again=again)
    if found is None:
        raise UsageError(
            f'the table of {name} names no probes; add a line: probes = "/path/to/manifest.jsonl"'
        )
    if as_json:
        print_json(name=name, **asdict(found))
    else:
        typer.echo(terminal.visible(f"{name}: {found.words}"))
        for each in found.failed[MOST_NAMED:]:
            typer.echo(terminal.visible(each.words))
    if found.rejected:
        raise typer.Exit(ExitStatus.NOT_PROVED)
    if found.unjudged:
        raise typer.Exit(ExitStatus.UNJUDGED)


def verify(
    name: Name,
    accept: Annotated[bool, Option("--accept", help="Record the present files as the right ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compute the digest again from all bytes, and print each difference from the recorded one.

    Cached sizes and times are not used. The exit status is 7 when a file differs.
    """
    from farm.cli import terminal
    from farm_workers.machine.adding import verified

    settings = Settings.load()
    with _making(settings, name, settings.home) as making:
        read = verified(settings, making, accept=accept)
    if as_json:
        print_json(
            name=name,
            digest=read.found.digest,
            recorded=read.earlier and read.earlier.digest,
            differences=read.differences,
        )
    else:
        typer.echo(f"{name}: {len(read.found.files)} files read, digest {read.found.digest}")
        for each in read.differences:
            typer.echo(terminal.visible(each))
    _tell_of(name, read, accepted=accept)


def _tell_of(name: str, read: VerifiedEnvironment, *, accepted: bool) -> None:
    """Print the remedy for the digest that was read; raises EnvironmentDiffers."""
    from farm.cli import terminal

    if read.is_stale:
        terminal.say(
            f"Sizes and times of the files did not show it: workers here took it for {read.remembered[:12]}. "
            "That is forgotten now; restart them"
        )
    if read.earlier is None:
        terminal.say(
            "Nothing was recorded before; this is recorded now, and the next verify compares with it"
        )
    elif accepted:
        terminal.say("This is recorded now; restart the workers of this machine")
    elif read.differences:
        raise EnvironmentDiffers(
            f"{name} is not what was recorded (digest {read.earlier.digest[:12]}). If the change was meant: "
            f"farm environments verify {name} --accept, and restart the workers. Else remove it and add "
            "it anew"
        )


def pack(
    name: Name,
    file: Annotated[Path, Argument(help="The bundle to write; it must not be there yet.")],
    as_json: AsJson = False,
) -> None:
    """Write an environment with its toolchain into one file, for machines without a network.

    There, farm environments add NAME --from FILE unpacks it; its digest is the same. The maker of a bundle
    decides which code workers run, so take it only from people you trust, and compare the digest.
    """
    from farm_workers.machine.adding import packed

    settings = Settings.load()
    with _making(settings, name, settings.home) as making:
        told = packed(settings, making, file.absolute())
    size = file.stat().st_size
    if as_json:
        print_json(name=name, file=str(file), digest=told.digest, size=size, unpacked_size=told.size)
    else:
        typer.echo(
            f"{file}: {size >> 20} MiB ({told.size >> 20} unpacked), {told.toolchain}, digest {told.digest}"
        )


def remove(
    name: Name,
    delete_files: Annotated[
        bool, Option("--delete-files", help="Delete also the files that farm environments add has made.")
    ] = False,
) -> None:
    """Take an environment's table out of farm.toml; with --delete-files delete the files that `add` made.

    Toolchains stay in elan. Files are not deleted while a worker of this machine serves the environment.
    """
    from farm.cli import terminal
    from farm_workers.environments import record, table
    from farm_workers.machine.adding import environments_file

    settings = Settings.load()
    file = environments_file(settings)
    table.keys(file, name)
    known = record.load(settings.home, name)
    folder = Path(known.made) if known and known.made else None
    if delete_files and folder is None:
        raise UsageError(
            f"`farm environments add` made no files for {name}; remove it without --delete-files, and delete "
            "by hand what nothing else uses"
        )
    _mind_workers(settings, name, delete_files=delete_files)
    with _making(settings, name, settings.home):
        table.remove(file, name)
        if delete_files and folder is not None:
            _delete(folder, name)
        record.forget(settings.home, name)
    terminal.say(f"{name} is no longer in {file}")
    if delete_files:
        terminal.say(f"Deleted {folder}. A toolchain stays until: elan toolchain uninstall")


def _delete(folder: Path, name: str) -> None:
    from farm_workers.environments.making import delete

    try:
        delete(folder, name)
    except OSError as error:
        raise FarmError(
            f"{name} has no table any more, and {folder} was not deleted: {error}; delete it by hand"
        ) from error


def _mind_workers(settings: Settings, name: str, *, delete_files: bool) -> None:
    """Warn of workers on this machine that serve an environment; raises UsageError where files would go."""
    from farm.cli import terminal

    try:
        serving = _serving(settings, name)
    except ServerDown as error:
        if delete_files:
            raise
        terminal.say(f"Whether a worker of this machine serves {name} is not known: {error}")
        return
    if serving and delete_files:
        raise UsageError(
            f"{', '.join(serving)} of this machine still serves {name}; stop it, or leave out --delete-files"
        )
    if serving:
        terminal.say(f"{', '.join(serving)} serves {name} until it is started again")


def _serving(settings: Settings, name: str) -> list[str]:
    """Return the workers on this machine that serve an environment; asks no servers that are not running."""
    from farm import embedded
    from farm.store.workers import Workers

    if settings.database_url is None and embedded.status(settings.home) is None:
        return []
    connections = Connections(settings)
    try:
        return [
            each.name
            for each in Workers(connections.engine).all()
            if each.node == socket.gethostname()
            and not each.is_silent
            and any(served["name"] == name for served in each.environments)
        ]
    finally:
        connections.close()


def declare(
    name: Annotated[str, Argument(help="The environment, as lines and --environment name it.")],
    toolchain: Annotated[
        str,
        Option(
            help="Its Lean's version, with which a submit warns of known holes in its kernel.",
            show_default=False,
        ),
    ] = "",
    kind: Annotated[Kind, Option(help="The proof system of its lines.")] = Kind.LEAN,
) -> None:
    """Make an environment known before a worker serves it: runs that name it wait for one.

    An environment that a worker has served keeps its recorded properties.
    """
    from farm.cli import terminal

    if not name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} cannot be an environment's name; give one that can be printed")
    is_new = Connections.here().store.declare(name, kind=kind, toolchain=toolchain)
    terminal.say(f"{name} is declared" if is_new else f"Workers have served {name} already")


def list_environments(context: typer.Context, as_json: AsJson = False) -> None:
    """List the environments that workers serve and those of this machine, with the problems of each.

    Nothing is checked in them; `farm doctor` does that.
    """
    if context.invoked_subcommand is None:
        _list_environments(as_json=as_json)


def _list_environments(*, as_json: bool) -> None:
    from farm.cli import terminal
    from farm_workers.machine.environments import installed
    from farm_workers.machine.inventory import listed
    from farm_workers.machine.opening import isolated

    connections = Connections.here()
    settings = connections.settings
    served = connections.queries.served()
    with isolated(settings) as isolation:
        here = installed(settings.home, settings.environments, isolation)
    found = listed(
        served, here, silence_seconds=settings.lease_seconds
    )  # a worker speaks several times in a lease
    if as_json:
        print_json(environments=[_listed_facts(each) for each in found])
    else:
        terminal.print_cells(_LISTED, map(_listed_cells, found))
        for each in found:
            for known in each.advisories:
                terminal.say(f"{each.name}: known hole in this kernel: {known.summary} ({known.id})")


def _listed_facts(each: Listed) -> dict[str, object]:
    return {
        "name": each.name,
        "kind": each.kind,
        "toolchain": each.known and each.known.toolchain,
        "digest": each.known and each.known.digest,
        "headers": each.headers,
        "checker": each.checker,
        "tiers": each.tiers,
        "advisories": [asdict(known) for known in each.advisories],
        "installed": each.here is not None,
        "forks": getattr(each.here, "forks", None),
        "problem": each.problem,
        "served": each.is_served_now,
        "declared": each.is_declared,
        "pending": [asdict(one) for one in each.pending],
        "served_digest": each.served and each.served.digest,
        "silent_seconds": each.served and round(each.served.silent_seconds, 3),
    }


def _listed_cells(each: Listed) -> tuple[str, ...]:
    headers = "; ".join(" ".join(header.split()) for header in each.headers)
    known = (each.known.toolchain, each.known.digest[:12]) if each.known else ("", "")
    return (
        each.name,
        *known,
        headers,
        ", ".join(each.tiers),
        each.checker or "",
        each.state,
    )
