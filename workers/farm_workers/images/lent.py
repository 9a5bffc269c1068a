"""Image step, one order: a fork of an image that is lent for it, watched to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from farm.judging.report import Execution
from farm.limits import Limits
from farm_workers.box import once as box
from farm_workers.box.isolation import Isolation
from farm_workers.box.supervisor import BoxFailed
from farm_workers.images.fork import Fork, ImageGone
from farm_workers.images.image import Image
from farm_workers.images.images import E, Images
from farm_workers.images.recipe import Recipe

#: An image may have ended since it was last asked; the one that replaces it is asked once.
_TURNS = 2


@contextlib.contextmanager
def forked(
    images: Images[E],
    key: tuple[E, Recipe],
    cancelled: box.Cancelled,
    begun: Callable[[Image], Fork],
) -> Iterator[Fork]:
    """Give a fork that `begun` makes of the image of an environment and recipe; it is ended with the block.

    An image that turns out to have ended is replaced, once, and so is one that runs a stranger's code and
    says nothing of its fork's end. Raises NoImage where none can be made, NotWanted when `cancelled` says so
    meanwhile, and BoxFailed.
    """
    with contextlib.ExitStack() as held:
        for _ in range(_TURNS):
            image = held.enter_context(images.lease(*key, cancelled))
            try:
                fork = begun(image)
            except ImageGone:
                images.replace(*key, image)
            else:
                with contextlib.closing(fork):
                    yield fork
                if key[1].runs_code and not fork.is_told:
                    images.replace(*key, image)
                return
        raise BoxFailed("an image exited, and so did its replacement")


def watched(
    fork: Fork, limits: Limits, isolation: Isolation, cancelled: box.Cancelled = box.never
) -> Execution:
    """Let a fork work to its end or to a limit, and return the facts when nothing of it is alive."""
    fork.go()
    return box.watched(fork, limits, isolation, cancelled)
