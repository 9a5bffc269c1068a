"""How a machine finds out what a Lean does when it is forked: right answers fit, any difference does not."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from farm_workers.binding import table
from farm_workers.binding.description import encoded, shipped
from farm_workers.binding.signatures import READ, Description, Member, Parameter, Shape
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import examine
from farm_workers.checking.checker import Checker
from farm_workers.environments import fit as fits
from farm_workers.environments.configured import Table
from farm_workers.environments.fit import Fit
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.fitting import Trials, fitted, with_fit

from farm.errors import SettingsError
from tests.commands import Command
from tests.descriptions import with_older_kernel, without
from tests.toolchains import toolchain

RUN = shipped(4, 35)
QUICK = Trials(forks=5, cold_runs=1, tricks=3)
BEST = ("snapshots",)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def written(description: Description) -> Description:
    """Return a description as somebody writes it who has read Lean's sources."""
    return replace(description, source=READ)


def has_right_verdicts(isolation: Isolation, home: Path, environment: LeanEnvironment, fit: Fit) -> bool:
    """Whether the canaries come out right with what was found out, in whichever way Lean is then run."""
    with Checker(isolation, home=home, way="forked") as checker:
        return examine(replace(environment, fit=fit), checker).wrong == ()


@pytest.mark.parametrize(
    ("trials", "cases"), [(QUICK, 3), pytest.param(Trials(), 40, marks=pytest.mark.long)], ids=["few", "all"]
)
def test_the_embedded_lean_fits_in_its_best_way(
    core: LeanEnvironment, home: Path, isolation: Isolation, trials: Trials, cases: int
) -> None:
    found = fitted(core, home, isolation, trials=trials)
    assert (found.way, found.lacking, found.misfits) == ("snapshots", {}, ())
    assert found.cases > cases
    assert found.modules >= 1
    assert 0 < found.figures["forked_seconds"] < found.figures["cold_seconds"]


def test_the_plainer_way_and_older_functions_of_the_kernel_fit_where_the_best_is_not_to_be_had(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    given = written(with_older_kernel(without(RUN, "Lean.Language.Lean.process")))
    found = fitted(core, home, isolation, given=given, trials=QUICK)
    assert (found.way, set(found.lacking)) == ("commands", {"snapshots"})
    assert found.tried[0].why == ("Lean.Language.Lean.process is not described",)
    assert has_right_verdicts(isolation, home, core, found)


def test_the_best_way_fits_with_older_functions_of_the_kernel(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    given = written(with_older_kernel(RUN))
    found = fitted(core, home, isolation, given=given, trials=replace(QUICK, ways=BEST))
    assert (found.way, found.lacking) == ("snapshots", {})


def test_a_lean_that_lacks_the_replay_is_not_forked_and_judged_all_the_same(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    given = written(without(RUN, "Lean.Kernel.Environment.replay"))
    found = fitted(core, home, isolation, given=given, trials=QUICK)
    assert found.way == ""
    assert all("Lean.Kernel.Environment.replay is not described" in each.why[0] for each in found.tried)
    assert has_right_verdicts(isolation, home, replace(core, checkers=()), found)


def test_a_lean_that_lacks_goals_is_forked_without_them(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    given = written(without(RUN, "Std.Format.pretty"))
    found = fitted(core, home, isolation, given=given, trials=QUICK)
    assert (found.way, set(found.lacking)) == ("snapshots", {"extraction", "goals", "printing", "sessions"})


def _swapped(rows: tuple[Parameter, ...], one: int, other: int) -> tuple[Parameter, ...]:
    """Give two parameters each other's name, where the places in the library stay as they are."""
    found = list(rows)
    found[one], found[other] = (
        replace(found[one], name=found[other].name),
        replace(found[other], name=found[one].name),
    )
    return tuple(found)


def _lies() -> Iterator[tuple[str, Description]]:
    """Yield descriptions that bind and are not true."""
    chance = random.Random(7)
    for name in (
        "Lean.writeModule",
        "Lean.Language.SnapshotTree.runAndReport",
        "Lean.Kernel.Environment.replay",
    ):
        yield (
            f"two parameters of {name}",
            replace(RUN, functions={**RUN.functions, name: _swapped(RUN.functions[name], 0, 1)}),
        )
    for name in ("Lean.Elab.Command.State", "Lean.Language.Lean.HeaderParsedSnapshot", "Lean.ModuleData"):
        parts = list(RUN.structures[name])
        chance.shuffle(parts)
        yield f"fields of {name}", replace(RUN, structures={**RUN.structures, name: tuple(parts)})
    task = (Member("new"), *RUN.structures["Lean.Language.SnapshotTask"])
    yield (
        "a field before the task",
        replace(RUN, structures={**RUN.structures, "Lean.Language.SnapshotTask": task}),
    )
    more = (Parameter("new", Shape.OBJECT, 1), *RUN.functions["Lean.Kernel.Environment.find?"])
    yield (
        "a parameter before the environment",
        replace(RUN, functions={**RUN.functions, "Lean.Kernel.Environment.find?": more}),
    )
    yield "results that hold their value", replace(RUN, plain_actions=False)
    types = {**RUN.types, "Lean.OLeanLevel": ("private", "server", "exported")}
    yield "levels of modules", replace(RUN, types=types)


@pytest.mark.parametrize(("lie", "description"), list(_lies()), ids=[lie for lie, _ in _lies()])
def test_a_description_that_is_not_true_ends_in_a_refusal_and_in_no_wrong_verdict(
    core: LeanEnvironment,
    home: Path,
    isolation: Isolation,
    lie: str,
    description: Description,
) -> None:
    given = written(description)
    found = fitted(core, home, isolation, given=given, trials=replace(QUICK, ways=BEST))
    assert found.way == "" or has_right_verdicts(isolation, home, core, found), lie
    assert found.way or found.tried[0].why, lie


def test_a_library_that_is_none_does_not_fit(
    core: LeanEnvironment, home: Path, isolation: Isolation, tmp_path: Path
) -> None:
    made = toolchain(tmp_path / "toolchain", core)
    other = replace(
        core, lean=(str(made.lean),), toolchain="Lean 4.99.0", visible=tuple(map(str, made.visible))
    )
    assert "no shared library" in fitted(other, home, isolation).tried[0].why[0]
    (made.folder / "lib" / "lean" / "libleanshared.so").write_bytes(b"\\x7fELF")
    assert "cannot be read" in fitted(other, home, isolation).tried[0].why[0]


def test_a_fit_is_kept_with_the_digest_until_the_engine_changes(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    found = Fit(digest=core.digest, lean="4.99", source=READ, engine=fits.engine(), way="commands")
    path = fits.save(home, found)
    assert fits.load(home, core.digest) == found
    assert fits.load(home, "another") is None
    path.write_text(json.dumps({**json.loads(path.read_text()), "engine": "another"}))
    assert fits.load(home, core.digest) is None
    path.write_text("{")
    assert fits.load(home, core.digest) is None


@pytest.fixture
def unseen(core: LeanEnvironment, tmp_path: Path) -> LeanEnvironment:
    """The embedded Lean as a toolchain of a release that the farm has never seen."""
    made = toolchain(tmp_path / "lean", core)
    (made.folder / "lib" / "lean" / "libleanshared.so").symlink_to(core.lean[0])
    first, _, rest = made.lean.read_text().partition("exec '")
    says = "Lean (version 4.36.0, x86_64-unknown-linux-gnu, commit abcdefabcdef, Release)"
    made.lean.write_text(f"{first}test \"$1\" != --version || exec echo '{says}'\nexec '{rest}")
    table = {
        "lean": str(made.lean),
        "lean_path": list(core.lean_path),
        "visible": [*map(str, made.visible), str(Path(core.lean[0]).parent)],
        "header": core.header,
    }
    return Table("next", table).environment(tmp_path)


def test_a_release_that_was_never_seen_is_forked_once_it_is_described(
    unseen: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    assert (unseen.toolchain, unseen.forks, unseen.tiers[0]) == ("Lean 4.36.0 (abcdefabcdef)", False, "audit")
    undescribed = with_fit(unseen, home=home, isolation=isolation, way="forked")
    assert isinstance(undescribed, LeanEnvironment)
    assert undescribed.fit is not None
    assert "no compiled module of Lean's own library" in undescribed.fit.words
    assert (undescribed.forks, undescribed.tiers[0]) == (False, "audit")
    found = fitted(unseen, home, isolation, given=written(RUN), trials=QUICK)
    assert (found.way, found.lacking) == ("snapshots", {})
    described = replace(unseen, fit=found)
    assert (described.forks, described.tiers[0]) == (True, "kernel")
    with Checker(isolation, home=home, way="forked") as checker:
        assert checker.cannot_fork(described) == ""
        assert examine(described, checker).wrong == ()
        assert checker.cannot_fork(unseen).startswith("this Lean does not fit the farm")


def test_a_fit_can_be_carried_to_another_machine_with_its_description(
    core: LeanEnvironment, home: Path, isolation: Isolation, tmp_path: Path
) -> None:
    given = written(without(RUN, "Lean.Language.Lean.process"))
    found = fitted(core, home, isolation, given=given, trials=QUICK)
    fits.save(home, found)
    carried = tmp_path / "image"
    shutil.copytree(home / "fits", carried)
    shutil.rmtree(home)
    assert fits.load(home, core.digest) is None
    there = fits.load(home, core.digest, str(carried))
    assert there is not None
    assert (there.way, Path(there.description).parent) == ("commands", carried)
    with Checker(isolation, home=home, way="forked") as checker:
        assert checker.cannot_fork(replace(core, fit=there)) == ""
    Path(there.description).unlink()
    assert fits.load(home, core.digest, str(carried)) is None


def test_a_table_names_a_folder_of_fits(core: LeanEnvironment, tmp_path: Path) -> None:
    made = toolchain(tmp_path / "lean", core)
    table = {"lean": str(made.lean), "lean_path": list(core.lean_path)}
    for path in ("relative", "/nowhere", str(made.lean)):
        with pytest.raises(SettingsError, match=r"fits: .* is not the absolute path of a folder"):
            Table("mine", {**table, "fits": path}).environment(tmp_path)
    assert Table("mine", {**table, "fits": str(tmp_path)}).environment(tmp_path).fit is None


def test_a_description_of_a_users_own_is_kept_only_if_it_fits(core: LeanEnvironment, tmp_path: Path) -> None:
    farm, file = Command().having(FARM_HOME=str(tmp_path / "home")), tmp_path / "description.json"
    kept = fits.path_of(tmp_path / "home", core.digest)
    for content, words in ((None, "No such file"), ("{}", "not in the farm's format")):
        if content is not None:
            file.write_text(content)
        refused = farm("environments", "fit", "core", "--description", file, seconds=120)
        assert (refused.returncode, words in refused.stderr, kept.exists()) == (2, True, False), refused
    file.write_text(encoded(without(RUN, table.WRITE_MODULE.name)))
    lacking = farm("environments", "fit", "core", "--description", file, seconds=120)
    assert (lacking.returncode, kept.exists()) == (1, False), lacking
    assert "Lean.writeModule is not described" in lacking.stdout
    assert "Nothing of this is kept" in lacking.stderr


def test_a_release_that_the_tests_have_run_is_not_tried_again(
    core: LeanEnvironment, home: Path, isolation: Isolation
) -> None:
    assert with_fit(core, home=home, isolation=isolation, way="forked") is core
    assert not (home / "fits").exists()
