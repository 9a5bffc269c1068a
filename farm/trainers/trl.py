"""Rewards for TRL: `GRPOTrainer(reward_funcs=farm.trainers.trl.rewards())`.

The dataset has a column `formal_statement`, and optionally `header`, `context`, `name`, `environment` and
`timeout`. TRL leaves out a sample whose reward is None (`GRPOTrainer`, custom reward functions).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Unpack

from farm.client import Item, Result
from farm.trainers.asking import Options, ask, ask_async
from farm.trainers.problems import FIELDS, BadColumn, row

_Rewards = list[float | None]
#: Arguments of TRL for a reward function besides the columns of the dataset.
_OF_TRL = frozenset(
    {"prompts", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments", "kwargs"}
)


def rewards(**options: Unpack[Options]) -> Callable[..., _Rewards]:
    """Return a reward function for TRL: 1.0 for a proof, 0.0 for none, None without a verdict.

    The reward of a row at which the dataset is at fault is None too, and the log names the row; with
    ``bad_rows="raise"`` the function raises BadRow. It raises BadColumn if the dataset lacks the column
    `formal_statement`.
    """

    def lean_proof(*, completions: Sequence[object], **columns: Any) -> _Rewards:
        return _logged(ask(_rows(completions, columns), options), columns)

    return lean_proof


def rewards_async(**options: Unpack[Options]) -> Callable[..., Awaitable[_Rewards]]:
    """Return the same for asyncio: TRL calls it while its other reward functions run."""

    async def lean_proof(*, completions: Sequence[object], **columns: Any) -> _Rewards:
        return _logged(await ask_async(_rows(completions, columns), options), columns)

    return lean_proof


def _rows(completions: Sequence[object], columns: Mapping[str, Any]) -> list[Item | BadColumn]:
    given = {field: columns[field] for field in FIELDS if columns.get(field) is not None}
    if "formal_statement" not in given:
        found = sorted(name for name in columns if name not in _OF_TRL)
        raise BadColumn(
            "the dataset has no column formal_statement, which says what is to be proved; its columns are: "
            f"{', '.join(found) or 'none besides the prompt'}. Rename the one with the theorem to "
            "formal_statement. GRPOTrainer passes all columns on unless remove_unused_columns=True."
        )
    fields = [
        {field: values[number] for field, values in given.items()} for number in range(len(completions))
    ]
    return [
        row(completion, **{"the dataset": each}) for completion, each in zip(completions, fields, strict=True)
    ]


def _logged(results: Sequence[Result], columns: Mapping[str, Any]) -> _Rewards:
    """Log the verdicts and the share of unknown ones to TRL, and return the rewards."""
    if log_extra := columns.get("log_extra"):
        log_extra("lean_verdict", [each.verdict or each.status for each in results])
    if results and (log_metric := columns.get("log_metric")):
        log_metric("lean_proof/unknown", sum(each.reward is None for each in results) / len(results))
    return [each.reward for each in results]
