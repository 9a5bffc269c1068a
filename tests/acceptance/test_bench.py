"""`farm bench`, on real Lean: what it measures, beside what, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Command
from leans import toolchain
from processes import PATIENCE, processes

from farm.errors import FarmError
from farm.settings import WAYS, Settings
from workers.bench import bare, library, screen
from workers.bench.figures import Figure, quantile
from workers.bench.programs import ENDLESS, Program, Worth, program, programs, with_endless
from workers.bench.subject import subject
from workers.bench.turns import Checked, Turn, crew
from workers.environments import LeanEnvironment

PAGE = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
#: Enough of the library to be imported; what that costs is another matter.
MODULES = 4
#: The figures that have a bar, those of the strongest box apart.
TUNED = ("resident", "tuned")
BARRED = {
    *("resident_over_bare_light", "resident_over_bare_heavy", "cold_over_bare_heavy"),
    *("resident_over_cold_heavy", "timeouts_stop", "worker_memory", "worker_memory_growth"),
}

pytestmark = pytest.mark.timeout(600 * PATIENCE)


@pytest.fixture(scope="module")
def home(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a compiled core library and nothing else."""
    home = tmp_path_factory.mktemp("bench") / "home"
    shutil.copytree(Path(core.lean_path[0]).parent, home / "environments")
    return home


@pytest.fixture(scope="module")
def measured(home: Path) -> dict[str, Any]:
    """What a quick bench prints."""
    command = ("bench", "--quick", "--json", "--modules", MODULES, "--soak", 50)
    said = Command({"FARM_HOME": str(home)})(*command, seconds=500 * PATIENCE)
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


def test_every_way_is_measured_with_each_header_beside_bare_lean(measured: dict[str, Any]) -> None:
    found = {(row["header"], row["way"], row["by"]) for row in measured["ways"]}
    pairs = [(way, by) for way in WAYS for by in ("farm", "bare")]
    assert found == {(header, *each) for header in ("light", "heavy") for each in [*pairs, TUNED]}


def test_a_way_has_a_rate_a_cost_and_latencies_in_order(measured: dict[str, Any]) -> None:
    for row in measured["ways"]:
        assert row["checks"] >= 3, row
        assert row["checks_per_second"] > 0, row
        assert row["cpu_seconds_per_check"] > 0, row
        assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"], row


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("header", ["light", "heavy"])
def test_the_engine_is_not_far_behind_bare_lean(measured: dict[str, Any], way: str, header: str) -> None:
    ratios = samples(measured, f"{way}_over_bare_{header}")
    assert len(ratios) == 3
    assert sorted(ratios)[1] > 0.3


def test_a_resident_check_is_faster_than_a_cold_one(measured: dict[str, Any]) -> None:
    assert sorted(samples(measured, "resident_over_cold_heavy"))[1] > 1.5


def test_the_engine_uses_no_less_processor_time_than_bare_lean_needs(measured: dict[str, Any]) -> None:
    cost = {(r["header"], r["way"], r["by"]): r["cpu_seconds_per_check"] for r in measured["ways"]}
    for header in ("light", "heavy"):
        for way in ("cold", "snapshot"):  # were a process's time lost, it would be nearly all of it
            assert cost[header, way, "farm"] > 0.7 * cost[header, way, "bare"]


def test_the_box_is_measured_at_every_level_of_isolation_of_the_machine(measured: dict[str, Any]) -> None:
    levels = measured["machine"]["isolations"]
    assert levels[0] == "rlimit"
    assert levels[-1] == measured["machine"]["isolation"]
    for level in levels:
        for key in ("box_resident", "box_cold", "box_cold_cpu", "box_memory"):
            assert samples(measured, f"{key}_{level}")


def test_exactly_these_figures_have_a_bar(measured: dict[str, Any]) -> None:
    strongest = measured["machine"]["isolation"]
    barred = {figure["key"] for figure in measured["figures"] if figure["bar"]}
    assert barred == BARRED | {f"box_resident_{strongest}", f"box_cold_{strongest}"}
    for figure in measured["figures"]:
        assert (figure["reached"] is None) == (figure["bar"] == ""), figure


def test_a_timeout_is_measured_for_programs_that_stop_and_for_those_that_do_not(
    measured: dict[str, Any],
) -> None:
    for kind in ("stop", "killed"):
        assert all(ratio > 0 for ratio in samples(measured, f"timeouts_{kind}"))
        assert samples(measured, f"after_timeout_{kind}")


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
    levels = "|".join(map(re.escape, sorted(measured["machine"]["isolations"], key=len, reverse=True)))
    for figure in measured["figures"]:
        key = re.sub(rf"_({levels})$", "_LEVEL", re.sub(r"_(light|heavy)$", "_HEADER", figure["key"]))
        assert f"`{key}`" in PAGE or f"`{figure['key']}`" in PAGE, key


def test_nothing_is_left_of_a_bench_but_its_library_and_snapshots(
    measured: dict[str, Any], home: Path
) -> None:
    assert [each.command for each in processes() if str(home) in each.command] == []
    assert list((home / "work").iterdir()) == []
    (left,) = (home / "bench").iterdir()
    assert re.fullmatch("[0-9a-f]{16}", left.name)
    assert {each.name for each in home.iterdir()} <= {"environments", "work", "bench", "snapshots"}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--ways", "cold,warm"), "'warm'; the ways are resident, snapshot, cold"),
        (("--ways", ""), "the ways are resident, snapshot, cold"),
        (("--environment", "nowhere"), "no environment is called 'nowhere'"),
        (("--seconds", "0"), "--seconds 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(home: Path, arguments: tuple[str, ...], says: str) -> None:
    said = Command({"FARM_HOME": str(home)})("bench", *arguments)
    assert said.returncode == 2
    assert says in said.stderr


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
    assert what.headers == {"heavy": "prelude\nimport Core\n"}
    assert what.heavy == what.light
    assert bare.Processes(what.environment).check(program(what.heavy, 0)) is Worth.PROVED


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
    assert bare.Processes(one).check(program(one.header, 0)) is Worth.PROVED


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


def test_no_two_programs_are_alike_and_half_of_them_hold() -> None:
    made = programs("", 0, 1000)
    assert len({each.text for each in made}) == 1000
    assert Counter(each.worth for each in made) == {Worth.PROVED: 500, Worth.ERROR: 400, Worth.SORRY: 100}


def test_bare_lean_makes_of_every_program_what_it_is_worth_whichever_way_it_is_run(
    heavy: LeanEnvironment, tmp_path: Path
) -> None:
    snapshot = bare.save_snapshot(heavy, heavy.header, tmp_path)
    assert snapshot
    with bare.resident(heavy, heavy.header) as resident:
        for check in (resident.check, bare.Processes(heavy).check, bare.Processes(heavy, snapshot).check):
            assert [(p, check(p)) for p in programs(heavy.header, 0, 10)] == [
                (p, p.worth) for p in programs(heavy.header, 0, 10)
            ]


def test_a_snapshot_of_a_header_that_lean_refuses_is_none(core: LeanEnvironment, tmp_path: Path) -> None:
    assert bare.save_snapshot(core, "prelude\nimport Nowhere\n", tmp_path) is None


def test_a_resident_lean_that_ends_is_noticed(core: LeanEnvironment) -> None:
    with ExitStack() as held:
        lean = held.enter_context(bare.resident(core, core.header))
        lean.check(program(core.header, 0))
        os.kill(lean.pid, 9)
        with pytest.raises(FarmError, match="ended"):
            lean.check(program(core.header, 1))


@pytest.mark.parametrize("kind", ENDLESS)
def test_one_program_of_twenty_never_ends(kind: str) -> None:
    made = with_endless(kind, "", 0, 60, every=20, wall_seconds=0.5)
    endless = [place for place, each in enumerate(made) if each.worth is Worth.TIMEOUT]
    assert endless == [10, 30, 50]
    assert all(made[place].wall_seconds == 0.5 for place in endless)
    assert len({each.text for each in made}) == 60


# The arithmetic


def test_a_program_that_comes_out_wrong_ends_the_measurement() -> None:
    wrong = Program(text="theorem t : False := sorry", worth=Worth.PROVED)
    with crew(2) as hired, pytest.raises(FarmError, match="came out as sorry, not proved"):
        hired.turn([lambda _: Worth.SORRY] * 2, [wrong])


def turn(*lanes: list[tuple[float, float | None]]) -> Turn:
    made = tuple(
        tuple(
            Checked(program=Program(text="", worth=Worth.PROVED, wall_seconds=limit), seconds=seconds)
            for seconds, limit in lane
        )
        for lane in lanes
    )
    return Turn(lanes=made, cpu_seconds=6.0)


def test_the_rate_is_the_sum_of_what_each_lane_did_in_its_own_time() -> None:
    assert turn([(0.5, None)] * 4, [(0.25, None)] * 2).per_second == pytest.approx(2 + 4)


def test_of_a_timeout_only_what_it_took_beyond_its_limit_counts() -> None:
    lane = [(0.1, None)] * 5 + [(0.75, 0.5)] + [(0.3, None)] + [(0.1, None)] * 2
    measured = turn(lane)
    assert measured.per_second == pytest.approx(8 / (0.7 + 0.25 + 0.3))
    assert measured.after_timeouts == [0.3]
    assert len(measured.latencies) == 8
    assert measured.cpu_per_check == pytest.approx(6.0 / 9)


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


def test_a_person_sees_the_machine_the_ways_and_which_bar_is_missed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"header": "light", "way": "cold", "by": "farm", "checks": 12, "checks_per_second": 1234.5}
    row |= {"cpu_seconds_per_check": 0.01234, "p50_ms": 5.678, "p95_ms": 6.0, "p99_ms": 7.0}
    missed = Figure(key="k", name="a ratio", unit="times", samples=(1.5,), at_least=2)
    reached = replace(missed, name="another", at_least=1)
    screen.show({"checks_at_once": 2, "used_by_others": 0.25}, screen.ways([row]), [missed, reached])
    said = capsys.readouterr()
    assert "checks at once: 2\n" in said.out
    assert re.search(r"light +cold +farm +12 +1234 +0.0123 +5.68 +6 +7\b", said.out)
    assert re.search(r"a ratio +1.5 +times +>= 2 +missed", said.out)
    assert re.search(r"another +1.5 +times +>= 1 +reached", said.out)
    assert said.err == (
        "Others used 25% of the processors meanwhile, so take no figure for more than a hint.\n"
        "1 of the bars is missed.\n"
    )
