"""Kinds of errors, explanations, and prompts to correct an answer, in every way to ask for them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from farm import Farm
from farm.client import Client, Result
from tests.commands import HEADER, Command, lines
from tests.processes import PATIENCE
from tests.trainer_service import FIELDS, RIGHT, STATEMENT, WRONG, Served, service

#: Answers to a statement, and the kind of Lean's error.
ANSWERS = {
    "exact foo": "unknown_identifier",
    "exact h": "type_mismatch",
    "constructor": "unsolved_goals",
    "exact": "syntax",
    "frobnicate": "unknown_tactic",
    "rfl": "tactic_failed",
    "exact ⟨h.2, h.1⟩\n  exact h": "no_goals",
    "exact h.foo": "invalid_field",
    "exact (h h)": "function_expected",
    "exact ⟨_, h.1⟩": "not_inferred",
}


@pytest.fixture(scope="module")
def served(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with service(farm, tmp_path_factory.mktemp("serve")) as found:
        yield found


@pytest.fixture(scope="module")
def judged(farm: Command, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, object]]]:
    """A manifest with the verdicts on the answers, and its lines."""
    path = tmp_path_factory.mktemp("manifest") / "answers.jsonl"
    lines = [
        {"name": f"n{number}", "header": HEADER, "formal_statement": STATEMENT, "generation": answer}
        for number, answer in enumerate([*ANSWERS, "exact ⟨h.2, h.1⟩", "sorry"])
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    said = farm("submit", path, "--wait")
    assert said.returncode == 0, said.stderr
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_have_the_kind_of_their_error(judged: tuple[Path, list[dict[str, object]]]) -> None:
    found = {str(each["generation"]): each["farm"]["error_kind"] for each in judged[1]}  # type: ignore[index]
    assert found == {**ANSWERS, "exact ⟨h.2, h.1⟩": None, "sorry": None}


def test_a_report_counts_the_kinds(farm: Command, judged: tuple[Path, list[dict[str, object]]]) -> None:
    said = farm("report", "--by", "error_kind", "--json")
    assert said.returncode == 0, said.stderr
    for kind in ANSWERS.values():
        assert f'"{kind}"' in said.stdout


def test_a_line_is_explained(farm: Command, judged: tuple[Path, list[dict[str, object]]]) -> None:
    said = farm("show", "--line", 1, "--explain")
    assert said.returncode == 0, said.stderr
    assert "^ error: Unknown identifier `foo`" in said.stdout
    assert "Hint: Nothing has this name here" in said.stdout
    told = json.loads(farm("show", "--line", 1, "--explain", "--json").stdout)
    assert told["explanation"] in said.stdout.rstrip("\n") + "\n"
    assert told["farm"]["error_kind"] == "unknown_identifier"
    without = farm("show", "--explain")
    assert (without.returncode, "--line" in without.stderr) == (2, True)


def test_the_program_of_a_line_goes_to_other_commands(
    farm: Command, judged: tuple[Path, list[dict[str, object]]], tmp_path: Path
) -> None:
    program = farm("show", "--line", 1, "--program").stdout
    assert program == lines(judged[0])[0]["predicted_proof"]
    small = tmp_path / "Small.lean"
    said = farm("mend", "--minimize", "-", "-o", small, stdin=program.encode())
    assert said.returncode == 0, said.stderr
    assert "foo" in small.read_text()
    assert len(small.read_text()) <= len(program)
    for amiss in (
        ["--program"],
        ["--program", "--line", 1, "--json"],
        ["--program", "--line", 1, "--explain"],
    ):
        refused = farm("show", *amiss)
        assert (refused.returncode, refused.stdout, "--program" in refused.stderr) == (2, "", True)


def test_a_client_is_told_what_to_correct(served: Served) -> None:
    options = {**served.options, "accept": ("forgeable",)}
    with Client(options["url"], token=options["token"], deadline=120 * PATIENCE) as client:
        items = [{**FIELDS, "generation": answer} for answer in (RIGHT, WRONG)]
        right, wrong = client.check_all(items, feedback=True)
        plain = client.check({**FIELDS, "generation": WRONG})
    assert (right.verdict, right.feedback, plain.feedback) == ("proved", None, None)
    assert plain.error_kind == wrong.error_kind == "type_mismatch"
    assert wrong.feedback
    shown = wrong.feedback.error_feedback
    assert "exact h\n" in shown
    assert "^ error: Type mismatch" in shown
    assert "import" not in shown
    assert shown in wrong.feedback.correction_prompt
    assert isinstance(wrong, Result)
    assert "Hint:" in wrong.explain()


def test_a_batch_keeps_that_its_answers_have_feedback(served: Served) -> None:
    headers = {"Authorization": f"Bearer {served.options['token']}"}
    url = f"{served.options['url']}/v1/batches"
    body = {
        "items": [{**FIELDS, "generation": WRONG, "key": "with-feedback"}],
        "wait_seconds": 60,
        "feedback": True,
    }
    with httpx.Client(headers=headers, timeout=120 * PATIENCE) as client:
        first = client.post(url, json=body).json()
        again = client.get(f"{url}/{first['batch']}").json()
        events = client.get(f"{url}/{first['batch']}/events").text
        wrong = client.post(url, json={**body, "feedback": "often"})
    assert first["items"][0]["feedback"] == again["items"][0]["feedback"] is not None
    assert "correction_prompt" in events
    assert wrong.status_code == 422


def test_a_verdict_explains_itself_in_python(farm: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in farm.settings.items():
        monkeypatch.setenv(name, str(value))
    with Farm() as local:
        verdict = local.check({**FIELDS, "generation": WRONG}, feedback=True)
    assert verdict.error_kind == "type_mismatch"
    assert "^ error: Type mismatch" in verdict.explain()
    assert verdict.feedback
