"""Partial proofs, and verdicts of parts and declarations: from manifests, over HTTP, in every way of Lean."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.checking.asked import check_of
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import KernelChecker, LeanEnvironment

from farm.judging.assurance import Assurance
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.manifest.entry import Entry
from farm.task import Task
from tests.commands import HEADER, Command, lines, write
from tests.processes import CODE
from tests.services import serving_http
from tests.toolchains import toolchain

STATEMENT = "theorem part_a : 1 = 1 := by sorry\ntheorem part_b : 2 = 2 := by"
HELPER = "theorem helper (n : Nat) : n = n := by sorry\n"


def line(name: str, program: str, **fields: object) -> dict[str, object]:
    whole = {
        "name": name,
        "header": HEADER,
        "formal_statement": STATEMENT,
        "predicted_proof": HEADER + program,
    }
    return whole | fields


HALF = line("half", "theorem part_a : 1 = 1 := rfl\ntheorem part_b : 2 = 2 := by sorry\n")
WHOLE = line("whole", "theorem part_a : 1 = 1 := rfl\ntheorem part_b : 2 = 2 := rfl\n")
LEMMA = line(
    "lemma",
    f"{HELPER}theorem part_a : 1 = 1 := rfl\ntheorem part_b : 2 = 2 := helper 2\n",
    permit_sorry=["other"],
)
BARE = line("bare", HELPER, formal_statement="")
WRONG = line(
    "wrong", "axiom cheat : 2 = 2\ntheorem part_a : 1 = 1 := sorry\ntheorem part_b : 2 = 2 := cheat\n"
)


def test_partial_proofs_are_judged_and_told_wherever_results_are_read(farm: Command, tmp_path: Path) -> None:
    manifest = write(tmp_path / "partial.jsonl", HALF, WHOLE, LEMMA, BARE, WRONG)
    facts = farm.json("submit", manifest, "--permit-sorry", "*", "--declarations")
    told = lines(manifest)
    assert [each["proof_status"] for each in told] == [
        "partial",
        "completed",
        "has_sorry",
        "partial",
        "error",
    ]
    half, whole, lemma, bare, wrong = (each["farm"] for each in told)
    assert half["detail"] == "The kernel accepted the module; proved: 1 of 2 parts; sorry in part_b."
    assert (half["verdict"], half["reason"], half["audit"]["permitted"]) == ("partial", "partial", ["part_b"])
    assert [(each["name"], each["verdict"]) for each in half["audit"]["parts"]] == [
        ("part_a", "proved"),
        ("part_b", "open"),
    ]
    assert (whole["verdict"], whole["audit"]["permitted"]) == ("proved", [])
    assert lemma["detail"].startswith("helper contains a sorry")
    helper, _, last = lemma["audit"]["declarations"]
    assert (helper["verdict"], last["verdict"], last["rests_on"]) == ("open", "rests_on_open", ["helper"])
    assert (helper["kind"], helper["line"], helper["column"]) == ("theorem", 4, 0)
    assert (bare["statement"], bare["audit"]["parts"]) == ("unchecked", None)
    assert (wrong["reason"], [each["verdict"] for each in wrong["audit"]["declarations"]]) == (
        "axiom",
        ["axiom", "open", "refused"],
    )
    assert told[2]["permit_sorry"] == ["other"]  # an export leaves the line's own fields alone

    run = facts["run"]
    counted = {(each["verdict"], each["reason"]): each["lines"] for each in facts["verdicts"]}
    assert (counted["proved", "ok"], counted["partial", "partial"]) == (1, 2)
    said = farm("status", run).stdout
    assert "partial" in said
    shown = farm("show", run, "--line", "1").stdout
    assert "part part_b: open" in shown
    assert "partial" in farm("report", run).stdout
    report = farm.json("report", run)["runs"][0]
    assert (report["figures"]["proved"], report["figures"]["judged"]) == (1, 5)


def test_partial_proofs_over_http_are_worth_their_share_if_that_is_accepted(
    farm: Command, tmp_path: Path
) -> None:
    item = {key: HALF[key] for key in ("header", "formal_statement")} | {"program": HALF["predicted_proof"]}
    with serving_http(farm, tmp_path) as service:
        for permit, accept, verdict, reward in (
            (True, [], "partial", 0.0),
            (["part_b"], ["partial"], "partial", 0.5),
            (["part_a"], ["partial"], "rejected", 0.0),
            (False, ["partial"], "rejected", 0.0),
        ):
            (found,) = service.post(item, permit_sorry=permit, accept=accept, wait_seconds=120)["items"]
            assert (found["verdict"], found["reward"]) == (verdict, reward), found
        (found,) = service.post({**item, "declarations": True}, wait_seconds=120)["items"]
        assert [each["verdict"] for each in found["declarations"]] == ["proved", "open"]
        assert found["declarations"][0]["program"]["line"] == HEADER.count("\n") + 1
        for wrong in ({"declarations": True, "tier": "lean"}, {"permit_sorry": "part_a"}):
            refused = service.post(item, status=422, **wrong)
            assert next(iter(wrong)) in str(refused)


def test_a_task_that_needs_the_audit_is_refused_on_the_tier_lean(farm: Command, tmp_path: Path) -> None:
    manifest = write(tmp_path / "lean.jsonl", WHOLE, LEMMA)
    said = farm("submit", manifest, "--tier", "lean")
    assert (said.returncode, "lean.jsonl:2" in said.stderr, "permit_sorry" in said.stderr) == (2, True, True)
    said = farm("submit", write(tmp_path / "one.jsonl", WHOLE), "--tier", "lean", "--declarations")
    assert (said.returncode, "tier kernel or audit" in said.stderr) == (2, True), said.stderr


def test_the_documented_partial_proof_prints_what_the_page_says(farm: Command, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "use" / "tasks.md").read_text()
    code = next(each for each in page.split("```python\n") if "permit_sorry=" in each)
    script = tmp_path / "example.py"
    script.write_text(code.partition("```")[0])
    environment = {**farm.environment, "PYTHONPATH": CODE}
    said = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert f"prints `{said.stdout.strip()}`" in page


def judged(
    checker: Checker, environment: LeanEnvironment, fields: dict[str, object], tier: str, **task: object
) -> tuple[Reason, list[str], list[str]]:
    """Return the reason of a line's verdict, and the verdicts of its parts and declarations."""
    texts = {key: str(fields[key]) for key in ("header", "formal_statement", "predicted_proof")}
    entry = Entry(path="", line=1, name="", generation="", task=Task.of(task), **texts)
    check = check_of(entry, Limits(wall_seconds=60.0), Assurance(tier=tier))
    report = checker.check(check, environment)
    assert report.audit is not None, report
    parts, declarations = report.audit.parts or (), report.audit.declarations or ()
    return judge(report).reason, [each.verdict for each in parts], [each.verdict for each in declarations]


EVERYTHING = {"declarations": True, "permit_sorry": True}
BOTH = ["proved", "open"]
NEITHER = ["unchecked", "open"]


@pytest.mark.parametrize("tier", ["kernel", "audit"])
def test_the_two_tiers_with_an_audit_tell_the_same(
    checker: Checker, core: LeanEnvironment, tier: str
) -> None:
    assert judged(checker, core, HALF, tier, **EVERYTHING) == (Reason.PARTIAL, BOTH, BOTH)
    assert judged(checker, core, WHOLE, tier, **EVERYTHING) == (Reason.OK, ["proved"] * 2, ["proved"] * 2)
    assert judged(checker, core, HALF, tier, declarations=True) == (Reason.HAS_SORRY, BOTH, BOTH)


@pytest.mark.parametrize(
    ("script", "second", "reasons"),
    [
        ("exit 0", True, [(Reason.PARTIAL, BOTH), (Reason.HAS_SORRY, BOTH)]),
        ("exit 1", True, [(Reason.KERNELS_DISAGREE, NEITHER), (Reason.HAS_SORRY, NEITHER)]),
        # In boxes a module with a fault is not replayed, so the rest of it is unchecked.
        ("exit 0", False, [(Reason.PARTIAL, BOTH), (Reason.HAS_SORRY, NEITHER)]),
        ("exit 1", False, [(Reason.KERNEL, NEITHER), (Reason.HAS_SORRY, NEITHER)]),
    ],
)
def test_nothing_is_proved_that_one_of_the_kernels_has_not_accepted(
    checker: Checker,
    core: LeanEnvironment,
    tmp_path: Path,
    script: str,
    second: bool,
    reasons: list[tuple[Reason, list[str]]],
) -> None:
    words = KernelChecker(name="sh", command=("/bin/sh", "-c", script), visible=())
    own = replace(core, digest="second", checkers=(words,))
    if not second:  # its Lean is a program of its own, which cannot be forked
        dressed = toolchain(tmp_path / "toolchain", core)
        visible = tuple(map(str, dressed.visible))
        own = replace(own, digest="unforked", lean=(str(dressed.lean),), visible=visible)
    found = [judged(checker, own, HALF, "kernel", **task) for task in (EVERYTHING, {"declarations": True})]
    assert found == [(reason, told, told) for reason, told in reasons]
