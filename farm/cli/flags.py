"""Groups of flags: combines several flags of a command into one frozen value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Option

from farm import asked
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.judging.assurance import Assurance
    from farm.runs.pick import Pick
    from farm.runs.recheck import Recheck
    from farm.store.queries import StoredRun


@dataclass(frozen=True, slots=True)
class OptionsOf:
    """Marks a command's parameter that receives the declared options of a value, by their names."""

    kind: type[Any]

    @property
    def flags(self) -> list[inspect.Parameter]:
        """The flags of the options that may be given to a run."""
        return [_flag(each, each.flag) for each in asked.declared(self.kind) if each.flag is not None]

    def value(self, given: dict[str, object]) -> dict[str, object]:
        """Take the values of these flags out of the given ones; those that say nothing are left out."""
        said = {}
        for each in asked.declared(self.kind):
            if each.flag is None:
                continue
            value = given.pop(each.name)
            if value is not None and each.flag.reads is not None:
                value = each.flag.reads(value)
            if value is not None:
                said[each.name] = value
        return said


def _flag(option: asked.Option, flag: asked.Flag) -> inspect.Parameter:
    takes, usual = (option.type, option.unset) if flag.takes is None else (flag.takes, flag.usual)
    shown = Option(*flag.names, help=flag.help, metavar=flag.metavar, show_default=usual is not None)
    annotation = Annotated[takes, shown]  # type: ignore[valid-type] # a declaration's type is a value
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation
    )


@dataclass(frozen=True, slots=True)
class _Fields:
    """A command's parameter that is a dataclass whose fields are flags."""

    kind: type[Any]

    @property
    def flags(self) -> list[inspect.Parameter]:
        return _flags(self.kind)

    def value(self, given: dict[str, object]) -> object:
        return self.kind(**{field.name: given.pop(field.name) for field in fields(self.kind)})


def _group(hint: Any) -> OptionsOf | _Fields | None:
    marks = [each for each in getattr(hint, "__metadata__", ()) if isinstance(each, OptionsOf)]
    if marks:
        return marks[0]
    return _Fields(hint) if is_dataclass(hint) and isinstance(hint, type) else None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has a flag for every field of its parameters that are dataclasses.

    A parameter marked with `OptionsOf` has the flags of declared options.
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: group for name, hint in hints.items() if (group := _group(hint)) is not None}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += groups[name].flags
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))

    def run(**given: object) -> None:
        values = {name: group.value(given) for name, group in groups.items()}
        command(**given, **values)

    functools.update_wrapper(run, command, assigned=("__name__", "__doc__", "__module__"))
    del run.__dict__["__wrapped__"]  # its parameters are not those of this one
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run


def _flags(kind: type[Any]) -> list[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            field.name,
            keyword,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class RejudgeFlags:
    """The environment in which the lines of a run are judged again, and changed options; None keeps one."""

    environment: Annotated[
        str | None,
        Option(
            help="The Lean environment to judge the lines in: farm environments lists them. By default the "
            "one they were judged in.",
            show_default=False,
        ),
    ] = None
    instead_of: Annotated[
        str | None,
        Option(
            "--from",
            metavar="ENVIRONMENT",
            help="Only lines that were judged in this environment, of a run with lines in several.",
            show_default=False,
        ),
    ] = None
    tier: Annotated[
        str | None,
        Option(
            help="Judge on this tier: kernel, audit or lean; with --in-place one that trusts less. "
            "Unchanged by default.",
            show_default=False,
        ),
    ] = None
    accept_advisories: Annotated[
        bool,
        Option("--accept-advisories", help="On the tier kernel, accept a Lean whose kernel has known holes."),
    ] = False
    timeout: Annotated[
        float | None,
        Option(help="New time limit of a check in seconds; unchanged by default.", show_default=False),
    ] = None
    cpu: Annotated[
        float | None,
        Option("--cpu", help="New processor time limit of a check in seconds.", show_default=False),
    ] = None
    memory_mib: Annotated[
        int | None, Option(help="New memory limit of a check in MiB.", show_default=False)
    ] = None
    priority: Annotated[
        str | None,
        Option(
            "--priority",
            help="Priority class of the new run: interactive, online or batch, in this order; batch by "
            "default.",
            show_default=False,
        ),
    ] = None
    new_run: Annotated[
        bool, Option("--new-run", help="Judge again even if this command has judged the lines before.")
    ] = False

    def require_in_place(self) -> None:
        """Raise UsageError for an option that only another run can have."""
        given = {
            "--environment": self.environment,
            "--from": self.instead_of,
            "--accept-advisories": self.accept_advisories,
            "--priority": self.priority,
            "--new-run": self.new_run,
        }
        for flag in (each for each, value in given.items() if value):
            raise UsageError(
                f"{flag} is for another run, --in-place for the run itself; leave out one of them"
            )

    def assurance(self, run: StoredRun) -> Assurance | None:
        """Return the new assurance of lines in place, None to keep the old one. Raises UsageError."""
        from farm.judging.assurance import Assurance

        if self.tier is None:
            return None
        accepts = bool(run.options.get("assurance", {}).get("accepts_advisories", False))
        return Assurance(tier=self.tier, accepts_advisories=accepts)

    def require_possible(self) -> None:
        """Raise UsageError for an impossible limit."""
        from farm.limits import Limits, require_possible

        usual = Limits()
        require_possible(
            wall_seconds=usual.wall_seconds if self.timeout is None else self.timeout,
            memory_mib=usual.memory_mib if self.memory_mib is None else self.memory_mib,
            cpu_seconds=self.cpu,
        )

    def asked(self) -> Recheck:
        """Return the recheck. Raises UsageError for an unknown tier or class, or an impossible limit."""
        from farm.judging.assurance import Assurance
        from farm.judging.states import Priority
        from farm.runs.recheck import Recheck

        self.require_possible()
        if self.tier is not None:
            Assurance(tier=self.tier)
        return Recheck(
            environment=self.environment,
            instead_of=self.instead_of,
            tier=self.tier,
            accepts_advisories=self.accept_advisories,
            wall_seconds=self.timeout,
            cpu_seconds=self.cpu,
            memory_mib=self.memory_mib,
            priority=Priority.BATCH if self.priority is None else Priority.named(self.priority),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LineFlags:
    """The selected lines of a run: those that have one of these words."""

    verdict: Annotated[
        list[str] | None,
        Option(
            help="Lines with this verdict, such as timeout. Repeatable; a line needs one of the words given.",
            show_default=False,
        ),
    ] = None
    reason: Annotated[
        list[str] | None,
        Option(help="Lines with this reason, such as has_sorry. Repeatable.", show_default=False),
    ] = None
    status: Annotated[
        list[str] | None,
        Option(help="Lines with this status, such as cancelled. Repeatable.", show_default=False),
    ] = None

    def pick(self) -> Pick:
        """Return the filter of lines. Raises UsageError for an unknown word."""
        from farm.runs.pick import Pick

        return Pick(
            verdict=tuple(self.verdict or ()),
            reason=tuple(self.reason or ()),
            status=tuple(self.status or ()),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyFlags:
    """The rights of a key of the HTTP service."""

    scope: Annotated[
        list[str] | None,
        Option(
            help="Its rights: submit proofs and get the verdicts in the answer; read later, or cancel, "
            "its own batches; all by default. Repeatable.",
            show_default=False,
        ),
    ] = None
    priority: Annotated[
        list[str] | None,
        Option(
            help="A class it may submit in: interactive, online or batch; all by default. Repeatable.",
            show_default=False,
        ),
    ] = None
    per_second: Annotated[
        float | None,
        Option(help="Proofs it may submit a second; no limit by default.", show_default=False),
    ] = None
    in_flight: Annotated[
        int | None,
        Option(
            help="Unfinished proofs it may have at once; no limit by default.",
            show_default=False,
        ),
    ] = None
    most_seconds: Annotated[
        float | None,
        Option(
            help="Longest timeout in seconds that it may ask for; FARM_MOST_SECONDS by default.",
            show_default=False,
        ),
    ] = None
    weight: Annotated[
        int, Option(help="Number of checks that it gets where another key gets one, from 1 to 100.")
    ] = 1
