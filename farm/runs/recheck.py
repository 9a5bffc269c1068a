"""The recheck step: the lines of a run become another run, judged under another environment.

It checks the stored programs and challenges, because the manifests' files may have changed or be gone. No
program depends on the environment, which only defines the meaning of its imports. The recheck is a run with
the same lines in the same places, and writes into no manifest until a user exports it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from farm import tracing
from farm.assembly.program import AssemblyOptions
from farm.errors import UsageError
from farm.judging.assurance import TASK_ENTRY, Assurance
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.lean_text.policy.rules import Action
from farm.limits import Limits
from farm.runs.ids import RUN_LETTERS, new_id
from farm.runs.prepare.identity import cache_key, environment_key
from farm.runs.prepare.problems import problem_of
from farm.runs.submit import Submitted
from farm.store import pruning, rechecks, submitting
from farm.store.environments import ServedEnvironment
from farm.store.loading import loading
from farm.store.new_lines import Block, NewCheck, NewLine, block
from farm.store.queries import StoredRun
from farm.store.rechecks import OldLine, Sort
from farm.store.transitions import Store
from farm.task import UNAUDITED, Task

_STRENGTH = list(Tier)  # from the fewest that are believed to the most


@dataclass(frozen=True, kw_only=True, slots=True)
class Recheck:
    """The environment in which to judge the lines, and other changes; None keeps a value.

    `instead_of` selects the lines that were judged in this environment; a run with lines in several needs it.
    Without another environment no line shares an earlier verdict: that would judge nothing again.
    """

    environment: str | None = None
    instead_of: str | None = None
    tier: str | None = None
    accepts_advisories: bool = False
    wall_seconds: float | None = None
    cpu_seconds: float | None = None
    memory_mib: int | None = None
    priority: Priority = Priority.BATCH

    def limits(self, check: NewCheck) -> Limits:
        """Return the limits of a check: processor time grows with time, unless it is given itself."""
        wall = check.wall_seconds if self.wall_seconds is None else self.wall_seconds
        cpu = (
            check.cpu_seconds * (wall / check.wall_seconds) if self.cpu_seconds is None else self.cpu_seconds
        )
        memory = check.memory_mib if self.memory_mib is None else self.memory_mib
        return Limits(wall_seconds=wall, cpu_seconds=cpu, memory_mib=memory)


def recheck(
    store: Store,
    run: StoredRun,
    asked: Recheck,
    *,
    known: Sequence[ServedEnvironment],
    new_run: bool = False,
    queue_limit: int | None = None,
    seen: Callable[[int], None] = lambda _lines: None,
) -> Submitted:
    """Load a run that judges the lines of another again, or find an equal recheck, except with `new_run`.

    A recheck is equal with the same run, the same options and the environment as it is now. Cancelled lines
    are left out. Raises `UsageError` where no line can be judged so, `QueueFull` and `ServerDown`.
    """
    with (
        tracing.root("farm.submit", {"environment": asked.environment or ""}) as span,
        store.transaction() as connection,
        submitting.one_by_one(connection, f"recheck {run.id}".encode()),
    ):
        pruning.hold(connection, run.id)
        plan = _plan(run, rechecks.sorts(connection, run.id), asked, known)
        if not new_run and (found := submitting.recheck_of(connection, plan.stored)):
            span.set_attributes(run_id=found, resumed=True)
            return Submitted(run_id=found, resumed=True)
        run_id = new_id(RUN_LETTERS)
        with loading(
            connection,
            run_id,
            plan.options,
            queue_limit=queue_limit,
            traceparent=span.traceparent,
            more=plan.more,
        ) as load:
            rechecks.copy_manifests(connection, of=run.id, to=run_id)
            for block in plan.blocks(rechecks.old_lines(connection, run.id)):
                load.add(block)
                seen(block.lines)
        span.set_attributes(run_id=run_id, lines=load.lines)
    return Submitted(run_id=run_id, resumed=False, lines=load.lines, shared=load.shared)


class _Plan:
    """The options and the environment of a recheck."""

    def __init__(
        self, asked: Recheck, options: SubmitOptions, served: ServedEnvironment, more: Mapping[str, object]
    ) -> None:
        self.options, self.more = options, more
        self._asked = asked
        self._name = served.name
        self._key = environment_key(served, options)

    @property
    def stored(self) -> dict[str, object]:
        """The options as the store keeps them, without the trace."""
        return {**asdict(self.options), **self.more}

    def blocks(self, pages: Iterable[Sequence[OldLine]]) -> Iterator[Block]:
        """Yield the lines that are meant, ready for the store."""
        for page in pages:
            lines = [(line.manifest, self._line(line)) for line in page if self._is_meant(line)]
            if lines:
                yield block(lines)

    def _is_meant(self, line: OldLine) -> bool:
        if line.is_cancelled:
            return False
        return self._asked.instead_of is None or line.check.environment == self._asked.instead_of

    def _line(self, line: OldLine) -> NewLine:
        field = Task.read(line.check.task).needs_audit
        if field is not None and self.options.assurance.tier == Tier.LEAN:
            raise UsageError(f"line {line.line} has a {field}: {UNAUDITED[0]}; {UNAUDITED[1]}")
        limits = self._asked.limits(line.check)
        check = line.check._replace(
            environment=self._name,
            wall_seconds=limits.wall_seconds,
            cpu_seconds=limits.cpu_seconds,
            memory_mib=limits.memory_mib,
            identity=None,
        )
        if self.options.share and line.verdict is None:
            check = check._replace(identity=cache_key(self._key, check))
        return NewLine(line.line, line.job, check, line.verdict)


def _plan(run: StoredRun, sorts: Sequence[Sort], asked: Recheck, known: Sequence[ServedEnvironment]) -> _Plan:
    """Return how a run is judged again; raises `UsageError` where that cannot be."""
    meant = _meant(run, sorts, asked.instead_of)
    strongest = min(map(_strength, meant))
    strong = [each for each in meant if _strength(each) == strongest]
    if len({_way(each) for each in strong}) > 1:
        raise UsageError(
            f"the lines of {run.id} were judged with different axioms or policies, as batches with items of "
            "other batches are; rejudge those batches one by one"
        )
    options = _options(run, strong[0], asked)
    served = _served(options.environment, known, options.assurance)
    _require_same_kind(served, [each.environment for each in meant], known)
    more = {"of": run.id, "from": asked.instead_of, "digest": served.digest}
    changed = {name: getattr(asked, name) for name in ("wall_seconds", "cpu_seconds", "memory_mib")}
    return _Plan(asked, options, served, {"recheck": {**more, **changed}})


def _meant(run: StoredRun, sorts: Sequence[Sort], instead_of: str | None) -> list[Sort]:
    """Return the lines that are to be judged again, by how they were judged."""
    if not sorts:
        raise UsageError(f"all lines of run {run.id} were cancelled, so there is nothing to judge again")
    lines: dict[str, int] = {}
    for each in sorts:
        lines[each.environment] = lines.get(each.environment, 0) + each.lines
    told = ", ".join(f"{name} ({number})" for name, number in lines.items())
    if instead_of is None and len(lines) > 1:
        raise UsageError(
            f"the lines of run {run.id} were judged in several environments: {told}; "
            f"name the one to replace, such as --from {next(iter(lines))}"
        )
    if instead_of is not None and instead_of not in lines:
        raise UsageError(f"--from {instead_of}: no line of run {run.id} was judged there, but in {told}")
    return [each for each in sorts if instead_of in (None, each.environment)]


def _strength(sort: Sort) -> int:
    return _STRENGTH.index(Tier(sort.tier))


def _way(sort: Sort) -> str:
    policy = sorted((rule, action) for rule, action in sort.policy.items() if rule != TASK_ENTRY)
    return json.dumps([sort.native, sorted(sort.axioms), policy, sort.goals, sort.stop_at_error])


def _options(run: StoredRun, sort: Sort, asked: Recheck) -> SubmitOptions:
    """Return the options of the recheck: those of the run, so far as they decide about a verdict."""
    before: Mapping[str, Any] = run.options
    tier = asked.tier or sort.tier
    policy = sort.policy
    if tier != Tier.LEAN:  # no text decides there
        policy = {rule: action for rule, action in policy.items() if action != Action.REJECT}
    stored = Assurance.stored(tier=tier, native=sort.native, axioms=sort.axioms, policy=policy)
    assurance = replace(
        stored,
        accepts_advisories=asked.accepts_advisories
        or bool(before.get("assurance", {}).get("accepts_advisories")),
    )
    return SubmitOptions(
        assembly=AssemblyOptions(**before.get("assembly", {})),
        environment=asked.environment or sort.environment,
        wall_seconds=asked.wall_seconds or before.get("wall_seconds", Limits().wall_seconds),
        cpu_seconds=asked.cpu_seconds,
        memory_mib=asked.memory_mib or before.get("memory_mib", Limits().memory_mib),
        assurance=assurance,
        share=asked.environment is not None and bool(before.get("share", True)),
        priority=asked.priority,
        goals=sort.goals,
        stop_at_error=sort.stop_at_error,
    )


def _served(name: str, known: Sequence[ServedEnvironment], assurance: Assurance) -> ServedEnvironment:
    by_name = {each.name: each for each in known}
    if (problem := problem_of(name, by_name, assurance)) is not None:
        raise UsageError(f"{problem.words}; {problem.remedy}")
    if by_name[name].is_only_declared:
        raise UsageError(
            f"no worker has served the environment {name!r} yet, so nobody knows which Lean it is; "
            "start a worker that serves it, and rejudge then"
        )
    return by_name[name]


def _require_same_kind(
    served: ServedEnvironment, before: Sequence[str], known: Sequence[ServedEnvironment]
) -> None:
    """Raise `UsageError` where the stored programs are of another proof system than the environment."""
    for each in known:
        if each.name in before and each.kind != served.kind:
            raise UsageError(
                f"the lines were judged in {each.name!r}, of the kind {each.kind}, but {served.name!r} is "
                f"of the kind {served.kind}; name another environment of the kind {each.kind}"
            )
