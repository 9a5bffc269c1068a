"""Bundles: a proved line as files in comparator's form, and clear refusals of what cannot be one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.box.bubblewrap import python
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.opening import Machine, opened
from farm_workers.machine.resealing import resealed
from farm_workers.replay import command as replay

from farm.connections import Connections
from farm.errors import FarmError
from farm.runs.bundle import Bundle
from farm.settings import Settings
from farm.store.queries import Queries
from tests.commands import HEADER, Command

STATEMENT = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by"
IN_NAMESPACE = "namespace A.B\ntheorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := by"
OTHER = "theorem other (p q : Prop) (h : p ∧ q) : q ∧ p := ⟨h.2, h.1⟩"
TACTIC = "exact ⟨h.2, h.1⟩"
CONTEXT = f"{HEADER}namespace Shop\ndef Fair (p : Prop) : Prop := p\n"
BELOW = "theorem fair (p : Prop) (h : p) : Fair p := by"
WHOLE = f"{HEADER}theorem one : True := True.intro\n"


@pytest.fixture(scope="module")
def run(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A run: a proof, a wrong answer, ones in a namespace, of another name, a whole program, in a context."""
    manifest = tmp_path_factory.mktemp("bundle") / "answers.jsonl"
    lines: list[dict[str, str]] = [
        {"formal_statement": STATEMENT, "generation": TACTIC},
        {"formal_statement": STATEMENT, "generation": "exact h"},
        {"formal_statement": IN_NAMESPACE, "generation": TACTIC},
        {"formal_statement": STATEMENT, "generation": f"```lean4\n{OTHER}\n```"},
    ]
    rows = [{"name": "swap", "header": HEADER, **each} for each in lines]
    whole = {"name": "one", "predicted_proof": WHOLE}
    below = {"name": "fair", "context": CONTEXT, "formal_statement": BELOW, "generation": "exact h"}
    manifest.write_text("".join(json.dumps(each) + "\n" for each in [*rows, whole, below]))
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


def accepts(core: LeanEnvironment, module: Path) -> bool:
    """Whether the farm's replay, which knows nothing of any farm, accepts a compiled module."""
    assert core.library is not None
    words = replay(python(), core.library, core.lean_path, module)
    environment = {**os.environ, "LEAN_PATH": ":".join(core.lean_path)}
    return subprocess.run([str(each) for each in words], env=environment, check=False).returncode == 0


@pytest.mark.parametrize(("line", "is_whole"), [(1, False), (6, True)])
def test_the_module_that_the_kernel_was_given_is_made_again(
    farm: Command, run: str, core: LeanEnvironment, tmp_path: Path, line: int, is_whole: bool
) -> None:
    folder = tmp_path / "proof"
    said = farm("bundle", run, folder, "--line", line, "--with-module", "--json")
    assert said.returncode == 0, said.stderr
    assert json.loads(said.stdout)["problem"] is None
    module, facts = folder / "Sealed.olean", json.loads((folder / "verdict.json").read_text())
    found = hashlib.sha256(module.read_bytes()).hexdigest()
    readme = (folder / "README.md").read_text()
    assert (facts["sha256_of_module"], found in readme) == (found, True)
    # Below a context that checks share, workers seal the proof alone: others need both.
    assert (facts["sealed_sha256"] != found, "both in one module" in readme) == (is_whole, is_whole)
    assert accepts(core, module)
    module.write_bytes(module.read_bytes().replace(b"Core\0", b"Cord\0"))
    assert not accepts(core, module)


@pytest.fixture
def here(farm: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Machine, Queries]]:
    """This machine with the environments of the farm, and the farm's store."""
    for name, value in farm.settings.items():
        monkeypatch.setenv(name, value)
    with opened(Settings.load()) as machine:
        yield machine, Connections.here().queries


def test_what_is_not_the_recorded_module_is_not_handed_out(run: str, here: tuple[Machine, Queries]) -> None:
    machine, queries = here
    proof = Bundle.of(queries.line(run, 0, 1), queries.stated(run, 0, 1))
    verdict, audit = proof.verdict, json.loads(proof.verdict.audit_json or "")
    wrong = "theorem swap (p q : Prop) (h : p ∧ q) : q ∧ p := h\n"

    def recorded(**facts: object) -> Bundle:
        return replace(proof, verdict=verdict._replace(audit_json=json.dumps(audit | facts)))

    differing = recorded(sealed_sha256="0" * 64)
    assert resealed(machine, proof).sha256 == audit["sealed_sha256"]
    for other, said in [
        (recorded(sealed_sha256=None), "where Lean is not forked"),
        (differing, "please report this"),
        (
            replace(differing, verdict=differing.verdict._replace(checker_version="0.0.1")),
            "farm 0.0.1 judged",
        ),
        (recorded(sealed_sha256="0" * 64, module_sha256="0" * 64), "compiled the proof to another module"),
        (replace(proof, verdict=verdict._replace(environment_digest="0" * 64)), "another Lean or library"),
        (replace(proof, line=proof.line._replace(environment="none")), "no environment is called 'none'"),
        (replace(proof, line=proof.line._replace(source=f"{HEADER}{wrong}".encode())), "is rejected (error)"),
    ]:
        with pytest.raises(FarmError, match=re.escape(said)):
            resealed(machine, other)


def test_a_module_that_cannot_be_had_leaves_the_other_files(farm: Command, run: str, tmp_path: Path) -> None:
    table = tmp_path / "environments.toml"
    table.write_text('[environments.core]\nlean = "/no/such/lean"\nlean_path = []\n')
    elsewhere = farm.having(FARM_ENVIRONMENTS=str(table))
    said = elsewhere("bundle", run, tmp_path / "proof", "--line", 1, "--with-module")
    assert (said.returncode, "The module is not in it: " in said.stderr) == (3, True), said.stderr
    assert "Sealed.olean" not in {each.name for each in (tmp_path / "proof").iterdir()}
    assert "Sealed" not in (tmp_path / "proof" / "README.md").read_text()


def test_a_check_writes_the_sealed_module_of_a_proof(farm: Command, run: str, tmp_path: Path) -> None:
    folder, file = tmp_path / "proof", tmp_path / "module"
    assert farm("bundle", run, folder, "--line", 1).returncode == 0
    words = ["check", folder / "Solution.lean", "--challenge", folder / "Challenge.lean", "--sealed", file]
    told = farm.json(*words)
    sha256 = json.loads((folder / "verdict.json").read_text())["sealed_sha256"]
    assert (told["audit"]["sealed_sha256"], hashlib.sha256(file.read_bytes()).hexdigest()) == (sha256,) * 2
    file.unlink()
    assert farm(*words, "--tier", "lean").returncode == 2
    assert farm("check", folder / "Challenge.lean", "--sealed", file).returncode == 4
    assert not file.exists()


def test_a_leaderboard_links_to_a_bundle_of_each_problem_s_proof(
    farm: Command, run: str, tmp_path: Path
) -> None:
    board = tmp_path / "board"
    told = farm.json("report", run, "--leaderboard", board, "--bundles", "--model", "<b>mine")
    assert told == {**json.loads((board / "leaderboard.json").read_text()), "schema": 1}
    (row,) = told["rows"]
    proofs = {each["problem"]: each["bundle"] for each in row["proofs"]}
    assert proofs == {"swap": f"bundles/{run}/0-1", "one": None, "fair": f"bundles/{run}/0-6"}
    page = (board / "index.html").read_text()
    assert "<b>mine" not in page and f'href="bundles/{run}/0-1/README.md"' in page
    assert "theorem swap" in (board / proofs["swap"] / "Challenge.lean").read_text()
