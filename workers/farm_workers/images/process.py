"""Image step, processes: operations of a fork on itself, and checked calls of the system's library."""

from __future__ import annotations

import ctypes
import os
import traceback
from collections.abc import Callable
from typing import NoReturn


def leave(work: Callable[[], int]) -> NoReturn:
    """Do the work and exit with its status; no other code of the image runs, even after an exception."""
    status = 1
    try:
        status = work()
    except BaseException:  # noqa: BLE001 - this process must not go on as an image
        traceback.print_exc()
    finally:
        os._exit(status)


def require(outcome: int, what: str) -> None:
    """Raise OSError if a call of the system's library failed."""
    if outcome != 0:
        raise OSError(ctypes.get_errno(), what)
