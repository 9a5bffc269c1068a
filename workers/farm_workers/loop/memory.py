"""Memory step: logs when a control group around the worker ran out of memory and the kernel killed."""

from __future__ import annotations

from pathlib import Path

from farm import allotment
from farm.log import logger

_log = logger(__name__)


class Memory:
    """Remembers the out-of-memory counts of the groups around this process."""

    def __init__(self, root: Path = allotment.ROOT) -> None:
        self._root = root
        self._known = allotment.out_of_memory(root)

    def look(self) -> None:
        """Log each group that has run out of memory since the last look."""
        now = allotment.out_of_memory(self._root)
        for folder, count in now.items():
            if (more := count - self._known.get(folder, 0)) > 0:
                _log.error(
                    "The control group %s ran out of memory %d times, and the kernel killed processes in it: "
                    "checks and images there fail. Give it more memory, or lower FARM_CONCURRENCY or "
                    "FARM_IMAGES_MIB",
                    folder,
                    more,
                )
        self._known = now
