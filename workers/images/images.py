"""Image step, all images of a worker: one for each environment and header, kept while it is needed."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator

from farm.log import logger
from workers.box.isolation import Isolation
from workers.box.supervisor import BoxFailed
from workers.environments import LeanEnvironment
from workers.images.image import Image, ImageDied, NoImage

_log = logger(__name__)

_Key = tuple[LeanEnvironment, str]
#: How often somebody who waits for an image looks whether it is still wanted.
_LOOK_SECONDS = 0.25
#: So many headers that cannot be imported are remembered.
_MOST_REFUSED = 1000


class NotWanted(Exception):
    """Nobody wants the image any more that was waited for."""


class Images:
    """Keeps at most `most` images, those longest not asked for go first; for many threads."""

    def __init__(self, isolation: Isolation, *, most: int) -> None:
        self._isolation, self._most = isolation, most
        self._lock = threading.Lock()
        self._images: OrderedDict[_Key, Image] = OrderedDict()
        self._used: Counter[Image] = Counter()
        self._refused: OrderedDict[bytes, str] = OrderedDict()
        self._closed = False

    @contextlib.contextmanager
    def lease(
        self, environment: LeanEnvironment, header: str, cancelled: Callable[[], bool]
    ) -> Iterator[Image]:
        """Give an image of a header, which is made when there is none; it stays while the block lasts.

        Raises NoImage where none can be made, NotWanted when `cancelled` says so meanwhile, and BoxFailed.
        """
        key = environment, header
        image = self._lent(key)
        try:
            self._await(key, image, cancelled)
            yield image
        finally:
            self._give_back(image)

    def replace(self, environment: LeanEnvironment, header: str, image: Image) -> None:
        """Forget an image that has ended, so that the next who asks gets another one."""
        with self._lock:
            if self._images.get((environment, header)) is image:
                del self._images[environment, header]
        self._close([image])

    def prewarm(self, environment: LeanEnvironment, header: str) -> None:
        """Begin to make an image before anybody asks for it."""
        with contextlib.suppress(NoImage):
            self._give_back(self._lent((environment, header)))

    def close(self) -> None:
        """End all images; nothing may be asked any more."""
        with self._lock:
            self._closed = True
            images = list(self._images.values())
            self._images.clear()
        self._close(images)

    def _lent(self, key: _Key) -> Image:
        with self._lock:
            if self._closed:
                raise BoxFailed("the images of this worker are closed")
            if (why := self._refused.get(_short(key))) is not None:
                raise NoImage(why)
            image = self._images.get(key)
            if image is None:
                image = self._images[key] = Image(*key, self._isolation)
            self._images.move_to_end(key)
            self._used[image] += 1
            leaving = self._leaving()
        self._close(leaving)
        return image

    def _leaving(self) -> list[Image]:
        """Take those away that are one too many and not in use."""
        idle = [key for key, image in self._images.items() if not self._used[image]]
        too_many = max(0, len(self._images) - self._most)
        return [self._images.pop(key) for key in idle[:too_many]]

    def _await(self, key: _Key, image: Image, cancelled: Callable[[], bool]) -> None:
        try:
            while not image.wait(_LOOK_SECONDS):
                if cancelled():
                    raise NotWanted
        except NoImage as error:
            _log.warning("No image of a header of %s: %s", key[0].name, error)
            self._forget(key, image)
            if not isinstance(error, ImageDied):
                self._refuse(key, str(error))
            raise
        except BoxFailed:
            self._forget(key, image)
            raise

    def _refuse(self, key: _Key, why: str) -> None:
        with self._lock:
            self._refused[_short(key)] = why
            if len(self._refused) > _MOST_REFUSED:
                self._refused.popitem(last=False)

    def _forget(self, key: _Key, image: Image) -> None:
        with self._lock:
            if self._images.get(key) is image:
                del self._images[key]

    def _give_back(self, image: Image) -> None:
        with self._lock:
            self._used[image] -= 1
            if not self._used[image]:
                del self._used[image]
            leaving = self._leaving()
        self._close(leaving)

    @staticmethod
    def _close(images: list[Image]) -> None:
        for image in images:
            image.close()


def _short(key: _Key) -> bytes:
    """Return what stands for a header where many are remembered: a header can have megabytes."""
    environment, header = key
    words = f"{environment.digest}\0{header}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(words).digest()
