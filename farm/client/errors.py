"""The errors that the client raises, in one tree.

ClientError
├── NoService           no address of a service is known
├── Unreachable         nothing has answered at the address since the client was made
├── Unanswered          the service gave no answer before the deadline
├── ServiceFailed       the service failed, or its answer breaks the contract
│   └── NotAFarm        another server answers at the address, and no farm has answered there before
└── Refused             the request is at fault; `status` and `detail` are the service's words
    ├── Unauthorized    401: no token, or a wrong one
    ├── Forbidden       403: the token does not allow this
    ├── NotFound        404: no such batch, item or environment
    ├── Conflict        409: the same key was used with another body
    ├── TooLarge        413: the body is too large, or has more items than the key may have unfinished
    └── Invalid         400, 415, 422 and other 4xx: a field is wrong
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType


class ClientError(Exception):
    """A request to the farm failed; the message names the cause and the remedy."""


class NoService(ClientError):
    """No address of a service is known, or its token cannot be read."""


class Unreachable(ClientError):
    """Nothing has answered at the address since the client was made."""


class Unanswered(ClientError):
    """The service gave no answer before the deadline."""


class ServiceFailed(ClientError):
    """The service failed, or its answer breaks the contract."""


class NotAFarm(ServiceFailed):
    """Something other than a farm answers at the address: another web server, or a proxy's own page."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request: its `item`, counted from 0, or None for the whole request; its field; why."""

    item: int | None
    field: str
    why: str

    def __str__(self) -> str:
        """Return the fault with its place, as in ``items.3.timeout: ...``."""
        place = ".".join(
            each for each in ("" if self.item is None else f"items.{self.item}", self.field) if each
        )
        return f"{place}: {self.why}" if place else self.why


class Refused(ClientError):
    """The service refused the request because the request is at fault.

    `faults` are the faults that the service lists, `most_items` is the number of items that it would take at
    once; () and None if the service gives none.
    """

    def __init__(
        self, status: int, detail: str, *, faults: Sequence[Fault] = (), most_items: int | None = None
    ) -> None:
        super().__init__(status, detail)
        self.status, self.detail = status, detail
        self.faults, self.most_items = tuple(faults), most_items

    def moved(self, places: int) -> Refused:
        """Return the same refusal with indexes of the caller's list, which are higher by `places`."""
        faults = [
            each if each.item is None else replace(each, item=each.item + places) for each in self.faults
        ]
        detail = "; ".join(map(str, faults)) or self.detail
        return type(self)(self.status, detail, faults=faults, most_items=self.most_items)

    def __str__(self) -> str:
        return f"the farm refused the request ({self.status}): {self.detail}"


class Unauthorized(Refused):
    """The request had no token, or a wrong one."""

    def __str__(self) -> str:
        return f"{super().__str__()}. Correct FARM_TOKEN, FARM_TOKEN_FILE or the argument `token`."


class Forbidden(Refused):
    """The token does not allow this request."""


class NotFound(Refused):
    """There is no such batch, item or environment."""


class Conflict(Refused):
    """An item's key was used before with another body."""


class TooLarge(Refused):
    """The body of the request is too large, or has more items than the key may have unfinished."""


class Invalid(Refused):
    """A field of the request is wrong."""


_REFUSALS: Mapping[int, type[Refused]] = MappingProxyType(
    {401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict, 413: TooLarge}
)


def failure(
    status: int, detail: str, *, faults: Sequence[Fault] = (), most_items: int | None = None
) -> ClientError:
    """Return the error for an answer with this status."""
    if 400 <= status < 500:
        return _REFUSALS.get(status, Invalid)(status, detail, faults=faults, most_items=most_items)
    return ServiceFailed(f"the farm's service failed ({status}): {detail}. Its log says more.")
