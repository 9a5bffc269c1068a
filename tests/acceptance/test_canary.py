"""Canaries: an environment is served only when programs whose worth is known come out as what they are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.checking.canary import (
    AUDITED,
    ERROR,
    MEMORY,
    PROVED,
    SORRY,
    TIMEOUT,
    examine,
    require_sound,
)
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import installed
from farm_workers.machine.judges import Judges
from farm_workers.metrics import events
from farm_workers.metrics.registry import Metrics
from farm_workers.systems.lean.judge import LeanJudge

from farm.assembly.challenge import Challenge
from farm.errors import FarmError
from farm.judging.assurance import Assurance
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome, judge
from farm.kinds import Kind
from tests.toolchains import credulous, unreadable


@pytest.fixture(scope="module")
def checker_of(isolation: Isolation, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Checker]:
    """How to get a checker that runs Lean in a way."""
    return lambda way: Checker(isolation, home=tmp_path_factory.mktemp("home"), way=way, concurrency=2)


@pytest.mark.parametrize("way", ["forked", "cold"])
def test_the_canaries_live_in_the_embedded_environment_whichever_way_lean_is_run(
    checker_of: Callable[[str], Checker], core: LeanEnvironment, way: str
) -> None:
    with checker_of(way) as checker:
        examined = examine(core, checker)
    assert examined.wrong == ()
    assert examined.ways == {way, "cold"}
    assert examined.canaries == (9 if way == "cold" else 12)


def test_an_environment_whose_modules_are_gone_is_not_fit_to_judge(
    checker: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    broken = dataclasses.replace(core, digest="gone", lean_path=(str(tmp_path),))
    with pytest.raises(FarmError, match=r"'core'.*is not fit to judge: .*proved.*bad_environment.*Core"):
        require_sound(broken, checker)


def test_a_metric_tells_that_known_programs_come_out_wrong_until_they_come_out_right(
    checker: Checker, core: LeanEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = Metrics()
    monkeypatch.setattr(events, "_metrics", metrics)
    judges = Judges({Kind.LEAN: lambda: LeanJudge(checker)}, way=checker.way, isolation=checker.isolation)
    broken = dataclasses.replace(core, digest="gone for a while", lean_path=(str(tmp_path),))

    def told() -> float | None:
        return metrics.registry.get_sample_value("farm_canary_wrong", {"environment": "core"})

    with pytest.raises(FarmError):
        judges.require_sound(broken)
    assert told() == 1.0
    assert judges.trial(core) == ()
    assert told() == 0.0


def test_a_canary_that_comes_out_wrong_once_on_a_busy_machine_is_judged_again(
    checker_of: Callable[[str], Checker], core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def check(self: Checker, check: Check, environment: LeanEnvironment, **how: Any) -> Report:
        """Give a check of the canary `memory` no time, the first time."""
        if check.limits == MEMORY.limits:
            asked.append(MEMORY.name)
            if len(asked) == 1:
                check = dataclasses.replace(
                    check, limits=dataclasses.replace(check.limits, wall_seconds=0.01)
                )
        return judged(self, check, environment, **how)

    judged = Checker.check
    monkeypatch.setattr(Checker, "check", check)
    with checker_of("forked") as checker:
        require_sound(core, checker)
    assert len(asked) == 2


def test_what_is_accepted_though_it_must_not_be_has_no_second_chance(
    checker_of: Callable[[str], Checker], core: LeanEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def check(self: Checker, check: Check, environment: LeanEnvironment, **how: Any) -> Report:
        """Judge what is proved in place of the canary `error`, the first time."""
        if check.program.endswith(ERROR.body):
            asked.append(ERROR.name)
            if len(asked) == 1:
                check = PROVED.check(environment.header)
        return judged(self, check, environment, **how)

    judged = Checker.check
    monkeypatch.setattr(Checker, "check", check)
    with checker_of("cold") as checker, pytest.raises(FarmError, match=r"error \(cold\) came out as ok"):
        require_sound(core, checker)
    assert len(asked) == 1


@pytest.mark.parametrize("way", ["forked", "cold"])
def test_a_lean_that_believes_everything_is_not_fit_to_judge(
    isolation: Isolation, checker_of: Callable[[str], Checker], tmp_path: Path, way: str
) -> None:
    file = tmp_path / "environments.toml"
    file.write_text(credulous(tmp_path / "toolchain").table("credulous"))
    environment = installed(tmp_path, file, isolation)["credulous"]
    with checker_of(way) as checker:
        wrong, unread = examine(environment, checker).wrong
    assert f"{AUDITED.name} (" in unread
    assert "the challenge left neither a module nor an error" in unread
    for canary in (ERROR, SORRY, TIMEOUT, MEMORY):
        assert f"{canary.name} (" in wrong
    assert f"{PROVED.name} (" not in wrong
    assert "came out as ok" in wrong


def test_a_lean_whose_modules_cannot_be_audited_is_served_without_when_its_owner_says_so(
    isolation: Isolation, checker: Checker, core: LeanEnvironment, tmp_path: Path
) -> None:
    unread = unreadable(tmp_path / "toolchain", core)
    lines = (f'lean_path = ["{core.lean_path[0]}"]', 'header = "prelude\\nimport Core\\n"')
    file = tmp_path / "environments.toml"
    file.write_text(unread.table("strange", *lines) + unread.table("known", *lines, "audit = false"))
    found = installed(tmp_path, file, isolation)
    with pytest.raises(FarmError, match=r"audited \(forked\).*`audit = false`"):
        require_sound(found["strange"], checker)
    known = found["known"]
    require_sound(known, checker)
    asked = Challenge(program=f"{known.header}theorem t : True := sorry\n", name="t")
    program = f"{known.header}theorem t : True := True.intro\n"
    lean = Assurance(tier=Tier.LEAN)
    believed = checker.check(Check.of(program=program, challenge=asked, assurance=lean), known)
    assert judge(believed).outcome is Outcome.PROVED
    assert (believed.audit, believed.statement) == (None, "unchecked")
    assert known.tiers == (Tier.LEAN,)
