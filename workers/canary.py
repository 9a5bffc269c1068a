"""Canary step: before a worker serves an environment, it judges programs whose worth is known."""

from __future__ import annotations

from farm.errors import FarmError
from farm.job import Limits
from farm.verdict import Reason, judge
from workers.checker import check
from workers.environments import LeanEnvironment

#: What follows the environment's header, and the reason that judging it must give.
CANARIES = {
    "theorem farm_canary : True := True.intro\n": Reason.OK,
    "theorem farm_canary : False := True.intro\n": Reason.ERROR,
    "theorem farm_canary : False := sorry\n": Reason.HAS_SORRY,
}

_LIMITS = Limits(wall_seconds=120.0, cpu_seconds=240.0)


def require_sound(environment: LeanEnvironment, limits: Limits = _LIMITS) -> None:
    """Judge known programs in an environment; raises FarmError when one comes out wrong."""
    for body, expected in CANARIES.items():
        verdict = judge(check(environment.header + body, environment, limits))
        if verdict.reason is not expected:
            raise FarmError(
                f"environment {environment.name!r} ({environment.toolchain}) is not fit to judge: "
                f"{body.strip()!r} came out as {verdict.reason}, not {expected}: {verdict.detail}"
            )
