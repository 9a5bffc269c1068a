"""Metamath step, the image's command: starts a process that has read a database."""

from __future__ import annotations

from pathlib import Path

from farm_workers import images
from farm_workers.box import launch
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import Command
from farm_workers.images.image import UNLIMITED, words
from farm_workers.images.recipe import Recipe
from farm_workers.systems.metamath.environment import MetamathEnvironment

_PACKAGE = Path(__file__).parent


def metamath_image(environment: MetamathEnvironment, isolation: Isolation, _recipe: Recipe) -> Command:
    """Return the command that starts the image of a database."""
    told = [*words(isolation), str(environment.database)]
    return Command(
        words=images.started(python(), "farm_workers.systems.metamath.serve", told),
        limits=UNLIMITED,
        visible=(*images.FOLDERS, _PACKAGE, environment.database),
        trusted=True,
        stack_bytes=launch.THREAD_STACK_BYTES,
    )
