"""Rewards for verl: `reward.custom_reward_function.path=pkg://farm.trainers.verl`.

The function's name is `compute_score`. `reward_model.ground_truth` of the dataset, or else `extra_info`, is a
mapping or JSON text with `formal_statement`, and optionally `header`, `context`, `name`, `environment` and
`timeout`.

verl has no value that leaves a sample out, so both functions raise without a verdict: verl's trainer then
leaves out the prompt's group (0.9, `trainer/ppo/v1/agent_loop_tq.py`) or stops. The reward managers
`rate_limited` and `prime` make 0.0 of every error and must not be used.
"""

from __future__ import annotations

from typing import Any

from farm.trainers.asking import ask, ask_async, known
from farm.trainers.problems import item

#: Arguments of verl besides the documented ones, if it serves a reward model.
_OF_A_REWARD_MODEL = frozenset({"reward_router_address", "reward_model_tokenizer"})


async def compute_score(
    data_source: object, solution_str: str, ground_truth: object, extra_info: object = None, **options: Any
) -> float | None:
    """Return 1.0 for a proof and 0.0 for none; `options` are verl's `reward_kwargs`.

    Raises NoReward without a verdict, BadRow if the statement does not compile, BadColumn if the dataset has
    no statement. With ``bad_rows="leave_out"`` it returns None in place of BadRow: verl itself takes no None,
    so that is for a function of yours around this one.
    """
    asked = item(solution_str, ground_truth=ground_truth, extra_info=extra_info)
    return known(await ask_async([asked], _own(options), bad_rows="raise"))[0]


def compute_score_sync(
    data_source: object, solution_str: str, ground_truth: object, extra_info: object = None, **options: Any
) -> float | None:
    """Return the same as `compute_score`, for the reward managers of verl that call from threads."""
    asked = item(solution_str, ground_truth=ground_truth, extra_info=extra_info)
    return known(ask([asked], _own(options), bad_rows="raise"))[0]


def _own(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in _OF_A_REWARD_MODEL}
