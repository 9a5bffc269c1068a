"""The farm from Python, on a farm of its own: the documented examples, and what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from farm import Farm, Verdict
from farm.client import Result
from farm.embedded import down, ensure
from farm.errors import ManifestError, UnknownRun, UsageError
from farm.judging.verdict import Outcome, Reason
from tests.commands import ADMITTED, HEADER, PROGRAMS, PROVED, WRONG, entry, lines, write
from tests.processes import CODE, PATIENCE

EXAMPLES = re.findall(
    r"```python\n(.*?)^```$",
    (Path(__file__).parents[2] / "docs" / "use" / "python.md").read_text(),
    re.DOTALL | re.MULTILINE,
)


@pytest.fixture(scope="module")
def at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("api") / "home"
    ensure(home, idle_minutes=30)
    yield home
    down(home)


@pytest.fixture
def farm(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Farm]:
    monkeypatch.setenv("FARM_HOME", str(at_home))
    with Farm() as farm:
        yield farm


def example(number: int, folder: Path, home: Path) -> str:
    """Run an example of the page as a script of a user's; what it prints."""
    script = folder / "example.py"
    script.write_text(EXAMPLES[number])
    environment = {**os.environ, "PYTHONPATH": CODE, "FARM_HOME": str(home)}
    said = subprocess.run(
        [sys.executable, script], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    return said.stdout


def test_the_example_of_single_checks_prints_what_they_are_worth(at_home: Path, tmp_path: Path) -> None:
    first, second = example(0, tmp_path, at_home).splitlines()
    assert first.startswith("True ok")
    assert second == "[False, False, True, False]"


def test_the_example_of_a_manifest_writes_its_verdicts_back(at_home: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "results.jsonl", entry(PROVED, 1), entry(WRONG, 2))
    said = example(1, tmp_path, at_home).splitlines()
    assert said[1:] == ["1 t1 completed", "2 t2 error"]
    assert [line["proof_status"] for line in lines(path)] == ["completed", "error"]


def test_verdicts_come_in_the_order_of_the_lines(farm: Farm) -> None:
    kinds = [PROVED, WRONG, ADMITTED, PROVED]
    found = farm.check_all([HEADER + PROGRAMS[kind].format(n=number) for number, kind in enumerate(kinds)])
    assert [(each.outcome, each.reason) for each in found] == kinds
    assert [each.proved for each in found] == [True, False, False, True]
    assert all(each.judged for each in found)
    assert {each.tier for each in found} == {"kernel"}
    assert {each.statement for each in found if each.proved} == {"unchecked"}


def test_a_check_is_answered_as_soon_as_it_has_its_verdict(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who looks by himself looks after a day: the verdict arrives with the news of it, or this test hangs.
    monkeypatch.setattr("farm.runs.submit._FIRST_SECONDS", 86_400.0)
    monkeypatch.setattr("farm.runs.submit._LONGEST_SECONDS", 86_400.0)
    for number in range(3):
        assert farm.check(HEADER + f"theorem told_of_{number} : True := True.intro").proved


def test_one_line_has_one_verdict_and_none_has_none(farm: Farm) -> None:
    line = {"header": HEADER, "formal_statement": "theorem t : True := by", "generation": "exact True.intro"}
    found = farm.check(line)
    assert isinstance(found, Verdict)
    assert (found.outcome, found.reason, found.statement) == (Outcome.PROVED, Reason.OK, "compared")
    assert farm.check_all([]) == []


def test_a_line_that_cannot_be_judged_is_an_error_and_stores_nothing(farm: Farm) -> None:
    with pytest.raises(ManifestError, match=r"^lines:2: "):
        farm.check_all([HEADER + PROGRAMS[PROVED].format(n=1), {"generation": 5}])


def test_no_tier_below_the_kernel_without_its_name(farm: Farm) -> None:
    program = HEADER + PROGRAMS[PROVED].format(n=7)
    assert farm.options_for().assurance.tier == "kernel"
    assert farm.check(program, farm.options_for(tier="audit")).tier == "audit"
    with pytest.raises(UsageError, match="'believe'"):
        farm.options_for(tier="believe")
    with pytest.raises(UsageError, match="priority"):
        farm.options_for(priority="soon")


def test_a_run_is_found_again_and_can_be_waited_for_with_a_limit(farm: Farm, tmp_path: Path) -> None:
    path = write(tmp_path / "m.jsonl", {**entry(PROVED, 1), "environment": "core"})
    run = farm.submit([path])
    assert farm.submit([path]).id == run.id
    assert farm.run(run.id[:6]).wait(60).verdicts == {("proved", "ok"): 1}
    assert run.cancel() == 0
    assert run.tally.total == 1
    with pytest.raises(UnknownRun):
        farm.run("nothing")


def test_who_waits_no_longer_leaves_the_run_as_it_is(farm: Farm, tmp_path: Path) -> None:
    endless = HEADER + PROGRAMS["timeout", "wall_limit"].format(n=1)
    path = write(tmp_path / "m.jsonl", {"name": "t", "predicted_proof": endless, "timeout": 20.0})
    run = farm.submit([path])
    with pytest.raises(TimeoutError, match="the run goes on"):
        run.wait(0.2)
    assert run.cancel() == 1
    assert run.wait(60).statuses == {"cancelled": 1}


def test_the_package_itself_loads_little() -> None:
    program = (
        "import sys, farm; print(sorted({'sqlalchemy', 'celery', 'typer', 'psycopg'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


def test_items_options_and_results_are_those_of_the_http_client(farm: Farm) -> None:
    item = {"header": HEADER, "formal_statement": "theorem same (p : Prop) (h : p) : p := by", "name": "n"}
    wrong, right = farm.check_all(
        [{**item, "proof": "exact p", "group": "g"}, {**item, "generation": "exact h", "key": "k"}],
        timeout=20.0 * PATIENCE,
        accept=["forgeable"],
        deadline=120.0 * PATIENCE,
    )
    assert isinstance(right, Result)
    assert (wrong.reward, right.reward) == (0.0, 1.0)
    assert (wrong.index, wrong.name, wrong.group, right.key) == (0, "n", "g", "k")
    assert [each.origin for each in wrong.messages] == ["answer"]
    assert right.provenance is not None
    assert right.provenance.statement == "compared"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"formal_statment": "theorem t : True := by", "proof": "trivial"}, "did you mean formal_statement"),
        ({"program": "x", "timeout": "3"}, 'field "timeout"'),
        ({"program": "x", "proof": "y"}, "exactly one of program, proof and generation"),
        ({"proof": "x"}, "needs the formal_statement"),
    ],
)
def test_an_item_is_refused_as_over_http(farm: Farm, item: dict[str, object], words: str) -> None:
    with pytest.raises(ManifestError, match=f"^lines:2: .*{words}"):
        farm.check_all(["theorem t : True := True.intro", item])


def test_an_option_is_refused_as_over_http(farm: Farm) -> None:
    with pytest.raises(TypeError, match="'time_out'; did you mean 'timeout'"):
        farm.check("x", time_out=3.0)  # type: ignore[call-arg]
    with pytest.raises(UsageError, match=r"^tier: "):
        farm.check("x", tier="believe")  # type: ignore[arg-type]


def test_what_is_not_known_at_the_deadline_has_no_reward(farm: Farm) -> None:
    endless = HEADER + PROGRAMS["timeout", "wall_limit"].format(n="_late")
    found = farm.check(endless, timeout=60.0 * PATIENCE, deadline=0.5)
    assert (found.verdict, found.reward, found.judged) == (None, None, False)
    assert found.status in ("cancelled", "running")
