"""The farm from Python: check programs, submit manifests, wait, read verdicts, write them back.

    from farm import Farm

    with Farm() as farm:
        verdict = farm.check({"formal_statement": "theorem t : 1 = 1 := by", "generation": "rfl"})
        run = farm.submit(["results.jsonl"])
        run.wait()
        run.export()

It reads the same `FARM_*` variables as the `farm` command, and starts the farm's own servers if none are
configured. Every failure is one of `farm.errors`; none is ever reported as a verdict on a proof.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Literal, Unpack

from farm import tracing
from farm.assembly.program import AssemblyOptions
from farm.broker import call
from farm.client.asked_fields import Options
from farm.client.caller import DEADLINE_SECONDS
from farm.client.requests import Item, checked
from farm.client.results import Result
from farm.client.states import State, Step
from farm.connections import Connections
from farm.errors import ServerDown
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome
from farm.log import logger
from farm.manifest.entries import expand
from farm.runs.batch import Items, store_batch
from farm.runs.export import export
from farm.runs.revise import cancel
from farm.runs.stepping import item_of, program_of
from farm.runs.submit import submit, watch
from farm.service.answers import result
from farm.service.requests import MOST_ITEMS, Batch, batch_of
from farm.sessions.front import Kept, StepOptions
from farm.sessions.wire import USUAL_SECONDS
from farm.store.queries import Tally
from farm.store.records import Judged
from farm.task import task_of

_log = logger(__name__)

#: A session looks this often whether the farm's own servers still run.
_LOOK_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict(Result):
    """The verdict of one line: a `farm.client.Result`, and the facts that only the store has.

    `line` and `proof_status` are those of a manifest's line, `program` is Lean's input. `outcome` and
    `reason` are the words of docs/use/verdicts.md, None for a line that was cancelled or has no verdict yet.
    `statement` is ``compared`` if the proof was compared with the line's ``formal_statement``, ``unchecked``
    if the line has none. `trusts` lists the trusted parts besides the kernel, `rests_on_sorry_of` the
    constants admitted by the dataset that the proof uses. `forgeable`: nothing kept its code from the
    farm, so it could have forged the verdict. `unrebuilt`: a checker mapped the submission's own module.
    """

    line: int
    tier: str
    program: str
    proof_status: str | None = None

    @property
    def outcome(self) -> Outcome | None:
        """The verdict."""
        return None if self.verdict is None else Outcome(self.verdict)

    @property
    def statement(self) -> str | None:
        """Whether the proof was held against a statement."""
        return None if self.provenance is None else self.provenance.statement

    @property
    def trusts(self) -> tuple[str, ...]:
        """The parts that a proof trusts besides the kernel."""
        return () if self.provenance is None else self.provenance.trusts

    @property
    def rests_on_sorry_of(self) -> tuple[str, ...]:
        """The constants that the dataset admits and a proof rests on."""
        return () if self.provenance is None else self.provenance.rests_on_sorry_of

    @property
    def forgeable(self) -> bool:
        """Whether it was checked where a proof could have forged its verdict."""
        return self.provenance is not None and bool(self.provenance.forgeable)

    @property
    def unrebuilt(self) -> bool:
        """Whether a checker mapped the submission's own module, because Lean could not be forked."""
        return self.provenance is not None and bool(self.provenance.unrebuilt)

    def explain(self, program: str = "") -> str:
        """Return the verdict's meaning, the program with Lean's errors marked in it, and a hint."""
        return Result.explain(self, program or self.program)

    @property
    def wall_seconds(self) -> float:
        """The seconds that its check took."""
        return 0.0 if self.seconds is None else self.seconds.wall or 0.0


class Run:
    """One submitted run; made by `Farm.submit` and `Farm.run`."""

    def __init__(self, connections: Connections, run_id: str) -> None:
        self._connections = connections
        self.id = run_id

    def wait(self, seconds: float | None = None) -> Tally:
        """Wait until every line has its verdict or was cancelled, and return the number of lines by verdict.

        Raises TimeoutError after `seconds`: the run goes on, and `wait` can be called again.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        connections = self._connections
        for tally in watch(
            connections.queries, self.id, completions=connections.completions, trouble=_log.warning
        ):
            if not tally.unfinished:
                return tally
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(
                    f"run {self.id}: {tally.unfinished} of {tally.total} lines have no verdict after "
                    f"{seconds:g} s; the run goes on"
                )
        return tally

    @property
    def tally(self) -> Tally:
        """How many lines have which status and verdict now."""
        return self._connections.queries.tally(self.id)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield every line's verdict, manifest after manifest, in the order of their lines."""
        for manifest in self._connections.queries.manifests(self.id):
            for judged in self._connections.queries.judged(self.id, manifest.number):
                yield _verdict(judged, index=judged.line - 1)

    def export(self) -> list[Path]:
        """Write the verdicts into the run's manifests, each replaced as a whole, and return their paths.

        Raises ManifestError where a file is not as it was submitted; the others are written first.
        """
        run = self._connections.queries.run(self.id)
        return [written.path for written in export(self._connections.store, self._connections.queries, run)]

    def cancel(self) -> int:
        """Cancel the unfinished lines, and return their number."""
        return cancel(self._connections.store, self.id)


class Session:
    """A proof in which tactics are tried step by step; made by `Farm.session`. A context manager.

    Its methods are those of `farm.client.sessions.Session`. A state without goals is no proof: `prove` has
    its whole text checked and sealed.
    """

    def __init__(
        self, connections: Connections, kept: Kept, roots: tuple[State, ...], check: Callable[..., Verdict]
    ) -> None:
        self._connections, self._front = connections, connections.sessions
        self._kept, self._check = kept, check
        self._looked_at = time.monotonic()
        self.id, self.environment, self.roots = kept.id, kept.environment, roots

    @property
    def root(self) -> State:
        """The first state: that at the only sorry, or the first one, of the program."""
        return self.roots[0]

    def step(
        self,
        state: State | str,
        tactics: Sequence[str] | str,
        *,
        seconds: float = USUAL_SECONDS,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[Step]:
        """Try tactics on one state, and return the outcome of each; as `steps` does."""
        listed = [tactics] if isinstance(tactics, str) else tactics
        return self.steps(
            [(state, listed)], seconds=seconds, heartbeats=heartbeats, first_success=first_success
        )[0]

    def steps(
        self,
        attempts: Sequence[tuple[State | str, Sequence[str]]],
        *,
        seconds: float = USUAL_SECONDS,
        heartbeats: int | None = None,
        first_success: bool = False,
    ) -> list[list[Step]]:
        """Try lists of tactics, each on a state; return the outcomes of each list.

        `seconds` of wall time and Lean's `heartbeats` limit each tactic. With `first_success` a list ends
        with its first tactic that does not fail. Raises UsageError, UnknownRun, QueueFull and ServerDown.
        """
        if time.monotonic() - self._looked_at > _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._connections.revived()  # the farm's own servers may have ended while nobody used them
            self._connections.environments()
        listed = [(each if isinstance(each, str) else each.id, tactics) for each, tactics in attempts]
        options = StepOptions(seconds=seconds, heartbeats=heartbeats, first_success=first_success)
        return self._front.step(self._kept, listed, options)

    def state(self, state: str) -> State:
        """Return a state by its id. Raises UnknownRun."""
        return self._front.state(self._kept, state)

    def prove(self, *states: State | str, timeout: float = 60.0) -> Verdict:
        """Have the whole text of a state checked and sealed, like any proof, and return the verdict.

        A session on a program takes a state for each of its sorries, in their order.
        """
        ids = [each if isinstance(each, str) else each.id for each in states]
        item = item_of(self._front.source(self._kept), self._front.states(self._kept, ids))
        return self._check(item, environment=self.environment, timeout=timeout)

    def close(self) -> None:
        """End the session's processes; those of a farm that is away end by themselves."""
        with suppress(ServerDown):
            self._front.end(self._kept)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Farm:
    """The farm that the `FARM_*` variables name; for one process and many threads. A context manager.

    A process that was forked needs one of its own.
    """

    def __init__(self) -> None:
        self._connections = Connections.here()

    def __enter__(self) -> Farm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; runs go on."""
        self._connections.close()
        tracing.flush()

    @cached_property
    def environments(self) -> tuple[str, ...]:
        """The Lean environments that workers have served."""
        return tuple(each.name for each in self._connections.environments())

    def submit(
        self, manifests: Sequence[str | Path], options: SubmitOptions | None = None, *, new_run: bool = False
    ) -> Run:
        """Store a run of these manifests, or find the one there is, and return it at once.

        Without `options` every *proved* is replayed by a kernel that never saw its text (tier ``kernel``);
        `options_for` makes others. Raises ManifestError with file, line and field; then nothing was stored.
        """
        connections = self._connections
        done = submit(
            connections.store,
            expand([str(each) for each in manifests]),
            options or self.options_for(),
            known=connections.environments(),
            new_run=new_run,
            queue_limit=connections.settings.queue_limit,
        )
        self._call(connections.queries.queued_in(done.run_id))
        return Run(connections, done.run_id)

    def run(self, run_id: str) -> Run:
        """Return the run whose id has this prefix. Raises UnknownRun."""
        return Run(self._connections, self._connections.queries.run(run_id).id)

    def check(
        self,
        item: Item,
        options: SubmitOptions | None = None,
        *,
        deadline: float = DEADLINE_SECONDS,
        **chosen: Unpack[Options],
    ) -> Verdict:
        """Check one item, wait, and return its result; as `check_all` does."""
        return self.check_all([item], options, deadline=deadline, **chosen)[0]

    def check_all(
        self,
        items: Iterable[Item],
        options: SubmitOptions | None = None,
        *,
        deadline: float = DEADLINE_SECONDS,
        **chosen: Unpack[Options],
    ) -> list[Verdict]:
        """Check items, wait, and return their results in the same order.

        Items, options and results are those of `farm.client.Client.check_all`, which calls a farm over HTTP.
        The default `priority` is ``interactive``. Equal items that were checked before get their earlier
        verdict. An item without a verdict after `deadline` seconds has no reward, and is cancelled if it has
        not begun. `options`, as made by `options_for`, replace `chosen`. Raises TypeError for an unknown
        option, ManifestError for an item that cannot be judged, UsageError and QueueFull; nothing is stored
        then. Submit more than some thousands as a manifest.
        """
        if isinstance(items, str | Mapping):
            raise TypeError("items is one item; give a list of items")
        given = [{"program": each} if isinstance(each, str) else each for each in items]
        asked = [
            batch_of(given[first : first + MOST_ITEMS], {"priority": "interactive", **checked(chosen)}, first)
            for first in range(0, len(given), MOST_ITEMS)
        ]
        stored = [(each, self._stored(each, options)) for each in asked]
        until = time.monotonic() + deadline
        found = [result for each in stored for result in self._awaited(*each, until)]
        return [replace(each, index=index) for index, each in enumerate(found)]

    def session(
        self,
        program: str = "",
        *,
        formal_statement: str = "",
        header: str = "",
        context: str = "",
        task: Literal["prove", "disprove"] = "prove",
        negates: bool = False,
        environment: str | None = None,
    ) -> Session:
        """Open a session on a statement, its negation, or a program with a sorry for each open place.

        With `negates` the statement is one that `farm submit --disprove --dry-run` wrote, so its proof has to
        prove a negation. Raises UsageError, with Lean's words, for a text that Lean refuses, QueueFull when
        no worker has room.
        """
        connections = self._connections
        item = {"header": header, "context": context, "formal_statement": formal_statement}
        item |= {"task": task}
        text = program_of(program=program, **item)
        name = environment or connections.settings.environment
        connections.environments()
        asked = {**item, "negates": negates}
        kept, roots = connections.sessions.open(text, name, item={} if program else asked)
        return Session(connections, kept, roots, self.check)

    def _stored(self, asked: Batch, options: SubmitOptions | None) -> Run:
        connections, settings = self._connections, self._connections.settings
        usual = asked.submit_options(environment=settings.environment, memory_mib=settings.memory_mib)
        entries = [item.entry(number) for number, item in enumerate(asked.items, 1)]
        known, name = connections.environments(), asked.batch_name or ""
        items = Items(entries, options or usual, known, accept=asked.accept, name=name)
        connections.require_room()
        batch = store_batch(connections.store, items)
        self._call(batch.queued)
        return Run(connections, batch.id)

    def _awaited(self, asked: Batch, run: Run, until: float) -> Iterator[Verdict]:
        with suppress(TimeoutError):
            run.wait(max(0.0, until - time.monotonic()))
        if run.tally.unfinished:
            run.cancel()
        judged = self._connections.queries.judged(run.id, 0)
        for index, (each, item) in enumerate(zip(judged, asked.items, strict=True)):
            yield _verdict(each, index=index, key=item.key, accept=asked.accept, with_feedback=asked.feedback)

    def _call(self, environments: Iterable[str]) -> None:
        try:
            call(self._connections.broker, environments)
        except ServerDown as error:
            _log.warning("%s; idle workers find waiting checks by polling", error)

    def options_for(
        self,
        *,
        environment: str | None = None,
        timeout: float = 30.0,
        memory_mib: int | None = None,
        tier: str = Tier.KERNEL,
        native: bool = False,
        require_statement: bool = False,
        require_all_parts: bool = False,
        forbid: Sequence[str] | None = None,
        priority: str = "batch",
        profile: str = "farm",
        stop_on_first_proof: bool = False,
    ) -> SubmitOptions:
        """Return options as `farm submit` would make them. Raises UsageError for an unknown value.

        A `tier` below ``kernel`` trusts more than the kernel's replay; see docs/why/trust.md. Proofs must not
        use the tactics and constants of `forbid`.
        """
        settings = self._connections.settings
        return SubmitOptions(
            assembly=AssemblyOptions(profile=profile),
            environment=environment or settings.environment,
            wall_seconds=timeout,
            memory_mib=settings.memory_mib if memory_mib is None else memory_mib,
            assurance=Assurance(
                tier=tier,
                native=native,
                requires_statement=require_statement,
                requires_all_parts=require_all_parts,
            ),
            task=task_of({"forbid": forbid}),
            priority=Priority.named(priority),
            stop_on_first_proof=stop_on_first_proof,
        )


def _verdict(
    line: Judged,
    *,
    index: int,
    key: str | None = None,
    accept: Collection[str] = (),
    with_feedback: bool = False,
) -> Verdict:
    told = result(line, index=index, key=key, accept=accept, waits_for=None, with_feedback=with_feedback)
    shared = {field.name: getattr(told, field.name) for field in fields(told)}
    status = None if line.verdict is None else line.verdict.judged.proof_status
    return Verdict(**shared, line=line.line, tier=line.tier, program=line.program, proof_status=status)
