"""Rewards for slime: `--custom-rm-path farm.trainers.slime.reward`.

Also give `--dynamic-sampling-filter-path farm.trainers.slime.keep_known`: it leaves out each group with an
unknown reward, and slime samples another. A sample's `label` (JSON text), or else its `metadata`,
has `formal_statement`, and optionally `header`, `context`, `name`, `environment` and `timeout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from farm.client import Item
from farm.trainers.asking import ask_async
from farm.trainers.problems import BadColumn, row


async def reward(args: object, sample: Any, **options: Any) -> float | list[float | None] | None:
    """Return the reward of a sample, or the rewards of several: 1.0, 0.0, or None without a verdict.

    It is None too if the dataset is at fault at the sample, and the log names the sample; with
    ``bad_rows="raise"`` the function raises BadRow. Raises BadColumn if no sample has a statement.
    """
    if isinstance(sample, Sequence):
        return [each.reward for each in await ask_async([_row(each) for each in sample], options)]
    return (await ask_async([_row(sample)], options))[0].reward


def keep_known(args: object, samples: Sequence[Any], **rest: Any) -> Any:
    """Return whether every sample of a group has a reward, for slime's dynamic sampling."""
    kept = all(each.reward is not None for each in _flat(samples))
    try:
        from slime.rollout.filter_hub.base_types import DynamicFilterOutput
    except ImportError:  # older filters return a bool
        return kept
    return DynamicFilterOutput(keep=kept, reason=None if kept else "no_verdict")


def _flat(samples: Sequence[Any]) -> list[Any]:
    """Return the samples of a group, in which an agent's trajectory may be a list of them."""
    return [one for each in samples for one in (each if isinstance(each, Sequence) else [each])]


def _row(sample: Any) -> Item | BadColumn:
    return row(sample.response, label=sample.label, metadata=sample.metadata)
