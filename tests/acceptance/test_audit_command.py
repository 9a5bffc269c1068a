"""`farm audit` as a user calls it: on files alone, with no server and no Lean."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REAL = Path(__file__).parent.parent / "unit" / "olean" / "Real.olean"


def audit(*words: object, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "farm", "audit", *map(str, words)],
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_axiom_is_found(tmp_path: Path) -> None:
    done = audit(REAL, "--target", "Goal.it", home=tmp_path)
    assert done.returncode == 4
    assert "axiom: The proof rests on the axiom cheat, which the module declares." in done.stdout
    assert done.stdout.endswith("rejected\n")
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_is_not_there_is_missed(tmp_path: Path) -> None:
    done = audit(REAL, "--target", "And.no_such", "--json", home=tmp_path)
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["accepted"]) == (4, False)
    assert [finding["word"] for finding in facts["findings"]] == ["target_missing"]
    assert len(facts["not_checked"]) == 3


def test_a_challenge_says_which_theorem_is_meant(tmp_path: Path) -> None:
    done = audit(REAL, "--challenge", REAL, home=tmp_path)
    assert done.returncode == 4
    assert "bad_challenge: The challenge has no theorem with `sorry` as its proof." in done.stdout


def test_a_file_that_is_no_module_is_malformed(tmp_path: Path) -> None:
    file = tmp_path / "No.olean"
    shutil.copy(REAL, file)
    file.write_bytes(file.read_bytes()[:-1])
    done = audit(file, "--target", "x", home=tmp_path)
    assert done.returncode == 4
    assert done.stdout.startswith("malformed_olean: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.olean", "--target", "x"], "nothing.olean: no such file; give a compiled module"),
        ([REAL], "no theorem is named; give --target NAME or --challenge FILE"),
        ([REAL, "--challenge", "nothing.olean"], "nothing.olean: no such file"),
    ],
)
def test_what_cannot_be_audited_is_refused(words: list[object], said: str, tmp_path: Path) -> None:
    done = audit(*words, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_declarations_that_differ_from_a_baseline_are_reported(tmp_path: Path) -> None:
    folder, baseline = tmp_path / "library", tmp_path / "baseline.json"
    folder.mkdir()
    shutil.copy(REAL, folder)

    def library(*words: object) -> subprocess.CompletedProcess[str]:
        return audit("--library", "--path", folder, "--baseline", baseline, *words, home=tmp_path)

    written = library("--write-baseline", "Real")
    assert (written.returncode, written.stdout) == (0, "")
    known = json.loads(baseline.read_text())
    [cheating] = [each for each in known["sets"] if each["axioms"] == ["cheat"]]
    cheating["declarations"].remove("Goal.it")
    cheating["declarations"].append("old")
    baseline.write_text(json.dumps(known))
    other = library("--json")
    facts = json.loads(other.stdout)
    assert (other.returncode, facts["gone"]) == (4, ["old"])
    assert facts["differences"] == [
        {
            "name": "Goal.it",
            "module": "Real",
            "rests": {"axioms": ["cheat"], "sorries": []},
            "was": {"axioms": [], "sorries": []},
        }
    ]


def test_a_command_for_a_library_and_one_for_a_module_are_told_apart(tmp_path: Path) -> None:
    done = audit("--baseline", "x", REAL, home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "go with --library" in done.stderr
