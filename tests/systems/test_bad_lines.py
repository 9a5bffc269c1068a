"""A line from which no program can be made is no failure of the farm, whichever judge is asked about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from farm_workers.systems.hol_light.environment import environment
from farm_workers.systems.hol_light.judge import HolLightJudge
from farm_workers.systems.metamath.environment import MetamathEnvironment
from farm_workers.systems.metamath.judge import MetamathJudge

from farm.assembly.challenge import Challenge
from farm.judging.job import Check
from farm.judging.report import Report
from farm.judging.verdict import Reason, judge
from farm.limits import Limits
from farm.settings import Settings
from tests.isolation_levels import isolated


@pytest.mark.parametrize("program", ["prove(`F`,\nALL_TAC\n);;\n", "\0"])
def test_a_judge_that_is_asked_about_such_a_line_blames_the_line(program: str, tmp_path: Path) -> None:
    """As `farm rejudge --in-place` asks; no image is made for it, so that any environment will do."""
    check = Check.of(program=program, limits=Limits(), challenge=Challenge(program="`T` `F`", name=""))
    hol_light = environment("hol", {}, Path("/nowhere"))
    set_mm = MetamathEnvironment(
        name="set", toolchain="", digest="", version="", database=tmp_path, program=tmp_path
    )
    with isolated(tmp_path, "rlimit") as isolation:
        reports = [
            HolLightJudge(isolation).check(check, hol_light),
            MetamathJudge(isolation, Settings.load(), 1).check(check, set_mm),
        ]
    for report in reports:
        assert isinstance(report, Report)
        assert judge(report).reason is Reason.BAD_CHALLENGE
