"""The contests and `farm bench`, on real Lean: what they measure, beside what, and what they leave."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from farm_workers.bench.measure import BenchProgram, ExpectedWorth, asked, program, programs
from farm_workers.box.isolation import Isolation
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment

from farm.errors import FarmError
from farm.judging.tiers import Tier
from farm.settings import Settings
from tests.bench.checks import bare, headers, library, screen
from tests.bench.checks.checks import TURN
from tests.bench.checks.figures import Figure, quantile
from tests.bench.checks.ring import Ring
from tests.bench.checks.subject import sizes, subject
from tests.bench.checks.turns import Checked, Turn, crew
from tests.bench.long import computed, stepwise, with_endless
from tests.commands import Command
from tests.processes import PATIENCE, processes
from tests.toolchains import toolchain

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "why" / "performance.md").read_text()
#: Enough of the library to be imported; what that costs is another matter.
MODULES = 4
#: The figures that have a bar; the larger header's is measured where there is one.
BARRED = {
    *("kernel_over_bare", "long_over_bare", "timeouts", "memory_check", "seal"),
    *("worker_memory", "worker_memory_growth"),
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(600 * PATIENCE)]


@pytest.fixture(scope="module")
def home(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a compiled core library and nothing else."""
    home = tmp_path_factory.mktemp("bench") / "home"
    shutil.copytree(Path(core.lean_path[0]).parent, home / "environments")
    return home


def contest(*arguments: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one of the contests as a developer does."""
    words = [sys.executable, "-m", "tests.bench", *map(str, arguments)]
    environment = Command(settings).environment
    return subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def measured(home: Path) -> dict[str, Any]:
    """What a quick bench prints."""
    said = contest("lean", "--quick", "--json", "--modules", MODULES, "--soak", 50, FARM_HOME=str(home))
    assert said.returncode == 0, said.stderr
    return dict(json.loads(said.stdout))


@pytest.fixture(scope="module")
def heavy(core: LeanEnvironment, home: Path, measured: dict[str, Any]) -> LeanEnvironment:
    """The environment that the bench measured, its library compiled by it."""
    return library.with_library(core, home / "bench", at_once=2, modules=MODULES, compiled=_fail)


def _fail() -> None:
    raise AssertionError("a module was compiled again")


def samples(measured: dict[str, Any], key: str) -> list[float]:
    (found,) = [figure["samples"] for figure in measured["figures"] if figure["key"] == key]
    assert found
    return list(found)


# The command


def test_every_tier_is_measured_beside_bare_lean_at_the_isolation_in_force(measured: dict[str, Any]) -> None:
    found = {(row["by"], row["statements"], row["isolation"]) for row in measured["checks"]}
    level = measured["machine"]["isolation"]
    assert found == {
        ("bare", "8 attempts", "none"),
        *((tier.value, "8 attempts", level) for tier in Tier),
        ("bare", "all new", "none"),
        ("kernel", "all new", level),
    }
    assert {figure["isolation"] for figure in measured["figures"]} == {level}


def test_a_row_has_a_rate_and_latencies_in_order(measured: dict[str, Any]) -> None:
    for row in measured["checks"]:
        assert row["checks"] == 3 * TURN, row
        assert row["checks_per_second"] > 0, row
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"], row


def test_a_ratio_is_that_of_neighbouring_turns(measured: dict[str, Any]) -> None:
    for key in (*(f"{tier.value}_over_bare" for tier in Tier), "kernel_over_bare_new", "long_over_bare"):
        found = samples(measured, key)
        assert len(found) == 3
        assert all(0 < ratio < 3 for ratio in found), (key, found)


def test_exactly_these_figures_have_a_bar(measured: dict[str, Any]) -> None:
    assert {figure["key"] for figure in measured["figures"] if figure["bar"]} == BARRED
    for figure in measured["figures"]:
        assert (figure["reached"] is None) == (figure["bar"] == ""), figure


def test_a_check_takes_less_memory_of_its_own_than_its_image(measured: dict[str, Any]) -> None:
    (image,) = samples(measured, "memory_image")
    assert 1 < max(samples(measured, "memory_check")) < image


def test_a_seal_costs_time_and_time_of_a_processor(measured: dict[str, Any]) -> None:
    assert min(samples(measured, "seal")) > 1
    assert min(samples(measured, "seal_cpu")) > 1


def test_the_own_memory_of_a_worker_is_that_of_a_python_process(measured: dict[str, Any]) -> None:
    (mib,) = samples(measured, "worker_memory")
    assert 10 < mib < 500


def test_the_machine_is_told(measured: dict[str, Any], core: LeanEnvironment) -> None:
    machine = measured["machine"]
    assert measured["schema"] == 1
    assert machine["lean"] == core.toolchain
    assert machine["kernel"] == os.uname().release
    assert machine["cpus"] == len(os.sched_getaffinity(0))
    assert 0 <= machine["used_by_others"] <= 1
    assert machine["library"] == f"{library.declarations(MODULES)} declarations in {MODULES} modules"


def test_every_figure_is_explained_with_its_key(measured: dict[str, Any]) -> None:
    for figure in measured["figures"]:
        assert f"`{figure['key']}`" in PAGE, figure["key"]


def test_nothing_is_left_of_a_bench_but_its_library(measured: dict[str, Any], home: Path) -> None:
    assert [each.command for each in processes() if str(home) in each.command] == []
    assert list((home / "work").iterdir()) == []
    (left,) = (home / "bench").iterdir()
    assert re.fullmatch("[0-9a-f]{16}", left.name)
    assert {each.name for each in home.iterdir()} <= {"environments", "work", "bench"}


@pytest.mark.parametrize(
    ("arguments", "variables", "says"),
    [
        (("--environment", "nowhere"), {}, "no environment is called 'nowhere'"),
        (("--rounds", "0"), {}, "Invalid value for '--rounds'"),
        (("--modules", "1"), {"FARM_WAY": "cold"}, "FARM_WAY=cold"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    home: Path, arguments: tuple[str, ...], variables: dict[str, str], says: str
) -> None:
    said = contest("lean", *arguments, FARM_HOME=str(home), **variables)
    assert said.returncode == 2
    assert says in said.stderr


def test_a_user_sees_how_fast_each_tier_is(home: Path, core: LeanEnvironment) -> None:
    said = Command({"FARM_HOME": str(home)}).json("bench", "--seconds", 0.5)
    assert [row["tier"] for row in said["tiers"]] == list(core.tiers)
    for row in said["tiers"]:
        assert row["checks"] > 0
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
    assert said["machine"]["environment"] == "core"
    shown = Command({"FARM_HOME": str(home)})("bench", "--seconds", "0.1")
    assert shown.returncode == 0
    assert all(tier in shown.stdout for tier in core.tiers)


def test_a_configured_environment_is_measured_with_its_own_header(
    core: LeanEnvironment, home: Path, tmp_path: Path
) -> None:
    mine = toolchain(tmp_path / "toolchain", core)
    file = tmp_path / "environments.toml"
    file.write_text(
        mine.table("mine", f'lean_path = ["{core.lean_path[0]}"]', r'header = "prelude\nimport Core\n"')
    )
    settings = Settings.load({"FARM_HOME": str(home), "FARM_ENVIRONMENTS": str(file)})
    what = subject(settings, "mine", MODULES, _fail)
    assert (what.environment.header, what.larger) == ("prelude\nimport Core\n", None)
    with bare.resident(what.environment, what.environment.header) as lean:
        assert lean.check(program(what.environment.header, 0)) is ExpectedWorth.PROVED


def test_more_modules_than_usual_make_a_second_header() -> None:
    assert sizes(600) == [60, 600]
    assert sizes(60) == [60]
    assert sizes(4) == [4]


def test_a_larger_header_is_compared_with_the_usual_one(
    core: LeanEnvironment, heavy: LeanEnvironment, isolation: Isolation, tmp_path: Path
) -> None:
    usual = library.with_library(core, tmp_path, at_once=2, modules=1)
    with Checker(isolation, home=tmp_path, concurrency=2) as checker, crew(2) as hired:
        ring = Ring(
            environment=usual,
            larger=heavy,
            checker=checker,
            isolation=isolation,
            home=tmp_path,
            crew=hired,
            rounds=1,
            say=lambda _: None,
        )
        (figure,) = headers.larger(ring)
    assert (figure.key, figure.bar) == ("larger_over_usual", ">= 0.75")
    assert figure.measured > 0
    assert f"`{figure.key}`" in PAGE


# The library


def test_the_library_has_tens_of_thousands_of_declarations_in_sixty_modules() -> None:
    sources = library.sources()
    assert len(sources) == library.MODULES + 1 == 61
    found = sum(
        len(re.findall(r"^(?!prelude|import|set_option|namespace|end| )\S", s, re.M))
        for s in sources.values()
    )
    assert found == library.declarations() > 20_000


def test_the_library_is_there_whole_when_two_compile_it_at_once(
    core: LeanEnvironment, tmp_path: Path
) -> None:
    def compile_it(_: int) -> LeanEnvironment:
        return library.with_library(core, tmp_path, at_once=1, modules=1)

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(compile_it, range(2))
    assert one == other
    (folder,) = tmp_path.iterdir()
    assert one.lean_path == (*core.lean_path, str(folder))
    with bare.resident(one, one.header) as lean:
        assert lean.check(program(one.header, 0)) is ExpectedWorth.PROVED


def test_what_a_dead_builder_left_is_removed_and_what_a_living_one_works_on_is_not(
    core: LeanEnvironment, tmp_path: Path
) -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    dead, living = (tmp_path / f"building-{pid}-x" for pid in (gone.pid, os.getpid()))
    dead.mkdir()
    living.mkdir()
    library.with_library(core, tmp_path, at_once=1, modules=1)
    assert not dead.exists()
    assert living.exists()


def test_a_library_that_lean_refuses_is_the_farms_own_failure(core: LeanEnvironment, tmp_path: Path) -> None:
    with pytest.raises(FarmError, match="does not compile: Heavy"):
        library.with_library(replace(core, lean_path=()), tmp_path, at_once=2, modules=1)
    assert list(tmp_path.iterdir()) == []


# The programs, and bare Lean


@pytest.mark.parametrize("attempts", [1, 8])
def test_no_two_programs_are_alike_and_half_of_them_hold(attempts: int) -> None:
    made = programs("", 0, 800, attempts=attempts)
    assert len({each.text for each in made}) == 800
    assert len({each.statement for each in made}) == 800 // attempts
    assert Counter(each.worth for each in made) == {ExpectedWorth.PROVED: 400, ExpectedWorth.ERROR: 400}
    assert all(one.statement != other.statement for one, other in pairwise(made))


def test_bare_lean_and_every_tier_make_of_every_program_what_it_is_worth(
    heavy: LeanEnvironment, isolation: Isolation, tmp_path: Path
) -> None:
    header = heavy.header
    given = [*programs(header, 0, 20, attempts=2), stepwise(header, 0, 3), computed(header, 0, 2)]
    with bare.resident(heavy, header) as lean, Checker(isolation, home=tmp_path) as checker:
        for check in (lean.check, *(asked(checker, heavy, tier) for tier in Tier)):
            assert [(each, check(each)) for each in given] == [(each, each.worth) for each in given]


def test_a_resident_lean_that_ends_is_noticed(core: LeanEnvironment) -> None:
    with ExitStack() as held:
        lean = held.enter_context(bare.resident(core, core.header))
        lean.check(program(core.header, 0))
        os.kill(lean.pid, 9)
        with pytest.raises(FarmError, match="ended"):
            lean.check(program(core.header, 1))


def test_one_program_of_twenty_never_ends() -> None:
    made = with_endless("", 0, 60, every=20, wall_seconds=0.5)
    endless = [place for place, each in enumerate(made) if each.worth is ExpectedWorth.TIMEOUT]
    assert endless == [10, 30, 50]
    assert all(made[place].wall_seconds == 0.5 for place in endless)
    assert len({each.text for each in made}) == 60


# The arithmetic


def test_a_program_that_comes_out_wrong_ends_the_measurement() -> None:
    wrong = BenchProgram(text="theorem t : False := sorry", worth=ExpectedWorth.PROVED)
    with crew(2) as hired, pytest.raises(FarmError, match="came out as error, not proved"):
        hired.turn([lambda _: ExpectedWorth.ERROR] * 2, [wrong])


def test_contenders_take_turns_forwards_and_then_backwards() -> None:
    asked_for: list[tuple[str, int]] = []

    def given(who: str, number: int) -> list[BenchProgram]:
        asked_for.append((who, number))
        return [BenchProgram(text="", worth=ExpectedWorth.PROVED)]

    with crew(1) as hired:
        checks = [lambda _: ExpectedWorth.PROVED]
        turns = hired.side_by_side({"one": checks, "other": checks}, given, 2)
    assert asked_for == [
        *[("one", 0), ("other", 0), ("one", 1), ("other", 1), ("other", 2), ("one", 2)],
    ]
    assert {who: len(each) for who, each in turns.items()} == {"one": 2, "other": 2}


def turn(*lanes: list[tuple[float, float | None]]) -> Turn:
    made = tuple(
        tuple(
            Checked(
                program=BenchProgram(text="", worth=ExpectedWorth.PROVED, wall_seconds=limit), seconds=seconds
            )
            for seconds, limit in lane
        )
        for lane in lanes
    )
    return Turn(lanes=made)


def test_the_rate_is_the_sum_of_what_each_lane_did_in_its_own_time() -> None:
    assert turn([(0.5, None)] * 4, [(0.25, None)] * 2).per_second == pytest.approx(2 + 4)


def test_of_a_timeout_only_what_it_took_beyond_its_limit_counts() -> None:
    lane = [(0.1, None)] * 5 + [(0.75, 0.5)] + [(0.3, None)] + [(0.1, None)] * 2
    measured = turn(lane)
    assert measured.per_second == pytest.approx(8 / (0.7 + 0.25 + 0.3))
    assert len(measured.latencies) == 8


@pytest.mark.parametrize(
    ("bars", "reached"),
    [
        ({}, None),
        ({"at_least": 2.0}, True),
        ({"at_least": 2.5}, False),
        ({"at_most": 2.0}, True),
        ({"at_most": 1.9}, False),
    ],
)
def test_a_figure_is_the_median_and_is_held_against_its_bar(
    bars: dict[str, float], reached: bool | None
) -> None:
    figure = Figure(key="k", name="n", unit="", samples=(9.0, 1.0, 2.0), **bars)
    assert figure.measured == 2.0
    assert figure.reached is reached


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [quantile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]


# The table


def test_a_person_sees_the_machine_the_tiers_and_which_bar_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"by": "kernel", "statements": "all new", "isolation": "bwrap", "checks": 12}
    row |= {"checks_per_second": 1234.5, "p50_ms": 5.678, "p95_ms": 6.0, "p99_ms": 7.0}
    missed = Figure(key="k", name="a ratio", unit="times", samples=(1.5,), at_least=2)
    reached = replace(missed, name="another", at_least=1)
    machine = {"checks_at_once": 2, "isolation": "bwrap", "used_by_others": 0.25}
    screen.show(machine, screen.checks([row]), [missed, reached])
    said = capsys.readouterr()
    assert "checks at once: 2\n" in said.out
    assert re.search(r"kernel +all new +bwrap +12 +1234 +5.68 +6 +7\b", said.out)
    assert re.search(r"a ratio +bwrap +1.5 +times +>= 2 +missed", said.out)
    assert re.search(r"another +bwrap +1.5 +times +>= 1 +reached", said.out)
    assert said.err == (
        "Others used 25% of the processors meanwhile: the figures are only a rough guide.\n"
        "1 of the bars is missed.\n"
    )
