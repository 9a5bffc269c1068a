"""Image step, one order: leases an image, has it fork, and watches the fork to its end."""

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

#: An image may have ended since its last fork; its replacement is tried once.
_TURNS = 2


@contextlib.contextmanager
def forked(
    images: Images[E],
    key: tuple[E, Recipe],
    cancelled: box.Cancelled,
    begun: Callable[[Image], Fork],
) -> Iterator[Fork]:
    """Give the fork that `begun` makes of the image of an environment and recipe; it ends with the block.

    An image that turns out to have ended is replaced, once, and so is one that runs untrusted code and does
    not report its fork's end. Raises NoImage if it cannot be made, NotWanted when `cancelled` returns True
    during the wait, and BoxFailed.
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
    fork: Fork,
    limits: Limits,
    isolation: Isolation,
    cancelled: box.Cancelled = box.never,
    suffices: box.Suffices = box.nothing_suffices,
) -> Execution:
    """Watch a fork to its end or to a limit, and return the facts when none of its processes is alive.

    It is also ended when its output on stdout `suffices`.
    """
    fork.go()
    return box.watched(fork, limits, isolation, cancelled, suffices)
