"""Bundles: a proved line as files in comparator's form, and clear refusals of what cannot be one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import HEADER, Command

STATEMENT = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by"
IN_NAMESPACE = "namespace A.B\ntheorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by"
OTHER = "theorem other (p q : Prop) (h : p ∧ q) : q ∧ p := ⟨h.2, h.1⟩"
TACTIC = "exact ⟨h.2, h.1⟩"
WHOLE = f"{HEADER}theorem one : True := True.intro\n"


@pytest.fixture(scope="module")
def run(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run: a proof, a wrong answer, a proof in a namespace, one of another name, a whole program."""
    manifest = tmp_path_factory.mktemp("bundle") / "answers.jsonl"
    lines: list[dict[str, str]] = [
        {"formal_statement": STATEMENT, "generation": TACTIC},
        {"formal_statement": STATEMENT, "generation": "exact h"},
        {"formal_statement": IN_NAMESPACE, "generation": TACTIC},
        {"formal_statement": STATEMENT, "generation": f"```lean4\n{OTHER}\n```"},
    ]
    rows = [{"name": "swap", "header": HEADER, **each} for each in lines]
    whole = {"name": "one", "predicted_proof": WHOLE}
    manifest.write_text("".join(json.dumps(each) + "\n" for each in [*rows, whole]))
    told = farm("submit", manifest, "--wait", "--json")
    assert told.returncode == 0, told.stderr
    found: str = json.loads(told.stdout.splitlines()[-1])["run"]
    return found


@pytest.mark.parametrize(("line", "theorem"), [(1, "swap"), (3, "A.B.swap")])
def test_a_proof_is_written_in_comparator_s_form(
    farm: Command, run: str, tmp_path: Path, line: int, theorem: str
) -> None:
    folder = tmp_path / "new" / "proof"
    said = farm("bundle", run, folder, "--line", line, "--json")
    assert said.returncode == 0, said.stderr
    assert sorted(json.loads(said.stdout)["files"]) == sorted(each.name for each in folder.iterdir())
    assert json.loads((folder / "config.json").read_text()) == {
        "challenge_module": "Challenge",
        "solution_module": "Solution",
        "theorem_names": [theorem],
        "permitted_axioms": ["Classical.choice", "Quot.sound", "propext"],
        "enable_nanoda": False,
    }
    facts = json.loads((folder / "verdict.json").read_text())
    assert (facts["verdict"], facts["theorem"], len(facts["module_sha256"])) == ("proved", theorem, 64)
    assert (folder / "lean-toolchain").read_text().startswith("leanprover/lean4:v")
    assert theorem in (folder / "README.md").read_text()
    # What they state and prove is what the farm judged: the solution is a proof of the challenge's statement.
    assert TACTIC in (folder / "Solution.lean").read_text()
    assert "sorry" in (folder / "Challenge.lean").read_text()
    both = tmp_path / "both.jsonl"
    texts = [(folder / name).read_text() for name in ("Solution.lean", "Challenge.lean")]
    both.write_text("".join(json.dumps({"predicted_proof": each}) + "\n" for each in texts))
    assert farm("submit", both, "--wait").returncode == 0
    judged = [json.loads(each)["farm"]["reason"] for each in both.read_text().splitlines()]
    assert judged == ["ok", "has_sorry"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (2, "is not proved"),
        (4, "the name other"),
        (5, "compared with no statement"),
        (99, "no line 99"),
    ],
)
def test_what_nobody_could_check_is_refused(
    farm: Command, run: str, tmp_path: Path, line: int, words: str
) -> None:
    said = farm("bundle", run, tmp_path / "proof", "--line", line)
    assert (said.returncode, words in said.stderr) == (2, True), said.stderr
    assert not (tmp_path / "proof").exists()


def test_a_folder_that_is_there_stays_as_it_is(farm: Command, run: str, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    said = farm("bundle", run, tmp_path, "--line", 1)
    assert (said.returncode, "is there" in said.stderr) == (2, True)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
