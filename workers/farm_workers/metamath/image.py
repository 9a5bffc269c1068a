"""Metamath step, the image's command: how a process that has read a database is started."""

from __future__ import annotations

from pathlib import Path

from farm_workers import images
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import Command
from farm_workers.environments.metamath import MetamathEnvironment
from farm_workers.images.image import UNLIMITED, place_words

_PACKAGE = Path(__file__).parent
_START = "import sys; sys.path.insert(0, {!r}); from farm_workers.metamath.serve import main; main()"


def metamath_image(environment: MetamathEnvironment, isolation: Isolation) -> Command:
    """Return what to start the image of a database by."""
    start = _START.format(str(_PACKAGE.parent.parent))
    words = [python(), "-I", "-S", "-c", start, *place_words(isolation), str(environment.database)]
    return Command(
        words=words, limits=UNLIMITED, visible=(*images.FOLDERS, _PACKAGE, environment.database), trusted=True
    )
