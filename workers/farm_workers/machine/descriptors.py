"""Descriptors step: raises the limit of open files, and derives how many checks may run at once."""

from __future__ import annotations

import resource

from farm.errors import SettingsError
from farm.log import logger

_log = logger(__name__)

#: The descriptors that a worker needs besides its checks (servers, libraries, log, metrics), and for each
#: check at once: pipes, sockets and sealed files of its forks, control groups, and its share of the images.
#: A worker of 8 slots was seen with 239.
OF_WORKER, OF_CHECK = 96, 24


def raise_limit() -> int:
    """Raise this process's limit of open files as far as it may go, and return the limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def needed(checks: int) -> int:
    """Return the descriptors that a worker of this many checks at once needs."""
    return OF_WORKER + OF_CHECK * checks


def checks_at_once(wanted: int, most: int) -> int:
    """Return how many checks may run at once with at most `most` open files, at most `wanted`.

    Raises SettingsError where the limit is too low for a single check.
    """
    allowed = (most - OF_WORKER) // OF_CHECK
    if allowed < 1:
        raise SettingsError(
            f"this process may open {most} files, and a worker needs {needed(1)}; raise the hard limit: "
            "ulimit -Hn, LimitNOFILE= in a systemd unit, or docker run --ulimit nofile=65536"
        )
    if allowed < wanted:
        _log.warning(
            "This process may open %d files, which is enough for %d checks at once, not for %d, which need "
            "%d; raise the hard limit: LimitNOFILE= in a systemd unit, docker run --ulimit nofile=65536",
            most,
            allowed,
            wanted,
            needed(wanted),
        )
    return min(wanted, allowed)
