"""Three ways to run Lean: the same answers, nothing carried over, and processes that come and go."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest
from farm_workers.audit.declarations import opened_module
from farm_workers.audit.names import dotted
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.fit import Fit, engine
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Question
from farm_workers.machine.environments import installed

from farm.assembly.challenge import Challenge
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.made_once import MadeOnce, copied
from tests.processes import Process, eventually, family
from tests.toolchains import script, toolchain

CASES = Path(__file__).parents[1] / "cases" / "verdict"
PROGRAMS = sorted(CASES.glob("*/*/program.lean")) + sorted(Path(__file__).with_name("core").glob("*.lean"))
HEADER = "prelude\nimport Core\n"
TRUE = HEADER + "theorem t : True := True.intro\n"
FALSE = HEADER + "theorem t : False := True.intro\n"
ENDLESS = (CASES / "timeout" / "endless_instances" / "program.lean").read_text()
WAYS = ("cold", "forked")

Make = Callable[..., Checker]


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that a box without namespaces can reach: its user may be another one than pytest's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture(scope="session")
def core(isolation: Isolation, made_once: MadeOnce) -> Iterator[LeanEnvironment]:
    """The embedded environment in a folder that every user can read."""
    made = made_once("environments", lambda folder: installed(folder, None, isolation))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield installed(copied(made, Path(folder)), None, isolation).sound["core"]


@pytest.fixture
def closed(isolation: Isolation, made_once: MadeOnce, tmp_path: Path) -> LeanEnvironment:
    """The same in a folder that the users of boxes may not enter."""
    inside = tmp_path / "closed"
    inside.mkdir(mode=0o700)
    made = made_once("environments", lambda folder: installed(folder, None, isolation))
    return installed(copied(made, inside), None, isolation).sound["core"]


@pytest.fixture
def make(isolation: Isolation, tmp_path: Path) -> Iterator[Make]:
    """Make checkers of the test's own."""
    made: list[Checker] = []

    def one(way: str = "forked", **settings: int) -> Checker:
        made.append(Checker(isolation, home=tmp_path / "home", way=way, **settings))
        return made[-1]

    yield one
    for checker in made:
        checker.close()


def reason(report: Report) -> Reason:
    return judge(report).reason


class Images:
    """The images that a test brought to life."""

    def __init__(self) -> None:
        self._others: set[int] = set()
        self._others = self.pids()

    def all(self) -> list[Process]:
        """Return them with their supervisors."""
        found = [each for each in family(os.getpid()) if "farm_workers.images.serve" in each.command]
        return [each for each in found if each.pid not in self._others]

    def pids(self) -> set[int]:
        return {each.pid for each in self.all()}

    def leaf(self) -> int:
        """Return the process id of the only one: neither a supervisor, nor a keeper, whose parent it is."""
        found = [each for each in self.all() if "launch.pyc" not in each.command and each.program != "bwrap"]
        (image,) = {each.pid for each in found if each.parent not in {other.pid for other in found}}
        return image


@pytest.fixture(scope="session")
def plainer(core: LeanEnvironment) -> LeanEnvironment:
    """The embedded environment whose forks elaborate command by command."""
    fit = Fit(digest=core.digest, lean=core.toolchain, source="run", engine=engine(), way="commands")
    return dataclasses.replace(core, fit=fit)


@pytest.fixture
def images() -> Images:
    return Images()


# The same answers.


def _limits(program: Path) -> Limits:
    expected = program.with_name("expected.json")
    given = json.loads(expected.read_text()).get("limits", {}) if expected.exists() else {}
    return dataclasses.replace(Limits(), **given)


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


TEXTS = {f"{path.parent.name}/{path.stem}": (path.read_text(), _limits(path)) for path in PROGRAMS} | {
    name: (text, Limits()) for name, text in TRICKY.items()
}
#: The command `lean` keeps a log of lints in the module, which a fork does not.
_LINTED = "warning_only/program"


#: Each way, one text has each limit; these have the same limits once more.
LIMITED_TOO = ("ever_more_goals/program", "endless_kernel/program")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LIMITED_TOO else []) for name in TEXTS]
)
def test_a_text_gets_the_same_verdict_messages_and_module_each_way(
    leans: LeanRunner, core: LeanEnvironment, plainer: LeanEnvironment, name: str
) -> None:
    text, limits = TEXTS[name]
    question = Question.of(text, core, limits, box.never)
    with leans.compiled(dataclasses.replace(question, way="cold")) as cold:
        module = _content(cold.module)
        assert module is not None or cold.report.run.limit or cold.report.run.exit_status != 0
    for asked in (
        question,
        dataclasses.replace(question, environment=plainer),
    ):
        with leans.compiled(asked) as reply:
            _require_same(reply.report, cold.report)
            if asked.way is None and name != _LINTED:
                _require_same_module(_content(reply.module), module, cold.report)


def _require_same(report: Report, cold: Report) -> None:
    assert (judge(report).outcome, judge(report).reason) == (judge(cold).outcome, judge(cold).reason)
    assert (report.run.exit_status, report.run.limit) == (cold.run.exit_status, cold.run.limit)
    if cold.run.limit is None:  # else they are those that came by then
        assert report.answer.messages == cold.answer.messages
    if cold.run.exit_status == 0:  # else Lean was not given a mark that it could read apart
        assert report.answer.reached_end == cold.answer.reached_end


def _require_same_module(one: bytes | None, other: bytes | None, cold: Report) -> None:
    if one and other and any(message.severity == "warning" for message in cold.answer.messages):
        # The command line also writes down what linters said, which nothing here reads.
        assert _declared(one) == _declared(other)
    else:
        assert one == other


def _content(module: BinaryIO | None) -> bytes | None:
    return None if module is None else module.read()


def _declared(module: bytes) -> list[tuple[str, ...]]:
    with opened_module(module) as opened:
        return sorted((dotted(name), opened.kind(name)) for name in opened.names)


def test_a_log_of_lints_is_not_sealed(checker: Checker, core: LeanEnvironment) -> None:
    check = Check.of(program=TEXTS[_LINTED][0], assurance=Assurance())
    cold, forked = (checker.check(check, core, way=way).audit for way in ("cold", "forked"))
    assert cold is not None
    assert forked is not None
    assert cold.module_sha256 != forked.module_sha256
    assert cold.sealed_sha256 == forked.sealed_sha256 is not None


@pytest.fixture(scope="module")
def leans(isolation: Isolation) -> Iterator[LeanRunner]:
    made = LeanRunner(isolation, way="forked", most_images=4)
    yield made
    made.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_report_tells_which_way_it_came(checker: Checker, core: LeanEnvironment, way: str) -> None:
    assert checker.check(Check.of(program=TRUE), core, way=way).way == way


# Nothing carried over.


def test_what_one_program_declares_the_next_one_cannot_see(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    declared = HEADER + "axiom cheat : False\ntheorem helper : True := True.intro\n"
    assert reason(checker.check(Check.of(program=declared), core)) is Reason.OK
    for use in ("theorem t : False := cheat\n", "theorem t : True := helper\n"):
        assert reason(checker.check(Check.of(program=HEADER + use), core)) is Reason.ERROR


def test_a_name_may_be_declared_again_by_the_next_program(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    assert [reason(checker.check(Check.of(program=TRUE), core)) for _ in range(3)] == [Reason.OK] * 3
    assert reason(checker.check(Check.of(program=FALSE), core)) is Reason.ERROR


def test_options_opened_names_and_notation_end_with_their_program(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    before = (
        "set_option maxRecDepth 20\nset_option warn.sorry false\nopen And\n"
        "namespace Inner\ntheorem t : True := True.intro\n"
    )
    checker.check(Check.of(program=HEADER + before), core)
    assert (
        reason(checker.check(Check.of(program=HEADER + "theorem t : True := sorry\n"), core))
        is Reason.HAS_SORRY
    )
    after = checker.check(
        Check.of(program=HEADER + "theorem t : True ∧ True := intro True.intro True.intro\n"), core
    )
    assert reason(after) is Reason.ERROR


def test_a_program_costs_the_same_heartbeats_after_one_that_began_alike(
    make: Make, core: LeanEnvironment
) -> None:
    # Lean reuses what two texts have in common, down to single tactics, and would not count it again.
    source = (CASES / "timeout" / "heartbeats" / "program.lean").read_text()
    checker = make(concurrency=1)
    fresh = checker.check(Check.of(program=source), core, way="cold")
    checker.check(Check.of(program=source + "\n-- once\n"), core)
    again = checker.check(Check.of(program=source + "\n-- twice\n"), core)
    assert again.way == "forked"
    assert (reason(again), again.answer.messages) == (reason(fresh), fresh.answer.messages)


# Processes.


def test_an_image_is_kept_from_check_to_check(make: Make, images: Images, core: LeanEnvironment) -> None:
    checker = make(concurrency=1)
    checker.check(Check.of(program=TRUE), core)
    first = images.pids()
    checker.check(Check.of(program=FALSE), core)
    assert first
    assert images.pids() == first


def test_no_process_is_left_when_a_checker_ends(make: Make, images: Images, core: LeanEnvironment) -> None:
    checker = make(concurrency=2)
    for _ in range(4):
        checker.check(Check.of(program=TRUE), core)
    checker.close()
    assert images.pids() == set()


def test_the_header_that_was_longest_not_asked_for_goes_first(
    make: Make, images: Images, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1, most_images=1)
    checker.check(Check.of(program=TRUE), core)
    first = images.pids()
    checker.check(Check.of(program="-- another\n" + TRUE), core)
    eventually(lambda: not images.pids() & first)
    assert images.pids()


@pytest.mark.newcomer
def test_messages_before_a_timeout_are_kept(checker: Checker, core: LeanEnvironment) -> None:
    program = HEADER + "theorem early : False := nothing\n" + ENDLESS.removeprefix(HEADER)
    for way in WAYS:
        report = checker.check(Check.of(program=program, limits=Limits(wall_seconds=1.0)), core, way=way)
        assert reason(report) is Reason.WALL_LIMIT
        assert [m.line for m in report.answer.messages] == [3], way


def test_processor_time_is_a_limit_of_its_own(checker: Checker, core: LeanEnvironment) -> None:
    for way in WAYS:
        limits = Limits(wall_seconds=30, cpu_seconds=0.7)
        report = checker.check(Check.of(program=ENDLESS, limits=limits), core, way=way)
        assert reason(report) is Reason.CPU_LIMIT, way
        assert report.run.cpu_seconds >= 0.7


def test_an_image_that_died_between_two_checks_costs_no_verdict(
    make: Make, images: Images, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check.of(program=TRUE), core)
    os.kill(images.leaf(), signal.SIGKILL)
    assert reason(checker.check(Check.of(program=TRUE), core)) is Reason.OK
    report = checker.check(Check.of(program=TRUE), core)
    assert (reason(report), report.way) == (Reason.OK, "forked")


def test_an_image_that_is_killed_under_a_check_is_the_farms_failure(
    make: Make, images: Images, core: LeanEnvironment
) -> None:
    checker = make(concurrency=1)
    checker.check(Check.of(program=TRUE), core)
    image, alone = images.leaf(), len(images.all())
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(checker.check, Check.of(program=ENDLESS, limits=Limits(wall_seconds=20)), core)
        eventually(lambda: len(images.all()) > alone)  # a cell has begun
        os.kill(image, signal.SIGKILL)
        assert judge(checking.result(60)).outcome is Outcome.JUDGE_ERROR
    assert reason(checker.check(Check.of(program=TRUE), core)) is Reason.OK


def test_a_cancelled_check_ends_and_its_image_serves_on(make: Make, core: LeanEnvironment) -> None:
    checker, cancel = make(concurrency=1), threading.Event()
    checker.check(Check.of(program=TRUE), core)
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(checker.check, Check.of(program=ENDLESS), core, cancelled=cancel.is_set)
        cancel.set()
        assert judge(checking.result(30)).outcome is Outcome.JUDGE_ERROR
    assert reason(checker.check(Check.of(program=TRUE), core)) is Reason.OK


def test_many_threads_share_an_image(make: Make, core: LeanEnvironment) -> None:
    checker = make(concurrency=4)
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda text: checker.check(Check.of(program=text), core), [TRUE, FALSE] * 20))
    assert [reason(r) for r in reports] == [Reason.OK, Reason.ERROR] * 20
    assert {r.way for r in reports} == {"forked"}


def test_a_crash_costs_nothing_but_its_own_fork(make: Make, images: Images, core: LeanEnvironment) -> None:
    program = (CASES / "rejected" / "crash" / "program.lean").read_text()
    checker = make()
    checker.check(Check.of(program=TRUE), core)
    before = images.pids()
    report = checker.check(Check.of(program=program), core)
    assert (reason(report), report.way) == (Reason.CRASH, "forked")
    assert images.pids() == before


def test_an_image_whose_file_is_gone_under_the_map_costs_no_proof_its_verdict(
    make: Make, images: Images, core: LeanEnvironment, tmp_path: Path
) -> None:
    folder = tmp_path / "modules"
    shutil.copytree(core.lean_path[0], folder)
    environment = dataclasses.replace(core, digest="copied", lean_path=(str(folder),))
    checker = make()
    checker.check(Check.of(program=TRUE), environment)
    before = images.pids()
    for module in folder.rglob("*.olean"):
        mapped = module.rename(module.with_suffix(".old"))
        shutil.copy(mapped, module)
        mapped.write_bytes(b"")
    report = checker.check(Check.of(program=TRUE), environment)
    assert (reason(report), report.way) == (Reason.OK, "cold")
    report = checker.check(Check.of(program=TRUE), environment)
    assert (reason(report), report.way) == (Reason.OK, "forked")
    assert not before & images.pids()


def test_a_program_of_ten_megabytes_is_judged(checker: Checker, core: LeanEnvironment) -> None:
    large = TRUE + "-- " + "x" * 80 + "\n"
    large += ("-- " + "x" * 97 + "\n") * 100_000
    for way in WAYS:
        assert reason(checker.check(Check.of(program=large), core, way=way)) is Reason.OK, way


# Time.


#: Seconds that a Lean takes here before it reads what it is given.
SLOW = 2.0


def slow_to_import(folder: Path, core: LeanEnvironment, way: str = f"sleep {SLOW}") -> LeanEnvironment:
    """Return the embedded environment with a Lean that takes its time."""
    made = toolchain(folder / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    script(made.lean, way, f"exec '{real}' \"$@\"")
    visible = (*core.visible, made.folder, *made.visible)
    return dataclasses.replace(core, lean=(str(made.lean),), visible=tuple(map(str, visible)))


def test_the_time_of_a_cold_check_starts_when_its_imports_are_read(
    make: Make, core: LeanEnvironment, tmp_path: Path
) -> None:
    slow = slow_to_import(tmp_path, core)
    checker = make("cold")
    first = checker.check(Check.of(program=TRUE, limits=Limits(wall_seconds=0.9 * SLOW)), slow)
    assert reason(first) is Reason.OK
    report = checker.check(Check.of(program=ENDLESS, limits=Limits(wall_seconds=0.3)), slow)
    assert reason(report) is Reason.WALL_LIMIT
    assert report.run.wall_seconds >= 0.3 + SLOW


def test_a_header_that_cannot_be_imported_is_the_programs_own_error_in_a_cold_check(
    make: Make, core: LeanEnvironment
) -> None:
    report = make("cold").check(Check.of(program="prelude\nimport Core.Moon\n"), core)
    assert reason(report) is Reason.ERROR


#: Seconds of processor time that a Lean uses here before it reads what it is given.
USED = 1
#: A shell's loop that ends when Linux tells it that it has used them.
BUSY = f"""\
most=$(ulimit -H -t)
trap 'ended=1' XCPU
ulimit -S -t {USED}
while [ -z "$ended" ]; do i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done; done
ulimit -S -t $most"""


def test_reading_a_header_for_the_first_time_costs_a_cold_check_no_time(
    make: Make, core: LeanEnvironment, tmp_path: Path
) -> None:
    busy = slow_to_import(tmp_path, core, BUSY)
    report = make("cold").check(Check.of(program=TRUE, limits=Limits(cpu_seconds=0.9 * USED)), busy)
    assert (reason(report), report.way) == (Reason.OK, "cold"), report
    assert report.run.cpu_seconds > 0.9 * USED


def test_a_worker_whose_files_are_private_can_do_all_that_others_can(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    asked = Challenge(program=f"{HEADER}theorem t : True := sorry\n", name="t")
    before = os.umask(0o077)
    try:
        with Checker(isolation, home=tmp_path / "home") as checker:
            for _ in range(3):
                sealed = Check.of(program=TRUE, challenge=asked, assurance=Assurance())
                report = checker.check(sealed, core)
                assert reason(report) is Reason.OK
                assert report.way == "forked"
    finally:
        os.umask(before)
