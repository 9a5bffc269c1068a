"""Checks answers for all trainers: one client for each process, and one for each event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal
from weakref import WeakKeyDictionary

from farm.client import AsyncClient, Client, Item, Result
from farm.client import Options as _CheckOptions
from farm.trainers.problems import BadColumn
from farm.trainers.rows import Asking, faults_of

_log = logging.getLogger("farm.trainers")

#: If the dataset is at fault at a row, the call raises `BadRow`, or that row has no reward.
BadRows = Literal["raise", "leave_out"]


class Options(_CheckOptions, total=False):
    """The options of `farm.client.Client` and of its calls, by the same names, and one of the adapters."""

    url: str
    token: str
    deadline: float
    bad_rows: BadRows


class NoReward(Exception):
    """The farm gave no verdict, so the reward of the answer is unknown.

    `rewards` are those of the whole call in the order of its rows, None for an unknown one.
    """

    def __init__(self, words: str, rewards: Sequence[float | None] = ()) -> None:
        super().__init__(words)
        self.rewards = tuple(rewards)


class BadRow(NoReward):
    """The dataset is at fault: no answer to one of its rows can be judged, however often it is checked."""


def ask(
    rows: Sequence[Item | BadColumn], options: Mapping[str, Any], *, bad_rows: BadRows = "leave_out"
) -> list[Result]:
    """Check the answers, wait, and return their results in the same order; a failure has no reward.

    A row at which the dataset is at fault does not affect other rows; the option ``bad_rows``, or else the
    argument, decides about that row. Raises BadRow, BadColumn if all rows lack a statement, and the errors of
    the client.
    """
    where, how, chosen = _parted(options, bad_rows)
    asking, client = Asking(rows), _client(*where)
    while asking.is_open:
        with asking.refusals():
            asking.take(client.check_all(asking.items, **how))
    return _reported(asking.results, chosen)


async def ask_async(
    rows: Sequence[Item | BadColumn], options: Mapping[str, Any], *, bad_rows: BadRows = "leave_out"
) -> list[Result]:
    """Check the answers as `ask` does, for asyncio."""
    where, how, chosen = _parted(options, bad_rows)
    asking, client = Asking(rows), _async_client(*where)
    while asking.is_open:
        with asking.refusals():
            asking.take(await client.check_all(asking.items, **how))
    return _reported(asking.results, chosen)


async def close() -> None:
    """Close this event loop's connections: for programs in which event loops come and go."""
    for client in _async_clients.pop(asyncio.get_running_loop(), {}).values():
        await client.close()


def known(results: Sequence[Result]) -> list[float | None]:
    """Return the rewards of results, None for a row without one because the dataset is at fault.

    Raises NoReward if the farm failed.
    """
    rewards = [each.reward for each in results]
    faults = faults_of(results)
    failed = [each for each in results if each.reward is None and each.index not in faults]
    if failed:
        first = failed[0]
        raise NoReward(
            f"the farm has no verdict for {first.name or 'an answer'} ({_why(first)}). This says nothing "
            "about the proof: leave it out, and look at the farm with `farm status`.",
            rewards,
        )
    return rewards


def _why(result: Result) -> str:
    return result.detail or result.waits_for or result.reason or result.status


def _reported(results: list[Result], bad_rows: BadRows) -> list[Result]:
    """Return the results, and log those without a reward; raises BadRow unless bad rows are left out."""
    faults = faults_of(results)
    if faults:
        words = _blame(faults, len(results))
        if bad_rows == "raise":
            raise BadRow(f'{words} bad_rows="leave_out" gives them no reward.', [r.reward for r in results])
        _log.warning("%s They have no reward.", words)
    failed = [each for each in results if each.reward is None and each.index not in faults]
    if failed:
        _log.warning(
            "the farm has no verdict for %d of %d answers; the first: %s",
            len(failed),
            len(results),
            _why(failed[0]),
        )
    return results


def _blame(faults: Mapping[int, str], count: int) -> str:
    shown = "; ".join(list(faults.values())[:5])
    rest = f"; and {len(faults) - 5} more" if len(faults) > 5 else ""
    return (
        f"the dataset is at fault at {len(faults)} of {count} rows: {shown}{rest}. Correct these rows, or "
        "remove them: no answer to them can be judged."
    )


def _parted(
    options: Mapping[str, Any], bad_rows: BadRows
) -> tuple[tuple[str | None, str | None], dict[str, Any], BadRows]:
    """Return url and token, the options of the call, and the treatment of bad rows.

    The list type of a configuration library becomes a list that JSON can hold. A reward is 0 after the first
    error, so Lean is stopped there unless the call wants to know more.
    """
    wants_more = options.get("feedback") or options.get("goals")
    how = {"stop_at_error": not wants_more, **options}
    where = how.pop("url", None), how.pop("token", None)
    chosen = how.pop("bad_rows", bad_rows)
    if chosen not in ("raise", "leave_out"):
        raise ValueError(f"bad_rows={chosen!r}: give 'raise' or 'leave_out'")
    if "accept" in how and not isinstance(how["accept"], str):
        how["accept"] = [str(word) for word in how["accept"]]
    return where, how, chosen


@cache
def _client(url: str | None, token: str | None) -> Client:
    return Client(url, token=token)


_Clients = dict[tuple[str | None, str | None], AsyncClient]
_async_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = WeakKeyDictionary()


def _async_client(url: str | None, token: str | None) -> AsyncClient:
    clients = _async_clients.setdefault(asyncio.get_running_loop(), {})
    if (url, token) not in clients:
        clients[url, token] = AsyncClient(url, token=token)
    return clients[url, token]
