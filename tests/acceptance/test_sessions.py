"""Proofs step by step: states that branch, limits of tactics, and what hostile tactics gain, on real Lean."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from importlib import resources
from pathlib import Path

import pytest
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.sessions.outcome import NoSession, Outcome, SessionGone
from farm_workers.sessions.session import MOST_HOLDERS, Session, StepLimits

from farm.judging.job import Check
from farm.judging.verdict import judge
from tests.processes import PATIENCE, eventually, family

HEADER = "prelude\nimport Core\n"
STATEMENT = "theorem t (p q r : Prop) (hp : p) (hq : q) (hr : r) : (p ∧ q) ∧ r"
CASES = Path(__file__).parents[1] / "cases" / "verdict"
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
NATIVE = tomllib.loads((resources.files("farm_workers.exploits") / "native.toml").read_text())["parts"]
USUAL = StepLimits(seconds=10.0 * PATIENCE)
ROOT = (0, ())


@pytest.fixture(scope="module")
def images(isolation: Isolation) -> Iterator[Images[LeanEnvironment]]:
    with closing(Images(isolation, lean_image, most=4)) as found:
        yield found


Open = Callable[..., Session]


@pytest.fixture
def open_(images: Images[LeanEnvironment], core: LeanEnvironment) -> Iterator[Open]:
    """Open sessions on texts behind the header, and end them with the test."""
    opened = []

    def begin(text: str = f"{STATEMENT} := by sorry\n", **options: int) -> Session:
        opened.append(Session(HEADER + text, core, images, box.never, **options))
        return opened[-1]

    yield begin
    for each in opened:
        each.close()


def tried(
    session: Session, *tactics: str, on: tuple[str, ...] = (), limits: StepLimits = USUAL
) -> list[Outcome]:
    return list(session.step((0, on), tactics, limits))


def outcomes(session: Session, *tactics: str, on: tuple[str, ...] = ()) -> list[str]:
    return [each.outcome for each in tried(session, *tactics, on=on)]


# States


def test_a_session_begins_at_the_goal_of_its_statement(open_: Open) -> None:
    (root,) = open_().roots
    assert (root.line, root.column) == (3, len(STATEMENT) + len(" := by "))
    assert root.goals == ("p q r : Prop\nhp : p\nhq : q\nhr : r\n⊢ (p ∧ q) ∧ r",)


def test_tactics_branch_from_one_state_and_from_those_that_they_made(open_: Open) -> None:
    session = open_()
    first, wrong, none, several = tried(
        session, "constructor", "exact hr", "nonsense", "exact ⟨⟨hp, hq⟩, hr⟩"
    )
    assert [each.partition("⊢ ")[2] for each in first.goals] == ["p ∧ q", "r"]
    assert (wrong.outcome, none.outcome, several.outcome) == ("error", "error", "no_goals")
    assert "Type mismatch" in wrong.message
    assert outcomes(session, "exact ⟨hp, hq⟩", "exact hr", on=("constructor",)) == ["goals", "error"]
    assert outcomes(session, "exact hr", on=("constructor", "exact ⟨hp, hq⟩")) == ["no_goals"]


def test_a_state_is_its_tactics_and_is_made_again_where_no_process_holds_it(open_: Open) -> None:
    session = open_()
    assert outcomes(session, "exact hr", on=("constructor", "exact ⟨hp, hq⟩")) == ["no_goals"]
    with pytest.raises(LookupError, match="cannot be made again"):
        tried(session, "skip", on=("nonsense",))
    with pytest.raises(LookupError, match="no root 7"):
        list(session.step((7, ()), ["skip"], USUAL))


def test_the_names_spaces_levels_and_options_of_the_place_hold_for_its_tactics(open_: Open) -> None:
    text = (
        "namespace A\ntheorem here : True := True.intro\nend A\nopen A in\nset_option maxRecDepth 600 in\n"
        "theorem t (α : Type u) (a : α) : a = a := by sorry\n"
    )
    session = open_(text)
    assert outcomes(session, "exact @rfl (α : Type u) a", "have := here; rfl") == ["no_goals"] * 2


def test_every_sorry_of_a_text_is_a_root(open_: Open) -> None:
    session = open_(
        "theorem a : True := by\n  sorry\ntheorem b (p : Prop) (h : p) : p ∧ True := ⟨sorry, sorry⟩\n"
    )
    assert [(each.line, each.goals[0].rpartition("⊢ ")[2]) for each in session.roots] == [
        (4, "True"),
        (5, "p"),
        (5, "True"),
    ]
    assert [each.outcome for each in session.step((1, ()), ["exact h"], USUAL)] == ["no_goals"]


def test_several_tactics_in_one_step_are_taken_together(open_: Open) -> None:
    session = open_()
    for several in (
        "constructor; constructor",
        "constructor\nconstructor",
        "\nconstructor\nconstructor\n",
    ):
        (found,) = tried(session, several)
        assert len(found.goals) == 3, found
    assert outcomes(session, "exact ⟨⟨hp, hq⟩, hr⟩ -- so", "constructor) (skip") == ["no_goals", "error"]


def test_the_first_success_ends_a_list(open_: Open) -> None:
    limits = StepLimits(seconds=10.0 * PATIENCE, first_success=True)
    found = tried(open_(), "exact hr", "constructor", "skip", "exact hp", limits=limits)
    assert [each.outcome for each in found] == ["error", "goals", "skipped", "skipped"]


def test_a_tactic_that_goes_on_after_an_error_has_failed(open_: Open) -> None:
    assert outcomes(open_(), "have k : p := by exact nothing") == ["error"]


# Limits


def test_an_endless_tactic_ends_alone_and_the_others_go_on(open_: Open) -> None:
    session = open_(f"{CLIMBS}{STATEMENT} := by sorry\n")
    limits = StepLimits(seconds=1.0)
    found = tried(session, "constructor", NEVER, "skip", limits=limits)
    assert [each.outcome for each in found] == ["goals", "timeout", "goals"]
    assert outcomes(session, "exact hr", on=("constructor", "exact ⟨hp, hq⟩")) == ["no_goals"]


def test_heartbeats_limit_a_tactic_whatever_was_spent_before(open_: Open) -> None:
    session, few = open_(), StepLimits(seconds=10.0 * PATIENCE, heartbeats=1)
    work = "simp [hp, hq, hr]"
    assert [each.outcome for each in tried(session, work, work, limits=few)] == ["heartbeats"] * 2
    assert outcomes(session, *[work] * 40) == ["no_goals"] * 40


def test_memory_is_limited_and_the_session_is_opened_again(open_: Open) -> None:
    session = open_(memory_mib=512)
    text = "exact absurd (by decide : (List.replicate 100000000 0).length = 1) (by simp)"
    found = tried(session, "constructor", text, limits=StepLimits(seconds=5.0))
    assert found[0].outcome == "goals"
    assert found[1].outcome in {"error", "memory", "crashed", "timeout", "heartbeats"}


def test_holders_are_bounded_and_a_state_that_was_ended_comes_again(open_: Open) -> None:
    session = open_()
    for number in range(MOST_HOLDERS + 10):
        assert outcomes(session, f"have k{number} : q := hq") == ["goals"]
    assert session.holders <= MOST_HOLDERS
    assert outcomes(session, "exact ⟨⟨hp, k0⟩, hr⟩", on=("have k0 : q := hq",)) == ["no_goals"]


def test_nothing_is_left_of_a_session_that_is_closed(open_: Open) -> None:
    open_().close()
    before, files = {each.pid for each in family(os.getpid())}, descriptors()
    session = open_()
    for number in range(5):
        tried(session, f"have k{number} : q := hq", "nonsense")
    session.close()
    eventually(lambda: {each.pid for each in family(os.getpid())} <= before)
    eventually(lambda: descriptors() <= files)


def test_a_step_in_a_session_that_is_closed_meanwhile_loses_no_state(open_: Open) -> None:
    session = open_(f"{CLIMBS}{STATEMENT} := by sorry\n")
    steps = session.step((0, ()), ["skip", NEVER], USUAL)  # the second one has no outcome yet
    assert next(steps).outcome == "goals"
    session.close()
    with pytest.raises(SessionGone):
        list(steps)
    assert session.is_over


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_process_that_is_killed_from_outside_costs_no_outcome(open_: Open) -> None:
    session, stop = open_(), threading.Event()
    mine = {each.pid for each in family(os.getpid())}
    assert outcomes(session, "constructor") == ["goals"]

    def kill() -> None:
        while not stop.wait(0.05):
            for each in family(os.getpid()):
                if each.pid not in mine:  # the holders of states, and forks that run tactics
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each.pid, signal.SIGKILL)
                    break

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found = [outcomes(session, "exact ⟨hp, hq⟩", "exact hr", on=("constructor",)) for _ in range(30)]
    finally:
        stop.set()
        killer.join()
    assert found == [["goals", "error"]] * 30


def test_a_session_whose_first_process_is_killed_is_opened_again(open_: Open) -> None:
    open_()  # its image is there then
    mine, killed = {each.pid for each in family(os.getpid())}, list[int]()

    def kill() -> None:
        while not killed:
            killed.extend(each.pid for each in family(os.getpid()) if each.pid not in mine)
        for each in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    session = open_("".join(f"theorem t{number} : True := by sorry\n" for number in range(300)))
    killer.join()
    assert len(session.roots) == 300


# Tactics that run code of their own

#: A tactic whose elaborator is the program's own code.
CHEAT = """
namespace Lean.Elab.Tactic
def Tactic : Type := SYNTAXES → Done
end Lean.Elab.Tactic
@[extern "native"] opaque Lean.Elab.Tactic.evalTactic (stx ctx state : Lean.Syntax) : Done
syntax (name := cheatTactic) "cheat!!" : tactic
@[tactic cheatTactic] def cheatIt : Lean.Elab.Tactic.Tactic := fun _ _ _ _ _ _ _ _ _ now => ARM
""".replace("SYNTAXES", " → ".join(["Lean.Syntax"] * 10))


@pytest.mark.parametrize(
    ("part", "arm", "outcome"),
    [
        ("exit", "exit now", "crashed"),
        ("exit", "pause 1000000 now", "timeout"),
        ("files", 'IO.FS.writeFile "/proc/self/fd/3" "no goals" now', "error"),
        ("files", 'IO.FS.writeFile "own.txt" "left behind" now', "goals"),
    ],
)
def test_a_tactic_that_runs_code_costs_itself_alone(
    open_: Open, checker: Checker, core: LeanEnvironment, part: str, arm: str, outcome: str
) -> None:
    other = open_()
    program = f"{NATIVE['elaborator']}{NATIVE[part]}{CHEAT.replace('ARM', arm)}{STATEMENT} := by sorry\n"
    session = open_(program)
    found = tried(session, "constructor", "cheat!!", "skip", limits=StepLimits(seconds=2.0))
    assert [each.outcome for each in found] == ["goals", outcome, "goals"]
    assert outcomes(session, "exact ⟨hp, hq⟩", on=("constructor",)) == ["goals"]
    assert outcomes(other, "exact ⟨⟨hp, hq⟩, hr⟩", "nonsense") == ["no_goals", "error"]
    true = Check.of(program=HEADER + "theorem t : True := True.intro\n")
    assert judge(checker.check(true, core)).outcome == "proved"


# Programs that are none


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("theorem t : True := True.intro\n", "no sorry"),
        ("theorem t : Wrong := by sorry\n", "has errors"),
        ("theorem t : True := by\n", "has errors"),
        ("", "no sorry"),
    ],
)
def test_a_program_without_a_place_to_begin_at_opens_nothing(open_: Open, text: str, why: str) -> None:
    with pytest.raises(NoSession, match=why):
        open_(text)
