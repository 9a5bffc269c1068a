"""Groups of flags: combines several flags of a command into one frozen value."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Option

from farm.assembly.program import AssemblyOptions
from farm.cli.options import AllParts, CpuSeconds, Native, PolicyActions, TierName, seconds_of
from farm.errors import UsageError

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.judging.assurance import Assurance
    from farm.runs.pick import Pick
    from farm.runs.recheck import Recheck
    from farm.store.queries import StoredRun
    from farm.task import Task


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has a flag for every field of its parameters that are dataclasses."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if is_dataclass(kind) and isinstance(kind, type)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _flags(groups[name])
        else:
            parameters.append(parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hints[name]))

    def run(**given: object) -> None:
        values = {
            name: kind(**{field.name: given.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
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
class AssemblyFlags:
    """The options for assembling programs from answers."""

    profile: Annotated[
        str, Option(help="How answers become programs: farm, nemo-2025-11 or nemo-2025-08.")
    ] = "farm"
    final_answer_key: Annotated[
        str | None,
        Option(help="The answer is the text after this key; '' turns it off. By default the profile's own."),
    ] = None
    extract_code_mode: Annotated[str, Option(help="Which code block counts: last or first.")] = "last"
    restate_formal_statement: Annotated[
        bool, Option(help="Put the manifest's header and statement before the proof.")
    ] = True
    strip_theorem_from_proof: Annotated[
        bool, Option(help="Remove the statement that the answer repeats.")
    ] = True
    reassemble: Annotated[
        bool, Option(help="Assemble the answer even where a line brought a predicted_proof of its own.")
    ] = False

    def options(self) -> AssemblyOptions:
        """Return the options of the assembly. Raises UsageError."""
        return AssemblyOptions(**{field.name: getattr(self, field.name) for field in fields(self)})


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitFlags:
    """The environment of a check, and its limits."""

    environment: Annotated[
        str | None, Option(help="The Lean environment; a line's own takes precedence.")
    ] = None
    timeout: Annotated[
        float, Option(help="Time limit of a check in seconds; a line's own takes precedence.")
    ] = 30.0
    cpu: CpuSeconds = None
    memory_mib: Annotated[int | None, Option(help="Memory limit of a check in MiB.")] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeFlags:
    """The changes to a check that runs again; None keeps the earlier value."""

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
    tier: Annotated[
        str | None,
        Option(help="A tier that trusts less, such as kernel; unchanged by default.", show_default=False),
    ] = None

    def assurance(self, run: StoredRun) -> Assurance | None:
        """Return the new assurance, None to keep the old one. Raises UsageError."""
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
            wall_seconds=self.timeout or usual.wall_seconds,
            memory_mib=self.memory_mib or usual.memory_mib,
            cpu_seconds=self.cpu,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecheckFlags:
    """The environment in which the lines of a run are judged again, and the changed options."""

    environment: Annotated[
        str, Option(help="The Lean environment to judge the lines in: farm environments lists them.")
    ]
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
        Option(help="Judge on this tier: kernel, audit or lean; unchanged by default.", show_default=False),
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
        str,
        Option("--priority", help="Priority class of the run: interactive, online or batch, in this order."),
    ] = "batch"

    def asked(self) -> Recheck:
        """Return the recheck. Raises UsageError for an unknown tier or class, or an impossible limit."""
        from farm.judging.assurance import Assurance
        from farm.judging.states import Priority
        from farm.limits import Limits, require_possible
        from farm.runs.recheck import Recheck

        usual = Limits()
        require_possible(
            wall_seconds=usual.wall_seconds if self.timeout is None else self.timeout,
            memory_mib=usual.memory_mib if self.memory_mib is None else self.memory_mib,
            cpu_seconds=self.cpu,
        )
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
            priority=Priority.named(self.priority),
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
class TrustFlags:
    """The assurance that *proved* must have."""

    tier: TierName = "kernel"
    native: Native = False
    policy: PolicyActions = None
    axiom: Annotated[
        list[str] | None, Option(help="Allow an axiom besides Lean's own three. Repeatable.")
    ] = None
    require_statement: Annotated[
        bool,
        Option("--require-statement", help="Refuse manifests that have a line without formal_statement."),
    ] = False
    require_all_parts: AllParts = False
    accept_advisories: Annotated[
        bool,
        Option("--accept-advisories", help="On the tier kernel, accept a Lean whose kernel has known holes."),
    ] = False

    def assurance(self) -> Assurance:
        """Return the assurance. Raises UsageError."""
        from farm.assembly.challenge import ALLOWED_AXIOMS
        from farm.judging.assurance import Assurance
        from farm.lean_text.policy.screen import Policy

        return Assurance(
            tier=self.tier,
            native=self.native,
            policy=Policy.parse(self.policy or ()),
            axioms=(*ALLOWED_AXIOMS, *(self.axiom or ())),
            requires_statement=self.require_statement,
            requires_all_parts=self.require_all_parts,
            accepts_advisories=self.accept_advisories,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskFlags:
    """What is asked of proofs beyond the usual, unless a line says otherwise."""

    task_kind: Annotated[
        str | None,
        Option(
            "--task",
            help="What answers have to do: prove, disprove or either; statement needs no answers.",
            show_default=False,
        ),
    ] = None
    disprove: Annotated[
        bool, Option("--disprove", help="Answers have to prove that the statement is false.")
    ] = False
    answers: Annotated[
        bool | None,
        Option(
            "--answers/--no-answers",
            help="Demand, or forbid, values for definitions that statements leave open.",
            show_default=False,
        ),
    ] = None
    answer_must: Annotated[
        str | None, Option(help="The form of such a value: numeral or numerals.", show_default=False)
    ] = None
    declarations: Annotated[
        bool, Option("--declarations", help="List the declarations of every program, each with a verdict.")
    ] = False
    permit_sorry: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="A declaration that may contain a sorry, '*' for any: such a proof is partial. Repeatable.",
        ),
    ] = None
    forbid: Annotated[
        list[str] | None,
        Option(help="Reject proofs that use this tactic or constant, such as simp. Repeatable."),
    ] = None

    def task(self) -> Task:
        """Return the task. Raises UsageError."""
        from farm.task import task_of

        if self.disprove and self.task_kind not in (None, "disprove"):
            raise UsageError(
                f"--disprove and --task {self.task_kind} contradict each other; give one of them"
            )
        return task_of(
            {
                "task": "disprove" if self.disprove else self.task_kind,
                "answers": self.answers,
                "answer_must": self.answer_must,
                "declarations": self.declarations or None,
                "permit_sorry": self.permit_sorry or None,
                "forbid": self.forbid,
            }
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScheduleFlags:
    """The schedule of a run: its class, deadline, and when to skip lines."""

    priority: Annotated[
        str,
        Option("--priority", help="Priority class of the run: interactive, online or batch, in this order."),
    ] = "batch"
    deadline: Annotated[
        str | None,
        Option(
            help="Cancel lines that have not started after this time, such as 90s, 30m or 2h.",
            show_default=False,
        ),
    ] = None
    stop_on_first_proof: Annotated[
        bool,
        Option("--stop-on-first-proof", help="Cancel the rest of a group (or name) once one is proved."),
    ] = False
    stop_at_error: Annotated[
        bool,
        Option(
            "--stop-at-error", help="End Lean at the first error that decides: faster, with fewer messages."
        ),
    ] = False
    goals: Annotated[
        bool, Option("--goals", help="Store the goals at errors and sorries, for farm holes.")
    ] = False
    no_answer: Annotated[
        str,
        Option(
            help="Lines whose generation is missing or null: error refuses the manifest, reject rejects them."
        ),
    ] = "error"
    share: Annotated[bool, Option(help="Check equal programs once, also across runs.")] = True

    def deadline_seconds(self) -> float | None:
        """Return the seconds of a duration such as 90s, 30m or 2h. Raises UsageError."""
        if self.deadline is None:
            return None
        return seconds_of("--deadline", self.deadline)


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
