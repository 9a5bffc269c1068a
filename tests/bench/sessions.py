"""Benchmarks, sessions: tactics step by step, beside whole programs and beside bare resident steps.

All contenders take turns in one run, one thread each: what else the machine does troubles all of them. *Bare*
is Lean in a process of its own that makes the same steps one after the other, without a cell, a fork or a
wire. *Whole* is the farm's unsealed check of a program with the same tactics.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from statistics import median
from typing import IO

from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation, prepared
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import EMBEDDED, LeanEnvironment, environment_variables
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.machine.environments import installed
from farm_workers.sessions.session import Session, StepLimits

from farm.client.states import State, Step
from farm.judging.ending import Ending, ending
from farm.judging.job import Check
from farm.search import best_first
from farm.search.provers import tactics_in
from farm.settings import Settings
from tests.bench.around.serving import served
from tests.bench.around.site import farm_at_work
from tests.bench.around.workers import farm_worker
from tests.bench.checks.figures import Figure
from tests.bench.checks.library import MODULES
from tests.bench.checks.subject import subject

STATEMENT = "theorem t (p q r : Prop) (hp : p) (hq : q) (hr : r) : (p ∧ q) ∧ r"
#: An instance search that never ends.
CLIMBS = """class Climbs (n : Nat) where
  x : Nat
instance climb (n : Nat) [Climbs (Nat.succ n)] : Climbs n := Climbs.mk 0
set_option maxRecDepth 100000000
set_option synthInstance.maxHeartbeats 0
set_option synthInstance.maxSize 100000000
set_option maxHeartbeats 0
"""
NEVER = "exact (inferInstance : Climbs 0)"
#: Statements that are searched, and how many states of each are expanded.
PROBLEMS = (
    STATEMENT,
    "theorem a (p q : Prop) (h : p ∨ q) : q ∨ p",
    "theorem b (p q : Prop) : p → q → (q ∧ p) ∧ p = p",
    "theorem c (p q r : Prop) (h : p ∧ q) (k : q → r) : r ∨ p",
    "theorem d (p : Prop) : p",
)
_EXPANSIONS = 12
_UNSOLVED = "unsolved goals\n"
#: Tactics of one call, turns of each contender, states that are kept, and the limit of the endless tactic.
_MANY, _TURNS, _KEPT, _SECONDS = 32, 15, 1000, 1.0
_LIMITS = StepLimits(seconds=30.0)

#: A Lean of its own that makes the steps it is told: depth and number, one line each.
_BARE = """
import json, sys, time
from pathlib import Path
from farm_workers.images.elaborating import loaded
from farm_workers.images.tactics import Tactics
library, program, *options = sys.argv[1:]
frontend = loaded(Path(library), options)
header = program[: program.index("theorem")]
frontend.import_header(header)
frontend.elaborate(program, None)
tactics = Tactics(frontend)
(root,) = tactics.roots(program)
for line in sys.stdin:
    path, many = json.loads(line)
    state = root.state
    for each in path:
        state = tactics.step(state, each)
    began = time.perf_counter()
    for each in many:
        tactics.printed(tactics.step(state, each))
    print("TOOK", time.perf_counter() - began, flush=True)
"""


def haves(depth: int, *, at: str = "k") -> list[str]:
    """Return tactics that each add a hypothesis."""
    return [f"have {at}{number} : q ∧ r := ⟨hq, hr⟩" for number in range(depth)]


def sessions() -> Iterator[Figure]:
    """Measure steps on a header of 25 000 declarations."""
    settings = Settings.load()
    environment = subject(settings, EMBEDDED, MODULES, lambda: None).environment
    with (
        prepared(settings.home / "work") as isolation,
        closing(Images(isolation, lean_image, most=3)) as images,
        Checker(isolation, home=settings.home / "bench", concurrency=1) as checker,
        _bare(environment) as bare,
    ):
        yield from _Contest(environment, isolation, images, checker, bare).figures()


def larger_header() -> Iterator[Figure]:
    """Measure a step on a header of 250 000 declarations over one of 25 000; compiles the library once."""
    settings = Settings.load()
    what = subject(settings, EMBEDDED, 10 * MODULES, lambda: None)
    assert what.larger is not None
    samples = []
    with (
        prepared(settings.home / "work") as isolation,
        closing(Images(isolation, lean_image, most=3)) as images,
        closing(_opened(what.environment, images)) as usual,
        closing(_opened(what.larger, images)) as larger,
    ):
        for turn in range(_TURNS):
            tactics = haves(_MANY, at=f"s{turn}_")
            samples.append(_seconds_of(larger, tactics) / _seconds_of(usual, tactics))
        name = f"{_MANY} tactics on a header of 250 000 declarations over 25 000 ({isolation.name})"
    yield Figure(key="header_250k_over_25k", name=name, unit="", samples=tuple(samples), at_most=2)


def over_http() -> Iterator[Figure]:
    """Measure a call of 32 tactics over HTTP, to a farm of its own, beside a session in this process."""
    settings = Settings.load()
    tactics, through, alone = haves(_MANY), [], []
    with (
        farm_at_work(servers=settings.servers) as farm,
        farm_worker(farm, EMBEDDED, 2, {}),
        served(farm) as service,
        prepared(settings.home / "work") as isolation,
        closing(Images(isolation, lean_image, most=1)) as images,
    ):
        environment = installed(settings.home, None, isolation).lean(EMBEDDED)
        opened = service.client.post(
            "/v1/sessions", json={"header": environment.header, "formal_statement": f"{STATEMENT} := by"}
        ).json()
        body = {"state": opened["states"][0]["id"], "tactics": tactics}
        with closing(_opened(environment, images)) as session:
            for _ in range(4 * _TURNS):
                began = time.perf_counter()
                said = service.client.post(f"/v1/sessions/{opened['id']}/steps", json=body).json()
                through.append(1000 * (time.perf_counter() - began))
                assert {each["outcome"] for each in said["steps"][0]} == {"goals"}, said
                alone.append(1000 * _seconds_of(session, tactics))
    added = median(through) - median(alone)
    name = f"added over HTTP to a call of {_MANY} tactics, p50"
    yield Figure(key="steps_http_added_ms", name=name, unit="ms", samples=(added,), at_most=8)
    yield Figure(key="steps_http_ms", name="the call over HTTP", unit="ms", samples=tuple(through))
    yield Figure(key="steps_alone_ms", name="the same in a session alone", unit="ms", samples=tuple(alone))


def _opened(environment: LeanEnvironment, images: Images[LeanEnvironment]) -> Session:
    program = f"{environment.header}{STATEMENT} := by sorry\n"
    return Session(program, environment, images, box.never)


def _seconds_of(session: Session, tactics: Sequence[str]) -> float:
    began = time.perf_counter()
    found = list(session.step((0, ()), tactics, _LIMITS))
    assert {each.outcome for each in found} == {"goals"}, found
    return time.perf_counter() - began


class _Contest:
    def __init__(
        self,
        environment: LeanEnvironment,
        isolation: Isolation,
        images: Images[LeanEnvironment],
        checker: Checker,
        bare: Callable[[Sequence[str], Sequence[str]], float],
    ) -> None:
        self._environment, self._isolation = environment, isolation.name
        self._images, self._checker, self._bare = images, checker, bare
        self._number = 0

    def _opened(self, text: str = "") -> Session:
        program = f"{self._environment.header}{text}{STATEMENT} := by sorry\n"
        return Session(program, self._environment, self._images, box.never)

    def figures(self) -> Iterator[Figure]:
        """Measure everything."""
        with closing(self._opened()) as session:
            at = {depth: haves(depth) for depth in (0, 9, 49)}
            for path in at.values():
                self._stepped(session, path, 1)
            taken = self._in_turns(session, at)
            yield from self._ratios(taken)
        with closing(self._opened()) as session:
            yield self._memory(session)
        yield self._after_endless()
        yield from self._searches()

    def _in_turns(self, session: Session, at: Mapping[int, list[str]]) -> dict[str, list[float]]:
        taken: dict[str, list[float]] = {}

        def note(name: str, seconds: float) -> None:
            taken.setdefault(name, []).append(seconds)

        for _ in range(_TURNS):
            for depth, path in at.items():
                note(f"many {depth}", self._stepped(session, path, _MANY) / _MANY)
                note(f"one {depth}", self._stepped(session, path, 1))
                note(f"whole {depth}", self._whole(path))
                self._number += 1
                note(f"bare {depth}", self._bare(path, haves(_MANY, at=f"b{self._number}_")) / _MANY)
        return taken

    def _stepped(self, session: Session, path: Sequence[str], many: int) -> float:
        self._number += 1
        began = time.perf_counter()
        found = list(session.step((0, tuple(path)), haves(many, at=f"s{self._number}_"), _LIMITS))
        assert {each.outcome for each in found} == {"goals"}, found
        return time.perf_counter() - began

    def _whole(self, path: Sequence[str]) -> float:
        """Return the seconds of an unsealed check of a program with the path and one tactic more."""
        self._number += 1
        tactics = [*path, f"have w{self._number} : q ∧ r := ⟨hq, hr⟩", "exact ⟨⟨hp, hq⟩, hr⟩"]
        body = "".join(f"  {each}\n" for each in tactics)
        program = f"{self._environment.header}{STATEMENT} := by\n{body}"
        began = time.perf_counter()
        report = self._checker.check(Check.of(program=program), self._environment)
        assert ending(report) is Ending.COMPLETE, report
        return time.perf_counter() - began

    def _ratios(self, taken: Mapping[str, list[float]]) -> Iterator[Figure]:
        def ratio(key: str, name: str, first: str, second: str, **bar: float) -> Figure:
            samples = tuple(a / b for a, b in zip(taken[first], taken[second], strict=True))
            return Figure(key=key, name=f"{name} ({self._isolation})", unit="", samples=samples, **bar)

        words = f"{_MANY} tactics a call, over whole programs, depth"
        yield ratio("steps_over_whole_10", f"{words} 10", "whole 9", "many 9", at_least=8)
        yield ratio("steps_over_whole_50", f"{words} 50", "whole 49", "many 49", at_least=20)
        yield ratio("steps_over_bare", "steps over bare resident steps", "bare 0", "many 0", at_least=0.5)
        name = "one tactic a call, over a check, depth 1"
        yield ratio("one_step_over_whole", name, "whole 0", "one 0", at_least=1.5)
        name = "a step at depth 50 over one at depth 1"
        yield ratio("depth_50_over_1", name, "many 49", "many 0", at_most=1.5)
        for name in ("many 0", "one 0", "bare 0", "whole 0", "whole 49"):
            key = f"ms_{name.replace(' ', '_')}"
            samples = tuple(1000 * each for each in taken[name])
            yield Figure(key=key, name=f"a tactic, {name}", unit="ms", samples=samples)

    def _memory(self, session: Session) -> Figure:
        self._stepped(session, (), 1)
        before = session.usage_kib()
        for _ in range(_KEPT // 50):
            self._stepped(session, (), 50)
        mib = (session.usage_kib() - before) / 1024
        return Figure(
            key="kept_states_mib", name=f"{_KEPT} kept states", unit="MiB", samples=(mib,), at_most=100
        )

    def _searches(self) -> Iterator[Figure]:
        """Measure the search by a list of tactics over sessions, and the same over whole programs."""
        ratios = []
        for statement in PROBLEMS:
            program = f"{self._environment.header}{statement} := by sorry\n"
            began = time.perf_counter()
            with closing(Session(program, self._environment, self._images, box.never)) as session:
                one = _searched(_ByState(session))
            by_state = time.perf_counter() - began
            began = time.perf_counter()
            other = _searched(_ByText(self._checker, self._environment, statement))
            ratios.append((time.perf_counter() - began) / by_state)
            assert (one.step is None) == (other.step is None), (statement, one, other)
        yield Figure(
            key="search_over_text",
            name="the same search by whole programs over sessions, time, same theorems found",
            unit="",
            samples=tuple(ratios),
            at_least=5,
        )

    def _after_endless(self) -> Figure:
        """Measure how long after the limit of an endless tactic the next tactic's answer comes."""
        with closing(self._opened(CLIMBS)) as session:
            late = []
            limits = StepLimits(seconds=_SECONDS)
            for _ in range(5):
                began = time.perf_counter()
                found = list(session.step((0, ()), [NEVER, "constructor"], limits))
                assert [each.outcome for each in found] == ["timeout", "goals"]
                late.append(1000 * (time.perf_counter() - began - _SECONDS))
        return Figure(
            key="after_endless_ms",
            name="the next answer after an endless tactic, beyond its limit",
            unit="ms",
            samples=(median(late),),
            at_most=100,
        )


def _searched(session: best_first.Session) -> best_first.Found:
    listed = tactics_in("tidy")
    limits = best_first.Limits(expansions=_EXPANSIONS)
    return best_first.Search(session, lambda _goals: listed, limits=limits).run()


def _state(tactics: Sequence[str], goals: Sequence[str]) -> State:
    return State(id=json.dumps(list(tactics)), root=0, tactics=tuple(tactics), goals=tuple(goals))


class _ByState:
    """A session as a search sees it, in this process."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.root = _state((), session.roots[0].goals)

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Try tactics on a state."""
        path = tuple(json.loads(state))
        limits = StepLimits(seconds=seconds, heartbeats=heartbeats)
        found = self._session.step((0, path), tactics, limits)
        return [
            Step(
                tactic=tactic,
                outcome=each.outcome,
                state=json.dumps([*path, tactic]) if each.has_state else None,
                goals=each.goals,
            )
            for tactic, each in zip(tactics, found, strict=True)
        ]


class _ByText:
    """The same over whole programs: each tactic elaborates all that stands before it."""

    def __init__(self, checker: Checker, environment: LeanEnvironment, statement: str) -> None:
        self._checker, self._environment, self._statement = checker, environment, statement
        self.root = _state((), self._goals(["skip"]) or ())

    def step(
        self, state: str, tactics: Sequence[str], *, seconds: float, heartbeats: int | None
    ) -> list[Step]:
        """Try tactics on a state."""
        del seconds, heartbeats
        return [self._tried([*json.loads(state), tactic]) for tactic in tactics]

    def _tried(self, tactics: list[str]) -> Step:
        goals = self._goals(tactics)
        if goals is None:
            return Step(tactic=tactics[-1], outcome="error")
        outcome = "goals" if goals else "no_goals"
        return Step(tactic=tactics[-1], outcome=outcome, state=json.dumps(tactics), goals=goals)

    def _goals(self, tactics: Sequence[str]) -> tuple[str, ...] | None:
        """Return the goals that tactics leave, None if one fails."""
        body = "".join(f"  ({each})\n" for each in tactics)
        program = f"{self._environment.header}{self._statement} := by\n{body}"
        report = self._checker.check(Check.of(program=program), self._environment)
        errors = [each.text for each in report.answer.messages if each.severity == "error"]
        if any(not each.startswith(_UNSOLVED) for each in errors):
            return None
        return tuple(each.removeprefix(_UNSOLVED) for each in errors)


@contextmanager
def _bare(environment: LeanEnvironment) -> Iterator[Callable[[Sequence[str], Sequence[str]], float]]:
    """Give a bare Lean: called with a path and tactics it returns the seconds that those take."""
    program = f"{environment.header}{STATEMENT} := by sorry\n"
    words = [sys.executable, "-c", _BARE, str(environment.library), program]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**environment_variables(environment), "PYTHONPATH": ":".join(sys.path), "UV_USE_IO_URING": "0"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        given, said = process.stdin, process.stdout

        def stepped(path: Sequence[str], many: Sequence[str]) -> float:
            given.write(json.dumps([list(path), list(many)]) + "\n")
            given.flush()
            return _seconds(said)

        try:
            yield stepped
        finally:
            given.close()


def _seconds(said: IO[str]) -> float:
    for line in said:
        if line.startswith("TOOK "):
            return float(line.split()[1])
    raise AssertionError("bare Lean has ended")
