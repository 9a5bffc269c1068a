"""The errors that the farm raises on purpose; docs/reference/commands.md lists all exit statuses.

    FarmError                      exit 1: the farm itself failed
    ├── ServerDown                 PostgreSQL or Redis cannot be reached
    │   └── CutOff                 the connection was lost before anything was stored
    ├── RoleRefused                the database's role may not do this
    ├── DatabaseVersion            the database is older or newer than this farm
    ├── QueueFull                  exit 75: the queue is full; retry later
    ├── OverLimit                  exit 75: an API key has reached a limit of its own
    ├── Forbidden                  an API key does not allow this request
    ├── NotExported                exit 5: verdicts are stored, and could not be written into a manifest
    ├── EnvironmentDiffers         exit 7: an environment is not what was recorded
    └── UsageError                 exit 2: a command or a request cannot be carried out as given
        ├── SettingsError          a FARM_* variable or a configuration file is wrong
        ├── UnknownRun             no run has this id
        └── ManifestError          a manifest is wrong, with file, line and field
            ├── WrongLines         several lines of a manifest are wrong
            └── ManifestChanged    a manifest is not the one that was submitted

Foreign errors are translated into these at the edge, with ``raise ... from``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Self

from farm.exit_status import ExitStatus


class FarmError(Exception):
    """The farm itself failed; the message has the remedy."""

    exit_status: ClassVar[ExitStatus] = ExitStatus.FARM_FAILED


class ServerDown(FarmError):
    """PostgreSQL or Redis cannot be reached."""


class CutOff(ServerDown):
    """The connection was lost inside a transaction before its commit, so the transaction changed nothing."""


class RoleRefused(FarmError):
    """PostgreSQL did not let the role of this process do something."""

    def __init__(self, role: str, why: str) -> None:
        self.role, self.why = role, why
        super().__init__(f"PostgreSQL did not let the role {role} do this: {why}")


class DatabaseVersion(FarmError):
    """The database schema is not the one this version of the farm works with."""


class QueueFull(FarmError):
    """The queue is full; the same request may succeed later."""

    exit_status = ExitStatus.TRY_AGAIN


class Forbidden(FarmError):
    """An API key does not allow this request."""


class OverLimit(FarmError):
    """An API key has reached a limit of its own; nothing was accepted.

    ``retry_after`` is the number of seconds to wait before a retry, None if the request can never fit; then
    ``most`` is the number of proofs that would fit.
    """

    exit_status = ExitStatus.TRY_AGAIN

    def __init__(self, words: str, *, retry_after: int | None, most: int | None = None) -> None:
        self.retry_after, self.most = retry_after, most
        super().__init__(words)


class NotExported(FarmError):
    """Verdicts are in the store and could not be written into their manifest; an export can be repeated."""

    exit_status = ExitStatus.NOT_WRITTEN


class EnvironmentDiffers(FarmError):
    """The files of an environment are not those that were recorded."""

    exit_status = ExitStatus.DIFFERENT


class UsageError(FarmError):
    """A command or a request cannot be carried out as given."""

    exit_status = ExitStatus.BAD_INPUT


class SettingsError(UsageError):
    """A ``FARM_*`` variable or a configuration file holds something unusable."""


class UnknownRun(UsageError):
    """No run has the id that was given."""


def gone(run_id: str) -> UnknownRun:
    """Return the error for a command whose run was deleted while it worked."""
    return UnknownRun(f"run {run_id} was deleted by another process (farm prune); nothing was changed")


class ManifestError(UsageError):
    """A manifest cannot be used; names the file, the line, the field and the remedy.

    ``line`` counts from 1 and is None when the file as a whole is meant.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        *,
        remedy: str,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.path, self.line, self.field = path, line, field
        self.problem, self.remedy = problem, remedy
        what = problem if field is None else f'field "{field}": {problem}'
        super().__init__(f"{self.where}: {what}; {remedy}")

    @property
    def where(self) -> str:
        """The file, with the line if one is known."""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def __reduce__(self) -> tuple[Callable[[str, str], Self], tuple[str, str]]:
        """Return how to unpickle it, in another process: its arguments are not those of `Exception`."""
        again = partial(type(self), remedy=self.remedy, line=self.line, field=self.field)
        return again, (self.path, self.problem)


class WrongLines(ManifestError):
    """Several lines of a manifest are wrong; the message has one line for each of the first ones.

    The attributes are those of the first one. ``rest`` are sentences about the others.
    """

    def __init__(self, told: Sequence[ManifestError], rest: Sequence[str]) -> None:
        first = told[0]
        super().__init__(first.path, first.problem, remedy=first.remedy, line=first.line, field=first.field)
        self.args = ("\n".join([*map(str, told), *rest]),)


class ManifestChanged(ManifestError):
    """A manifest has changed since it was submitted, so it is not overwritten."""
