"""Rewards for verifiers, and so for prime-rl: `lean_proof` as a reward of a task.

The data of a task has `formal_statement`, and optionally `header`, `context`, `name` and `environment`; its
`timeout` is the rollout's. In verifiers an error of a reward means that the rollout gets no reward and may be
retried.
"""

from __future__ import annotations

from typing import Any

from farm.trainers.asking import ask_async, known
from farm.trainers.problems import FIELDS, item

_FIELDS = tuple(field for field in FIELDS if field != "timeout")


async def lean_proof(trace: Any, runtime: object = None, **options: Any) -> float | None:
    """Return 1.0 if the last answer of a rollout proves the task's statement, else 0.0.

    Raises NoReward without a verdict, BadRow if the task's statement does not compile, BadColumn if the task
    has no statement. With ``bad_rows="leave_out"`` it returns None, not BadRow.
    """
    data = trace.task.data
    fields = {field: getattr(data, field) for field in _FIELDS if hasattr(data, field)}
    asked = item(trace.last_reply, **{"the task's data": fields})
    return known(await ask_async([asked], options, bad_rows="raise"))[0]
