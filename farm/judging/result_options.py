"""Defines how the results of a batch are shown to the client that asked; no check depends on it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from farm.asked import BATCH, WHETHER, Form, option, words
from farm.judging.reward import WEAKER


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultOptions:
    """Weaker proofs that are worth 1.0, whether results have feedback, and the batch's name on the page."""

    feedback: bool = option(
        False,
        places=BATCH,
        form=WHETHER,
        absent=False,
        meaning="results have a prompt to correct the answer",
    )
    accept: tuple[str, ...] = option(
        (),
        places=BATCH,
        form=Form(
            client="Sequence[Weaker]",
            service=f"Annotated[list[Weaker], Field(max_length={len(WEAKER)})]",
            alias="Weaker",
            literal=words(*WEAKER).client,
        ),
        absent=[],
        default="none",
        meaning="weaker proofs that are worth 1.0, too",
    )
    batch_name: str | None = option(
        None,
        places=BATCH,
        form=Form(client="str", service="Group"),
        meaning="the batch's name on the page",
    )
