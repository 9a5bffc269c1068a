"""The requests that the service accepts from clients, field by field."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from farm.assembly.program import AssemblyOptions
from farm.characters import first_unstorable
from farm.errors import ManifestError, UsageError
from farm.judging.assurance import Assurance
from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.limits import LONGEST_TIMEOUT, MOST_MEMORY_MIB
from farm.manifest.context import fault_of
from farm.manifest.entry import Entry
from farm.manifest.hole import Hole
from farm.service.spelling import UNKNOWN_FIELD, suggesting, words_of
from farm.task import TASK_FIELDS, Kind, Task

#: Items that one batch may have.
MOST_ITEMS = 4096
#: One request may wait this long for verdicts.
MOST_SECONDS = 600.0


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("Input should be a string")  # noqa: TRY004 # pydantic tells a ValueError to the client
    return value


#: Any text of JSON, NUL and lone surrogates included: models write those, and such an item is rejected.
Text = Annotated[Any, AfterValidator(_text), WithJsonSchema({"type": "string"})]


def _group(value: object) -> str:
    text = _text(value)
    if first_unstorable(text) is not None:
        raise ValueError("a group cannot contain NUL or half a surrogate pair; give it another name")
    return text


#: The name of a group. Not any `Text`: PostgreSQL would store two such names as one, and mix up their items.
Group = Annotated[Any, AfterValidator(_group), WithJsonSchema({"type": "string"})]
Word = Annotated[str, Field(max_length=200)]
Weaker = Literal[
    "audit", "lean", "unchecked", "sorry", "answer", "native", "forgeable", "unrebuilt", "partial", "disproof"
]
Timeout = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT, allow_inf_nan=False)]
#: The same in a body, where a number in quotes is a mistake of the client.
BodyTimeout = Annotated[Timeout, Field(strict=True)]
Wait = Annotated[float, Field(ge=0, le=MOST_SECONDS, allow_inf_nan=False)]

# Strict: a number in quotes is a mistake of the client.
_EXACTLY = ConfigDict(extra="forbid", frozen=True, strict=True)


#: An object with more unknown fields is refused as a whole: naming each field takes time.
_MOST_UNKNOWN = 20


class Exact(BaseModel):
    """An object that refuses unknown fields and names each of them, unless there are very many.

    The fault of an unknown field names the nearest field that exists.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="wrap")
    @classmethod
    def _suggests(cls, said: object, read: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return read(said)
        except ValidationError as error:
            raise suggesting(error, sorted(cls.model_fields, key=lambda name: name in TASK_FIELDS)) from None

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, said: object) -> object:
        most = len(cls.model_fields) + _MOST_UNKNOWN
        if isinstance(said, dict) and len(said) > most and cls.model_config["extra"] == "forbid":
            words = "the object has {given} fields, and {known} exist; send only fields that exist"
            told = {"given": len(said), "known": len(cls.model_fields)}
            raise PydanticCustomError(UNKNOWN_FIELD, words, told)
        return said


class AnswerForm(Exact):
    """The form that an answer must have: numbers, and no use of the constants in `without`."""

    form: Literal["numeral", "numerals"] | None = None
    without: list[Word] = []


class TaskFields(Exact):
    """What a proof has to show beyond the usual, in an item or in a batch's options."""

    axioms: list[Word] | None = None
    declarations: bool | None = None
    permit_sorry: bool | list[Word] | None = None
    answers: Annotated[bool, Field(strict=True)] | None = None
    answer_must: Literal["numeral", "numerals"] | AnswerForm | None = None
    expected_answer: str | dict[Word, str] | None = None
    task: Literal["prove", "disprove", "either", "statement"] | None = None
    forbid: list[Word] | None = None
    negates: bool | Annotated[int, Field(strict=True, ge=1)] | None = None

    @model_validator(mode="after")
    def _has_a_task(self) -> Self:
        Task.of(self._said)
        return self

    @property
    def _said(self) -> dict[str, object]:
        said = {name: getattr(self, name) for name in TASK_FIELDS}
        return {name: each.model_dump() if isinstance(each, Exact) else each for name, each in said.items()}

    @property
    def asked(self) -> Task:
        """The task that these fields say."""
        return Task.of(self._said)


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

    model_config = _EXACTLY

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


class Item(TaskFields):
    """One answer to judge: a whole `program`, or a `proof` or `generation` of a `formal_statement`.

    A `proof` is Lean code; a `generation` is a model's answer, assembled as `farm submit` does. A `header`
    precedes the statement, or a `context`: the whole file before the theorem. With `hole` the answer is put
    into that place of a program. An item with the `task` statement needs no answer.
    """

    model_config = {
        **_EXACTLY,
        "json_schema_extra": {"oneOf": [*map(_one, _ANSWERS), _none()]},
    }

    program: Text | None = None
    header: Text = ""
    context: Text = ""
    formal_statement: Text = ""
    proof: Text | None = None
    generation: Text | None = None
    hole: HoleFields | None = None
    name: Text = ""
    group: Group | None = None
    environment: Word | None = None
    timeout: Timeout | None = None
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


class Options(TaskFields):
    """How the items of a batch are judged."""

    model_config = _EXACTLY

    environment: Word | None = None
    timeout: Timeout = 30.0
    cpu: Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)] | None = None
    memory_mib: Annotated[int, Field(ge=1, le=MOST_MEMORY_MIB)] | None = None
    tier: Literal["kernel", "audit", "lean"] = "kernel"
    native: bool = False
    require_all_parts: bool = False
    profile: Literal["farm", "nemo-2025-11", "nemo-2025-08"] = "farm"
    priority: Literal["interactive", "online", "batch"] = USUAL_CLASS
    share: bool = True
    deadline_seconds: Annotated[float, Field(gt=0, le=1e8, allow_inf_nan=False)] | None = None
    stop_on_first_proof: bool = False
    goals: bool = False
    stop_at_error: bool = False
    feedback: bool = False
    # Excluded from the fingerprint: an item stays the same under another name of the batch.
    batch_name: Annotated[Group | None, Field(description="What the page shows.", exclude=True)] = None
    accept: Annotated[list[Weaker], Field(default_factory=list, max_length=len(get_args(Weaker)))]

    def submit_options(self, *, environment: str, memory_mib: int) -> SubmitOptions:
        """Return these as the farm's own options; the arguments are the defaults of absent fields."""
        return SubmitOptions(
            assembly=AssemblyOptions(profile=self.profile),
            environment=self.environment or environment,
            wall_seconds=self.timeout,
            cpu_seconds=self.cpu,
            memory_mib=self.memory_mib or memory_mib,
            assurance=Assurance(
                tier=self.tier, native=self.native, requires_all_parts=self.require_all_parts
            ),
            share=self.share,
            priority=Priority[self.priority.upper()],
            deadline_seconds=self.deadline_seconds,
            stop_on_first_proof=self.stop_on_first_proof,
            goals=self.goals,
            stop_at_error=self.stop_at_error,
            task=self.asked,
        )


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
        aside = {"items", "wait_seconds", "deadline_seconds"}
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

    model_config = _EXACTLY

    items: Annotated[list[Word], Field(max_length=MOST_ITEMS)] | None = None
    groups: Annotated[list[Group], Field(max_length=MOST_ITEMS)] | None = None
