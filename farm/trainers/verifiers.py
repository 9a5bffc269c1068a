"""Rewards for verifiers, and so for prime-rl: `lean_proof` as a reward of a task.

The data of a task has `formal_statement`, and optionally `header`, `context`, `name` and `environment`; its
`timeout` is the rollout's. An error of a reward is the machinery's in verifiers: the rollout gets no
reward, and may be tried again.
"""

from __future__ import annotations

from typing import Any

from farm.trainers.asking import ask_async, known
from farm.trainers.problems import FIELDS, item

_FIELDS = tuple(field for field in FIELDS if field != "timeout")


async def lean_proof(trace: Any, runtime: object = None, **options: Any) -> float | None:
    """Return 1.0 where the last answer of a rollout proves the task's statement, else 0.0.

    Raises NoReward where nobody knows, BadRow where the task's statement does not compile, BadColumn where
    the task does not say what is to be proved. With ``bad_rows="leave_out"`` it returns None, not BadRow.
    """
    data = trace.task.data
    fields = {field: getattr(data, field) for field in _FIELDS if hasattr(data, field)}
    asked = item(trace.last_reply, **{"the task's data": fields})
    return known(await ask_async([asked], options, bad_rows="raise"))[0]
