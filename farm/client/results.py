"""Parses the service's answers into results for both clients, and refuses contradictory ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, TypeVar

from farm.client import explaining
from farm.client.errors import NotAFarm, ServiceFailed
from farm.client.explaining import Feedback, FirstError, Mark
from farm.client.requests import Sent
from farm.documents import decoded

_T = TypeVar("_T")


#: The text in which the lines and columns of a message count: a part of the item, or the whole program.
Origin = Literal["answer", "header", "context", "formal_statement", "hole", "assembled"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """A place in the whole program that Lean read; lines count from 1, columns from 0."""

    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Notice:
    """A warning of the program's assembly: a `code` of docs/use/manifests.md, and its place."""

    code: str = ""
    line: int | None = None
    column: int | None = None
    origin: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of Lean about an item; lines count from 1, columns from 0.

    They count in the part of the item that `origin` names: the `answer` (program, proof or generation), the
    `header`, the `context`, the `formal_statement`, the program of its `hole`, or the whole `assembled`
    program. `program` is the same position in the whole program.
    """

    severity: str = ""
    text: str = ""
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    origin: Origin | None = None
    program: Position | None = None

    @property
    def shown(self) -> str:
        """The message with its place, as compilers print it."""
        return f"{self.origin or 'program'}:{self.line}:{self.column}: {self.severity}: {self.text}"


#: The verdicts of a judged item.
Outcome = Literal[
    "proved", "disproved", "partial", "stated", "rejected", "timeout", "memory_limit", "judge_error"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """The goals at a sorry or an error (`kind`), as Lean prints them; placed as a `Message` is."""

    line: int | None = None
    column: int | None = None
    origin: Origin | None = None
    program: Position | None = None
    kind: str = ""
    goal: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A theorem that the statement leaves open, and its own verdict; docs/use/tasks.md lists the words.

    `by` is the theorem that is judged for it, if that has another name; `rests_on` are the open declarations
    that it rests on.
    """

    name: str = ""
    verdict: str = ""
    by: str | None = None
    rests_on: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Declared:
    """A declaration of the program, and its own verdict; docs/use/tasks.md lists the words.

    It rests on these `axioms` and open declarations. It is placed as a `Message` is, by what the module
    claims.
    """

    name: str = ""
    kind: str = ""
    verdict: str = ""
    axioms: tuple[str, ...] = ()
    rests_on: tuple[str, ...] = ()
    line: int | None = None
    column: int | None = None
    origin: Origin | None = None
    program: Position | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A definition that the statement leaves open and the answer gives: its value and type in Lean's words.

    `text` and `type` are None where they could not be printed. With `text_by_submission` declarations or
    instances of the answer give the text its meaning, and it is the value in full.
    """

    name: str = ""
    text: str | None = None
    type: str | None = None
    text_by_submission: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Hole:
    """An open place of a judged program: the text from `start` to `end`, in characters, is a sorry.

    `is_term`: a term is missing there, or else tactics; an answer is tactics in either case. It is the hole
    `number` of `of_holes`. Lines count from 1, columns from 0.
    """

    program: str
    start: int
    end: int
    is_term: bool = False
    number: int = 1
    of_holes: int = 1
    line: int | None = None
    column: int | None = None
    goal: str = ""

    def answered(self, proof: str) -> dict[str, object]:
        """Return the fields of an item that answers this hole; the item also has the statement's."""
        return {"hole": asdict(self), "proof": proof}


@dataclass(frozen=True, kw_only=True, slots=True)
class Provenance:
    """The environment and the farm that judged an item, and the facts that its verdict rests on."""

    environment: str | None = None
    environment_digest: str | None = None
    toolchain: str | None = None
    farm_version: str | None = None
    tier: str | None = None
    statement: str | None = None
    trusts: tuple[str, ...] = ()
    rests_on_sorry_of: tuple[str, ...] = ()
    uses_choice: bool | None = None
    isolation: str | None = None
    forgeable: bool | None = None
    unrebuilt: bool | None = None
    program_sha256: str | None = None
    module_sha256: str | None = None
    shared: bool | None = None
    trace_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Seconds:
    """The time that a check took, in seconds."""

    wall: float | None = None
    cpu: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Stated:
    """The facts of a statement that was examined alone; docs/use/tasks.md explains them."""

    type_sha256: str = ""
    axioms: tuple[str, ...] = ()
    sorries: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    left_open: tuple[str, ...] = ()
    closed_by: str | None = None
    negation_closed_by: str | None = None
    tried: tuple[str, ...] = ()
    cut_short: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The state of one item, in the service and its clients; docs/use/http.md explains the fields.

    `reward` is a number only if the farm judged the item: 1.0, 0.0, or the share of parts that a *partial*
    proves. It is None for an item that is not done at the
    deadline or is cancelled, for a failure of the farm, and for a proof whose only unaccepted weakness is
    ``forgeable``; leave such an item out. `index` is the item's place in the call. `status` is ``queued``,
    ``running``, ``done``, ``cancelled``, or ``unknown`` if the service did not answer. `error_kind` is the
    kind of the error that `detail` names; `parts`, `declarations` and `feedback` are there if the call asked
    for them. `answers` are the definitions that the statement leaves open and a proof gives. `stated` are the
    facts of a statement that was examined alone. `contested` says that somebody else proved the contrary.
    """

    index: int
    status: Literal["queued", "running", "done", "cancelled", "unknown"] = "unknown"
    reward: float | None = None
    verdict: Outcome | None = None
    reason: str | None = None
    detail: str = ""
    id: str | None = None
    key: str | None = None
    name: str = ""
    group: str | None = None
    weaker: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    messages_cut: bool = False
    warnings: tuple[Notice, ...] = ()
    goals: tuple[Goal, ...] | None = None
    parts: tuple[Part, ...] | None = None
    declarations: tuple[Declared, ...] | None = None
    declarations_left_off: int = 0
    answers: tuple[Answer, ...] = ()
    holes: tuple[Hole, ...] | None = None
    provenance: Provenance | None = None
    seconds: Seconds | None = None
    peak_memory_kib: int | None = None
    waits_for: str | None = None
    error_kind: str | None = None
    feedback: Feedback | None = None
    stated: Stated | None = None
    contested: bool = False

    @property
    def proved(self) -> bool:
        """Whether the verdict is *proved*, on any tier; `reward` also takes the accepted weaknesses."""
        return self.verdict == "proved"

    @property
    def decided(self) -> bool:
        """Whether the answer is accepted as a proof of the statement, or of its negation."""
        return self.verdict in ("proved", "disproved")

    @property
    def disproved(self) -> bool:
        """Whether the verdict is *disproved*: the answer proves that the statement is false."""
        return self.verdict == "disproved"

    @property
    def judged(self) -> bool:
        """Whether the farm judged the item; the proof of any other item may be right or wrong."""
        return self.verdict not in (None, "judge_error")

    @property
    def over(self) -> bool:
        """Whether the item is done or cancelled, so that its result is final."""
        return self.status in ("done", "cancelled")

    def filled(self, answers: Mapping[int, str]) -> str:
        """Return the program with tactics in the place of its holes, by their numbers; others stay open.

        Raises KeyError for a hole that it does not have.
        """
        holes = {each.number: each for each in self.holes or ()}
        program = next((each.program for each in holes.values()), "")
        for number in sorted(answers, reverse=True):
            hole = holes[number]
            opening = "(by" if hole.is_term else "("
            proof = f"{opening}\n{answers[number]}\n)"
            program = program[: hole.start] + proof + program[hole.end :]
        return program

    def explain(self, program: str = "") -> str:
        """Return the verdict's meaning, Lean's messages and a hint, for a person or a model.

        `program` is the whole text that Lean read; with it the errors are marked there.
        """
        lines = [f"{self.verdict or self.status} ({self.reason or 'no reason'}): {self._meaning}"]
        lines += [text for text in (self.detail, self.waits_for) if text]
        lines += map(explaining.lack, self.weaker)
        lines += [explaining.CONTESTED] if self.contested else []
        if (judge := self.provenance) is not None:
            lines.append(
                f"It was judged by {judge.toolchain} in the environment {judge.environment}, "
                f"tier {judge.tier}."
            )
        for each in self.warnings:
            lines.append(f"{each.origin}:{each.line}:{each.column}: the farm noticed: {each.code}")
        if program and self._marks:
            lines += ["", explaining.marked(program, self._marks), ""]
        else:
            lines += [each.shown for each in self.messages]
        if self.messages_cut:
            lines.append("Lean said more than the farm keeps; errors and sorries are kept first.")
        hint = explaining.hint(self.error_kind, self.reason)
        return "\n".join([*lines, *self._goals_shown(), *([f"Hint: {hint}"] if hint else [])])

    def feedback_on(self, program: str, first: int = 1) -> Feedback | None:
        """Return what the model that wrote the answer is told, None if it succeeded or was not judged.

        `program` is the whole text that Lean read, `first` the first of its lines that is shown.
        """
        if self.verdict in ("proved", "disproved", "stated") or not self.judged:
            return None
        shown = explaining.marked(program, self._marks, first)
        hint = explaining.hint(self.error_kind, self.reason)
        prompt = explaining.correction_prompt(self.detail, shown, list(self._goals_shown()), hint)
        return Feedback(
            error_feedback=shown, correction_prompt=prompt, first_error=self._first_error(program)
        )

    def _first_error(self, program: str) -> FirstError | None:
        places = [
            (place.line, place.column or 0, place)
            for place in (each.program for each in self.messages if each.severity == "error")
            if place is not None and place.line
        ]
        if not places:
            return None
        line, column, place = min(places, key=lambda each: each[:2])
        end = None if place.end_line is None else (place.end_line, place.end_column or 0)
        goals = (
            each.goal
            for each in self.goals or ()
            if each.program and (each.program.line, each.program.column) == (line, column)
        )
        text = explaining.cut_out(program, (line, column), end)
        return FirstError(line=line, column=column, text=text, goal=next(goals, None))

    @property
    def _meaning(self) -> str:
        return explaining.meaning(self.verdict, self.reason)

    @property
    def _marks(self) -> list[Mark]:
        """The errors with their places in the whole program."""
        return [
            Mark(line=each.program.line, column=each.program.column or 0, text=each.text)
            for each in self.messages
            if each.severity == "error" and each.program is not None and each.program.line
        ]

    def _goals_shown(self) -> Iterator[str]:
        """Yield the goals at errors and sorries that no message repeats, while there is room."""
        left = explaining.MOST_GOAL_CHARACTERS
        for each in self.goals or ():
            if len(each.goal) <= left and not any(each.goal in message.text for message in self.messages):
                left -= len(each.goal)
                yield f"The goal at line {each.line}, column {each.column}:\n{each.goal}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """The results of one batch so far; `id` is None if the service never confirmed the batch."""

    id: str | None
    done: bool
    results: tuple[Result, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """A Lean environment of the farm, and whether a worker serves it now."""

    name: str
    toolchain: str | None = None
    tiers: tuple[str, ...] = ()
    served: bool = False
    silent_seconds: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """A proved item as text files by their names, with which others check it without the farm."""

    item: str
    files: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Declaration:
    """A declaration: its name as Lean reads it, its kind in Lean's words, and the module that has it."""

    name: str
    kind: str
    module: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Declarations:
    """The first declarations, short names before long ones, and how many there are in all.

    `header` works at the start of any program in the environment.
    """

    header: str
    total: int
    declarations: tuple[Declaration, ...]


def unknown(sent: Sent) -> Batch:
    """Return the batch before the service's first answer."""
    results = (
        Result(index=sent.first + place, key=item.key, name=item.name, group=item.group)
        for place, item in enumerate(sent.items)
    )
    return Batch(id=None, done=False, results=tuple(results))


def explained(batch: Batch, trouble: object) -> Batch:
    """Return the batch with the trouble as the `detail` of every result that is not final."""
    results = (each if each.over else replace(each, detail=str(trouble)) for each in batch.results)
    return replace(batch, results=tuple(results))


def parse_batch(answer: object, sent: Sent | None = None) -> Batch:
    """Return the batch from the service's answer, after comparing its keys with those of the sent items.

    Raises ServiceFailed if a result belongs to another item, or is missing: no proof must ever get the reward
    of another.
    """
    data = _mapping(answer)
    first = 0 if sent is None else sent.first
    found = tuple(parse_result(item, first=first) for item in _items(data))
    if sent is not None and [each.key for each in found] != [item.key for item in sent.items]:
        raise broken("its results are not those of the items sent")
    if [each.index for each in found] != list(range(first, first + len(found))):
        raise broken("its results are out of order")
    if len({each.id for each in found}) < len(found):
        raise broken("two of its results have the same id")
    return Batch(id=str(data.get("batch")), done=all(each.over for each in found), results=found)


def updated(batch: Batch, news: Iterable[Result]) -> Batch:
    """Return the batch with the new results of its items, matched by their ids; other results are ignored.

    Raises ServiceFailed if an item has another key than before.
    """
    by_id = {each.id: each for each in news}
    found = tuple(renewed(old, by_id.get(old.id, old)) for old in batch.results)
    return replace(batch, done=all(each.over for each in found), results=found)


def renewed(old: Result, new: Result) -> Result:
    """Return an item's new result with its place in the call. Raises ServiceFailed for another key."""
    if new.key != old.key:
        raise broken(f"item {old.id} has another key than before")
    return replace(new, index=old.index)


def parse_news(answer: object, *, wanted: str | None = None) -> list[Result]:
    """Return the results in an answer; `wanted` is the id of the only item that it may contain."""
    news = [parse_result(item) for item in _items(_mapping(answer))]
    if wanted is not None and [each.id for each in news] != [wanted]:
        raise broken(f"it is not about item {wanted}")
    return news


def parse_result(answer: object, *, first: int = 0) -> Result:
    """Return one result; `first` is the place of its batch in the call."""
    data = _mapping(answer)
    return _decoded(Result, data, index=_index(data) + first, reward=_reward(data))


def parse_environments(answer: object) -> list[Environment]:
    """Return the environments that the service listed."""
    if not isinstance(answer, list):
        raise _foreign("the environments are not a list")
    return [_decoded(Environment, each) for each in answer]


def parse_declarations(answer: object) -> Declarations:
    """Return the declarations that the service found."""
    return _decoded(Declarations, _mapping(answer))


def parse_bundle(answer: object) -> Bundle:
    """Return a bundle."""
    return _decoded(Bundle, _mapping(answer))


def parse_cancelled(answer: object) -> int:
    """Return how many items the service cancelled."""
    cancelled = _mapping(answer).get("cancelled")
    if not isinstance(cancelled, int):
        raise broken("it does not say how many items were cancelled")
    return cancelled


def _reward(data: Mapping[str, object]) -> float | None:
    reward, verdict = data.get("reward"), data.get("verdict")
    if reward is None:
        return None
    is_share = verdict == "partial" and isinstance(reward, float) and 0 <= reward <= 1
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not (reward in (0, 1) or is_share):
        raise broken(f"the reward {reward!r} is neither 0 nor 1")
    judged = data.get("status") == "done" and verdict not in (None, "judge_error")
    if not judged or (reward == 1 and verdict not in ("proved", "disproved", "partial")):
        raise broken(f"the reward {reward!r} contradicts the verdict {verdict!r}")
    return float(reward)


def _index(data: Mapping[str, object]) -> int:
    index = data.get("index")
    if isinstance(index, bool) or not isinstance(index, int):
        raise broken("a result has no index")
    return index


def _decoded(kind: type[_T], data: object, **given: object) -> _T:
    try:
        return decoded(kind, _mapping(data), **given)
    except ValueError as error:
        raise broken(str(error)) from error


def _items(data: Mapping[str, object]) -> list[object]:
    items = data.get("items")
    if not isinstance(items, list):
        raise _foreign("it has no list of items")
    return items


def _mapping(data: object) -> Mapping[str, object]:
    if not isinstance(data, dict):
        raise _foreign("it is not an object")
    return data


def broken(why: str) -> ServiceFailed:
    """Return the error for an answer that breaks the contract."""
    return ServiceFailed(
        f"the service's answer cannot be used: {why}. Compare the versions of farm on both sides."
    )


def _foreign(why: str) -> NotAFarm:
    return NotAFarm(
        f"the answer is not in the form of a farm's: {why}. Another web server answers at this address; "
        "correct FARM_URL."
    )
