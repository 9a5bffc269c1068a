"""Three ways to run Lean: the same answers, nothing carried over, and processes that come and go."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest
from processes import Process, eventually, family

from farm.assurance import Assurance
from farm.challenge import Challenge
from farm.header import brings_code
from farm.job import Check, Limits
from farm.tiers import Tier
from farm.verdict import Outcome, Reason, Report, judge
from workers.box import once as box
from workers.box.isolation import Isolation
from workers.checker import Checker
from workers.environments import LeanEnvironment
from workers.forks.server import PerThread
from workers.ways.cold import Cold
from workers.ways.forked import Forked
from workers.ways.snapshot import Snapshot, is_plain
from workers.ways.way import Doubtful, Question

CASES = Path(__file__).parents[1] / "cases" / "verdict"
PROGRAMS = sorted(CASES.glob("*/*/program.lean")) + sorted(Path(__file__).with_name("core").glob("*.lean"))
HEADER = "prelude\nimport Core\n"
TRUE = HEADER + "theorem t : True := True.intro\n"
FALSE = HEADER + "theorem t : False := True.intro\n"
ENDLESS = (CASES / "timeout" / "endless_instances" / "program.lean").read_text()
WAYS = ("cold", "snapshot", "resident")

Make = Callable[..., Checker]


@pytest.fixture
def make(isolation: Isolation, tmp_path: Path) -> Iterator[Make]:
    """Make checkers of the test's own."""
    made: list[Checker] = []

    def one(way: str = "resident", **settings: int) -> Checker:
        made.append(Checker(isolation, home=tmp_path / "home", way=way, **settings))
        return made[-1]

    yield one
    for checker in made:
        checker.close()


def reason(report: Report) -> Reason:
    return judge(report).reason


class Residents:
    """The resident Leans that a test brought to life."""

    def __init__(self) -> None:
        self._others: set[int] = set()
        self._others = self.pids()

    def all(self) -> list[Process]:
        """Return them with their supervisors."""
        found = [each for each in family(os.getpid()) if "--worker" in each.command]
        return [each for each in found if each.pid not in self._others]

    def pids(self) -> set[int]:
        return {each.pid for each in self.all()}

    def leaf(self) -> int:
        """Return the process id of the only one: of those found, the one that is nobody's parent."""
        found = self.all()
        (lean,) = {each.pid for each in found} - {each.parent for each in found}
        return lean


@pytest.fixture
def residents() -> Residents:
    return Residents()


# The same answers.


def _limits(program: Path) -> Limits:
    expected = program.with_name("expected.json")
    given = json.loads(expected.read_text()).get("limits", {}) if expected.exists() else {}
    return dataclasses.replace(Limits(), **given)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_program_gets_the_same_verdict_and_messages_each_way(
    checker: Checker, core: LeanEnvironment, path: Path
) -> None:
    reports = [
        checker.check(Check(program=path.read_text(), limits=_limits(path)), core, way=way) for way in WAYS
    ]
    assert [(judge(r).outcome, judge(r).reason) for r in reports] == [
        (judge(reports[0]).outcome, judge(reports[0]).reason)
    ] * 3
    if reports[0].limit is None:  # else they are those that came by then
        assert reports[1].messages == reports[0].messages
        assert reports[2].messages == reports[0].messages


TRICKY = {
    "crlf": HEADER.replace("\n", "\r\n") + "theorem t : True :=\r\n  ωx\r\n",
    "wide_characters": HEADER + "theorem 𝕏ω : True := by\n  exact 𝕏𝕏𝕏x\n  exact y\n",
    "no_end_of_line": HEADER + "theorem t : True := x",
    "only_a_header": "prelude\nimport Core",
    "no_header": "theorem t : True := x",
    "empty": "",
    "comment_before_the_header": "/- a /- b -/ -/ prelude -- c\nimport Core theorem t : True := x",
    "a_bad_import": "prelude\nimport Core\nimport No.Such\ntheorem t : True := x",
    "a_wrong_header": "prelude\nimport\ntheorem t : True := x",
    "two_errors_on_a_line": HEADER + "example : True := x\nexample : True ∧ True := And.intro a b\n",
    "never_closed": HEADER + "theorem t : True := by (exact True.intro",
    "an_open_comment": HEADER + "theorem t : True := True.intro /- no end",
    "its_own_end_mark": HEADER + '#print "0123456789abcdef"\ntheorem t : True := True.intro\n',
    "protocol_in_a_message": HEADER + '#print "{\\"id\\":2}Content-Length: 2\\r\\n\\r\\n{}"\n',
    "a_module": "module\nprelude\nimport Core\ntheorem t : True := True.intro\n",
}


@pytest.mark.parametrize("name", TRICKY)
def test_a_tricky_text_gets_the_same_verdict_and_messages_each_way(
    checker: Checker, core: LeanEnvironment, name: str
) -> None:
    cold, snapshot, resident = (checker.check(Check(program=TRICKY[name]), core, way=way) for way in WAYS)
    assert reason(snapshot) == reason(resident) == reason(cold)
    assert snapshot.messages == cold.messages
    assert resident.messages == cold.messages


def _content(module: BinaryIO | None) -> bytes | None:
    if module is None:
        return None
    with module:
        return module.read()


_WITH_LIMITS = {path.parent.name: (path.read_text(), _limits(path)) for path in PROGRAMS} | {
    name: (text, Limits()) for name, text in TRICKY.items()
}
#: What may bring code is compiled by a fresh Lean.
COMPILED = {name: each for name, each in _WITH_LIMITS.items() if not brings_code(each[0])}


@pytest.mark.parametrize("name", COMPILED)
def test_a_fork_of_a_lean_that_has_begun_compiles_as_a_fresh_one_does(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path, name: str
) -> None:
    cold, servers = Cold(isolation), PerThread(isolation)
    forked = Forked(servers, cold, Snapshot(isolation, tmp_path / "snapshots", most_mib=100))
    text, limits = COMPILED[name]
    question = Question.of(text, core, limits, box.never)
    try:
        expected, module = cold.compile(question, tmp_path)
        expected_bytes = _content(module)
        for turn in range(3):  # the last one begins with a snapshot
            try:
                reply, module = forked.compile(question)
            except Doubtful:  # whether it was the snapshot that Lean died of, a fresh one tells
                assert (turn, is_plain(expected.run, expected.answer)) == (2, False)
                continue
            assert (reply.run.exit_status, reply.run.limit) == (expected.run.exit_status, expected.run.limit)
            assert reply.answer.reached_end == expected.answer.reached_end
            assert _content(module) == expected_bytes
            if expected.run.limit is None:  # else they are those that came by then
                assert reply.answer.messages == expected.answer.messages
    finally:
        servers.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_report_tells_which_way_it_came(checker: Checker, core: LeanEnvironment, way: str) -> None:
    assert checker.check(Check(program=TRUE), core, way=way).way == way


# Nothing carried over.


def test_what_one_program_declares_the_next_one_cannot_see(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    declared = HEADER + "axiom cheat : False\ntheorem helper : True := True.intro\n"
    assert reason(checker.check(Check(program=declared), core)) is Reason.OK
    for use in ("theorem t : False := cheat\n", "theorem t : True := helper\n"):
        assert reason(checker.check(Check(program=HEADER + use), core)) is Reason.ERROR


def test_a_name_may_be_declared_again_by_the_next_program(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    assert [reason(checker.check(Check(program=TRUE), core)) for _ in range(3)] == [Reason.OK] * 3
    assert reason(checker.check(Check(program=FALSE), core)) is Reason.ERROR


def test_options_opened_names_and_notation_end_with_their_program(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    before = (
        "set_option maxRecDepth 20\nset_option warn.sorry false\nopen And\n"
        "namespace Inner\ntheorem t : True := True.intro\n"
    )
    checker.check(Check(program=HEADER + before), core)
    assert (
        reason(checker.check(Check(program=HEADER + "theorem t : True := sorry\n"), core)) is Reason.HAS_SORRY
    )
    after = checker.check(
        Check(program=HEADER + "theorem t : True ∧ True := intro True.intro True.intro\n"), core
    )
    assert reason(after) is Reason.ERROR


def test_a_program_costs_the_same_heartbeats_after_one_that_began_alike(
    make: Make, core: LeanEnvironment
) -> None:
    # Lean reuses what two texts have in common, down to single tactics, and would not count it again.
    source = (CASES / "timeout" / "heartbeats" / "program.lean").read_text()
    checker = make(concurrency=1)
    fresh = checker.check(Check(program=source), core, way="cold")
    checker.check(Check(program=source + "\n-- once\n"), core)
    again = checker.check(Check(program=source + "\n-- twice\n"), core)
    assert again.way == "resident"
    assert (reason(again), again.messages) == (reason(fresh), fresh.messages)


def test_a_program_that_brings_code_gets_a_process_of_its_own(make: Make, core: LeanEnvironment) -> None:
    report = make().check(Check(program=TRUE + "-- unsafe\n"), core)
    assert (report.way, reason(report)) == ("snapshot", Reason.OK)


# Processes.


def test_a_resident_lean_is_kept_from_check_to_check(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    first = residents.pids()
    checker.check(Check(program=FALSE), core)
    assert first
    assert residents.pids() == first


def test_a_popular_header_has_a_process_in_reserve(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    one = len(residents.pids())
    for _ in range(3):
        checker.check(Check(program=TRUE), core)
    eventually(lambda: len(residents.pids()) == 2 * one)


def test_no_process_is_left_when_a_checker_ends(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=2)
    for _ in range(4):
        checker.check(Check(program=TRUE), core)
    checker.close()
    assert residents.pids() == set()


def test_the_header_that_was_longest_not_asked_for_goes_first(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1, residents=1)
    checker.check(Check(program=TRUE), core)
    first = residents.pids()
    checker.check(Check(program="-- another\n" + TRUE), core)
    eventually(lambda: not residents.pids() & first)
    assert residents.pids()


def test_a_timeout_tells_where_lean_was_and_keeps_the_process(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    before = residents.pids()
    report = checker.check(Check(program=ENDLESS, limits=Limits(wall_seconds=0.5)), core)
    assert (reason(report), report.stopped_at) == (Reason.WALL_LIMIT, 7)
    assert "line 7" in judge(report).detail
    assert reason(checker.check(Check(program=TRUE), core)) is Reason.OK
    assert before <= residents.pids()


def test_messages_before_a_timeout_are_kept(checker: Checker, core: LeanEnvironment) -> None:
    program = HEADER + "theorem early : False := nothing\n" + ENDLESS.removeprefix(HEADER)
    for way in WAYS:
        report = checker.check(Check(program=program, limits=Limits(wall_seconds=1.0)), core, way=way)
        assert reason(report) is Reason.WALL_LIMIT
        assert [m.line for m in report.messages] == [3], way


def test_processor_time_is_a_limit_of_its_own(checker: Checker, core: LeanEnvironment) -> None:
    for way in WAYS:
        limits = Limits(wall_seconds=30, cpu_seconds=0.7)
        report = checker.check(Check(program=ENDLESS, limits=limits), core, way=way)
        assert reason(report) is Reason.CPU_LIMIT, way
        assert 0.7 <= report.cpu_seconds < 5


def test_a_process_that_does_not_go_quiet_is_replaced(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    # The kernel computes this in native calls that take seconds each and listen to nobody.
    deaf = HEADER + "theorem t : Nat.gcd (3 ^ 16000000) (5 ^ 10000000) = 1 := by decide +kernel\n"
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    before = residents.pids()
    report = checker.check(Check(program=deaf, limits=Limits(wall_seconds=0.5)), core)
    assert reason(report) is Reason.WALL_LIMIT
    assert reason(checker.check(Check(program=TRUE), core)) is Reason.OK
    eventually(lambda: not residents.pids() & before)


def test_a_lean_that_is_killed_from_outside_costs_no_verdict(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    lean = residents.leaf()
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(checker.check, Check(program=ENDLESS, limits=Limits(wall_seconds=2)), core)
        eventually(lambda: _cpu_ticks(lean) > 20)
        os.kill(lean, signal.SIGKILL)
        report = checking.result(60)
    assert (reason(report), report.way) == (Reason.WALL_LIMIT, "cold")


def _cpu_ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_a_lean_that_died_between_two_checks_costs_no_verdict(
    make: Make, residents: Residents, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check(program=TRUE), core)
    os.kill(residents.leaf(), signal.SIGKILL)
    assert reason(checker.check(Check(program=TRUE), core)) is Reason.OK
    report = checker.check(Check(program=TRUE), core)
    assert (reason(report), report.way) == (Reason.OK, "resident")


def test_a_cancelled_check_ends_and_its_process_serves_on(make: Make, core: LeanEnvironment) -> None:
    checker, cancel = make(concurrency=1), threading.Event()
    checker.check(Check(program=TRUE), core)
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(checker.check, Check(program=ENDLESS), core, cancelled=cancel.is_set)
        cancel.set()
        assert judge(checking.result(30)).outcome is Outcome.JUDGE_ERROR
    assert reason(checker.check(Check(program=TRUE), core)) is Reason.OK


def test_many_threads_share_the_processes(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=4)
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda text: checker.check(Check(program=text), core), [TRUE, FALSE] * 20))
    assert [reason(r) for r in reports] == [Reason.OK, Reason.ERROR] * 20
    assert {r.way for r in reports} == {"resident"}


def test_a_crash_is_confirmed_by_a_fresh_process(make: Make, core: LeanEnvironment) -> None:
    program = (CASES / "rejected" / "crash" / "program.lean").read_text()
    report = make().check(Check(program=program), core)
    assert (reason(report), report.way) == (Reason.CRASH, "cold")


def test_a_program_of_ten_megabytes_is_judged(checker: Checker, core: LeanEnvironment) -> None:
    large = TRUE + "-- " + "x" * 80 + "\n"
    large += ("-- " + "x" * 97 + "\n") * 100_000
    for way in WAYS:
        assert reason(checker.check(Check(program=large), core, way=way)) is Reason.OK, way


# Snapshots.


def test_a_snapshot_is_made_once_however_many_ask(make: Make, core: LeanEnvironment, tmp_path: Path) -> None:
    checkers = [make("snapshot"), make("snapshot")]
    with ThreadPoolExecutor(6) as pool:
        reports = list(pool.map(lambda n: checkers[n % 2].check(Check(program=TRUE), core), range(12)))
    assert {(r.way, reason(r)) for r in reports} == {("snapshot", Reason.OK)}
    assert len(list((tmp_path / "home" / "snapshots").iterdir())) == 1


def test_the_oldest_snapshots_go_when_all_are_too_large(
    make: Make, core: LeanEnvironment, tmp_path: Path
) -> None:
    checker = make("snapshot", snapshot_mib=10)  # one takes about four
    folder = tmp_path / "home" / "snapshots"
    for number in range(4):
        checker.check(Check(program=f"-- {number}\n{TRUE}"), core)
        newest = max(folder.iterdir(), key=lambda file: file.stat().st_mtime)
        assert 1 <= len(list(folder.iterdir())) <= 2
        assert newest.exists()


def test_a_broken_snapshot_costs_no_verdict(make: Make, core: LeanEnvironment, tmp_path: Path) -> None:
    checker = make("snapshot")
    checker.check(Check(program=TRUE), core)
    (snapshot,) = (tmp_path / "home" / "snapshots").glob("*/*.snap")
    snapshot.write_bytes(snapshot.read_bytes()[:1000])
    assert reason(checker.check(Check(program=TRUE), core)) is Reason.OK


def test_a_header_with_an_error_gets_the_same_answer_without_a_snapshot(
    make: Make, core: LeanEnvironment, tmp_path: Path
) -> None:
    report = make("snapshot").check(Check(program="prelude\nimport No.Such\n"), core)
    assert (reason(report), report.way) == (Reason.ERROR, "cold")
    assert list((tmp_path / "home" / "snapshots").iterdir()) == []


# Time.


def test_the_time_of_a_cold_check_starts_when_its_imports_are_read(make: Make, core: LeanEnvironment) -> None:
    checker = make("cold")
    first = checker.check(Check(program=TRUE), core)
    report = checker.check(Check(program=ENDLESS, limits=Limits(wall_seconds=0.3)), core)
    assert reason(report) is Reason.WALL_LIMIT
    assert report.wall_seconds >= 0.3 + first.wall_seconds


def test_a_worker_whose_files_are_private_can_do_all_that_others_can(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    asked = Challenge(program=f"{HEADER}theorem t : True := sorry\n", name="t")
    before = os.umask(0o077)
    try:
        with Checker(isolation, home=tmp_path / "home") as checker:
            for _ in range(3):  # the last one begins with a snapshot
                sealed = Check(program=TRUE, challenge=asked, assurance=Assurance())
                report = checker.check(sealed, core)
                assert reason(report) is Reason.OK
                assert report.way == "forked"
            assert checker.check(Check(program=TRUE), core, way="snapshot").way == "snapshot"
    finally:
        os.umask(before)


def test_fork_servers_that_are_killed_cost_time_and_no_verdict(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    asked = Challenge(program=f"{HEADER}theorem t : True := sorry\n", name="t")
    audited = Check(program=TRUE, challenge=asked, assurance=Assurance(tier=Tier.AUDIT))
    with Checker(isolation, home=tmp_path / "home") as checker:
        assert checker.check(audited, core).way == "forked"
        servers = [each.pid for each in family(os.getpid()) if "workers.forks" in each.command]
        assert servers
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        reports = [checker.check(audited, core) for _ in range(3)]
        assert [reason(report) for report in reports] == [Reason.OK] * 3
        assert reports[-1].way == "forked"
