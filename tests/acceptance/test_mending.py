"""Files that are tidied, repaired and made small: what comes of them is judged, whatever the file does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.lean.outlined import NoOutline
from farm_workers.mending.minimizing import minimized, small_for
from farm_workers.mending.repairing import Wanted, repaired
from farm_workers.mending.tidying import tidied
from farm_workers.mending.trials import Mended, Trials

from farm.errors import UsageError
from farm.judging.verdict import Outcome
from farm.limits import Limits
from tests.acceptance.test_hostile_sessions import STATEMENT, cheating
from tests.commands import HEADER, Command
from tests.processes import PATIENCE

LIMITS = Limits(wall_seconds=20 * PATIENCE, cpu_seconds=40 * PATIENCE)
BINDERS = "(p q : Prop) (h : p) (k : p → q)"
#: A tactic that prints what it is told, and one of each sort that prints a suggestion.
PRINTS = 'syntax (name := Lean.Parser.Tactic.traceMessage) "trace " str : tactic\n'


def suggesting(name: str, words: str, tactic: str) -> str:
    return f'macro "{name}" : tactic => `(tactic| (trace "{words}"; {tactic}))\n'


@pytest.fixture
def trials(checker: Checker, core: LeanEnvironment) -> Callable[..., Trials]:
    def made(*, seconds: float = 120.0 * PATIENCE, most: int = 1000) -> Trials:
        return Trials(checker, core, LIMITS, seconds=seconds, most=most)

    return made


NEEDLESS = f"""
namespace Shop
-- naïve “text”
theorem t {BINDERS} : q ∧ p := by
  have z : p := h
  -- a comment stays
  have w : q ∧ q := by
    constructor
    · exact k z
    · exact k h
  constructor
  · skip; exact k h
  · have y := h; skip; exact h; skip
theorem u (p : Prop) (h : p) : p := by exact h
end Shop
"""
TIDY = f"""
namespace Shop
-- naïve “text”
theorem t {BINDERS} : q ∧ p := by
  -- a comment stays
  constructor
  · exact k h
  · exact h
theorem u (p : Prop) (h : p) : p := by exact h
end Shop
"""


def test_tactics_that_a_proof_does_not_need_are_dropped(trials: Callable[..., Trials]) -> None:
    found = tidied(trials(), HEADER + NEEDLESS)
    assert found.text == HEADER + TIDY
    assert found.after.outcome is Outcome.PROVED
    assert {(each.what, each.theorem) for each in found.changes} == {("dropped", "Shop.t")}
    assert not found.cut_short


def test_a_spent_budget_leaves_a_proved_file(trials: Callable[..., Trials]) -> None:
    found = tidied(trials(most=4), HEADER + NEEDLESS)
    assert found.cut_short
    assert found.after.outcome is Outcome.PROVED


def test_suggestions_are_taken_only_where_the_proof_stays_proved(trials: Callable[..., Trials]) -> None:
    tactics = {
        "search": (r"Try this:\n  [apply] exact h", "assumption"),
        "vain": (r"Try these:\n  [apply] exact sorry\n  [apply] exact nothing", "assumption"),
        "more": (r"Try this: exact h\ntheorem extra : True := .intro", "assumption"),
    }
    macros = PRINTS + "".join(suggesting(name, *each) for name, each in tactics.items())
    proofs = "".join(f"theorem t_{name} (p : Prop) (h : p) : p := by\n  {name}\n" for name in tactics)
    found = tidied(trials(), HEADER + macros + proofs)
    assert found.text == HEADER + macros + proofs.replace("  search\n", "  exact h\n")
    assert found.after.outcome is Outcome.PROVED


def test_a_change_that_breaks_the_rest_of_the_file_is_taken_back(trials: Callable[..., Trials]) -> None:
    used = """theorem t (p : Prop) (h : p) : p := by
  have w : Bool → p := fun b => match b with | true => h | false => h
  exact h
"""
    needless = "theorem s (p : Prop) (h : p) : p := by\n  skip\n  exact h\n"
    end = "#check @t.match_1\n"
    found = tidied(trials(), HEADER + used + needless + end)
    assert found.text == HEADER + used + needless.replace("  skip\n", "") + end


def test_a_file_that_is_not_proved_is_not_tidied(trials: Callable[..., Trials]) -> None:
    text = HEADER + "theorem t : True := by\n  skip\n  exact sorry\n"
    found = tidied(trials(), text)
    assert (found.text, found.after.outcome) == (text, Outcome.REJECTED)


BROKEN = {
    "a tactic that fails in a bullet": (
        "by\n  constructor\n  · exact nope\n  · exact h",
        "by\n  constructor\n  · exact k h\n  · exact h",
    ),
    "a bullet that leaves a goal open": (
        "by\n  constructor\n  · apply k\n  · exact h",
        "by\n  constructor\n  · apply k\n    assumption\n  · exact h",
    ),
    "two errors": (
        "by\n  constructor\n  · exact nope\n  · exact none",
        "by\n  constructor\n  · exact k h\n  · assumption",
    ),
    "a goal that is left over": (
        "by\n  constructor\n  · exact k h",
        "by\n  constructor\n  · exact k h\n  assumption",
    ),
    "words that are no tactic": ("by\n  nothing at all) so", "by exact ⟨k h, h⟩"),
}


@pytest.mark.parametrize(("proof", "mended"), BROKEN.values(), ids=BROKEN)
def test_tactics_close_the_goals_at_errors(trials: Callable[..., Trials], proof: str, mended: str) -> None:
    wanted = Wanted(tactics=("assumption", "exact k h", "exact ⟨k h, h⟩"), sorry=False)
    statement = f"{HEADER}theorem t {BINDERS} : q ∧ p := "
    found = repaired(trials(), f"{statement}{proof}\n", wanted)
    assert found.text.rstrip() == f"{statement}{mended}"
    assert found.after.outcome is Outcome.PROVED


TWO = f"""theorem a {BINDERS} : q ∧ p := by
  constructor
  · exact nope
  · exact h
-- between
theorem b (p : Prop) (h : p) : p := nope
theorem c {BINDERS} : q ∧ p := a p q h k
"""


def test_what_no_tactic_closes_stays_or_is_a_sorry(trials: Callable[..., Trials]) -> None:
    left = repaired(trials(), HEADER + TWO, Wanted(tactics=("assumption",), sorry=False))
    repaired_one = TWO.replace("p := nope", "p := by assumption")
    assert left.text == HEADER + repaired_one
    assert [each.partition(":")[0] for each in left.left] == ["a"]
    assert left.after.outcome is Outcome.REJECTED
    admitted = repaired(trials(), HEADER + TWO, Wanted(tactics=("assumption",), sorry=True))
    assert admitted.text == HEADER + repaired_one.replace("exact nope", "sorry")
    assert admitted.after.outcome is Outcome.PARTIAL
    assert {each.theorem: each.what for each in admitted.changes} == {"a": "sorry", "b": "closed"}


def test_an_error_outside_of_proofs_is_named(trials: Callable[..., Trials]) -> None:
    text = HEADER + "theorem t (x : Nope.nope) : True := .intro\n"
    found = repaired(trials(), text, Wanted(tactics=("trivial",), sorry=True))
    assert found.text == text
    assert "outside" in found.left[0]


LONG = f"""namespace A
theorem a {BINDERS} : q ∧ p := ⟨k h, h⟩
theorem other : True := .intro
theorem b {BINDERS} : q ∧ p := by
  have x := a p q h k
  constructor
  · exact nope
  · exact h
end A
theorem d : True := nope
"""


def test_an_example_keeps_the_first_error_alone(trials: Callable[..., Trials]) -> None:
    found = minimized(trials(), HEADER + LONG)
    assert found.text == f"{HEADER}theorem b {BINDERS} : q ∧ p := by\n  · exact nope\n"
    assert found.before.reason == found.after.reason == "error"
    assert [each.line for each in found.changes] == [4, 5, 6, 12, 13]


def test_a_file_without_an_error_gives_no_example(trials: Callable[..., Trials]) -> None:
    with pytest.raises(UsageError, match="no error"):
        minimized(trials(), HEADER + TIDY)


def test_a_theorem_is_kept_with_what_it_needs(trials: Callable[..., Trials]) -> None:
    proved = LONG.replace("exact nope", "exact k h").replace(":= nope", ":= .intro")
    found = small_for(trials(), HEADER + proved, "A.b")
    kept = proved.replace("theorem other : True := .intro\n", "").partition("end A")[0]
    assert (found.text, found.after.outcome) == (HEADER + kept, Outcome.PROVED)
    with pytest.raises(UsageError, match=r"it has A\.a, A\.other"):
        small_for(trials(), HEADER + proved, "nope")


#: What a shell does that a tactic of the file starts.
LIES = {
    "no places of the text": '{"commands": [[9, 99999]], "proofs": []}',
    "the header as a command": '{"commands": [[0, 22]], "proofs": []}',
    "a place that is none": '{"commands": [[30, 40]], "proofs": [{"name": "t", "start": 30, "value": 35, '
    '"end": 40, "steps": [[36, 38, 35], [38, 40, 35]]}]}',
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_file_that_lies_about_its_places_harms_itself_alone(
    trials: Callable[..., Trials], lie: str
) -> None:
    act = f"rm -f outline.json; printf '{lie}' > outline.json; kill -9 $PPID"
    proof = "theorem t (p : Prop) (h : p) : p := by\n  cheat!!\n  exact h\n"
    text = cheating(act, wait_ms=50).replace(f"{STATEMENT} := by sorry\n", proof)
    try:
        found: Mended | None = repaired(trials(), text, Wanted(tactics=("assumption",), sorry=False))
    except NoOutline:
        return
    assert found is not None
    assert found.text == text or found.after.outcome is Outcome.PROVED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("files")
    (made / "Needless.lean").write_text(HEADER + NEEDLESS, encoding="utf-8")
    (made / "Broken.lean").write_text(HEADER + TWO, encoding="utf-8")
    return made


def test_the_commands_write_new_files_and_say_what_they_are(farm: Command, folder: Path) -> None:
    given, broken, output = folder / "Needless.lean", folder / "Broken.lean", folder / "New.lean"
    told = farm.json("mend", "--tidy", given, "-o", output)
    assert (told["after"]["verdict"], output.read_text(encoding="utf-8")) == ("proved", HEADER + TIDY)
    assert given.read_text(encoding="utf-8") == HEADER + NEEDLESS
    said = farm("mend", "--repair", broken, "-o", output, "--force", "--tactic", "assumption", "--sorry")
    assert said.returncode == 4, said.stderr
    assert "partial" in said.stdout
    told = farm.json("mend", "--minimize", broken, "-o", output, "--force")
    assert told["after"]["reason"] == "error"
    assert "nope" in output.read_text(encoding="utf-8")


BAD = {
    "the file itself": ("--tidy", "Needless.lean", "another file"),
    "a file that is there": ("--repair", "Broken.lean", "--force"),
    "no folder": ("--minimize", "none/New.lean", "no folder"),
}


@pytest.mark.parametrize(("goal", "output", "said"), BAD.values(), ids=BAD)
def test_bad_usage_is_said_and_nothing_is_written(
    farm: Command, folder: Path, goal: str, output: str, said: str
) -> None:
    before = sorted(folder.iterdir())
    told = farm("mend", goal, folder / "Needless.lean", "-o", folder / output)
    assert told.returncode == 2
    assert said in told.stderr
    assert sorted(folder.iterdir()) == before
    assert (folder / "Needless.lean").read_text(encoding="utf-8") == HEADER + NEEDLESS
