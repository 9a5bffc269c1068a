"""The requests that the service accepts from clients, field by field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Self

from pydantic import ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from farm.errors import ManifestError, UsageError
from farm.judging.submit_options import SubmitOptions
from farm.manifest.context import fault_of
from farm.manifest.entry import Entry
from farm.manifest.hole import Hole
from farm.service.asked_fields import BatchFields, LineFields
from farm.service.exact import EXACTLY, Exact, Group, Text, Word, said_by
from farm.service.spelling import words_of
from farm.task import TASK_FIELDS, Kind

#: Items that one batch may have.
MOST_ITEMS = 4096
#: One request may wait this long for verdicts.
MOST_SECONDS = 600.0
Wait = Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)]


#: The priority class of a request that names none.
USUAL_CLASS: Final = "online"


def require_context(context: str, header: str) -> None:
    """Raise ValueError for a context that is impossible, alone or together with this header."""
    if (fault := fault_of(context, header)) is not None:
        raise ValueError(f"the context {fault.problem}; {fault.remedy}")


_ANSWERS = ("program", "proof", "generation")
_NO_ANSWER = PydanticCustomError("value_error", "give exactly one of program, proof and generation")


def _one(answer: str) -> dict[str, JsonValue]:
    """Return the JSON schema of an item that has this answer and neither of the other two."""
    kinds: dict[str, JsonValue] = {
        name: {"type": "string" if name == answer else "null"} for name in _ANSWERS
    }
    if answer == "program":
        return {"required": [answer], "properties": kinds}
    stated: JsonValue = {"formal_statement": {"type": "string", "pattern": r"\S"}}
    filling: JsonValue = {"hole": {"type": "object"}}
    either: list[JsonValue] = [
        {"required": ["formal_statement"], "properties": stated},
        {"required": ["hole"], "properties": filling},
    ]
    return {"required": [answer], "properties": kinds, "anyOf": either}


class HoleFields(Exact):
    """An open place of a program, as a result has it in `holes`; `of`, `goal` and the line are ignored."""

    model_config = EXACTLY

    program: Text
    start: int
    end: int
    is_term: bool = False
    number: int = 1
    of_holes: int = 1
    line: int | None = None
    column: int | None = None
    goal: Text = ""
    of: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _is_in_its_program(self) -> Self:
        Hole.of(self.model_dump())
        return self

    @property
    def hole(self) -> Hole:
        """The place alone."""
        return Hole.of(self.model_dump())


def _none() -> dict[str, JsonValue]:
    """Return the JSON schema of an item without an answer."""
    kinds: dict[str, JsonValue] = {name: {"type": "null"} for name in _ANSWERS}
    stated: dict[str, JsonValue] = {"formal_statement": {"type": "string", "pattern": r"\S"}}
    return {"required": ["formal_statement"], "properties": {**kinds, **stated}}


class Item(LineFields):
    """One answer to judge: a whole `program`, or a `proof` or `generation` of a `formal_statement`.

    A `proof` is Lean code; a `generation` is a model's answer, assembled as `farm submit` does. A `header`
    precedes the statement, or a `context`: the whole file before the theorem. With `hole` the answer is put
    into that place of a program. An item with the `task` statement needs no answer.
    """

    model_config = ConfigDict(**EXACTLY, json_schema_extra={"oneOf": [*map(_one, _ANSWERS), _none()]})

    program: Text | None = None
    header: Text = ""
    context: Text = ""
    formal_statement: Text = ""
    proof: Text | None = None
    generation: Text | None = None
    hole: HoleFields | None = None
    name: Text = ""
    group: Group | None = None
    key: Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")] | None = None

    @model_validator(mode="after")
    def _is_one_of_three(self) -> Item:
        given = [field for field in _ANSWERS if getattr(self, field) is not None]
        if len(given) > 1 or (not given and not self.formal_statement):
            raise ValueError("give exactly one of program, proof and generation")
        if self.formal_statement and not self.formal_statement.strip():
            raise ValueError("the formal_statement is blank; write the theorem that is to be proved")
        if self.hole is not None and given in (["program"], []):
            raise ValueError("an item with a hole has a proof or generation for it")
        if given not in (["program"], []) and not self.formal_statement and self.hole is None:
            raise ValueError(f"a {given[0]} needs the formal_statement that it proves")
        require_context(self.context, self.header)
        return self

    @property
    def has_answer(self) -> bool:
        """Whether there is a program, a proof or a generation."""
        return any(getattr(self, field) is not None for field in _ANSWERS)

    def entry(self, number: int) -> Entry:
        """Return the item in the form of a manifest's line, with this number."""
        return Entry(
            path="items",
            line=number,
            name=self.name,
            header=self.header,
            formal_statement=self.formal_statement,
            generation=(self.generation if self.proof is None else self.proof) or "",
            # An empty program is judged too: it proves nothing.
            predicted_proof="" if self.program is None else self.program or "\n",
            environment=self.environment,
            timeout=self.timeout,
            group=self.group,
            context=self.context,
            task=self.asked,
            hole=None if self.hole is None else self.hole.hole,
        )


class Options(BatchFields):
    """How the items of a batch are judged."""

    model_config = EXACTLY

    def submit_options(self, *, environment: str, memory_mib: int) -> SubmitOptions:
        """Return these as the farm's own options; the arguments are the defaults of absent fields."""
        usual = {"environment": environment, "memory_mib": memory_mib}
        return SubmitOptions.of(usual | said_by(self))


class Batch(Options):
    """Items to judge; the request waits `wait_seconds` for their verdicts."""

    items: Annotated[list[Item], Field(min_length=1, max_length=MOST_ITEMS)]
    wait_seconds: Wait = 0.0

    @model_validator(mode="after")
    def _has_each_key_once(self) -> Batch:
        keys = [item.key for item in self.items if item.key is not None]
        if len(set(keys)) < len(keys):
            raise ValueError("two items have the same key")
        return self

    @model_validator(mode="after")
    def _has_answers(self) -> Batch:
        lacking = (
            number
            for number, item in enumerate(self.items)
            if not item.has_answer and item.asked.within(self.asked).kind is not Kind.STATEMENT
        )
        if (first := next(lacking, None)) is not None:
            fault = InitErrorDetails(type=_NO_ANSWER, loc=("items", first), input=None)
            raise ValidationError.from_exception_data("Batch", [fault])
        return self

    def sha256(self, item: Item) -> bytes:
        """Return the fingerprint of an item and its options, for idempotency keys."""
        # An item stays the same under another name of its batch.
        aside = {"items", "wait_seconds", "deadline_seconds", "batch_name"}
        # Older farms lack these fields.
        aside |= {
            each for each in ("require_all_parts", "feedback", "stop_at_error") if not getattr(self, each)
        }
        aside |= {each for each in TASK_FIELDS if getattr(self, each) is None}
        options = self.model_dump(exclude=aside) | {"accept": sorted(set(self.accept))}
        # Older farms lack these fields.
        unsaid = {"key", *(each for each in ("context", "hole") if not getattr(item, each))}
        unsaid |= {each for each in TASK_FIELDS if getattr(item, each) is None}
        said = [item.model_dump(exclude=unsaid), options]
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).digest()


def batch_of(items: Sequence[Mapping[str, object]], options: Mapping[str, object], first: int = 0) -> Batch:
    """Return the batch of a client in this process, validated like a request's body.

    `first` is the index of its first item in the client's list.
    Raises `ManifestError` for the first fault of an item, `UsageError` for one of an option.
    """
    try:
        return Batch.model_validate({**options, "items": list(items)})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False)[0]
        path, why = fault["loc"], words_of(fault)
        if len(path) < 2 or path[0] != "items":
            raise UsageError(f"{'.'.join(map(str, path)) or 'the batch'}: {why}") from error
        field = ".".join(map(str, path[2:]))
        raise ManifestError(
            path="lines",
            line=first + int(path[1]) + 1,
            field=field or None,
            problem=why,
            remedy="correct the item",
        ) from error


class Cancellation(Exact):
    """The items of a batch to cancel: those with these ids, those of the groups, or all."""

    model_config = EXACTLY

    items: Annotated[list[Word], Field(max_length=MOST_ITEMS)] | None = None
    groups: Annotated[list[Group], Field(max_length=MOST_ITEMS)] | None = None
