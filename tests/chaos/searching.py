"""Searches for proofs on a farm whose parts are killed: each must end as it does in peace.

Half of them go over HTTP, by way of the service; the others are one `farm search`, which asks Redis itself.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from farm.client import Client
from farm.search.best_first import Limits, Search
from farm.search.lasting import Lasting
from farm.search.manifest import sealed
from farm.search.provers import tactics_in
from farm.sessions.states import proof_of
from tests.chaos import aftermath
from tests.chaos.aftermath import few
from tests.chaos.disturbances import (
    crash_postgres,
    drawn,
    end_worker,
    flush_redis,
    kill_holder,
    kill_lean,
    kill_service,
    kill_worker,
    restart_redis,
    stop_worker,
)
from tests.chaos.field import Ground, Waiting, ground
from tests.chaos.journal import Journal
from tests.chaos.run import a_place, end_workers, logs
from tests.commands import HEADER
from tests.processes import PATIENCE, eventually

#: What is done to the farm, as often as it is named.
KILLS: tuple[Callable[[Ground], str], ...] = (*(kill_holder,) * 3, kill_worker, kill_service)
MORE = (
    *(*KILLS, *(kill_holder,) * 3, kill_lean),
    *(flush_redis, end_worker, stop_worker, restart_redis, crash_postgres),
)

#: What is to be proved, about `p`, `q`, `r` and numbers; some of it is false.
_GOALS = (
    "(p q r : Prop) (hp : p) (hq : q) (hr : r) : (p ∧ q) ∧ r",
    "(p q : Prop) (h : p ∨ q) : q ∨ p",
    "(p : Prop) : p",
    "(p q : Prop) : p → q → (q ∧ p) ∧ p = p",
    "(p q r : Prop) (h : p ∧ q) (k : q → r) : r ∨ p",
    "(p q : Prop) (h : p) : p ∧ q",
    "(p q : Prop) : p ∧ q ↔ q ∧ p",
    "(a b : Nat) (h : a = b) : b = a",
    "(p q : Prop) (h : p → q) : q → p",
    "(p q r : Prop) : p → (q → r → p ∧ (q ∧ r))",
    "(p q : Prop) (h : p ∧ ¬p) : q",
    "(p q : Prop) (h : p ∨ q) : p ∧ q",
    "(a b c : Nat) (h : a = b) (k : b = c) : a + 1 = c + 1",
    "(p q r s : Prop) (h : p ∧ q ∧ r ∧ s) : s ∧ r ∧ q ∧ p",
    "(p q r : Prop) (h : p ∨ q ∨ r) : r ∨ q ∨ p",
    "(n : Nat) : n + 1 = n",
    "(p q : Prop) (hp : p) : (q → p) ∧ (p ∨ q)",
    "(p q r : Prop) : (p → q) → (q → r) → p → r",
    "(p q : Prop) (h : ¬(p ∨ q)) : ¬p",
    "(p q r s : Prop) (hp : p) (hs : s) : (p ∧ s) ∧ (r → p) ∧ (q ∨ s)",
)
_EXPANSIONS = 24
_SECONDS = 5.0 * PATIENCE
#: A disturbed search that takes longer does not come to its end any more.
_END_SECONDS = 300.0
#: The proof that was found, "" without one, and the verdict.
Answer = tuple[str, str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How many searches there are at once, and how often the farm is disturbed at least.

    The searches begin again under other names until it was.
    """

    seed: int
    searches: int = len(_GOALS)
    disturbances: int = 8
    pause_seconds: tuple[float, float] = (0.1, 1.0)
    kinds: Sequence[Callable[[Ground], str]] = KILLS


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What was wrong, how many searches there were, how many found a proof, and all that was done."""

    complaints: tuple[str, ...]
    searches: int
    found: int
    disturbances: int
    story: str


def run(plan: Plan, *, quiet: bool = False) -> Result:
    """Search in peace and under disturbances, on servers of its own, of which nothing is left."""
    journal = Journal(quiet=quiet)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="farm-chaos-")))
        folder.chmod(0o755)
        place = a_place(folder, stack, attempts=100)
        with ground(place, journal=journal, chance=random.Random(plan.seed)) as field:
            journal.say(f"seed {plan.seed}; the searches in peace began")
            said = field.farm("keys", "add", "chaos", "--scope", "submit", "--scope", "read").stdout
            searcher = _Searcher(field=field, token=said.split()[-1], count=plan.searches)
            expected = searcher.answers("calm")
            proofs = sum(verdict == "proved" for _, verdict in expected)
            journal.say(f"{proofs} of {plan.searches} found a proof in peace")
            assert 0 < proofs < plan.searches, expected
            searches = _disturbed(searcher, plan, expected)
            eventually(lambda: all(each.serving for each in field.keeper.workers), seconds=60)
            end_workers(field)
            _look(field)
            told = logs(field) if journal.complaints else ""
    return Result(
        complaints=tuple(journal.complaints),
        searches=searches,
        found=proofs,
        disturbances=len(journal.disturbances),
        story="\n".join([*journal.complaints, "", *journal.lines, "", told]),
    )


def _disturbed(searcher: _Searcher, plan: Plan, expected: Sequence[Answer]) -> int:
    """Search, and disturb the farm all the time; return how many searches there were.

    Servers end with the thread that started them, so this one disturbs.
    """
    field, by_name = searcher.field, {each.__name__: each for each in plan.kinds}
    names = drawn([each.__name__ for each in plan.kinds], random.Random(plan.seed))
    with ThreadPoolExecutor(1, thread_name_prefix="searching") as pool:
        searching = pool.submit(_rounds, searcher, plan, expected)
        while not searching.done():
            name, begun = next(names), time.time()
            what = by_name[name](field)
            field.journal.done(name, begun)
            field.journal.say(f"{name}: {what}")
            field.last(field.chance.uniform(*plan.pause_seconds))
        return searching.result()


def _rounds(searcher: _Searcher, plan: Plan, expected: Sequence[Answer]) -> int:
    """Search all goals, again and again until the farm was disturbed often enough."""
    field, searches = searcher.field, 0
    while not searches or len(field.journal.disturbances) < plan.disturbances:
        begun = time.monotonic()
        try:
            answers = searcher.answers(f"disturbed{searches}")
        except Exception as error:  # noqa: BLE001 # whatever it is, the farm is looked at after it
            field.journal.complain(f"a search failed: {type(error).__name__}: {error}")
            break
        for goal, answer, right in zip(_GOALS, answers, expected, strict=False):
            if answer != right:
                field.journal.complain(f"the search of {goal} ended with {answer}, in peace with {right}")
        searches += plan.searches
        field.journal.say(f"{plan.searches} searches ended after {time.monotonic() - begun:.1f} s")
    return searches


@dataclass(frozen=True, kw_only=True, slots=True)
class _Searcher:
    """Searches so many of the goals at once; over HTTP it has a token."""

    field: Ground
    token: str
    count: int

    def answers(self, name: str) -> list[Answer]:
        """Search the goals as theorems of this name, and return the answers in their order."""
        texts = {f"{name}_{place}": goal for place, goal in enumerate(_GOALS[: self.count])}
        items = [
            {"name": theorem, "header": HEADER, "formal_statement": f"theorem {theorem} {goal} := by\n"}
            for theorem, goal in texts.items()
        ]
        command = self._command(items[self.count // 2 :], name)
        try:
            over_http = self._over_http(items[: self.count // 2])
            status = command.ended(_END_SECONDS * PATIENCE)
            assert status == 0, f"farm search ended with {status}: {command.said[-2000:]}"
        finally:
            command.kill()
        rows = map(json.loads, (self.field.folder / f"{name}.answers.jsonl").read_text().splitlines())
        return [*over_http, *((row["generation"], row["search"]["verdict"]) for row in rows)]

    def _command(self, items: Sequence[Mapping[str, str]], name: str) -> Waiting:
        """Start one `farm search` of these items."""
        manifest = self.field.folder / f"{name}.jsonl"
        manifest.write_text("".join(f"{json.dumps(each)}\n" for each in items), encoding="utf-8")
        words = ["search", str(manifest), "-o", str(manifest.with_suffix(".answers.jsonl"))]
        limits = ["--expansions", str(_EXPANSIONS), "--seconds", f"{_SECONDS:g}"]
        return self.field.start(name, [*words, *limits, "--at-once", str(len(items))])

    def _over_http(self, items: Sequence[Mapping[str, str]]) -> list[Answer]:
        """Search these items over HTTP, all at once."""
        with (
            Client(self.field.service_url, token=self.token, concurrency=len(items)) as client,
            ThreadPoolExecutor(len(items)) as pool,
        ):
            return list(pool.map(lambda item: _answer(client, item), items))


def _answer(client: Client, item: Mapping[str, str]) -> Answer:
    limits, listed = Limits(expansions=_EXPANSIONS, seconds=_SECONDS), tactics_in("tidy")
    with closing(Lasting(lambda: client.session(_opening(item)))) as session:
        found, verdict = sealed(session, Search(session, lambda _goals: listed, limits=limits))
    if verdict is None or verdict.verdict != "proved":
        return "", None if verdict is None else verdict.verdict
    return proof_of(found.tactics), verdict.verdict


def _opening(item: Mapping[str, str]) -> Mapping[str, object]:
    return {name: item[name] for name in ("header", "formal_statement")}


def _look(field: Ground) -> None:
    for complaints in (
        aftermath.left_in_store(field.facts),
        aftermath.left_on_machine(field.keeper.workers, field.folder),
    ):
        for complaint in few(complaints):
            field.journal.complain(complaint)
