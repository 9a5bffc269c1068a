"""Rewards for NeMo-Gym: the answers of a resources server of the farm to `/verify`.

`examples/rl/nemo_gym/app.py` is that server. It answers null, masked, without a verdict. NeMo-Gym's own
server `math_formal_lean` has no such answer: it makes 0.0 of every failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farm.client import Result
from farm.trainers.asking import ask_async
from farm.trainers.problems import item
from farm.trainers.rows import faults_of


async def verify(body: Mapping[str, object], output_text: str, **options: Any) -> dict[str, object]:
    """Return the fields of a verify response: `reward` is 1.0, 0.0, or None without a verdict.

    `body` is the request, which has `formal_statement` and optionally `header`, `context`, `name`,
    `environment` and `timeout`; `output_text` is the model's answer. If the statement does not compile, the
    reward is None too, and `failure_reason` says that the dataset is at fault. Raises BadColumn without a
    statement, BadRow in place of None with ``bad_rows="raise"``.
    """
    options = {"feedback": True, **options}
    (result,) = await ask_async([item(output_text, **{"the request": body})], options)
    failed = result.reward is None
    return {
        "reward": result.reward,
        "verdict": result.verdict or result.status,
        "reason": result.reason,
        "feedback": "\n".join(each.text for each in result.messages) or result.detail,
        "error_kind": result.error_kind,
        "error_feedback": result.feedback and result.feedback.error_feedback,
        "correction_prompt": result.feedback and result.feedback.correction_prompt,
        "mask_sample": failed,
        "failure_reason": _why(result) if failed else None,
    }


def _why(result: Result) -> str:
    is_bad = bool(faults_of([result]))
    return f"the dataset is at fault: {result.detail}" if is_bad else result.detail or result.status
