"""HOL Light step, images: makes the image of each environment at its first check, and keeps it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from farm_workers import images
from farm_workers.box import launch
from farm_workers.box.bubblewrap import python
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.images.image import UNLIMITED, Image, in_box, words
from farm_workers.images.recipe import Recipe
from farm_workers.systems.hol_light.environment import HolLightEnvironment

_PACKAGE = Path(__file__).resolve().parent
#: How often a thread that waits for an image looks whether its check was cancelled.
_LOOK_SECONDS = 0.25
#: Loading takes a minute and a half on an idle core.
_START_SECONDS = 1800.0
#: An image that could not be made is not begun again sooner: loading takes minutes of a core.
_RETRY_SECONDS = 300.0


class NoLongerWanted(Exception):
    """The check was cancelled while it waited for an image."""


class Residents:
    """Keeps the image of each environment; thread-safe."""

    def __init__(self, isolation: Isolation) -> None:
        self._isolation = isolation
        self._lock = threading.Lock()
        self._images: dict[HolLightEnvironment, Image] = {}
        self._closed = False

    def begin(self, environment: HolLightEnvironment) -> Image:
        """Return the environment's image, which may not be ready yet. Raises BoxFailed."""
        with self._lock:
            if self._closed:
                raise BoxFailed("the images of this worker are closed")
            image = self._images.get(environment)
            if image is None or (image.has_failed and time.monotonic() > image.begun_at + _RETRY_SECONDS):
                image = self._images[environment] = _image(environment, self._isolation)
            return image

    def ready(self, environment: HolLightEnvironment, cancelled: Callable[[], bool]) -> Image:
        """Return the environment's image when it can fork.

        Raises NoImage if it cannot be made, NotWanted when `cancelled` returns True during the wait, and
        BoxFailed.
        """
        image = self.begin(environment)
        while not image.wait(_LOOK_SECONDS):
            if cancelled():
                raise NoLongerWanted
        return image

    def replace(self, environment: HolLightEnvironment, image: Image) -> None:
        """Forget an image that has ended, so that the next check makes another one."""
        with self._lock:
            if self._images.get(environment) is image:
                del self._images[environment]
        image.close()

    def kept(self) -> list[tuple[str, int]]:
        """Return the images that can fork: the environment and the private memory in bytes of each."""
        with self._lock:
            found = list(self._images.items())
        return [(environment.name, image.memory_kib << 10) for environment, image in found if image.is_ready]

    def close(self) -> None:
        """End all images; the object cannot be used afterwards."""
        with self._lock:
            self._closed = True
            found = list(self._images.values())
            self._images.clear()
        for image in found:
            image.close()


def _image(environment: HolLightEnvironment, isolation: Isolation) -> Image:
    told = [*words(isolation), str(environment.runtime), str(environment.folder)]
    command = Command(
        words=images.started(python(), "farm_workers.systems.hol_light.serve", told),
        limits=UNLIMITED,
        environment={"HOLLIGHT_DIR": str(environment.folder)},
        visible=(*images.FOLDERS, _PACKAGE, environment.folder, environment.ocaml),
        trusted=True,
        stack_bytes=launch.THREAD_STACK_BYTES,
    )
    return Image(
        environment.name,
        Recipe(header=environment.script),
        isolation,
        in_box(lambda: command),
        start_seconds=_START_SECONDS,
    )
