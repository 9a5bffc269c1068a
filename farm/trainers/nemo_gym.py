"""Rewards for NeMo-Gym: what a resources server of the farm answers to `/verify`.

`examples/rl/nemo_gym/app.py` is that server. It answers null, masked, where nobody knows. NeMo-Gym's own
server `math_formal_lean` has no such answer: it makes 0.0 of every failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farm.trainers.asking import ask_async
from farm.trainers.problems import item


async def verify(body: Mapping[str, Any], output_text: str, **options: Any) -> dict[str, Any]:
    """Return the fields of a verify response: `reward` is 1.0, 0.0, or None where nobody knows.

    `body` is the request, which has `formal_statement` and optionally `header`, `context`, `name`,
    `environment` and `timeout`; `output_text` is the model's answer. Raises BadColumn where it lacks the
    statement.
    """
    (result,) = await ask_async([item(output_text, **{"the request": body})], options)
    failed = result.reward is None
    return {
        "reward": result.reward,
        "verdict": result.verdict or result.status,
        "reason": result.reason,
        "feedback": "\n".join(each.text for each in result.messages) or result.detail,
        "mask_sample": failed,
        "failure_reason": (result.detail or result.status) if failed else None,
    }
