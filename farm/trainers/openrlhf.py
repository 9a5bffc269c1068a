"""Rewards for OpenRLHF: `--reward.remote_url my_reward.py`, where that file imports `reward_func` from here.

A label (`--data.label_key`) is JSON text with `formal_statement`, and optionally `header`, `context`, `name`,
`environment` and `timeout`. OpenRLHF logs an error of `reward_func` and leaves the reward unset; at the batch
with such a sample its trainer stops (0.11, `trainer/ppo_utils/experience_maker.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import nan
from typing import Any

from farm.trainers.asking import ask, known
from farm.trainers.problems import BadColumn, row

#: Tokens that end an answer in the vocabularies of models: OpenRLHF decodes them with the answer.
_END = re.compile(r"<\|[\w\s-]+\|>|<｜[^｜<>]+｜>|</s>|<eos>|<end_of_turn>|<pad>")


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[object], **options: Any
) -> dict[str, object]:
    """Return the rewards for OpenRLHF, 1.0 for a proof and 0.0 for none, as tensors `rewards` and `scores`.

    Raises NoReward without a verdict, BadRow if a label has no statement or one that does not compile;
    `rewards` of either error has those of the other rows. With ``bad_rows="leave_out"`` the reward of such a
    row is NaN. The caller must replace it: it would spoil a training step.
    """
    import torch

    asked = [
        row(_answer(query, prompt), label=label)
        for query, prompt, label in zip(queries, prompts, labels, strict=True)
    ]
    rewards = known(ask(asked, options, bad_rows="raise"))
    worth = torch.tensor([nan if each is None else each for each in rewards])
    return {"rewards": worth, "scores": worth, "extra_logs": {"lean_proof": worth}}


def _answer(query: str, prompt: str) -> str:
    """Return the model's text after the prompt, which a start token of the tokenizer may precede."""
    start = query.find(prompt)
    if start < 0:
        raise BadColumn(
            "a query does not contain its prompt, which was cut or decoded otherwise. Raise `--data.max_len` "
            "so that the prompt fits."
        )
    return _without_end(query[start + len(prompt) :])


def _without_end(answer: str) -> str:
    """Return an answer without its end tokens and the white space around them."""
    end = len(answer)
    for token in reversed(list(_END.finditer(answer))):
        if answer[token.end() : end].strip():
            break
        end = token.start()
    return answer if end == len(answer) else answer[:end].rstrip()
