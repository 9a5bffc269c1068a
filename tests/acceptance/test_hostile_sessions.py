"""Hostile tactics: what a session's own code and lies cost, and that only the session pays, on real Lean."""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import textwrap
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import redis
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.procfs import Usage, threads
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.loop.context import Context, Threads
from farm_workers.loop.stepping import Stepping
from farm_workers.sessions.outcome import NoSession, SessionGone
from farm_workers.sessions.session import MOST_ROOTS, Session, StepLimits
from farm_workers.systems.lean.judge import LeanJudge

from farm.client.states import State, Step
from farm.errors import QueueFull, ServerDown, UnknownRun, UsageError
from farm.judging.job import Check
from farm.judging.report import Execution
from farm.judging.verdict import judge
from farm.sessions import front as fronts
from farm.sessions import wire
from farm.sessions.front import Front, Kept, StepOptions
from farm.sessions.states import filled
from tests.processes import PATIENCE, eventually, family

HEADER = "prelude\nimport Core\n"
STATEMENT = "theorem t (p q r : Prop) (hp : p) (hq : q) (hr : r) : (p ∧ q) ∧ r"
HONEST = f"{HEADER}{STATEMENT} := by sorry\n"
NATIVE = tomllib.loads((resources.files("farm_workers.exploits") / "native.toml").read_text())["parts"]


#: The most connections to Redis that a pool may open meanwhile.
_CONNECTIONS = 4


def descriptors() -> int:
    """Return how many files are open, except those of control groups, which are kept for later cells."""
    found = 0
    for each in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found += not str(each.readlink()).startswith("/sys/fs/cgroup")
    return found


# Processes in the place of a cell, which lie

#: A first process and its forks, which keep to the protocol until a tactic is none of theirs.
_LIAR = """
import contextlib, json, os, signal, socket, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
worker = socket.socket(fileno=int(sys.argv[1]))
{opening}
def tell(socket_, **answer):
    socket_.sendall(json.dumps(answer).encode() + b"\\n")
def serve(worker):
    forks = {{}}
    while True:
        order, files, _, _ = socket.recv_fds(worker, 9, 2)
        if not order:
            os._exit(0)
        if order[:1] == b"e":
            pid = forks.pop(int(order[1:]), 0)
            with contextlib.suppress(ProcessLookupError):
                pid and os.kill(pid, signal.SIGKILL)
            continue
        pid = os.fork()
        if pid == 0:
            worker.close()
            step(socket.socket(fileno=files[0]), json.load(open(files[1])))
        for file in files:
            os.close(file)
        forks[int(order[1:])] = pid
def step(told, asked):
    if "broken" in asked["path"]:
        os._exit(0)
    tell(told, outcome="ready")
    held = False
    for tactic in asked["tactics"]:
        if tactic == "skip":
            held = True
            tell(told, outcome="goals", goals=["g"], messages=[], cpu_ms=1.0)
        elif tactic == "error":
            tell(told, outcome="error", message="no", cpu_ms=1.0)
        else:
            lie(told)
    if held:
        serve(told)
    os._exit(0)
def lie(told):
{body}
serve(worker)
"""
_OPENING = json.dumps({"accepted": True, "roots": [{"line": 1, "column": 0, "is_term": False, "goals": []}]})


class _Fork:
    """A process tree in the place of a fork of an image."""

    def __init__(self, script: str, given: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", script, str(given)],
            pass_fds=[given],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout
        assert self._process.stderr
        self.stdout, self.stderr = self._process.stdout.fileno(), self._process.stderr.fileno()
        for pipe in (self.stdout, self.stderr):
            os.set_blocking(pipe, False)
        self.pid = self._process.pid
        self.over = os.pidfd_open(self.pid)
        self._is_closed = False

    def go(self) -> None:
        pass

    def usage(self) -> Usage:
        return Usage(cpu_seconds=0.0, memory_kib=0, peak_memory_kib=0, processes=1)

    def threads(self) -> Iterator[int]:
        return threads([self.pid])

    def breach(self) -> None:
        return None

    def ended(self) -> Execution:
        status = self._process.wait()
        return Execution(signal=-status) if status < 0 else Execution(exit_status=status)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.killpg(self.pid, 9)
            self._process.communicate()
            os.close(self.over)


class _Liar:
    """Images whose only session is a process that lies."""

    def __init__(self, body: str, opening: str = "") -> None:
        opening = opening or f"worker.sendall({_OPENING.encode()!r} + b'\\n')"
        body = textwrap.indent(textwrap.dedent(body), "    ")
        self._script = _LIAR.format(opening=textwrap.dedent(opening), body=body)
        self.forks: list[_Fork] = []

    @contextmanager
    def lease(self, *_key: object) -> Iterator[_Liar]:
        yield self

    def session(self, _request: object, _limits: object, theirs: Any) -> _Fork:
        self.forks.append(_Fork(self._script, theirs.fileno()))
        return self.forks[-1]

    def open(self) -> Session:
        return Session("program", cast("LeanEnvironment", None), cast("Any", self), box.never)


LIMITS = StepLimits(seconds=1.0)

#: What a tactic does with the socket on which its process answers, and the outcomes that it may get.
LIES = {
    "what_is_no_text": ("told.sendall(b'\\xff\\xfe\\0\\n'); time.sleep(60)", "crashed"),
    "what_is_no_object": ("told.sendall(b'[1]\\n'); time.sleep(60)", "crashed"),
    "a_line_without_an_end": ("told.sendall(b'x' * (6 << 20)); time.sleep(60)", "crashed timeout"),
    "lines_without_an_end": ("while True: told.sendall(b'x' * 65536)", "crashed"),
    "answers_without_an_end": (
        """
        line = b'{"outcome": "bad"}\\n' * 4096
        while True: told.sendall(line)
        """,
        "crashed",
    ),
    "half_an_answer_and_silence": ('told.sendall(b\'{"outcome": "no_\'); time.sleep(60)', "timeout"),
    "half_an_answer_and_an_exit": ('told.sendall(b\'{"outcome": "no_\'); os._exit(0)', "crashed"),
    "an_answer_nested_too_deeply": ("told.sendall(b'[' * 200000 + b'\\n'); time.sleep(60)", "crashed"),
    "an_object_nested_too_deeply": (
        "told.sendall(b'{\"a\":' * 200000 + b'\\n'); time.sleep(60)",
        "crashed",
    ),
    "an_outcome_that_only_a_seal_has": (
        "tell(told, outcome='proved')\nwhile True: pass",
        "crashed",
    ),
    "an_outcome_that_is_a_list": ("tell(told, outcome=[])\nwhile True: pass", "crashed"),
    "no_outcome": ("told.sendall(b'{}\\n'); time.sleep(60)", "crashed"),
    "a_time_that_is_no_number_of_a_machine": (
        "tell(told, outcome='error', cpu_ms=10**400); os._exit(0)",
        "error",
    ),
    "a_time_that_is_none": ("tell(told, outcome='error', cpu_ms=float('nan')); os._exit(0)", "error"),
    "a_time_below_zero": ("tell(told, outcome='error', cpu_ms=-1e300); os._exit(0)", "error"),
    "goals_that_are_none": (
        "tell(told, outcome='error', goals=[1, None, {}], message=[[]]); os._exit(0)",
        "error",
    ),
    "a_number_of_many_digits": (
        "told.sendall(b'{\"outcome\": ' + b'9' * 100000 + b'}\\n'); time.sleep(60)",
        "crashed",
    ),
    "a_closed_socket_and_work": (
        "told.shutdown(socket.SHUT_RDWR)\nwhile True: pass",
        "crashed",
    ),
    "every_descriptor_closed": ("told.detach(); os.closerange(0, 100); time.sleep(60)", "crashed"),
    "signals_ignored_and_work": (
        """
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True: pass
        """,
        "timeout",
    ),
    "a_stop_of_itself": ("os.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
    "a_fault": ("os.abort()", "crashed"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_process_that_lies_costs_the_outcome_of_its_own_tactic(name: str) -> None:
    body, expected = LIES[name]
    files, threads = descriptors(), threading.active_count()
    liar = _Liar(body)
    with closing(liar.open()) as session:
        found = list(session.step((0, ()), ["error", "lie", "skip"], LIMITS))
        assert found[0].outcome == "error"
        assert found[1].outcome in expected.split()
        assert all(0.0 <= each.cpu_ms < math.inf for each in found)
        assert all(isinstance(said, str) for each in found for said in (*each.goals, each.message))
        later = list(session.step((0, ()), ["skip", "error"], LIMITS))
        assert [each.outcome for each in later] == ["goals", "error"]
        # The first process, and one fork for each list that led to a state.
        eventually(lambda: len(family(liar.forks[0].pid)) <= 3)
    eventually(lambda: not family(liar.forks[0].pid))
    assert (descriptors(), threading.active_count()) == (files, threads)


def test_a_process_that_answers_for_later_tactics_is_not_asked_for_its_states_twice() -> None:
    body = """
    for _ in range(3): tell(told, outcome="no_goals", goals=[])
    os._exit(0)
    """
    with closing(_Liar(body).open()) as session:
        found = list(session.step((0, ()), ["lie", "error", "broken"], LIMITS))
        assert [each.outcome for each in found] == ["no_goals"] * 3  # which proves nothing
        assert [each.outcome for each in session.step((0, ()), ["error", "skip"], LIMITS)] == [
            "error",
            "goals",
        ]
        with pytest.raises(LookupError):
            list(session.step((0, ("broken",)), ["skip"], LIMITS))
        assert [each.outcome for each in session.step((0, ("error",)), ["skip"], LIMITS)] == ["goals"]


def test_a_holder_that_leads_nowhere_is_replaced() -> None:
    """It says that it holds a state, and ends when it is asked for it."""
    body = """
    tell(told, outcome="goals", goals=[])
    while socket.recv_fds(told, 9, 2)[0]: os._exit(0)
    """
    with closing(_Liar(body).open()) as session:
        assert [each.outcome for each in session.step((0, ()), ["lie"], LIMITS)] == ["goals"]
        assert [each.outcome for each in session.step((0, ("lie",)), ["skip"], LIMITS)] == ["goals"]


def test_a_holder_that_takes_no_order_ends_the_session_within_the_limit() -> None:
    body = """
    tell(told, outcome="goals", goals=[])
    while True: pass
    """
    liar = _Liar(body)
    with closing(liar.open()) as session:
        assert [each.outcome for each in session.step((0, ()), ["lie"], LIMITS)] == ["goals"]
        with pytest.raises(SessionGone):
            list(session.step((0, ("lie",)), ["skip"], LIMITS))
        eventually(lambda: not family(liar.forks[0].pid))


def test_answers_as_long_as_they_may_be_are_cut() -> None:
    body = """
    tell(told, outcome="goals", goals=["g" * 20] * 100_000, messages=["m"] * 100_000)
    tell(told, outcome="error", message="x" * 3_000_000)
    os._exit(0)
    """
    with closing(_Liar(body).open()) as session:
        long, error = session.step((0, ()), ["lie", "lie"], LIMITS)
    assert (len(long.goals), len(long.messages)) == (64, 16)
    assert len(error.message) <= 1 << 14


@pytest.mark.parametrize(
    ("opening", "why"),
    [
        ("worker.sendall(b'nonsense\\n'); time.sleep(60)", "spoiled"),
        ("worker.sendall(b'[' * 200000 + b'\\n'); time.sleep(60)", "spoiled"),
        ("worker.sendall(b'x' * (6 << 20)); time.sleep(60)", "spoiled"),
        ("os._exit(0)", "a crash"),
        ("worker.sendall(b'{\"error\": [[]]}\\n'); time.sleep(60)", r"\[\[\]\]"),
        ('worker.sendall(b\'{"accepted": 1, "roots": 7}\\n\'); time.sleep(60)', "no sorry"),
        ('worker.sendall(b\'{"accepted": 1, "roots": [{}]}\\n\'); time.sleep(60)', "outside"),
        (
            """
            root = {"line": 10**30, "column": 0, "goals": []}
            worker.sendall(json.dumps({"accepted": True, "roots": [root]}).encode() + b"\\n"); time.sleep(60)
            """,
            "outside",
        ),
        (
            """
            root = {"line": 1, "column": -5, "goals": []}
            worker.sendall(json.dumps({"accepted": True, "roots": [root]}).encode() + b"\\n"); time.sleep(60)
            """,
            "outside",
        ),
        (
            f"""
            roots = [{{"line": 1, "column": 0}}] * {MOST_ROOTS + 1}
            worker.sendall(json.dumps({{"accepted": True, "roots": roots}}).encode() + b"\\n"); time.sleep(60)
            """,
            "more than",
        ),
        (
            """
            worker.sendall(b'{"accepted": false}\\n')
            while True: os.write(1, b"x" * 65535 + b"\\n")
            """,
            "has errors",
        ),
    ],
)
def test_a_first_process_that_lies_opens_no_session(opening: str, why: str) -> None:
    files, liar = descriptors(), _Liar("pass", opening)
    with pytest.raises(NoSession, match=why):
        liar.open()
    eventually(lambda: not family(liar.forks[0].pid))
    assert descriptors() == files


# Code of tactics in a farm's worker


@dataclass(frozen=True, slots=True)
class Opened:
    """A session and its roots."""

    kept: Kept
    roots: tuple[State, ...]

    @property
    def id(self) -> str:
        return self.kept.id


class Worker:
    """A worker's sessions as services reach them, without a database; and a check on the same images."""

    def __init__(self, checker: Checker, core: LeanEnvironment, broker_url: str) -> None:
        self.checker, self._core = checker, core
        self.sessions = checker.sessions
        context = SimpleNamespace(
            name="hostile",
            threads=Threads(2),
            fit={"core": core},
            judges=SimpleNamespace(of=lambda _kind: LeanJudge(checker)),
            calling=threading.Event(),
        )
        self.threads = context.threads
        self.stepping = Stepping(cast("Context", context), broker_url)
        self.front = Front(broker_url)

    def open(self, program: str) -> Opened:
        return Opened(*self.front.open(program, "core"))

    def step(self, opened: Opened, *tactics: str, seconds: float = 2.0) -> list[Step]:
        options = StepOptions(seconds=seconds)
        return self.front.step(opened.kept, [(opened.roots[0].id, tactics)], options)[0]

    def proves(self, program: str) -> str | None:
        return judge(self.checker.check(Check.of(program=program), self._core)).outcome


@pytest.fixture(scope="module")
def own_checker(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    """A checker with images of its own, in which sessions and checks are forked."""
    with Checker(isolation, home=tmp_path_factory.mktemp("checker"), concurrency=2) as found:
        yield found


@pytest.fixture
def worker(
    own_checker: Checker, core: LeanEnvironment, redis_database: tuple[str, redis.Redis]
) -> Iterator[Worker]:
    with ExitStack() as held:
        found = Worker(own_checker, core, redis_database[0])
        held.callback(own_checker.sessions.close)
        found.stepping.start()
        held.callback(found.stepping.stop)
        held.callback(found.front.close)
        yield found


#: A tactic whose elaborator is the program's own code.
CHEAT = """
namespace Lean.Elab.Tactic
def Tactic : Type := SYNTAXES → Done
end Lean.Elab.Tactic
@[extern "native"] opaque Lean.Elab.Tactic.evalTactic (stx ctx state : Lean.Syntax) : Done
syntax (name := cheatTactic) "cheat!!" : tactic
@[tactic cheatTactic] def cheatIt : Lean.Elab.Tactic.Tactic := fun _ _ _ _ _ _ _ _ _ now => ARM
""".replace("SYNTAXES", " → ".join(["Lean.Syntax"] * 10))


def cheating(words: str, *, wait_ms: int = 300) -> str:
    """Return a program whose tactic runs a shell, and then waits."""
    quoted = json.dumps(words, ensure_ascii=False)
    arm = f"match shell {quoted} now with | .ok _ => pause {wait_ms} now | .error e => .error e"
    parts = f"{NATIVE['elaborator']}{NATIVE['exit']}{NATIVE['shell']}"
    return f"{HEADER}{parts}{CHEAT.replace('ARM', arm)}{STATEMENT} := by sorry\n"


#: What a shell that a tactic starts does; each runs for as long as the tactic waits, or longer.
HARM = {
    "kills_the_process_of_its_tactic": "kill -9 $PPID",
    "kills_all_processes_that_it_can": "kill -9 -1",
    "stops_all_processes_that_it_can": "kill -STOP -1",
    "asks_all_to_end": "kill -TERM -1; kill -HUP -1; kill -INT -1; kill -USR1 -1; kill -SEGV -1",
    "forks_without_end": "bomb() { bomb | bomb & }; bomb; sleep 1; bomb",
    "fills_its_folder": "i=0; while dd if=/dev/zero of=f$i bs=1M count=64; do i=$((i+1)); done 2>&-",
    "makes_files_without_end": "i=0; while : > f$i; do i=$((i+1)); done",
    "unlinks_all_that_it_can": "rm -rf ./* /tmp/* /dev/shm/* /var/tmp/*",
    "leaves_a_child": "(trap '' TERM HUP INT; sleep 600) &",
    "leaves_children_that_work": "for i in 1 2 3; do (trap '' TERM HUP INT; while :; do :; done) & done",
    "takes_memory": "x=x; while :; do x=$x$x; done",
    "writes_to_every_descriptor": (
        'for n in 0 1 2 3 4 5 6 7 8 9; do (printf \'{"outcome": "no_goals"}\\n\' >&$n); done 2>&-'
    ),
}


@pytest.mark.parametrize("name", HARM)
def test_a_tactic_that_does_harm_costs_itself_alone(worker: Worker, name: str) -> None:
    other = worker.open(HONEST)
    state = worker.step(other, "constructor")[0].state
    (kept_other,) = (each.session for each in worker.sessions._kept.values())
    assert worker.proves(HONEST.replace("by sorry", "⟨⟨hp, hq⟩, hr⟩")) == "proved"
    worker.front.end(worker.open(HONEST).kept)
    eventually(lambda: len(worker.sessions) == 1)
    images, files = worker.checker.images(), descriptors()
    kept = worker.open(cheating(HARM[name]))
    found = [each.outcome for each in worker.step(kept, "constructor", "cheat!!", "skip")]
    assert (found[0], found[2]) == ("goals", "goals")
    assert found[1] in {"goals", "error", "crashed", "timeout", "memory", "no_goals"}
    # The same session, another one that was there before, and a check on the same image.
    after = [each.outcome for each in worker.step(kept, "skip", "exact hr")]
    (done,) = worker.front.step(other.kept, [(state or "", ["exact ⟨hp, hq⟩", "exact hr"])])
    honest = HONEST.replace("by sorry", "⟨⟨hp, hq⟩, hr⟩")
    if name == "forks_without_end":
        # A bomb may take the processes of sessions, which are lost, and without a control group of checks.
        assert {*after, *(each.outcome for each in done)} <= {"goals", "error", "lost"}
        eventually(lambda: worker.proves(honest) == "proved", seconds=60.0)
    else:
        assert after == ["goals", "error"]
        assert [each.outcome for each in done] == ["goals", "error"]
        assert kept_other in [each.session for each in worker.sessions._kept.values()]
        assert worker.proves(honest) == "proved"
        assert {each for each, _ in worker.checker.images()} >= {each for each, _ in images}
    worker.front.end(kept.kept)
    eventually(lambda: len(worker.sessions) == 1)
    eventually(lambda: descriptors() <= files + _CONNECTIONS)


def test_processes_that_work_while_no_step_runs_are_ended(worker: Worker) -> None:
    kept = worker.open(cheating("(trap '' TERM HUP INT; while :; do :; done) &"))
    before = {each.pid for each in family(os.getpid())}
    assert worker.step(kept, "cheat!!")[0].outcome == "goals"
    assert {each.pid for each in family(os.getpid())} - before
    eventually(lambda: not len(worker.sessions))
    eventually(lambda: {each.pid for each in family(os.getpid())} <= before)
    assert [each.outcome for each in worker.step(kept, "constructor")] == ["goals"]


def test_many_tactics_that_end_their_session_cost_one_outcome_each(worker: Worker) -> None:
    kept = worker.open(cheating("kill -9 -1"))
    found = [each.outcome for each in worker.step(kept, "cheat!!", "skip", "cheat!!", "constructor")]
    assert found == ["crashed", "goals", "crashed", "goals"]


def test_orphans_of_ended_holders_are_reaped(worker: Worker) -> None:
    kept = worker.open(HONEST)
    state = kept.roots[0].id
    for number in range(100):
        (step,) = worker.front.step(kept.kept, [(state, [f"have k{number} : q := hq"])])[0]
        assert step.state
        state = step.state
    (session,) = (each.session for each in worker.sessions._kept.values())
    assert session
    # Zombies count: the limit of processes would be reached by them.
    assert session._fork.usage().processes <= 8 * 70
    assert zombies() == 0


def zombies() -> int:
    """Return how many processes below this one have ended and are not reaped."""
    parents = {}
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = (each / "stat").read_text().rpartition(")")[2].split()
            parents[int(each.name)] = fields[0], int(fields[1])
    ours = {os.getpid()}
    while more := {pid for pid, (_, parent) in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(parents[pid][0] == "Z" for pid in ours if pid in parents)


def test_a_program_that_says_much_opens_a_session(worker: Worker) -> None:
    text = "".join(f"theorem t{number} : True := by sorry\n" for number in range(900))
    assert len(worker.open(HEADER + text).roots) == 900


@pytest.mark.parametrize(
    "tactic",
    [
        "sorry",
        "admit",
        "exact sorry",
        "exact (by sorry)",
        "exact t p q r hp hq hr",
        "apply t <;> assumption",
        "have h := t p q r hp hq hr; exact h",
        "refine ⟨⟨hp, ?_⟩, ?_⟩ <;> sorry",
        "refine ⟨⟨hp, hq⟩, ?later⟩; case later => sorry",
        "constructor; all_goals sorry",
        "exact (fun h => h : (p ∧ q) ∧ r → _) sorry",
        "stop",
    ],
)
def test_no_trick_on_a_state_is_sealed_as_a_proof(worker: Worker, tactic: str) -> None:
    kept = worker.open(HONEST)
    (step,) = worker.step(kept, tactic)
    if step.state:
        text = filled(HONEST, [(kept.roots[0], [tactic])])
        assert worker.proves(text) != "proved"


def test_a_forged_answer_is_not_sealed_as_a_proof(worker: Worker) -> None:
    words = 'for n in 3 4 5 6 7 8 9; do (printf \'{"outcome": "no_goals"}\\n\' >&$n); done 2>&-'
    program = cheating(words)
    kept = worker.open(program)
    worker.step(kept, "cheat!!", "skip")
    assert worker.proves(filled(program, [(kept.roots[0], ["cheat!!"])])) != "proved"


# Requests


def ask(client: redis.Redis, **changes: object) -> dict[str, Any] | None:
    """Send a request of a session that is not kept; return the answer, None if there is none in a while."""
    asked = {
        "id": "i",
        "answers": "answers",
        "session": "s",
        "environment": "core",
        "do": "step",
        "attempts": [{"root": 0, "path": [], "tactics": ["skip"]}],
        "seconds": 1.0,
        "heartbeats": None,
        "first_success": False,
        **changes,
    }
    words = {name: value for name, value in asked.items() if value is not ...}
    client.rpush(wire.of_worker("hostile"), json.dumps(words))
    for _ in range(2):
        found = cast("Any", client.blpop(["answers"], timeout=int(2 * PATIENCE)))
        if found is None:
            return None
        answer: dict[str, Any] = json.loads(found[1])
        if "begun" not in answer:
            return answer
    return None


@pytest.mark.parametrize(
    "changes",
    [
        {"environment": "nowhere"},
        {"environment": ["core"]},
        {"environment": ...},
        {"session": ...},
        {"session": 7},
        {"do": "dance"},
        {"attempts": ...},
        {"attempts": 7},
        {"attempts": [7]},
        {"attempts": [{"root": 0, "path": []}]},
        {"attempts": [{"root": [], "path": [], "tactics": ["skip"]}]},
        {"attempts": [{"root": 7, "path": [], "tactics": ["skip"]}]},
        {"attempts": [{"root": -1, "path": [], "tactics": ["skip"]}]},
        {"attempts": [{"root": 10**400, "path": [], "tactics": ["skip"]}]},
        {"attempts": [{"root": 0, "path": [1, None], "tactics": ["skip"]}]},
        {"attempts": [{"root": 0, "path": ["nonsense"], "tactics": ["skip"]}]},
        {"attempts": [{"root": 0, "path": [], "tactics": [1]}]},
        {"attempts": [{"root": 0, "path": [], "tactics": None}]},
        {"seconds": math.nan},
        {"seconds": 1e300},
        {"seconds": -1},
        {"seconds": "1"},
        {"seconds": ...},
        {"heartbeats": "many"},
        {"heartbeats": 10**400},
        {"heartbeats": -5},
        {"first_success": []},
    ],
    ids=lambda changes: json.dumps(changes, default=lambda _: "missing")[:60],
)
def test_a_malformed_request_gets_an_answer_and_costs_nothing(
    worker: Worker, redis_database: tuple[str, redis.Redis], changes: dict[str, object]
) -> None:
    kept, (_, client) = worker.open(HONEST), redis_database
    answer = ask(client, **{"session": kept.id, **changes})
    assert answer is not None
    assert {"failed", "refused", "tried"} & set(answer)
    assert [each.outcome for each in worker.step(kept, "constructor")] == ["goals"]
    eventually(lambda: worker.threads.busy == 0)


@pytest.mark.parametrize(
    "words", [b"", b"nonsense", b"[" * 100_000, b"7", b"[]", b"{}", b'{"do": "close"}', b"\xff"]
)
def test_what_is_no_request_is_dropped(
    worker: Worker, redis_database: tuple[str, redis.Redis], words: bytes
) -> None:
    for _ in range(4):  # more than there are slots
        redis_database[1].rpush(wire.of_worker("hostile"), words)
    kept = worker.open(HONEST)
    assert [each.outcome for each in worker.step(kept, "constructor")] == ["goals"]
    eventually(lambda: worker.threads.busy == 0)


@pytest.mark.parametrize("words", ["1", "", "[]", "nonsense"])
def test_what_is_no_report_of_a_worker_counts_for_nothing(
    worker: Worker, redis_database: tuple[str, redis.Redis], words: str
) -> None:
    redis_database[1].set(wire.alive("other"), words)
    assert worker.front.at_work(["other", "gone"]) == {"sessions": 0, "steps": 0, "killed": 0}


def test_thousands_of_tactics_are_tried_one_after_the_other(
    worker: Worker, redis_database: tuple[str, redis.Redis]
) -> None:
    kept = worker.open(HONEST)
    many = {"root": 0, "path": [], "tactics": ["nonsense"] * 3000}
    answer = ask(redis_database[1], session=kept.id, attempts=[many])
    assert answer is not None
    assert {each["outcome"] for each in answer["tried"]} == {"error"}


def test_the_answer_to_a_call_is_bounded(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_ANSWER_CHARACTERS", 100)
    found = worker.step(worker.open(HONEST), "skip", "constructor", "skip")
    assert [each.outcome for each in found] == ["goals", "error", "error"]
    assert "longer than 100 characters" in found[1].message


def test_the_time_of_a_call_is_bounded(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_CALL_SECONDS", 1.0)
    kept = worker.open(cheating(":", wait_ms=600))
    found = worker.step(kept, "cheat!!", "cheat!!", "cheat!!", "cheat!!")
    assert [each.outcome for each in found] == ["goals", "goals", "timeout", "timeout"]


# What Redis keeps


def test_what_is_kept_of_a_session_that_never_opens_has_an_end(
    redis_database: tuple[str, redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fronts, "ROOM_SECONDS", 0.1)
    url, client = redis_database
    with closing(Front(url)) as front, pytest.raises((QueueFull, ServerDown)):
        front.open(HONEST, "core")
    keys = cast("list[bytes]", client.keys("farm:session:*"))
    assert keys
    assert all(0 < client.ttl(key) <= wire.KEPT_SECONDS for key in keys)


def _lost_while_it_is_opened(worker: Worker, client: redis.Redis, patch: pytest.MonkeyPatch) -> None:
    keep_states = Front._keep_states

    def lost(*given: Any, **options: Any) -> None:
        keep_states(*given, **options)
        client.flushdb()

    patch.setattr(Front, "_keep_states", lost)
    worker.open(HONEST)


def _lost_before_its_worker_is_noted(worker: Worker, client: redis.Redis, _patch: pytest.MonkeyPatch) -> None:
    opened = worker.open(HONEST)
    client.flushdb()
    assert ask(client, session=opened.id, do=wire.OPEN)


def _lost_before_a_step_is_kept(worker: Worker, client: redis.Redis, _patch: pytest.MonkeyPatch) -> None:
    opened = worker.open(HONEST)
    client.flushdb()
    worker.front._keep_states(opened.id, opened.roots, tried=1)


def _ended_for_a_worker_that_is_gone(worker: Worker, client: redis.Redis, _patch: pytest.MonkeyPatch) -> None:
    opened = worker.open(HONEST)
    client.hset(wire.kept(opened.id), "worker", "gone")
    worker.front.end(opened.kept)
    assert client.exists(wire.of_worker("gone"))


@pytest.mark.parametrize(
    "happens",
    [
        _lost_while_it_is_opened,
        _lost_before_its_worker_is_noted,
        _lost_before_a_step_is_kept,
        _ended_for_a_worker_that_is_gone,
    ],
)
def test_every_key_expires(
    worker: Worker,
    redis_database: tuple[str, redis.Redis],
    monkeypatch: pytest.MonkeyPatch,
    happens: Callable[[Worker, redis.Redis, pytest.MonkeyPatch], None],
) -> None:
    happens(worker, redis_database[1], monkeypatch)
    keys = cast("list[bytes]", redis_database[1].keys("farm:*"))
    assert keys
    assert [key for key in keys if redis_database[1].ttl(key) == -1] == []


def test_a_session_that_redis_lost_is_unknown_and_no_fault_of_its_program(
    worker: Worker, redis_database: tuple[str, redis.Redis]
) -> None:
    kept = worker.open(HONEST)
    worker.sessions.end(kept.id)
    redis_database[1].delete(wire.kept(kept.id))
    with pytest.raises(UnknownRun, match="no session"):
        worker.step(kept, "skip")


def test_the_tactics_of_a_state_are_bounded_together(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_PATH_CHARACTERS", 30)
    kept = worker.open(HONEST)
    first = worker.step(kept, "have k : q := hq")[0]
    with pytest.raises(UsageError, match="at most 30 characters"):
        worker.front.step(kept.kept, [(first.state or "", ["have l : q := hq"])])


def test_what_is_kept_of_a_session_is_bounded(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_KEPT_CHARACTERS", 1000)
    kept = worker.open(HONEST)
    with pytest.raises(UsageError, match="keeps at most 1000 characters"):
        for number in range(100):
            worker.step(kept, f"have k{number} : q := hq")
