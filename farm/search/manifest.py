"""Search step, manifests: searches a proof for each line, and writes lines with answers as they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from farm.api import Farm
from farm.client.results import Result
from farm.errors import UsageError
from farm.manifest.entries import read
from farm.manifest.entry import Entry
from farm.manifest.lines import opened
from farm.manifest.rewrite import write
from farm.search.best_first import Found, Limits, Search
from farm.search.frontier import Strategy
from farm.search.lasting import Lasting
from farm.search.provers import Prover
from farm.sessions.front import NotOpened
from farm.sessions.states import proof_of
from farm.task import Kind, Task

#: A search ends after the seal has refused this many states without goals.
_MOST_REFUSED = 8
#: The statuses of lines with a sealed proof, by their verdicts.
_STATUS = {"proved": "completed", "disproved": "disproved"}
_PROVE = Task()


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """The result for one line: its proof, "" without a sealed one, the verdict, and the search's numbers."""

    line: int
    generation: str
    proof_status: str | None
    verdict: str | None
    reason: str
    tactics: int
    found: Found

    @property
    def is_refused(self) -> bool:
        """Whether no search was begun, because of the line itself; then `reason` says why."""
        return self.verdict is None and bool(self.reason)

    @property
    def is_proved(self) -> bool:
        """Whether the seal accepted a proof."""
        return self.verdict in _STATUS


def search_all(
    farm: Farm,
    manifest: Path,
    target: Path,
    prover: Prover,
    *,
    strategy: Strategy,
    limits: Limits,
    environment: str | None,
    at_once: int,
    task: Task = _PROVE,
) -> Iterator[Line]:
    """Search for a proof of each line that `target` does not have yet; yield the results as they come.

    A line with the task ``disprove``, or in a search with it, is searched for a disproof.

    Each result is appended to `target` at once; when all are there the lines are put in order. Raises
    ManifestError and UsageError before the search begins.
    """
    read_all = read(manifest, reassemble=True, may_lack_answer=True)
    entries = [replace(each, task=each.task.within(task)) for each in read_all]
    if not entries:
        raise UsageError(f"{manifest} has no line with a statement")
    texts = _texts(manifest)
    have = _searched(target)
    if have:  # without a line that was cut off
        write(target, [json.dumps(row) for row in have.values()])
    todo = [each for each in entries if each.line not in have]
    with target.open("a", encoding="utf-8") as out, ThreadPoolExecutor(at_once) as pool:
        begun = [
            pool.submit(_searched_line, farm, each, prover, strategy, limits, environment) for each in todo
        ]
        try:
            for ended in as_completed(begun):
                line = ended.result()
                row = {**json.loads(task.stored or "{}"), **texts[line.line]}
                out.write(json.dumps(_row(row, line)) + "\n")
                out.flush()
                yield line
        finally:
            for each in begun:
                each.cancel()
    rows = _searched(target)
    write(target, [json.dumps(rows[number]) for number in sorted(rows)])


def _searched_line(
    farm: Farm, entry: Entry, prover: Prover, strategy: Strategy, limits: Limits, environment: str | None
) -> Line:
    """Return the result of one search. Raises FarmError where the farm failed."""
    try:
        session = Lasting(
            lambda: farm.session(
                formal_statement=entry.formal_statement,
                header=entry.header,
                context=entry.context,
                task="disprove" if entry.task.kind is Kind.DISPROVE else "prove",
                negates=bool(entry.task.negates),
                environment=entry.environment or environment,
            )
        )
    except NotOpened as error:
        found = Found()
        return Line(
            line=entry.line,
            generation="",
            proof_status=None,
            verdict=None,
            reason=str(error),
            tactics=0,
            found=found,
        )
    with closing(session):
        found, verdict = sealed(session, Search(session, prover, strategy=strategy, limits=limits))
    proved = verdict is not None and verdict.decided
    return Line(
        line=entry.line,
        generation=proof_of(found.tactics) if proved else "",
        proof_status=_STATUS.get(verdict.verdict or "") if verdict is not None else None,
        verdict=None if verdict is None else verdict.verdict,
        reason="" if verdict is None else verdict.reason or "",
        tactics=len(found.tactics) if proved else 0,
        found=found,
    )


def sealed(session: Lasting, search: Search) -> tuple[Found, Result | None]:
    """Search until the seal accepts a proof; return it with its verdict, None if nothing was found.

    Raises FarmError where the farm failed.
    """
    verdict, found = None, search.run()
    for _ in range(_MOST_REFUSED):
        if found.step is None or found.step.state is None:
            break
        verdict = session.prove(found.step.state)
        if verdict.decided:
            break
        found = search.run()
    return found, verdict


def _texts(manifest: Path) -> dict[int, dict[str, Any]]:
    with opened(manifest) as lines:
        return {number: json.loads(text) for number, text in lines if text.strip()}


def _row(fields: dict[str, Any], line: Line) -> dict[str, Any]:
    told = asdict(line.found)
    told.pop("step"), told.pop("tactics")
    said = {"verdict": line.verdict, "reason": line.reason, "tactics": line.tactics, **told}
    row = {**fields, "generation": line.generation, "search": {"line": line.line, **said}}
    if line.proof_status is not None:
        row["proof_status"] = line.proof_status
    return row


def _searched(target: Path) -> dict[int, dict[str, Any]]:
    """Return the lines of an earlier, perhaps interrupted, search by their numbers."""
    found = {}
    if not target.exists():
        return {}
    for number, text in enumerate(target.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(text)
            found[int(row["search"]["line"])] = row
        except (ValueError, KeyError, TypeError) as error:
            if not text.endswith("}"):
                continue  # the search was interrupted while it wrote its last line
            remedy = "name another file with --output"
            raise UsageError(f"{target}, line {number}: no line of a search; {remedy}") from error
    return found


def summary(target: Path) -> dict[str, Any]:
    """Return the figures of the tidy baseline's table: pass rate, mean length of proofs, mean expansions."""
    rows = [row["search"] for row in _searched(target).values()]
    proved = [row for row in rows if row["verdict"] in _STATUS]
    return {
        "lines": len(rows),
        "proved": len(proved),
        "refused": sum(row["verdict"] is None and bool(row["reason"]) for row in rows),
        "pass_rate": len(proved) / len(rows) if rows else 0.0,
        "mean_tactics": sum(row["tactics"] for row in proved) / len(proved) if proved else 0.0,
        "mean_expansions": sum(row["expansions"] for row in rows) / len(rows) if rows else 0.0,
        "steps": sum(row["steps"] for row in rows),
    }
