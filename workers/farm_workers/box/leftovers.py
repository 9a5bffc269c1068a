"""Box step, slow ends: waits in the background for killed processes that have not died yet."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from farm.log import logger

_log = logger(__name__)

#: The most seconds that a worker slot waits for a killed process tree to die.
AT_ONCE = 1.0


def clear_away(files: ExitStack, what: str) -> None:
    """Close `files`, which end and remove a killed tree, in a thread of their own."""

    def close() -> None:
        try:
            files.close()
        except OSError as error:
            _log.warning("%s could not be removed after its kill: %s", what, error)

    threading.Thread(target=close, name="leftovers", daemon=True).start()
