"""Texts that end unfinished get the errors of bare Lean, in the same places, whichever way Lean is run."""

from __future__ import annotations

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment, environment_variables
from farm_workers.lean.messages import cold_command, parse

from farm.judging.job import Check
from farm.judging.report import Answer
from farm.judging.verdict import Reason, judge
from farm.limits import Limits

HEADER = "prelude\nimport Core\n"
GOOD = "theorem t : True := True.intro\n"
WAYS = ("forked", "cold")
#: Ends that bare Lean refuses.
UNFINISHED = {
    "open in": "open Nat in",
    "open in, then a comment": "open Nat in\n\n-- nothing\n",
    "two in": "open Nat in set_option pp.all true in",
    "set_option in": "set_option pp.all true in",
    "attribute in": "attribute [simp] t in",
    "variable in": "variable (n : Nat) in",
    "a string": '#print "abc',
    "a string with a gap": 'def s : String := "a\\',
    "a character": "example : Nat := 'a",
    "a comment": "/- abc",
    "a documentation comment": "/-- abc",
    "a documentation comment of nothing": "/-- abc -/",
    "a name": "theorem x : True := «abc",
    "no proof": "theorem x : True :=",
    "no proof, with carriage returns": "theorem x : True :=\r\n",
    "no proof of an example": "example : True :=",
    "no tactic": "theorem x : True := by",
    "no tactic, then lines": "theorem x : True := by\n\n\n",
    "a focused goal": "theorem x : True := by\n  ·",
    "a second focused goal": "theorem x : True ∧ True := by\n  constructor\n  · exact True.intro\n  ·",
    "a goal left": "theorem x : True ∧ True := by\n  constructor\n",
    "a step without tactics": "theorem x : True := by\n  have h : True := by",
    "a bracket": "theorem x : True := (True.intro",
    "mutual": "mutual\ntheorem a : True := True.intro",
    "end of nothing": "end",
    "an attribute": "@[simp]",
    "a modifier": "private",
    "a keyword": "theorem",
    "no statement": "theorem x :",
    "nothing to print": "#print",
    "nothing to check": "#check",
    "a wrong proof": "theorem x : False := True.intro",
    "an import": "import Core",
    "a comment behind an exit": "#exit /- a",
}
#: Ends that bare Lean accepts.
FINISHED = {
    "a namespace": "namespace A",
    "a section": "section",
    "a noncomputable section": "noncomputable section",
    "a comment": "-- no end of line",
    "a comment that is closed": "/- abc -/",
    "a module's documentation": "/-! abc -/",
    "opened names": "open Nat",
    "levels": "universe u v",
    "a level of the same name": "universe farm_",
    "no implicit names": "set_option autoImplicit false",
    "variables": "variable (n : Nat)",
    "fields": "structure S where",
    "an empty line": "\n\n",
    "an own command": 'macro "own" : command => `(#check Nat)\nown',
    "an own command around another": 'macro "own" c:command : command => return c\nown open Nat',
    "errors for warnings": "set_option warningAsError true",
}


def _bare(text: str, isolation: Isolation, core: LeanEnvironment) -> tuple[int | None, Answer]:
    """Return what Lean alone makes of a text."""
    run = box.run(
        cold_command(core),
        isolation=isolation,
        stdin=text.encode(),
        limits=Limits(),
        environment=environment_variables(core),
        visible=core.folders,
    )
    return run.exit_status, parse(run.stdout, run.stderr, program=text, mark="no mark")


@pytest.mark.parametrize("name", UNFINISHED)
def test_an_unfinished_end_gets_the_errors_of_bare_lean(
    checker: Checker, isolation: Isolation, core: LeanEnvironment, name: str
) -> None:
    text = HEADER + GOOD + UNFINISHED[name]
    status, answer = _bare(text, isolation, core)
    assert status == 1
    for way in WAYS:
        report = checker.check(Check.of(program=text), core, way=way)
        assert (way, report.answer.messages) == (way, answer.messages)
        assert judge(report).reason is Reason.ERROR


#: Commands of a program's own that go on behind its end.
OWN = {
    "a macro": 'macro "own" c:command : command => return c\nown',
    "a macro of syntax": 'syntax "own " command : command\nmacro_rules | `(own $c) => return c\nown',
    "a macro that forgets": 'macro "own" command : command => `(#check Nat)\nown',
    "a macro of two": 'macro "own" c:command command : command => return c\nown',
    "a macro in a macro": 'macro "own" c:command : command => return c\nown own',
    "a macro before in": 'macro "own" c:command : command => return c\nown open Nat in',
    "a macro behind in": 'macro "own" c:command : command => return c\nopen Nat in own',
    "a macro of one or more": 'macro "own" c:command+ : command => return c.raw[0]\nown',
    "a macro of an exit": 'macro "own" "#exit" : command => `(#check Nat)\nown',
    "a macro of a term": 'macro "own" t:term : command => `(#check $t)\nown',
}


@pytest.mark.parametrize("name", OWN)
def test_a_command_of_the_programs_own_does_not_take_the_mark(
    checker: Checker, isolation: Isolation, core: LeanEnvironment, name: str
) -> None:
    text = HEADER + GOOD + OWN[name]
    status, answer = _bare(text, isolation, core)
    assert status == 1
    for way in WAYS:
        report = checker.check(Check.of(program=text), core, way=way)
        assert (way, report.answer.messages) == (way, answer.messages)
        assert judge(report).reason is Reason.ERROR


@pytest.mark.parametrize("name", FINISHED)
def test_a_finished_end_is_read_to_its_end(
    checker: Checker, isolation: Isolation, core: LeanEnvironment, name: str
) -> None:
    text = HEADER + GOOD + FINISHED[name]
    status, answer = _bare(text, isolation, core)
    assert status == 0
    for way in WAYS:
        report = checker.check(Check.of(program=text), core, way=way)
        assert (way, report.answer.messages) == (way, answer.messages)
        assert report.answer.reached_end
        assert judge(report).reason is Reason.OK


@pytest.mark.parametrize("end", ["#exit", "#exit\ntheorem x : False := sorry", "#exit\nopen Nat in"])
@pytest.mark.parametrize("before", ["", "theorem wrong : False := True.intro\n"])
def test_an_exit_is_no_end(
    checker: Checker, isolation: Isolation, core: LeanEnvironment, before: str, end: str
) -> None:
    text = HEADER + GOOD + before + end
    _, answer = _bare(text, isolation, core)
    for way in WAYS:
        report = checker.check(Check.of(program=text), core, way=way)
        assert (way, report.answer.messages) == (way, answer.messages)
        assert not report.answer.reached_end
        assert judge(report).reason is (Reason.ERROR if before else Reason.STOPPED_EARLY)
