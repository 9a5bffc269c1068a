"""Prepared Leans: the answers of a fresh Lean, one program each, and no word of theirs makes a proof."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, judged, one_of_each, read
from farm_workers.lean.compile import LeanRunner
from farm_workers.lean.way import Doubtful, Question, Reply

from farm.allotment import cores
from farm.judging.ending import Ending, ending
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, Reason, judge
from farm.limits import Limits
from tests.acceptance.test_ways import ENDLESS, FALSE, HEADER, TEXTS, TRUE
from tests.isolation_levels import groups
from tests.processes import PATIENCE, Process, eventually, family
from tests.toolchains import script, toolchain

#: Refusals that are left to a fresh Lean all the same, and why.
LEFT = {
    "heartbeats_of_instance_search/program": "heartbeats may run out where a fresh Lean's do not",
    "unknown_module/program": "the header cannot be imported",
    "a_bad_import": "the header cannot be imported",
    "a_wrong_header": "the header cannot be imported",
    "no_header": "the header cannot be imported: it stands for Init",
    "empty": "the header cannot be imported: it stands for Init",
    "a_module": "the header cannot be imported: Core is no module in this sense",
}

Make = Callable[..., LeanRunner]


@pytest.fixture
def make(isolation: Isolation) -> Iterator[Make]:
    """Make runners of the test's own."""
    made: list[LeanRunner] = []

    def one(**settings: int) -> LeanRunner:
        given = {"most_images": 2, **settings}
        made.append(LeanRunner(isolation, way="prepared", **given))
        return made[-1]

    yield one
    for leans in made:
        leans.close()


@pytest.fixture(scope="module")
def leans(isolation: Isolation) -> Iterator[LeanRunner]:
    made = LeanRunner(isolation, way="prepared", most_images=2)
    yield made
    made.close()


def ready(leans: LeanRunner, environment: LeanEnvironment, header: str = HEADER) -> None:
    """Have a process wait with a header."""
    leans.pool.prepare(environment, header)
    eventually(lambda: any(each.header == header for each in leans.pool.waiting()))


def ask(leans: LeanRunner, environment: LeanEnvironment, text: str, limits: Limits | None = None) -> Reply:
    question = Question.of(text, environment, limits or Limits(), box.never)
    with leans.compiled(question) as reply:
        return reply


def ours() -> set[Process]:
    """Return the prepared processes of this process, with their supervisors."""
    return {each for each in family(os.getpid()) if "--worker" in each.command}


# The same answers.


#: Left to the long run: a limit ends these, and below, one text has each limit; or Lean accepts them, and two
#: such are enough here.
LONG = {
    name
    for name in TEXTS
    if name.startswith(("endless", "ever_more", "core/")) and name not in ("core/messages", "core/syntax")
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in TEXTS],
)
def test_a_prepared_lean_refuses_what_a_fresh_one_refuses_in_the_same_words(
    leans: LeanRunner, core: LeanEnvironment, name: str
) -> None:
    text, limits = TEXTS[name]
    question = Question.of(text, core, limits, box.never)
    with leans.compiled(replace(question, way="cold")) as cold:
        pass
    if name not in LEFT:
        ready(leans, core, question.header)
    reply = ask(leans, core, text, limits)
    run, fresh = reply.report.run, cold.report.run
    assert (run.exit_status, run.limit) == (fresh.exit_status, fresh.limit)
    assert judge(reply.report).reason is judge(cold.report).reason
    if fresh.limit is None:
        assert reply.report.answer == cold.report.answer
    has_refused = ending(cold.report) is Ending.REFUSED and cold.report.answer.reached_end
    assert reply.report.way == ("prepared" if has_refused and name not in LEFT else "cold")


def test_what_a_prepared_lean_accepts_a_fresh_one_proves(leans: LeanRunner, core: LeanEnvironment) -> None:
    ready(leans, core)
    with leans.compiled(Question.of(TRUE, core, Limits(), box.never)) as reply:
        assert reply.report.way == "cold"
        assert reply.module is not None


@pytest.mark.parametrize(
    "line", ["set_option maxErrors 1", "set_option trace.Meta.synthInstance true", "#exit", "/- no end"]
)
def test_what_only_the_command_does_is_left_to_it(
    leans: LeanRunner, core: LeanEnvironment, line: str
) -> None:
    text = f"{HEADER}example : True := x\n{line}\nexample : Inhabited True := inferInstance\n"
    with leans.compiled(replace(Question.of(text, core, Limits(), box.never), way="cold")) as cold:
        pass
    ready(leans, core)
    assert ask(leans, core, text).report.answer == cold.report.answer


def test_a_hundred_errors_end_a_program_as_they_do_with_a_fresh_lean(
    leans: LeanRunner, core: LeanEnvironment
) -> None:
    ready(leans, core)
    reply = ask(leans, core, HEADER + "example : True := x\n" * 120)
    assert reply.report.way == "cold"
    assert not reply.report.answer.reached_end


def test_a_program_of_ten_megabytes_is_left_to_a_fresh_lean(leans: LeanRunner, core: LeanEnvironment) -> None:
    ready(leans, core)
    reply = ask(leans, core, FALSE + ("-- " + "x" * 97 + "\n") * 100_000)
    assert (reply.report.way, judge(reply.report).reason) == ("cold", Reason.ERROR)


# One program each.


def test_each_program_has_a_process_of_its_own(make: Make, core: LeanEnvironment) -> None:
    leans, others = make(most_images=1), ours()
    for _ in range(3):
        ready(leans, core)
        waiting = ours() - others
        assert ask(leans, core, FALSE).report.way == "prepared"
        assert not [each for each in waiting if each.alive]


def test_a_header_is_prepared_from_its_second_check_on(make: Make, core: LeanEnvironment) -> None:
    leans = make()
    assert ask(leans, core, FALSE).report.way == "cold"
    assert len(leans.pool) == 0
    assert ask(leans, core, FALSE).report.way == "cold"
    eventually(leans.pool.waiting)
    assert ask(leans, core, FALSE).report.way == "prepared"


def test_a_process_that_was_killed_while_it_waited_costs_no_verdict(
    make: Make, core: LeanEnvironment
) -> None:
    leans, others = make(most_images=1), ours()
    ready(leans, core)
    for each in ours() - others:
        with contextlib.suppress(ProcessLookupError):  # it ended with the one before
            os.kill(each.pid, signal.SIGKILL)
    reply = ask(leans, core, FALSE)
    assert (reply.report.way, judge(reply.report).reason) == ("cold", Reason.ERROR)
    ready(leans, core)
    assert ask(leans, core, FALSE).report.way == "prepared"


def test_no_process_is_left_when_a_runner_ends(
    make: Make, isolation: Isolation, core: LeanEnvironment
) -> None:
    before, others, threads = groups(isolation), ours(), threading.active_count()
    leans = make()
    for text in (TRUE, FALSE, ENDLESS, FALSE):
        ready(leans, core)
        ask(leans, core, text, Limits(wall_seconds=2))
    leans.close()
    assert ours() <= others
    assert groups(isolation) <= before
    eventually(lambda: threading.active_count() <= threads)


def test_a_cancelled_check_ends(make: Make, core: LeanEnvironment) -> None:
    leans, cancel = make(), threading.Event()
    ready(leans, core)
    question = Question.of(ENDLESS, core, Limits(), cancel.is_set)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(lambda: leans.compiled(question).__enter__())
        cancel.set()
        report = asking.result(30 * PATIENCE).report
    assert report.run.box_error == box.CANCELLED


def test_many_threads_get_a_process_each_or_a_fresh_lean(make: Make, core: LeanEnvironment) -> None:
    leans = make()
    ready(leans, core)
    with ThreadPoolExecutor(4) as pool:
        reports = [each.report for each in pool.map(lambda text: ask(leans, core, text), [TRUE, FALSE] * 10)]
    assert [judge(replace(each, tier=Tier.LEAN)).reason for each in reports] == [Reason.OK, Reason.ERROR] * 10


# Limits.


def test_the_import_counts_neither_as_time_nor_as_memory(make: Make, core: LeanEnvironment) -> None:
    leans = make()
    ready(leans, core)
    (lean, *_) = leans.pool.waiting()
    report = ask(leans, core, FALSE).report
    assert report.way == "prepared"
    assert report.run.cpu_seconds < lean.import_seconds
    assert report.run.peak_memory_kib < lean.memory_kib


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(wall_seconds=1.0), Reason.WALL_LIMIT),
        (Limits(wall_seconds=30.0, cpu_seconds=0.7), Reason.CPU_LIMIT),
    ],
)
def test_a_limit_is_that_of_a_fresh_lean(
    leans: LeanRunner, core: LeanEnvironment, limits: Limits, expected: Reason
) -> None:
    ready(leans, core)
    report = ask(leans, core, ENDLESS, limits).report
    assert (report.way, judge(report).reason) == ("cold", expected)


# The order of ways.


def test_a_lean_that_cannot_be_forked_is_prepared(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path
) -> None:
    made = toolchain(tmp_path / "toolchain", core)
    real = made.lean.rename(made.lean.with_name("real"))
    script(made.lean, f"exec '{real}' \"$@\"")
    visible = tuple(map(str, (*core.visible, made.folder, *made.visible)))
    old = replace(core, digest="old", toolchain="", lean=(str(made.lean),), visible=visible)
    leans = LeanRunner(isolation, way="forked", most_images=2)
    with contextlib.closing(leans):
        ready(leans, old)
        assert ask(leans, old, FALSE).report.way == "prepared"
        assert ask(leans, old, TRUE).report.way == "cold"


# Few are kept.


def test_no_more_are_kept_than_memory_allows(make: Make, core: LeanEnvironment) -> None:
    leans = make(most_images=8, images_mib=1)
    leans.pool.prepare(core, HEADER)
    assert len(leans.pool) > 0
    eventually(lambda: len(leans.pool) == 0)  # what one takes is known once it is ready
    assert ask(leans, core, FALSE).report.way == "cold"


def test_no_more_are_kept_than_images_leave_places(make: Make, core: LeanEnvironment) -> None:
    leans = make(most_images=2)
    leans.pool.prepare(core, HEADER)
    eventually(lambda: len(leans.pool.waiting()) == 2)
    assert leans.cannot_fork(core) == ""  # which makes an image
    ask(leans, core, TRUE)
    assert len(leans.images.kept()) == 1
    eventually(lambda: len(leans.pool.waiting()) == 1)


def test_a_new_header_takes_a_place_of_one_that_has_several(make: Make, core: LeanEnvironment) -> None:
    leans, other = make(most_images=2), "-- other\n" + HEADER
    leans.pool.prepare(core, HEADER)
    eventually(lambda: len(leans.pool.waiting()) == 2)
    ready(leans, core, other)
    assert sorted(each.header for each in leans.pool.waiting()) == sorted([HEADER, other])


def test_nothing_is_prepared_while_all_cores_are_used(make: Make, core: LeanEnvironment) -> None:
    leans = make()
    with contextlib.ExitStack() as used:
        for _ in range(cores()):
            used.enter_context(leans.pool.working())
        leans.pool.prepare(core, HEADER)
        assert len(leans.pool) == 0
    assert len(leans.pool) > 0


def test_headers_that_lean_cannot_import_are_tried_once(make: Make, core: LeanEnvironment) -> None:
    leans, header = make(), "prelude\nimport No.Such\n"
    leans.pool.prepare(core, header)
    eventually(lambda: len(leans.pool) == 0)
    with pytest.raises(Doubtful, match="import"):
        leans.pool.prepare(core, header)


def test_options_that_set_nothing_are_left_to_the_command(make: Make, core: LeanEnvironment) -> None:
    leans, other = make(), replace(core, digest="with -M", lean=(*core.lean, "-M4096"))
    for _ in range(3):
        assert ask(leans, other, FALSE).report.way == "cold"
    assert len(leans.pool) == 0


# Harm.

#: A program in place of Lean. As a command it refuses every program; for an editor it imports nothing, and
#: is hostile once it has its program.
_LEAN = """\
import json, os, signal, sys, time
POSITION = {"line": 2, "character": 0}
PLACE = {"start": POSITION, "end": POSITION}

def write(**fields):
    body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
    os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body))

def publish(version, *diagnostics):
    params = {"diagnostics": diagnostics, "uri": "untitled:program", "version": version}
    write(method="textDocument/publishDiagnostics", params=params)

def said(message, severity=1, place=PLACE, **fields):
    return {"message": message, "severity": severity, "range": place, **fields}

def requested():
    length = int(sys.stdin.buffer.readline().split()[1])
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(length))

if "--worker" not in sys.argv:
    if b"theorem" not in sys.stdin.buffer.read():
        sys.exit(0)
    print(json.dumps({"severity": "error", "data": "refused", "pos": {"line": 1, "column": 0}}))
    sys.exit(1)
while (request := requested())["method"] != "textDocument/didChange":
    if request["method"] == "textDocument/waitForDiagnostics":
        publish(1)
        write(id=1, result={})
TEXT = request["params"]["contentChanges"][0]["text"]
LINES = TEXT.split("\\n")
MARK = next(n for n, line in enumerate(LINES) if line.strip() == "#exit")
AT = {"line": MARK, "character": len(LINES[MARK]) - 5}
END = said("using 'exit' to interrupt Lean", 2, {"start": AT, "end": AT})
"""

HARM = {
    "says_that_all_is_well": "publish(2, END); write(id=2, result={})",
    "says_nothing_of_the_end": "publish(2); write(id=2, result={})",
    "reports_an_error_without_the_end": "publish(2, said('no')); write(id=2, result={})",
    "reports_a_heartbeat_limit_alone": """
        publish(2, said("(deterministic) timeout at `whnf`, maximum number of heartbeats (200000) has been "
                        "reached", code="runtime.maxHeartbeats"), END); write(id=2, result={})
        """,
    "reports_a_sorry": "publish(2, said('declaration uses `sorry`', 2), END); write(id=2, result={})",
    "answers_with_an_error": "publish(2, said('no'), END); write(id=2, error={'code': 1})",
    "answers_about_another_text": "publish(1, said('no'), END); write(id=2, result={})",
    "answers_without_messages": "write(id=2, result={})",
    "writes_on_standard_error": "os.write(2, b'x'); publish(2, said('no'), END); write(id=2, result={})",
    "writes_noise": "os.write(1, b'x' * 2000)",
    "writes_the_printed_form": """
        place = {"line": MARK + 1, "column": AT["character"]}
        os.write(1, json.dumps({"severity": "warning", "data": "", "pos": place}).encode())
        """,
    "promises_a_gigabyte": "os.write(1, b'Content-Length: 999999999\\r\\n\\r\\n'); time.sleep(60)",
    "writes_a_length_without_end": "os.write(1, b'Content-Length: ' + b'9' * 5000)",
    "nests_without_end": """
        body = b'{"id":2,"result":' + b'[' * 200000
        os.write(1, b"Content-Length: %d\\r\\n\\r\\n%b" % (len(body), body)); time.sleep(60)
        """,
    "gives_messages_in_other_forms": """
        publish(2, END, 7, None, said("no", "x"), said("no", 1, 5), said(["no"]), said("no", leanTags=5))
        write(id=2, result={})
        """,
    "floods_stdout": "while True: publish(2, said('x' * 60000))",
    "closes_stdout": "os.close(1); time.sleep(60)",
    "stops_itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "takes_memory": "held = b'x' * (1 << 30); publish(2, said('no'), END); write(id=2, result={})",
    "ends": "os._exit(0)",
    "is_killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "leaves_children": """
        for _ in range(3):
            if os.fork() == 0:
                os.setsid(); time.sleep(60)
        os._exit(1)
        """,
}


def in_place_of_lean(folder: Path, body: str) -> LeanEnvironment:
    """Make an environment whose Lean is hostile once it waits for a program, and gets it."""
    program = folder / "lean.py"
    program.write_text(_LEAN + textwrap.dedent(body).strip() + "\n")
    python = os.path.realpath(sys.executable)
    script(folder / "lean", f"exec '{python}' -I -S '{program}' \"$@\"")
    return LeanEnvironment(
        name="hostile",
        digest=str(program),
        toolchain="",
        lean=(str(folder / "lean"),),
        lean_path=(),
        header="",
        visible=(str(folder / "lean"), str(program)),
    )


@pytest.mark.parametrize("name", HARM)
def test_whatever_a_hostile_answer_is_a_fresh_lean_judges_and_nothing_is_left(
    make: Make, isolation: Isolation, tmp_path: Path, name: str
) -> None:
    before = groups(isolation)
    leans, environment = make(most_images=1), in_place_of_lean(tmp_path, HARM[name])
    ready(leans, environment)
    limits = Limits(wall_seconds=20.0, memory_mib=256, output_kib=64)
    report = ask(leans, environment, FALSE, limits).report
    assert (report.way, judge(report).reason) == ("cold", Reason.ERROR)
    assert [each.text for each in report.answer.messages] == ["refused"]
    leans.close()
    assert not [each for each in family(os.getpid()) if "lean.py" in each.command]
    assert groups(isolation) <= before


def test_a_forged_error_harms_its_own_program_alone(make: Make, tmp_path: Path) -> None:
    forged = "publish(2, said('forged'), END); write(id=2, result={}); time.sleep(60)"
    leans, environment = make(), in_place_of_lean(tmp_path, forged)
    ready(leans, environment)
    report = ask(leans, environment, TRUE).report
    assert (report.way, judge(report).reason) == ("prepared", Reason.ERROR)
    assert [each.text for each in report.answer.messages] == ["forged"]


TRICKS = [case for case in read() if case.runs_code and not case.is_honest]
#: The limits are left out: they are those of the kernel, whichever way Lean was run.
FEW = one_of_each(case for case in TRICKS if not case.kind.startswith("limits"))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "tricks",
    [
        pytest.param(FEW, id="one of each class"),
        pytest.param(TRICKS, id="all", marks=pytest.mark.long),
    ],
)
def test_no_trick_that_runs_code_proves_its_statement(
    isolation: Isolation, core: LeanEnvironment, tmp_path: Path, tricks: list[Case]
) -> None:
    with Checker(isolation, home=tmp_path, way="prepared", concurrency=2) as checker:
        checker.prewarm(replace(core, headers=(HEADER,)))
        for case in tricks:
            assert judged(checker, core, case, Tier.KERNEL).verdict.outcome is not Outcome.PROVED, case.name
