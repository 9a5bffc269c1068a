"""Image step, all images of a worker: makes one for each environment and recipe, and evicts unused ones."""

from __future__ import annotations

import contextlib
import hashlib
import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Generic, TypeVar

from farm.log import logger
from farm_workers import cache
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed, Command
from farm_workers.environments.environment import Environment
from farm_workers.images.image import Image, ImageDied, NoImage, forked_from, in_box
from farm_workers.images.recipe import Recipe

_log = logger(__name__)

E = TypeVar("E", bound=Environment)
#: Returns the command that starts the image of an environment and recipe.
Begin = Callable[[E, Isolation, Recipe], Command]
#: How often a thread that waits for an image looks whether its check was cancelled.
_LOOK_SECONDS = 0.25
#: Images are retired at most this often, in seconds.
_RETIRE_SECONDS = 60.0
#: One image serves at most this many checks at once: it forks some three hundred times a second.
_AT_ONCE = 4
#: At most this many recipes without an image are cached, with at most this many bytes of reasons.
_MOST_REFUSED, _MOST_REFUSED_BYTES = 1000, 1 << 20


class NotWanted(Exception):
    """The check was cancelled while it waited for an image."""


class Images(Generic[E]):
    """A cache of at most `most` images; thread-safe.

    When there are more, or they use more than `most_mib` of private memory, the least recently used ones
    without a lease are closed; the last one stays, however large it is.

    One image serves a few checks at once: a recipe with more checks than that gets further images, as long as
    the limits allow.
    """

    def __init__(self, isolation: Isolation, begin: Begin[E], *, most: int, most_mib: int = 8192) -> None:
        self._begin = begin
        self._isolation, self._most, self._most_kib = isolation, most, most_mib << 10
        self._lock = threading.Lock()
        self._images: OrderedDict[tuple[E, Recipe], list[Image]] = OrderedDict()
        self._used: Counter[Image] = Counter()
        self._retired: set[Image] = set()
        self._retired_at = -math.inf
        self._refused: cache.Cache[bytes, str] = cache.Cache(
            most=_MOST_REFUSED, most_bytes=_MOST_REFUSED_BYTES, size=len
        )
        self._closed = False

    @contextlib.contextmanager
    def lease(self, environment: E, recipe: Recipe, cancelled: Callable[[], bool]) -> Iterator[Image]:
        """Lease an image of a recipe; it is made if missing, and not closed during the lease.

        Raises NoImage if it cannot be made, NotWanted when `cancelled` returns True during the wait, and
        BoxFailed.
        """
        key = environment, recipe
        image = self._lent(key)
        try:
            self._await(key, image, cancelled)
            with _turn(image, cancelled):
                yield image
        finally:
            self._give_back(image)

    def replace(self, environment: E, recipe: Recipe, image: Image) -> None:
        """Forget an image that has ended, so that the next check makes another one."""
        with self._lock:
            self._drop((environment, recipe), image)
        image.end()  # without waiting: it may hang

    def retire(self, environment: E, recipe: Recipe, *, before: float = math.inf) -> bool:
        """Stop leasing images of a recipe that began before a time; returns whether one existed.

        Each ends with its last lease. If the recipe runs no untrusted code, this works once a minute at most:
        a proof may have deceived the caller.
        """
        with self._lock:
            if not recipe.runs_code and time.monotonic() - self._retired_at < _RETIRE_SECONDS:
                return False
            retired = [i for i in self._images.get((environment, recipe), []) if i.begun_at < before]
            for image in retired:
                self._drop((environment, recipe), image)
            unused = [image for image in retired if not self._used[image]]
            self._retired |= set(retired) - set(unused)
            if retired and not recipe.runs_code:
                self._retired_at = time.monotonic()
        self._close(unused)
        return bool(retired)

    def prewarm(self, environment: E, recipe: Recipe) -> None:
        """Begin to make an image before a check needs it."""
        with contextlib.suppress(NoImage):
            self._give_back(self._lent((environment, recipe)))

    def kept(self) -> list[tuple[str, int]]:
        """Return the images that can fork: the environment and the private memory in bytes of each."""
        with self._lock:
            images = [(environment.name, each) for (environment, _), each in self._all()]
        return [(name, each.memory_kib << 10) for name, each in images if each.is_ready]

    def close(self) -> None:
        """End all images; the object cannot be used afterwards."""
        with self._lock:
            self._closed = True
            images = [image for alike in self._images.values() for image in alike] + list(self._retired)
            self._images.clear()
            self._retired.clear()
        self._close(images)

    def _lent(self, key: tuple[E, Recipe]) -> Image:
        if (why := self._refused.get(_short(key))) is not None:
            raise NoImage(why)
        with self._lock:
            if self._closed:
                raise BoxFailed("the images of this worker are closed")
            image = self._chosen(key)
            self._used[image] += 1
            leaving = self._leaving()
        self._close(leaving)
        return image

    def _chosen(self, key: tuple[E, Recipe]) -> Image:
        """Return the least busy image of a recipe; begin another one if all are busy."""
        alike = [image for image in self._images.get(key, []) if not image.has_failed]
        ready = [image for image in alike if image.is_ready]
        best = min(ready or alike[:1], key=self._used.__getitem__, default=None)
        is_busy = (
            best is not None
            and len(ready) == len(alike)
            and self._used[best] >= (1 if key[1].runs_code else _AT_ONCE)
        )
        if best is None or (is_busy and self._has_room(best)):
            alike.append(self._begun(*key))
        self._images[key] = alike
        self._images.move_to_end(key)
        return best or alike[-1]

    def _begun(self, environment: E, recipe: Recipe) -> Image:
        """Begin an image: in a box, or forked from its origin, which then lives as long."""
        if recipe.origin is None:
            source = in_box(partial(self._begin, environment, self._isolation, recipe))
        else:
            origin = environment, recipe.origin
            source = forked_from(partial(self._origin, *origin), partial(self.replace, *origin))
        return Image(environment.name, recipe, self._isolation, source)

    @contextlib.contextmanager
    def _origin(self, environment: E, recipe: Recipe, closing: Callable[[], bool]) -> Iterator[Image]:
        try:
            with self.lease(environment, recipe, closing) as image:
                yield image
        except NotWanted:
            raise BoxFailed("an image was closed before it was ready") from None

    def _all(self) -> list[tuple[tuple[E, Recipe], Image]]:
        return [(key, each) for key, alike in self._images.items() for each in alike]

    def _has_room(self, image: Image) -> bool:
        """Whether the limits allow another image of this recipe."""
        kept = [each for _, each in self._all()]
        return len(kept) < self._most and sum(e.memory_kib for e in [*kept, image]) <= self._most_kib

    def _leaving(self) -> list[Image]:
        """Remove and return unused images that exceed the limits of number or memory."""
        kept = self._all()
        number, kib = len(kept), sum(each.memory_kib for _, each in kept)
        leaving = []
        for key, image in kept:
            if number <= self._most and (kib <= self._most_kib or number == 1):
                break
            if not self._used[image]:
                self._drop(key, image)
                leaving.append(image)
                number, kib = number - 1, kib - image.memory_kib
        return leaving

    def _drop(self, key: tuple[E, Recipe], image: Image) -> None:
        alike = self._images.get(key, [])
        if image in alike:
            alike.remove(image)
        if not alike:
            self._images.pop(key, None)

    def _await(self, key: tuple[E, Recipe], image: Image, cancelled: Callable[[], bool]) -> None:
        try:
            while not image.wait(_LOOK_SECONDS):
                if cancelled():
                    raise NotWanted
        except NoImage as error:
            _log.warning("Could not create an image of a %s for %s: %s", key[1].kind, key[0].name, error)
            self._forget(key, image)
            if not isinstance(error, ImageDied):
                self._refused.put(_short(key), str(error))
            raise
        except BoxFailed:
            self._forget(key, image)
            raise

    def _forget(self, key: tuple[E, Recipe], image: Image) -> None:
        with self._lock:
            self._drop(key, image)

    def _give_back(self, image: Image) -> None:
        with self._lock:
            self._used[image] -= 1
            if not self._used[image]:
                del self._used[image]
            leaving = self._leaving()
            if image in self._retired and not self._used[image]:
                self._retired.remove(image)
                leaving.append(image)
        self._close(leaving)

    @staticmethod
    def _close(images: list[Image]) -> None:
        for image in images:
            image.close()


@contextlib.contextmanager
def _turn(image: Image, cancelled: Callable[[], bool]) -> Iterator[None]:
    """Hold the turn at an image that can have one fork at a time. Raises NotWanted."""
    if image.turn is None:
        yield
        return
    while not image.turn.acquire(timeout=_LOOK_SECONDS):
        if cancelled():
            raise NotWanted
    try:
        yield
    finally:
        image.turn.release()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _short(key: tuple[Environment, Recipe]) -> bytes:
    """Return a hash of a recipe as its cache key."""
    environment, recipe = key
    return cache.key(environment.digest, *map(_digest, recipe.words))
