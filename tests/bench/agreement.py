"""Benchmarks, agreement: how many scripts have the same outcome by state, in a session, and as a text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing

from farm_workers.box.isolation import prepared
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import EMBEDDED
from farm_workers.images.image import lean_image
from farm_workers.images.images import Images
from farm_workers.machine.environments import installed

from farm.settings import Settings
from tests.agreement.comparing import Compared, Comparing
from tests.agreement.scripts import scripts
from tests.bench.checks.figures import Figure

#: Scripts that are made, besides those that the farm has.
_MADE = 400


def agreement() -> Iterator[Figure]:
    """Compare all scripts, and say which differ."""
    settings = Settings.load()
    with (
        prepared(settings.home / "work") as isolation,
        closing(Images(isolation, lean_image, most=3)) as images,
        Checker(isolation, home=settings.home / "bench", concurrency=1) as checker,
    ):
        environment = installed(settings.home, settings.environments, isolation).lean(EMBEDDED)
        found = list(Comparing(environment, images, checker).compared(scripts(made=_MADE)))
    for each in found:
        if not each.agrees:
            sys.stderr.write(f"{each}\n\n")
    yield from _figures(found)


def _figures(found: list[Compared]) -> Iterator[Figure]:
    def figure(key: str, name: str, value: float, at_least: float | None = None) -> Figure:
        return Figure(key=key, name=name, unit="", samples=(value,), at_least=at_least)

    proved = [each for each in found if each.by_text == "proved"]
    same = sum(each.agrees for each in found) / len(found)
    yield figure("same_outcome", "scripts with the same outcome by state and as a text", same, 0.99)
    same = sum(each.agrees for each in proved) / len(proved)
    yield figure("same_outcome_proved", "the same of those that are proved as a text", same, 0.99)
    yield figure("agreement_scripts", "scripts", len(found))
    yield figure("agreement_proved", "those that are proved as a text", len(proved))
    steps = sum(len(each.steps) for each in proved) / len(proved)
    yield figure("agreement_steps", "tactics that a session takes one of those in", steps)
