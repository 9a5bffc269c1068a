"""The farm from Python: check programs, submit manifests, wait, read verdicts, write them back.

    from farm import Farm

    with Farm() as farm:
        verdict = farm.check({"formal_statement": "theorem t : 1 = 1 := by", "generation": "rfl"})
        run = farm.submit(["results.jsonl"])
        run.wait()
        run.export()

It reads the same `FARM_*` variables as the `farm` command, and starts the farm's own servers where none are
configured. Every failure is one of `farm.errors`; none is ever told as a verdict on a proof.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType

from farm import tracing
from farm.assembly.program import AssemblyOptions
from farm.broker import call
from farm.connections import Connections
from farm.errors import ManifestError, ServerDown
from farm.judging.assurance import Assurance
from farm.judging.forgeable import is_forgeable
from farm.judging.states import Priority
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason
from farm.log import logger
from farm.manifest.entries import entries, expand
from farm.manifest.entry import Entry
from farm.runs.batch import Items, store_batch
from farm.runs.export import export
from farm.runs.prepare.options import SubmitOptions
from farm.runs.revise import cancel
from farm.runs.submit import submit, watch
from farm.store.queries import Tally
from farm.store.records import Judged

#: A manifest line, or the whole text of a program.
Line = str | Mapping[str, object]

_log = logger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What became of one line.

    `outcome` and `reason` are the words of docs/verdicts.md, None for a line that was cancelled or has no
    verdict yet; `proof_status` is what an export writes. `statement` is ``compared`` where the proof was held
    against the line's ``formal_statement``, ``unchecked`` where it has none. `trusts` says what a proof rests
    on besides the kernel, `rests_on_sorry_of` on which constants that the dataset admits. `forgeable`: it was
    checked where no namespaces kept it from the farm.
    """

    name: str
    line: int
    status: str
    tier: str
    program: str
    outcome: Outcome | None = None
    reason: Reason | None = None
    detail: str = ""
    proof_status: str | None = None
    statement: str | None = None
    trusts: tuple[str, ...] = ()
    rests_on_sorry_of: tuple[str, ...] = ()
    forgeable: bool = False
    wall_seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether it is a proof, as sure as the run's tier makes it."""
        return self.outcome is Outcome.PROVED

    @property
    def judged(self) -> bool:
        """Whether the farm could judge it; a line that it could not judge says nothing about its proof."""
        return self.outcome not in (None, Outcome.JUDGE_ERROR)


class Run:
    """One submitted run; made by `Farm.submit` and `Farm.run`."""

    def __init__(self, connections: Connections, run_id: str) -> None:
        self._connections = connections
        self.id = run_id

    def wait(self, seconds: float | None = None) -> Tally:
        """Wait until every line has its verdict or was cancelled, and return how many have which.

        Raises TimeoutError after so many seconds: the run goes on, and can be waited for again.
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
                yield _verdict(judged)

    def export(self) -> list[Path]:
        """Write the verdicts into the run's manifests, each replaced as a whole, and return their paths.

        Raises ManifestError where a file is not as it was submitted; the others are written first.
        """
        run = self._connections.queries.run(self.id)
        return [written.path for written in export(self._connections.store, self._connections.queries, run)]

    def cancel(self) -> int:
        """Cancel what is unfinished, and return how many lines that were."""
        return cancel(self._connections.store, self.id)


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
        """Return the run whose id begins so. Raises UnknownRun."""
        return Run(self._connections, self._connections.queries.run(run_id).id)

    def check(self, line: Line, options: SubmitOptions | None = None) -> Verdict:
        """Check one line, wait, and return its verdict; as `check_all` does."""
        return self.check_all([line], options)[0]

    def check_all(
        self, lines: Sequence[Line], options: SubmitOptions | None = None, *, seconds: float | None = None
    ) -> list[Verdict]:
        """Check lines, wait, and return their verdicts in the same order.

        A line has the fields of a manifest's line, such as ``header``, ``formal_statement`` and
        ``generation``; a text is a whole program. They wait in the class ``interactive``. Equal lines that
        were checked before get the verdict of then. Raises ManifestError for a line that cannot be judged,
        and QueueFull; nothing is stored then. Raises TimeoutError after so many seconds, and what has not
        begun by then is cancelled. More than some thousands are better submitted as a manifest.
        """
        if not lines:
            return []
        connections, chosen = self._connections, options or self.options_for(priority="interactive")
        items = Items(_entries(lines, chosen), chosen, connections.environments())
        connections.require_room()
        batch = store_batch(connections.store, items)
        self._call(batch.queued)
        run = Run(connections, batch.id)
        try:
            run.wait(seconds)
        except TimeoutError:
            run.cancel()
            raise
        return [_verdict(each) for each in connections.queries.judged(batch.id, 0)]

    def _call(self, environments: Iterable[str]) -> None:
        try:
            call(self._connections.broker, environments)
        except ServerDown as error:
            _log.warning("%s; idle workers find what waits by themselves", error)

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
        priority: str = "batch",
        profile: str = "farm",
        stop_on_first_proof: bool = False,
    ) -> SubmitOptions:
        """Return options as `farm submit` would make of these words. Raises UsageError for an unknown one.

        A `tier` below ``kernel`` believes more than the kernel's replay: docs/trust.md says whom.
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
            priority=Priority.named(priority),
            stop_on_first_proof=stop_on_first_proof,
        )


def _entries(lines: Sequence[Line], options: SubmitOptions) -> list[Entry]:
    written = [_as_json(*each) for each in enumerate(lines)]
    found = list(entries("lines", enumerate(written, 1), reassemble=options.assembly.reassemble))
    return [_usable(each) for each in found]


def _usable(found: Entry | ManifestError) -> Entry:
    if isinstance(found, ManifestError):
        raise found
    return found


def _as_json(number: int, line: Line) -> bytes:
    fields = {"predicted_proof": line} if isinstance(line, str) else dict(line)
    return json.dumps({"name": str(number), **fields}).encode("ascii")


def _verdict(line: Judged) -> Verdict:
    verdict = Verdict(
        name=line.name, line=line.line, status=line.status, tier=line.tier, program=line.program
    )
    found = line.verdict
    if found is None:
        return verdict
    return replace(
        verdict,
        outcome=found.judged.outcome,
        reason=found.judged.reason,
        detail=found.detail,
        proof_status=found.judged.proof_status,
        statement=found.statement,
        trusts=tuple(found.trusts),
        rests_on_sorry_of=found.rests_on_sorry_of,
        forgeable=is_forgeable(found.isolation),
        wall_seconds=found.wall_seconds,
    )
