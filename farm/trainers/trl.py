"""Rewards for TRL: `GRPOTrainer(reward_funcs=farm.trainers.trl.rewards())`.

The dataset has a column `formal_statement`, and optionally `header`, `context`, `name`, `environment` and
`timeout`. TRL leaves a sample out where the reward is None (`GRPOTrainer`, custom reward functions).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from farm.client import Item, Result
from farm.trainers.asking import Options, ask, ask_async
from farm.trainers.problems import FIELDS, item

_Rewards = list[float | None]


def rewards(**options: Unpack[Options]) -> Callable[..., _Rewards]:
    """Return a reward function for TRL: 1.0 for a proof, 0.0 for none, None where nobody knows.

    The function raises BadColumn where the dataset lacks a column.
    """

    def lean_proof(*, completions: Sequence[object], **columns: Any) -> _Rewards:
        return _logged(ask(_items(completions, columns), options), columns)

    return lean_proof


def rewards_async(**options: Unpack[Options]) -> Callable[..., Awaitable[_Rewards]]:
    """Return the same for asyncio: TRL calls it while its other reward functions run."""

    async def lean_proof(*, completions: Sequence[object], **columns: Any) -> _Rewards:
        return _logged(await ask_async(_items(completions, columns), options), columns)

    return lean_proof


def _items(completions: Sequence[object], columns: Mapping[str, Any]) -> list[Item]:
    given = {field: columns[field] for field in FIELDS if columns.get(field) is not None}
    rows = [{field: values[row] for field, values in given.items()} for row in range(len(completions))]
    return [
        item(completion, **{"the dataset": fields})
        for completion, fields in zip(completions, rows, strict=True)
    ]


def _logged(results: Sequence[Result], columns: Mapping[str, Any]) -> _Rewards:
    """Tell TRL's log the verdicts, and which share of them is not known."""
    if log_extra := columns.get("log_extra"):
        log_extra("lean_verdict", [each.verdict or each.status for each in results])
    if results and (log_metric := columns.get("log_metric")):
        log_metric("lean_proof/unknown", sum(each.reward is None for each in results) / len(results))
    return [each.reward for each in results]
