"""`farm report --tactics`: the tactics of proofs, counted by a real Lean, beside numbers counted by hand."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.counting import Counting

from farm.limits import Limits
from farm.reports.tactics import Counted
from farm.store.proofs import ProvedProgram
from tests.acceptance.test_hostile_sessions import cheating
from tests.commands import Command, write

HEADER = "prelude\nimport Core\n"
CONTEXT = "theorem above (p : Prop) (h : p) : p := by\n  skip\n  skip\n  exact h\n"
STATEMENT = "theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := by"
#: Answers with the numbers of their own tactics, by first words.
ANSWERS: dict[str, dict[str, int]] = {
    "  exact And.intro hp hq": {"exact": 1},
    "  constructor\n  · exact hp\n  · skip\n    exact hq": {"constructor": 1, "·": 2, "exact": 2, "skip": 1},
    "  exact above _ (And.intro hp hq)": {"exact": 1},
    "  skip <;> skip\n  exact ⟨hp, hq⟩": {"skip": 1, "exact": 1},
}
WHOLE = (
    f"{HEADER}theorem helper (p : Prop) (h : p) : p := by\n  skip\n  exact h\n"
    "theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := ⟨helper p hp, hq⟩\n"
)
TERM = f"{HEADER}theorem t (p q : Prop) (hp : p) (hq : q) : p ∧ q := ⟨hp, hq⟩\n"
#: An outline of a program without a proof.
EMPTY = '{"commands": [], "proofs": []}'
LINE = {"header": HEADER, "formal_statement": STATEMENT}
BELOW = {"context": f"{HEADER}{CONTEXT}", "formal_statement": STATEMENT}


@pytest.fixture(scope="module")
def run(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run of answers to one statement: some below a context, two programs, one wrong, one twice."""
    answers = [{**BELOW, "name": f"a{n}", "generation": it} for n, it in enumerate(ANSWERS)]
    programs = [{**LINE, "name": f"p{n}", "predicted_proof": it} for n, it in enumerate((WHOLE, TERM))]
    wrong = {**LINE, "name": "w", "generation": "  skip"}
    path = tmp_path_factory.mktemp("run") / "run.jsonl"
    write(path, *answers, {**answers[0], "name": "again"}, *programs, wrong)
    return str(farm.json("submit", path)["run"])


def test_the_numbers_are_those_counted_by_hand(farm: Command, run: str) -> None:
    (found,) = farm.json("report", "--tactics", run)["runs"]
    # exact; constructor, two bullets, two exacts and a skip; exact; skip and exact; skip and exact; none; and
    # the first again.
    assert (found["proofs"], found["without_tactics"], found["most_tactics"]) == (7, 1, 6)
    assert found["mean_tactics"] == pytest.approx((1 + 6 + 1 + 2 + 2 + 0 + 1) / 7)
    assert found["median_tactics"] == 1
    assert {each["word"]: (each["uses"], each["proofs"]) for each in found["words"]} == {
        "exact": (7, 6),
        "skip": (3, 3),
        "·": (2, 1),
        "constructor": (1, 1),
    }
    assert [each["word"] for each in found["words"]] == ["exact", "skip", "·", "constructor"]
    assert found["not_counted"] == {}


def test_the_newest_run_is_counted_and_shown_in_tables(farm: Command, run: str) -> None:
    shown = farm("report", "--tactics")
    assert shown.returncode == 0, shown.stderr
    assert run in shown.stdout
    assert "85.7" in shown.stdout  # six of seven proofs have an exact
    table = farm("report", "--tactics", run, "--format", "csv", "--table", "words").stdout
    rows = list(csv.DictReader(io.StringIO(table)))
    assert [(each["tactic"], each["uses"]) for each in rows][:2] == [("exact", "7"), ("skip", "3")]
    assert r"\label{tab:tactics}" in farm("report", "--tactics", run, "--format", "latex").stdout


def test_a_sample_is_the_same_each_time(farm: Command, run: str) -> None:
    first, second = (farm.json("report", "--tactics", run, "--sample", "2")["runs"] for _ in range(2))
    assert first == second
    assert first[0]["proofs"] in (2, 3)  # one program proves two lines


def counted(checker: Checker, core: LeanEnvironment, *texts: str) -> list[Counted]:
    programs = [
        ProvedProgram(text=text, environment="core", limits=Limits(), submitted=((0, len(text)),), lines=1)
        for text in texts
    ]
    counting = Counting(checker=checker, environment_of=lambda _name: core, at_once=2)
    return list(counting.counted(programs, lambda: None))


@pytest.mark.parametrize(
    "outline",
    [
        EMPTY,
        '{"commands": [], "proofs": [{"name": "x", "start": 0, "steps": [[0, 999999, 0, "lie"]]}]}',
        "no JSON",
        "",
    ],
)
def test_a_program_lies_about_its_own_tactics_at_most(
    checker: Checker, core: LeanEnvironment, outline: str
) -> None:
    act = f"printf '%s' '{outline}' > outline.json; kill -9 $PPID"
    cheat = cheating(act, wait_ms=100).partition("theorem")[0] + "theorem t : True := by\n  cheat!!\n"
    lied, told = counted(checker, core, cheat, WHOLE)
    assert (lied.words, bool(lied.problem)) == ({}, outline != EMPTY)  # the empty one is a lie that works
    assert told == Counted(lines=1, words={"skip": 1, "exact": 1})


def test_an_outline_that_is_larger_than_its_program_allows_is_not_read(
    checker: Checker, core: LeanEnvironment
) -> None:
    for megabytes, is_read in ((0, True), (3, False)):
        act = f"(printf '%s' '{EMPTY}'; head -c {megabytes}000000 /dev/zero | tr '\\0' ' ') > outline.json"
        cheat = cheating(f"{act}; kill -9 $PPID", wait_ms=300).partition("theorem")[0]
        (found,) = counted(checker, core, cheat + "theorem t : True := by\n  cheat!!\n")
        assert (found.problem == "") is is_read, found


def test_what_lean_does_not_read_to_its_end_is_not_counted(checker: Checker, core: LeanEnvironment) -> None:
    missing = WHOLE.replace("import Core", "import No.Such")
    exits = f"{WHOLE}#exit\n"
    wrong = WHOLE.replace("⟨helper p hp, hq⟩", "by nope")
    found = counted(checker, core, missing, wrong, exits)
    assert [each.problem.partition(":")[0] for each in found] == [
        "the header cannot be imported",
        "Lean reports an error here",
        "",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuchrun"], "nosuchrun"),
        (["--sample", "0"], "--sample"),
        (["--format", "word"], "--format word: choose csv, markdown or latex"),
        (["--table", "words"], "--table belongs to --format"),
        (["--json", "--format", "csv"], "exclude each other"),
    ],
)
def test_bad_input_is_refused(farm: Command, arguments: list[str], says: str) -> None:
    ended = farm("report", "--tactics", *arguments)
    assert ended.returncode == 2
    assert says in ended.stderr


def test_a_run_given_twice_and_an_unknown_table_are_refused(farm: Command, run: str) -> None:
    twice = farm("report", "--tactics", run, run)
    assert twice.returncode == 2
    unknown = farm("report", "--tactics", run, "--format", "csv", "--table", "nosuch")
    assert unknown.returncode == 2
    assert "it has tactics, words" in unknown.stderr


def test_a_run_without_a_proof_has_no_table(farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "wrong.jsonl", {**LINE, "name": "w", "generation": "  skip"})
    run = str(farm.json("submit", path)["run"])
    ended = farm("report", "--tactics", run, "--format", "csv")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert f"{run} has no proved line" in ended.stderr
