"""Which environments there are, as `farm environments` puts it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import Installed
from farm_workers.machine.inventory import Listed, listed

from farm.store.environments import ServedEnvironment

HERE = LeanEnvironment(
    name="core",
    digest="d1",
    toolchain="Lean 4.35.0",
    lean=("/bin/lean",),
    lean_path=(),
    header="import Init\n",
    headers=("import Init\n",),
)
NOTHING = Installed(sound={}, problems={})
SOUND = Installed(sound={"core": HERE}, problems={})
BROKEN = Installed(sound={}, problems={"core": "no lean"})


def served(digest: str = "d1", *, silent: float = 1.0) -> ServedEnvironment:
    return ServedEnvironment(
        name="core", digest=digest, toolchain="Lean 4.22.0", silent_seconds=silent, tiers=("lean",)
    )


def one(told: list[ServedEnvironment], here: Installed) -> Listed:
    (found,) = listed(told, here, silence_seconds=20)
    return found


@pytest.mark.parametrize(
    ("told", "here", "state"),
    [
        ([served()], SOUND, "served; installed here, not forked: not tried; see farm environments fit core"),
        ([served()], NOTHING, "served; not installed here"),
        ([served(silent=90)], NOTHING, "not served for 90 s; not installed here"),
        ([served("d2")], SOUND, "served; installed here with another digest than the one served, d2"),
        ([served()], BROKEN, "served; broken here: no lean"),
        ([], SOUND, "never served; installed here, not forked: not tried; see farm environments fit core"),
        ([], BROKEN, "never served; broken here: no lean"),
    ],
)
def test_the_state_says_who_serves_it_and_how_it_is_here(
    told: list[ServedEnvironment], here: Installed, state: str
) -> None:
    assert one(told, here).state == state


def test_what_is_here_is_shown_before_what_is_served() -> None:
    both = one([served("d2")], SOUND)
    assert (both.known, both.headers) == (HERE, ("import Init\n",))
    elsewhere = one([served("d2")], NOTHING)
    assert (elsewhere.known, elsewhere.headers) == (served("d2"), ())
    assert one([], BROKEN).known is None


def test_what_its_workers_say_of_its_tiers_is_shown_before_what_could_be_had_here() -> None:
    assert one([served()], SOUND).tiers == ("lean",)
    assert one([], SOUND).tiers == ("audit", "lean")  # without anything that replays modules
    assert one([], BROKEN).tiers == ()


def test_environments_are_listed_by_name_each_once() -> None:
    here = Installed(sound={"core": HERE}, problems={"a": "broken"})
    others = [served(), ServedEnvironment(name="z", digest="d", toolchain="t", silent_seconds=0, tiers=())]
    assert [each.name for each in listed(others, here, silence_seconds=20)] == ["a", "core", "z"]


def test_the_known_holes_of_a_kernel_are_told() -> None:
    (old,) = listed([served()], Installed(sound={}, problems={}), silence_seconds=5)
    assert "nested-parameters-unchecked" in {known.id for known in old.advisories}
    (new,) = listed([replace(served(), toolchain="Lean 4.35.0 (eb6cafb7290e)")], SOUND, silence_seconds=5)
    assert new.advisories == ()
