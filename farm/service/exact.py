"""The parts of the service's models: texts, names, times, and objects without unknown fields."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from farm.characters import first_unstorable
from farm.limits import LONGEST_TIMEOUT
from farm.service.spelling import UNKNOWN_FIELD, suggesting
from farm.task import TASK_FIELDS, Task


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
Timeout = Annotated[float, Field(gt=0, le=LONGEST_TIMEOUT, allow_inf_nan=False)]
#: The same in a body, where a number in quotes is a mistake of the client.
BodyTimeout = Annotated[Timeout, Field(strict=True)]

#: Strict: a number in quotes is a mistake of the client.
EXACTLY = ConfigDict(extra="forbid", frozen=True, strict=True)


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
            own = cls.__annotations__
            known = sorted(cls.model_fields, key=lambda name: (name not in own, name in TASK_FIELDS))
            raise suggesting(error, known) from None

    @model_validator(mode="before")
    @classmethod
    def _has_few_fields(cls, said: object) -> object:
        most = len(cls.model_fields) + _MOST_UNKNOWN
        if isinstance(said, dict) and len(said) > most and cls.model_config["extra"] == "forbid":
            words = "the object has {given} fields, and {known} exist; send only fields that exist"
            told = {"given": len(said), "known": len(cls.model_fields)}
            raise PydanticCustomError(UNKNOWN_FIELD, words, told)
        return said


def said_by(model: Exact) -> dict[str, object]:
    """Return the fields of a model by their names, objects in them as mappings, without nulls."""
    said = {name: getattr(model, name) for name in type(model).model_fields}
    return {
        name: each.model_dump() if isinstance(each, Exact) else each
        for name, each in said.items()
        if each is not None
    }


class AnswerForm(Exact):
    """The form that an answer must have: numbers, and no use of the constants in `without`."""

    form: Literal["numeral", "numerals"] | None = None
    without: list[Word] = []


class Tasked(Exact):
    """An object that has the fields of a task."""

    @model_validator(mode="after")
    def _has_a_task(self) -> Self:
        Task.of(said_by(self))
        return self

    @property
    def asked(self) -> Task:
        """The task that these fields say."""
        return Task.of(said_by(self))
