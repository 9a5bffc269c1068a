"""HOL Light: what deceives proves nothing, what is honest is proved, and the image outlives all of it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.machine.statements import tried
from farm_workers.systems.hol_light.environment import HolLightEnvironment, environment
from farm_workers.systems.hol_light.judge import CANARIES, HolLightJudge

from farm.assembly.challenge import Challenge
from farm.datasets.problem import FilePlace, Problem
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Outcome, Reason, Verdict, judge
from farm.limits import Limits
from tests.processes import PATIENCE
from tests.systems.hol_light_cases import BAD_GOALS, EXPLOITS, HONEST, PHRASES, UNJOINED

#: The limits are for what goes on without end, not for a machine that is busy.
LIMITS = Limits(wall_seconds=60.0 * PATIENCE, cpu_seconds=60.0 * PATIENCE, memory_mib=2048)

#: Whoever comes first waits until HOL Light is loaded.
pytestmark = pytest.mark.timeout(900)


class Subject:
    """A judge with one image, and what it makes of a tactic."""

    def __init__(self, isolation: Isolation, hol_light: HolLightEnvironment) -> None:
        self.judge, self.environment = HolLightJudge(isolation), hol_light

    def report(self, goal: str, tactic: str, limits: Limits = LIMITS) -> Report:
        """Return the facts of one check."""
        program = f"prove(`{goal}`,\n{tactic}\n);;\n"
        check = Check.of(program=program, limits=limits, challenge=Challenge(program=goal, name="goal"))
        return self.judge.check(check, self.environment)

    def verdict(self, goal: str, tactic: str, limits: Limits = LIMITS) -> Verdict:
        """Return what a tactic is worth."""
        return judge(self.report(goal, tactic, limits))

    def still_judges(self) -> None:
        """Fail unless the image is there, and knows right from wrong."""
        assert self.verdict("1 + 1 = 2", "ARITH_TAC").reason is Reason.OK
        assert self.verdict("1 + 1 = 3", "ARITH_TAC").reason is Reason.ERROR


@pytest.fixture(scope="module")
def subject(isolation: Isolation) -> Iterator[Subject]:
    """One image for all tests: it takes minutes to load."""
    subject = Subject(isolation, environment("hol", {}, Path("/nowhere")))
    try:
        yield subject
    finally:
        subject.judge.close()


def test_the_canaries_come_out_as_they_should(subject: Subject) -> None:
    """Right, wrong, incomplete, cheating, forged, endless, growing."""
    subject.judge.require_sound(subject.environment)
    assert subject.judge.trial(subject.environment) == ()
    assert {each.expected for each in CANARIES} >= {Reason.OK, Reason.AXIOM, Reason.AUDIT, Reason.WALL_LIMIT}


def test_terms_that_do_not_parse_are_found_among_the_statements_of_a_benchmark(subject: Subject) -> None:
    terms = {
        "whole": "!x. x + 1 = 1 + x",
        "proved at once": "T",
        "half": "1 + foo( = 2",
        "no formula": "1 + 1",
    }
    place = FilePlace(path=Path("terms.ml"))
    problems = [Problem(place=place, name=n, split="test", statement=f"g `{t}`;;") for n, t in terms.items()]
    found = list(tried(problems, subject.judge, subject.environment, at_once=2, done=lambda: None))
    assert [each.problem.name for each in found if each.wrong] == ["half", "no formula"]
    assert [each.reason for each in found if each.wrong] == 2 * [Reason.BAD_CHALLENGE]


@pytest.mark.parametrize("name", EXPLOITS)
def test_what_deceives_proves_nothing(subject: Subject, name: str) -> None:
    """It is rejected for what it is: no failure of the farm, no crash, no limit."""
    ended_by_a_limit = name.startswith("endless")
    limits = replace(LIMITS, wall_seconds=1.0) if ended_by_a_limit else LIMITS
    verdict = subject.verdict("F", EXPLOITS[name], limits)
    assert verdict.outcome is (Outcome.TIMEOUT if ended_by_a_limit else Outcome.REJECTED), verdict.detail
    assert verdict.reason is not Reason.CRASH, verdict.detail
    for word in ("Lean", "module's", "Stdlib__"):
        assert word not in verdict.detail


def test_the_image_outlives_what_deceives(subject: Subject) -> None:
    """The same process serves after everything at once."""
    assert subject.verdict("1 + 1 = 2", "ARITH_TAC").reason is Reason.OK
    before = subject.judge.images()
    quick = [text for name, text in EXPLOITS.items() if name not in {"deep", "long", "endless justification"}]
    with ThreadPoolExecutor(4) as pool:
        verdicts = list(pool.map(lambda text: subject.verdict("F", text), quick))
    assert {verdict.outcome for verdict in verdicts} == {Outcome.REJECTED}
    assert subject.judge.images() == before
    subject.still_judges()


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honest_is_proved(subject: Subject, name: str) -> None:
    """With the three axioms, and what it rests on told."""
    report = subject.report(*HONEST[name])
    verdict = judge(report)
    assert verdict.reason is Reason.OK, verdict.detail
    assert verdict.detail == "The kernel accepted the theorem; trusts the gate on OCaml's syntax."
    assert report.audit is not None
    assert sorted(report.audit.axioms) == ["ETA_AX", "INFINITY_AX", "SELECT_AX"]
    assert report.statement == "compared"


@pytest.mark.parametrize("name", PHRASES)
def test_phrases_become_one_tactic(subject: Subject, name: str) -> None:
    """As people write them in a file, or step by step."""
    verdict = subject.verdict(*PHRASES[name])
    assert verdict.reason is Reason.OK, verdict.detail


@pytest.mark.parametrize("name", UNJOINED)
def test_phrases_that_cannot_be_joined_are_refused_with_a_reason(subject: Subject, name: str) -> None:
    """No rule of OCaml's syntax is blamed, and no gate."""
    text, why = UNJOINED[name]
    verdict = subject.verdict("1 = 1", text)
    assert (verdict.reason, why in verdict.detail) == (Reason.ERROR, True), verdict.detail


def test_an_error_in_phrases_has_its_place_in_the_program(subject: Subject) -> None:
    """Line and column are those of the phrase that is wrong, whichever it is."""
    text = "let A = TRUTH;;\n\n let B = TRUTH;; e (REWRITE_TAC\n  [nosuch]);;"
    message = subject.report("1 = 1", text).answer.messages[0]
    assert (message.text, message.line, message.column) == ("Unbound value nosuch", 5, 3)


def test_steps_that_leave_goals_show_them(subject: Subject) -> None:
    """As one tactic does."""
    verdict = subject.verdict("1 = 1 /\\ 2 < 1", "e (CONJ_TAC);; e (REFL_TAC);;")
    assert "unsolved goals: 1; `2 < 1`" in verdict.detail


@pytest.mark.parametrize("name", BAD_GOALS)
def test_a_goal_that_cannot_be_proved_is_told_as_that(subject: Subject, name: str) -> None:
    """It is no fault of the proof, and is not tried again."""
    verdict = subject.verdict(BAD_GOALS[name], "ARITH_TAC")
    assert verdict.reason is Reason.BAD_CHALLENGE, verdict.detail
    assert not verdict.is_tried_again


@pytest.mark.parametrize("goal", ["x + foo = foo + x", "!x:real. sin x <= &1"])
def test_a_goal_with_a_free_variable_names_it(subject: Subject, goal: str) -> None:
    """An unknown function is a variable that nothing binds."""
    detail = subject.verdict(goal, "ARITH_TAC").detail
    assert ("foo, x" if "foo" in goal else "sin") in detail


def test_goals_that_are_left_are_shown(subject: Subject) -> None:
    """What is incomplete is an error that says what is missing."""
    report = subject.report("!x:num. x = x /\\ x < 1", "GEN_TAC THEN CONJ_TAC")
    verdict = judge(report)
    assert verdict.reason is Reason.ERROR
    assert "unsolved goals: 2; `x = x`" in verdict.detail
    assert "`x < 1`" in report.answer.messages[0].text


def test_an_error_has_its_place_in_the_program(subject: Subject) -> None:
    """Line and column count as for every other program."""
    message = subject.report("!n:num.\n n = n", "GEN_TAC THEN\n  REWRITE_TAC[nosuch]").answer.messages[0]
    assert (message.text, message.line, message.column) == ("Unbound value nosuch", 4, 14)


@pytest.mark.parametrize(
    ("tactic", "change", "reason"),
    [
        ("let rec f (n:int) : tactic = f n in f 0", {"wall_seconds": 1.0}, Reason.WALL_LIMIT),
        ("let rec f (n:int) : tactic = f n in f 0", {"cpu_seconds": 1.0}, Reason.CPU_LIMIT),
        ("let rec f (l:int list) : tactic = f (1::l) in f []", {"memory_mib": 512}, Reason.MEMORY_LIMIT),
        (
            "let rec f (n:int) : int = 1 + f n in fun g -> if f 0 = 1 then ALL_TAC g else ALL_TAC g",
            {},
            Reason.ERROR,
        ),
        ("REPEAT (fun g -> ALL_TAC g)", {"cpu_seconds": 2.0}, None),
    ],
)
def test_a_limit_is_told_as_a_limit(
    subject: Subject, tactic: str, change: dict[str, float], reason: Reason | None
) -> None:
    """Whatever goes on without end is ended, and the image is not."""
    verdict = subject.verdict("F", tactic, replace(LIMITS, **change))
    if reason is None:
        assert verdict.outcome in {Outcome.TIMEOUT, Outcome.MEMORY_LIMIT, Outcome.REJECTED}
    else:
        assert verdict.reason is reason, verdict.detail
    subject.still_judges()


def test_a_program_of_another_form_is_not_run(subject: Subject) -> None:
    """So is one whose goal is not the line's."""
    challenge = Challenge(program="F", name="goal")
    for program, reason in (
        ("prove(`T`,\nREWRITE_TAC[]\n);;\n", Reason.STATEMENT_MISMATCH),
        ("let th = TRUTH;;", Reason.INVALID_TEXT),
        ("prove(`F`,\nALL\0_TAC\n);;\n", Reason.INVALID_TEXT),
    ):
        asked = Check.of(program=program, limits=LIMITS, challenge=challenge)
        assert judge(subject.judge.check(asked, subject.environment)).reason is reason


def test_a_check_without_a_statement_says_so(subject: Subject) -> None:
    """The program's own goal was proved, and nobody compared it."""
    check = Check.of(program="prove(`T`,\nREWRITE_TAC[]\n);;\n", limits=LIMITS)
    verdict = judge(subject.judge.check(check, subject.environment))
    assert verdict.reason is Reason.OK
    assert "statement: unchecked" in verdict.detail


def test_an_answer_that_nobody_wants_is_no_verdict(subject: Subject) -> None:
    """Who cancels gets a failure of the box."""
    check = Check.of(program="prove(`F`,\nlet rec f (n:int) : tactic = f n in f 0\n);;\n", limits=LIMITS)
    report = subject.judge.check(check, subject.environment, cancelled=lambda: True)
    assert report.run.box_error == "the check was cancelled"
