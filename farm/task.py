"""Task step: the demands of a line or a run on a proof beyond the usual, such as other axioms. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from farm import asked, documents
from farm.asked import BATCH, EVERYWHERE, LINE, NAMES, WHETHER, Flag, Form, Needs, option
from farm.characters import first_unstorable
from farm.errors import UsageError

#: The limits for a list of names: of one name, and of all together, since every audit receives them.
_LONGEST_NAME, _MOST_CHARACTERS = 400, 10_000
#: The forms that an answer can be asked for in.
FORMS = ("numeral", "numerals")


_FORM = asked.words(*FORMS)
_ON_ANSWERS = Needs.AUDIT | Needs.STATEMENT | Needs.ANSWER


class Kind(StrEnum):
    """The duty of a line's answer: prove the statement or its negation; or the line has no answer."""

    PROVE = "prove"
    DISPROVE = "disprove"
    EITHER = "either"
    STATEMENT = "statement"


class TaskFault(ValueError):
    """The fault of a field: the problem with its value, and the remedy."""

    def __init__(self, field: str, problem: str, remedy: str) -> None:
        super().__init__(f"{field}: {problem}; {remedy}")
        self.field, self.problem, self.remedy = field, problem, remedy


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerForm:
    """The form that an answer must have: one of `FORMS`, and free of some constants."""

    form: str | None = None
    without: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Fills:
    """The answer of a check stands in a program from the offset `start` to `tail` characters before its end.

    There the program that it was put into has `text`, a sorry.
    """

    start: int
    tail: int
    text: str

    def open(self, program: str) -> str:
        """Return the program with its hole, given the one in which the answer stands."""
        return program[: self.start] + self.text + program[len(program) - self.tail :]

    def moved(self, program: str) -> tuple[int, int]:
        """Return the line at which the text behind the answer begins, and by how many lines it moved down."""
        line = program.count("\n", 0, len(program) - self.tail) + 1
        return line, line - program.count("\n", 0, self.start) - self.text.count("\n") - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """The demands of a check beyond a proof of its statement by the usual means; each option has its meaning.

    None leaves an option to the run, or to the usual rules. In `expected_answer` the name "" stands for the
    only definition. `permit_sorry` is ``*`` for all declarations. Run and line forbid together. No line has
    `fills`: the farm sets it for an answer to one hole of several. The answer must fill that hole without a
    sorry, and leave the text around it as it was.
    """

    axioms: tuple[str, ...] | None = option(
        None,
        places=BATCH | LINE,
        form=NAMES,
        meaning="all axioms that a proof may rest on, in place of Lean's own three",
        identity=True,
    )
    forbid: tuple[str, ...] | None = option(
        None,
        places=EVERYWHERE,
        form=NAMES,
        meaning="tactics and constants that a proof must not use",
        flag=Flag(
            takes=list[str] | None,
            help="Reject proofs that use this tactic or constant, such as simp. Repeatable.",
        ),
        identity=True,
        needs=Needs.AUDIT,
    )
    declarations: bool | None = option(
        None,
        places=EVERYWHERE,
        form=WHETHER,
        meaning="results have a verdict for each part of the statement and each declaration",
        flag=Flag(
            names=("--declarations",),
            takes=bool,
            usual=False,
            reads=lambda lists: lists or None,
            help="List the declarations of every program, each with a verdict.",
        ),
        identity=True,
        needs=Needs.AUDIT,
    )
    permit_sorry: tuple[str, ...] | None = option(
        None,
        places=EVERYWHERE,
        form=Form(client="bool | Sequence[str]", service="bool | list[Word]"),
        meaning="declarations that may contain a sorry, true for any: such a proof is *partial*",
        flag=Flag(
            takes=list[str] | None,
            metavar="NAME",
            help="A declaration that may contain a sorry, '*' for any: such a proof is partial. Repeatable.",
        ),
        identity=True,
        needs=Needs.AUDIT,
    )
    answers: bool | None = option(
        None,
        places=EVERYWHERE,
        form=WHETHER,
        meaning="true demands values for the definitions that the statement leaves open, false forbids them",
        flag=Flag(
            names=("--answers/--no-answers",),
            help="Demand, or forbid, values for definitions that statements leave open.",
        ),
        identity=True,
        needs=_ON_ANSWERS,
    )
    answer_must: AnswerForm | None = option(
        None,
        places=EVERYWHERE,
        form=Form(client=f"{_FORM.client} | AnswerForm", service=f"{_FORM.service} | AnswerForm"),
        meaning="the form of these values, such as a numeral",
        flag=Flag(takes=str | None, help="The form of such a value: numeral or numerals."),
        identity=True,
        needs=_ON_ANSWERS,
    )
    expected_answer: dict[str, str] | None = option(
        None,
        places=BATCH | LINE,
        form=Form(client="str | Mapping[str, str]", service="str | dict[Word, str]"),
        meaning="the right value as a Lean text, or the values by the names of the definitions",
        identity=True,
        needs=_ON_ANSWERS,
    )
    task: str | None = option(
        None,
        places=EVERYWHERE,
        form=asked.words(*Kind, alias="Kind"),
        meaning="the answer proves the statement, disproves it, or one of the two; or there is no answer",
        flag=Flag(help="What answers have to do: prove, disprove or either; statement needs no answers."),
        default="`prove`",
        identity=True,
    )
    negates: bool | None = option(
        None,
        places=BATCH | LINE,
        form=Form(client="bool | int", service="bool | Annotated[int, Field(strict=True, ge=1)]"),
        meaning="the statement is one that `farm submit --disprove --dry-run` wrote, and must state the "
        "negation of another",
        identity=True,
        needs=Needs.AUDIT | Needs.STATEMENT,
    )
    fills: Fills | None = None

    @classmethod
    def of(cls, said: Mapping[str, object]) -> Task:
        """Return the task that the fields of a line or request say; other fields and nulls are ignored.

        Raises TaskFault for the first field with an impossible value.
        """
        given = {name: said[name] for name in TASK_FIELDS if said.get(name) is not None}
        found = cls(**{name: _READERS[name](name, value) for name, value in given.items()})
        if found.answers is False and (
            rule := next((each for each in ("answer_must", "expected_answer") if each in given), None)
        ):
            raise TaskFault(
                "answers", f"false forbids the answer of which {rule} speaks", "leave one of them out"
            )
        return found

    def within(self, run: Task) -> Task:
        """Return a line's task in a run: its own fields come before the run's; both forbid."""
        own = {name: getattr(self, name) for name in TASK_FIELDS}
        own["forbid"] = tuple(sorted({*(self.forbid or ()), *(run.forbid or ())})) or None
        given = {name: getattr(run, name) if value is None else value for name, value in own.items()}
        return Task(**given, fills=self.fills)

    def filling(self, fills: Fills) -> Task:
        """Return the task of an answer to one hole of several: the others stay open."""
        return replace(self, permit_sorry=("*",), fills=fills)

    @property
    def kind(self) -> Kind:
        """The duty of the answer."""
        return Kind(self.task or Kind.PROVE)

    @property
    def excluded(self) -> str | None:
        """The first field whose demand only a proof of the statement can meet, None if the line has none."""
        names = () if self.kind is Kind.PROVE else AUDITED
        return next((name for name in names if getattr(self, name) is not None), None)

    @property
    def reads_open_modules(self) -> bool:
        """Whether a module is audited although Lean warns of a sorry."""
        return bool(self.declarations or self.permit_sorry)

    @property
    def needs_audit(self) -> str | None:
        """A field that only the audit of a compiled module can answer, None if none is asked."""
        if self.kind is not Kind.PROVE:
            return "task"
        if self.fills is not None:
            return "hole"
        if self.answers is not None:  # false forbids them
            return "answers"
        return next((name for name in AUDITED if getattr(self, name)), None)

    @property
    def demands_answers(self) -> bool:
        """Whether the definitions that the statement leaves open must be given."""
        demanded = self.answers or self.answer_must is not None or self.expected_answer is not None
        return bool(demanded) and self.answers is not False

    @property
    def stored(self) -> str | None:
        """The task as canonical JSON without its defaults, None for one that asks for nothing more."""
        asked = {name: value for name, value in documents.encoded(self).items() if value is not None}
        if self.kind is Kind.PROVE:
            asked.pop("task", None)
        return json.dumps(asked, sort_keys=True, separators=(",", ":")) if asked else None

    @classmethod
    def read(cls, stored: str | None) -> Task:
        """Return the task that the store has. Raises ValueError for a field of a newer release."""
        if stored is None:
            return cls()
        asked = json.loads(stored)
        if unknown := sorted(asked.keys() - {*TASK_FIELDS, "fills"}):
            raise ValueError(f"the task has fields of another release: {', '.join(unknown)}")
        return documents.decoded(cls, asked)


TASK_FIELDS = tuple(each.name for each in asked.declared(Task))
"""The fields of a task, as lines and requests name them."""


def _names(field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise TaskFault(field, "not a list of strings", 'write names as in Lean, such as ["propext"]')
    if any(not each.strip() or not each.isprintable() or "," in each for each in value) or any(
        len(each) > _LONGEST_NAME for each in value
    ):
        raise TaskFault(field, "one entry is not a name", "write each name as in Lean, such as propext")
    if sum(map(len, value)) > _MOST_CHARACTERS:
        raise TaskFault(field, f"the names exceed {_MOST_CHARACTERS} characters", "give fewer")
    return tuple(value)


def _axioms(field: str, value: object) -> tuple[str, ...]:
    if "sorryAx" in (names := _names(field, value)):
        raise TaskFault(field, "sorryAx proves everything", "leave it out")
    return names


def _permitted(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("*",) if value else ()
    try:
        return _names(field, value)
    except TaskFault as fault:
        remedy = 'write full names, such as ["helper"], or true for any declaration'
        raise TaskFault(field, fault.problem, remedy) from None


def _whether(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise TaskFault(field, "neither true nor false", "write true or false")
    return value


def _form(field: str, value: object) -> AnswerForm:
    if isinstance(value, str) and value in FORMS:
        return AnswerForm(form=value)
    if isinstance(value, Mapping) and value and value.keys() <= {"form", "without"}:
        form, without = value.get("form"), value.get("without", ())
        if form is None or form in FORMS:
            return AnswerForm(form=cast("str | None", form), without=_names(field, without))
    remedy = f'write {", ".join(map(repr, FORMS))} or {{"without": ["Classical.choose"]}}'.replace("'", '"')
    raise TaskFault(field, "no form of answers", remedy)


def _texts(field: str, value: object) -> dict[str, str]:
    texts = {"": value} if isinstance(value, str) else value
    if not isinstance(texts, Mapping) or not texts:
        raise TaskFault(field, "no text", 'write the answer in Lean, such as "5", or {"name": "5"}')
    names, found = _names(field, [name or "_" for name in texts]), {}
    for name, text in texts.items():
        if not isinstance(text, str) or not text.strip():
            raise TaskFault(field, "an answer is no text or blank", 'write it in Lean, such as "5"')
        found[name] = text
    if sum(map(len, found.values())) + sum(map(len, names)) > _MOST_CHARACTERS:
        raise TaskFault(field, f"it exceeds {_MOST_CHARACTERS} characters", "shorten it")
    return found


def _negates(field: str, value: object) -> bool | None:
    if isinstance(value, bool):
        return value or None
    if isinstance(value, int | float) and value > 0 and value == int(value):  # the statement's line
        return True
    raise TaskFault(
        field, "not the number of a line", "take the line as `farm submit --disprove --dry-run` wrote it"
    )


def _kind(field: str, value: object) -> str:
    if value not in list(Kind):
        raise TaskFault(field, f"{value!r} is no task"[:100], f"write one of {', '.join(Kind)}")
    return str(value)


def _forbid(field: str, value: object) -> tuple[str, ...] | None:
    names = {each.strip() for each in _names(field, value)}
    if any(first_unstorable(each) is not None or len(each.split()) != 1 for each in names):
        raise TaskFault(field, "one entry is not a name", "write a tactic or a constant, such as simp")
    return tuple(sorted(names)) or None


def _needing(needs: Needs) -> tuple[str, ...]:
    return tuple(each.name for each in asked.declared(Task) if needs in each.needs)


#: The fields that need a statement, and those that only an audit of the compiled module can answer.
OF_STATEMENTS, AUDITED = _needing(Needs.STATEMENT), _needing(Needs.AUDIT)

_READERS: Mapping[str, Callable[[str, object], Any]] = {
    "axioms": _axioms,
    "forbid": _forbid,
    "answers": _whether,
    "answer_must": _form,
    "expected_answer": _texts,
    "declarations": _whether,
    "permit_sorry": _permitted,
    "task": _kind,
    "negates": _negates,
}

#: Why a task is refused on the tier lean, and the remedy.
UNAUDITED = "the tier lean does not look at what a module proves", "use the tier kernel or audit"


def task_of(said: Mapping[str, object]) -> Task:
    """Return the task of options. Raises `UsageError` for an impossible value."""
    try:
        return Task.of(said)
    except TaskFault as fault:
        raise UsageError(str(fault)) from fault
