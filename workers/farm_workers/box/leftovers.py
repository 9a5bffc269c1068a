"""Box step, slow ends: processes that are killed and not yet gone, which no slot waits for.

Linux kills a process when it next looks at it: one that waits for a disk, or whose parent does not reap it,
can stay for a while. A slot waits `AT_ONCE` seconds for that; the rest is done here, in the background.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack

from farm.log import logger

_log = logger(__name__)

#: Seconds from its kill that a slot waits for a process tree to be gone.
AT_ONCE = 1.0


def clear_away(files: ExitStack, what: str) -> None:
    """Close `files`, which end and remove something that was killed, in a thread of their own."""

    def close() -> None:
        try:
            files.close()
        except OSError as error:
            _log.warning("%s could not be removed after its kill: %s", what, error)

    threading.Thread(target=close, name="leftovers", daemon=True).start()
