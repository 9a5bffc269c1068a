"""The drop-in for OpenRLHF and slime: rewards, as those trainers request them from a remote reward model.

Each answer of a model comes with a label, an object or its JSON, that has the `formal_statement` to prove and
optionally `header`, `context` and `name`. An answer on which the farm failed has the reward null. While some
answers are not judged, the status is 503, and the trainer retries the whole request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

from farm.client.results import Result
from farm.errors import UsageError
from farm.service import exact, requests
from farm.service.dependencies import Submission, TheSubmission
from farm.service.dropins.checking import DropinChallenge, each_read, judged, problem_of
from farm.service.json_body import Json, Route, UnfitJson, strict
from farm.service.refusals import DROPIN_REFUSALS, Problem
from farm.service.spelling import meant

router = APIRouter(route_class=Route, tags=["drop-ins"], responses=DROPIN_REFUSALS)

#: The trainers wait 180 s and 120 s for an answer.
_OPENRLHF_SECONDS, _SLIME_SECONDS = 170.0, 110.0
_MOST_QUERIES = 100_000
_RETRY_SECONDS = 1

# Only the first fault is reported: there may be a hundred thousand.
_Texts = Annotated[list[exact.Text], Field(max_length=_MOST_QUERIES), FailFast()]


class AddressOptions(exact.Exact):
    """Options of the checks, as parameters of the address."""

    timeout: Annotated[exact.Timeout, Field(description="Seconds that one check may take.")] = 30.0
    environment: Annotated[
        exact.Word | None, Field(description="The environment; by default the farm's.")
    ] = None


class Label(DropinChallenge):
    """The statement that an answer must prove, in the fields of an item.

    A dataset may have further fields in it, but none that looks like a misspelt field of these.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: exact.Text = ""
    environment: exact.Word | None = None
    timeout: exact.BodyTimeout | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_spelt_right(cls, said: object) -> object:
        for name in set(said) - set(cls.model_fields) if isinstance(said, dict) else ():
            near = meant(str(name), DropinChallenge.model_fields)
            if near is not None:
                raise ValueError(f"there is no field {str(name)[:80]!r}; did you mean {near}?")
        return said


class RewardQueries(exact.Exact):
    """The request of OpenRLHF: each query is a prompt followed by the answer to it."""

    query: _Texts
    prompts: _Texts = Field(default_factory=list)
    labels: Annotated[list[Any], Field(max_length=_MOST_QUERIES)]


class Sample(exact.Exact):
    """The request of slime."""

    prompt: Any = None
    response: exact.Text
    label: Any


class Logs(BaseModel):
    """Values that OpenRLHF logs for each answer: 1.0 for yes, 0.0 for no."""

    timeout: list[float]
    unknown: list[float]


class Rewards(BaseModel):
    """The answer to OpenRLHF; an unknown reward is null."""

    rewards: list[float | None]
    scores: list[float | None]
    extra_logs: Logs


@router.post("/rewards/openrlhf", responses={200: {"model": Rewards}, 400: {"model": Problem}})
async def openrlhf(
    body: RewardQueries, submission: TheSubmission, address: Annotated[AddressOptions, Query()]
) -> Response:
    """Return the rewards of a batch of answers, in the form of OpenRLHF."""
    if len(body.labels) != len(body.query) or len(body.prompts) not in (0, len(body.query)):
        raise UsageError("query, prompts and labels are not equally long")
    prompts = body.prompts or [""] * len(body.query)
    said = list(zip(body.query, prompts, body.labels, strict=True))

    def item(number: int, each: tuple[str, str, object]) -> requests.Item:
        query, prompt, label = each
        return _item(query.removeprefix(prompt), label, f"labels[{number}]")

    items = await each_read(submission, said, item)
    results = await _results(submission, items, _OPENRLHF_SECONDS, address)
    if isinstance(results, Response):
        return results
    rewards = [each.reward for each in results]
    logs = {
        "timeout": [float(each.verdict == "timeout") for each in results],
        "unknown": [float(each.reward is None) for each in results],
    }
    return Json({"rewards": rewards, "scores": rewards, "extra_logs": logs})


@router.post("/rewards/slime", responses={200: {"model": float | None}, 400: {"model": Problem}})
async def slime(
    body: Sample, submission: TheSubmission, address: Annotated[AddressOptions, Query()]
) -> Response:
    """Return the reward of an answer, in the form of slime: a number."""
    items = [_item(body.response, body.label, "label")]
    results = await _results(submission, items, _SLIME_SECONDS, address)
    return results if isinstance(results, Response) else Json(results[0].reward)


def _item(answer: str, said: object, where: str) -> requests.Item:
    try:
        label = Label.model_validate(strict(said) if isinstance(said, str) else said)
    except ValidationError as error:
        raise UsageError(f"{where} has no statement to prove: {problem_of(error)}") from error
    except UnfitJson as error:
        place = ".".join(map(str, (where, *error.place)))
        raise UsageError(f"{place}: {error.words}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where} is no JSON: give an object with formal_statement and header") from error
    return requests.Item(
        generation=answer,
        header=label.header,
        context=label.context,
        formal_statement=label.formal_statement,
        name=label.name,
        environment=label.environment,
        timeout=label.timeout,
    )


async def _results(
    submission: Submission, items: Sequence[requests.Item], seconds: float, address: AddressOptions
) -> list[Result] | Response:
    """Return the results of all items, or the response 503 while some of them are not judged."""
    results = await judged(submission, items, seconds=seconds, **address.model_dump())
    if not (pending := list(filter(_is_pending, results))):
        return results
    why = pending[0].waits_for or "other checks are ahead of them"
    words = f"{len(pending)} of {len(results)} answers are not judged yet: {why}; ask again"
    return Json({"detail": words}, status_code=503, headers={"Retry-After": str(_RETRY_SECONDS)})


def _is_pending(result: Result) -> bool:
    return result.status in ("queued", "running")
