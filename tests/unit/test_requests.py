"""What a client may send: each field that is wrong is named by its path, and nothing is guessed."""

from __future__ import annotations

import hashlib
import json
from typing import get_args

import pytest
from pydantic import BaseModel, ValidationError

from farm.judging.states import Priority
from farm.judging.submit_options import SubmitOptions
from farm.limits import LONGEST_TIMEOUT
from farm.service.asked_fields import Weaker
from farm.service.requests import MOST_ITEMS, Batch, Cancellation, Item
from farm.service.spelling import words_of
from farm.task import TASK_FIELDS
from tests.counted import calls

ONE = {"program": "theorem t : True := trivial"}
STATED = {"formal_statement": "theorem t : True := by"}


def faults(body: object, model: type[BaseModel] = Batch) -> list[tuple[object, ...]]:
    """Return the paths of what is wrong with a body, as JSON brings it."""
    try:
        model.model_validate(json.loads(json.dumps(body)))
    except ValidationError as error:
        return [each["loc"] for each in error.errors()]
    return []


def batch(*items: object, **options: object) -> dict[str, object]:
    return {"items": list(items or [ONE]), **options}


@pytest.mark.parametrize(
    "body",
    [
        batch(),
        batch({"program": "\0\ud800"}),
        batch(STATED | {"proof": ""}),
        batch(STATED | {"generation": "", "context": "import A\n", "header": ""}),
        batch(STATED | {"generation": ""}),
        batch(STATED | ONE | {"header": "import Core", "key": "k" * 200, "name": "\0", "group": "\ufffd"}),
        batch(*[ONE] * MOST_ITEMS),
        batch(ONE | {"timeout": 1, "environment": None, "key": None, "proof": None}),
        batch(wait_seconds=600, timeout=LONGEST_TIMEOUT, cpu=1, memory_mib=1 << 20, deadline_seconds=1),
        batch(accept=list(get_args(Weaker)), tier="lean", native=True),
        batch(require_all_parts=True, tier="audit"),
    ],
    ids=str,
)
def test_what_is_right_is_taken(body: dict[str, object]) -> None:
    assert faults(body) == []


NUMBER = [0, -1, "1", True, [], {}, float("nan"), float("inf")]
OPTIONS: dict[str, list[object]] = {
    "timeout": [*NUMBER, None, LONGEST_TIMEOUT + 1],
    "cpu": [*NUMBER, 1e7],
    "memory_mib": [0, -1, 1.5, "1", True, [], (1 << 20) + 1],
    "deadline_seconds": [*NUMBER, 1e9],
    "wait_seconds": [-1, "1", True, None, 600.5, float("nan"), float("inf")],
    "tier": ["Kernel", "", None, 1, []],
    "native": [0, 1, "yes", None],
    "require_all_parts": [0, 1, "yes", None],
    "share": ["true", 1, None],
    "stop_on_first_proof": ["no", 0, None],
    "profile": ["nemo", None],
    "priority": ["high", 0, None, "ONLINE"],
    "environment": ["e" * 201, 1, ["core"], "\ud800"],
    "nonsense": [1],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in OPTIONS.items() for value in values], ids=repr
)
def test_an_option_that_is_wrong_is_named(field: str, value: object) -> None:
    assert faults(batch(**{field: value})) == [(field,)]


@pytest.mark.parametrize(
    ("accept", "paths"),
    [
        ("audit", [("accept",)]),
        (["nothing"], [("accept", 0)]),
        (["audit", 1], [("accept", 1)]),
        (["audit"] * 20, [("accept",)]),
    ],
)
def test_a_weakness_that_nobody_knows_is_named(accept: object, paths: object) -> None:
    assert faults(batch(accept=accept)) == paths


@pytest.mark.parametrize(
    "items", [[], None, {}, "x", [ONE] * (MOST_ITEMS + 1)], ids=lambda items: str(items)[:9]
)
def test_items_are_one_or_some(items: object) -> None:
    assert faults({"items": items}) == [("items",)]


@pytest.mark.parametrize(
    ("item", "path"),
    [
        ({}, ()),
        ({"program": None}, ()),
        ({"proof": "rfl"}, ()),
        ({"generation": "rfl"}, ()),
        (ONE | {"proof": "rfl"}, ()),
        (STATED, ()),
        (STATED | {"proof": "rfl", "generation": "rfl"}, ()),
        ("theorem", ()),
        (None, ()),
        *((ONE | {"timeout": value}, ("timeout",)) for value in NUMBER),
        *((ONE | {"key": value}, ("key",)) for value in ("", "k" * 201, "a\0", "a\n", 7, "\ud800")),
        *((ONE | {"group": value}, ("group",)) for value in ("a\0", "\ud800", "\udfff")),
        *((ONE | {field: 7}, (field,)) for field in ("name", "group", "header", "formal_statement")),
        *((ONE | {field: None}, (field,)) for field in ("name", "header", "formal_statement")),
        *((STATED | {field: ["x"]}, (field,)) for field in ("program", "proof", "generation")),
        (ONE | {"environment": 1}, ("environment",)),
        (ONE | {"predicted_proof": "x"}, ("predicted_proof",)),
    ],
    ids=repr,
)
def test_an_item_that_is_wrong_is_named_by_its_place(item: object, path: tuple[object, ...]) -> None:
    assert faults(batch(ONE, ONE, item)) == [("items", 2, *path)]


def test_all_that_is_wrong_is_named_at_once() -> None:
    found = faults(batch(ONE | {"timeout": 0, "name": 7}, ONE, {"key": ""}, tier="x"))
    assert set(found) == {("items", 0, "timeout"), ("items", 0, "name"), ("items", 2, "key"), ("tier",)}


def test_a_key_names_one_item() -> None:
    assert faults(batch(ONE | {"key": "k"}, ONE | {"key": "k"})) == [()]
    assert faults(batch(ONE | {"key": "k"}, ONE | {"key": "K"}, ONE)) == []


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({}, []),
        ({"items": None, "groups": None}, []),
        ({"items": [], "groups": ["\ufffd"]}, []),
        ({"groups": ["a", "\0"]}, [("groups", 1)]),
        ({"items": "a-1"}, [("items",)]),
        ({"items": [1]}, [("items", 0)]),
        ({"groups": [None]}, [("groups", 0)]),
        ({"all": True}, [("all",)]),
    ],
    ids=str,
)
def test_a_cancellation_is_read_as_strictly(body: object, paths: list[object]) -> None:
    assert faults(body, Cancellation) == paths


class TestWhatAKeyStandsFor:
    def sha256(self, item: dict[str, object], **options: object) -> bytes:
        body = Batch.model_validate(batch(item, **options))
        return body.sha256(body.items[0])

    def test_is_the_same_however_it_is_written(self) -> None:
        assert self.sha256(ONE | {"key": "a"}) == self.sha256(ONE | {"key": "b", "name": ""}, tier="kernel")
        assert self.sha256(ONE, wait_seconds=5) == self.sha256(ONE, wait_seconds=0)
        assert self.sha256(ONE | {"timeout": 1}) == self.sha256(ONE | {"timeout": 1.0})
        assert self.sha256(ONE, accept=["lean", "audit"]) == self.sha256(
            ONE, accept=["audit", "lean", "lean"]
        )

    @pytest.mark.parametrize(
        "other",
        [
            {"header": "import A"},
            {"name": "n"},
            {"group": "g"},
            {"group": ""},
            {"timeout": 30.0},
            {"environment": "core"},
            {"program": ONE["program"] + "\n"},
        ],
        ids=str,
    )
    def test_is_another_where_anything_else_is_asked(self, other: dict[str, object]) -> None:
        assert self.sha256(ONE) != self.sha256(ONE | other)

    @pytest.mark.parametrize("other", [{"tier": "lean"}, {"accept": ["lean"]}, {"share": False}], ids=str)
    def test_is_another_with_other_options(self, other: dict[str, object]) -> None:
        assert self.sha256(ONE) != self.sha256(ONE, **other)


def test_what_is_not_said_is_as_the_farm_has_it() -> None:
    options = Batch.model_validate(batch()).submit_options(environment="core", memory_mib=512)
    assert (options.environment, options.memory_mib, options.priority) == ("core", 512, Priority.ONLINE)
    usual = SubmitOptions(
        assembly=options.assembly, environment="core", memory_mib=512, priority=Priority.ONLINE
    )
    assert options == usual


@pytest.mark.parametrize(
    ("item", "generation", "program"),
    [
        (ONE | STATED, "", ONE["program"]),
        (STATED | {"proof": "rfl"}, "rfl", ""),
        (STATED | {"proof": ""}, "", ""),
        (STATED | {"generation": "rfl"}, "rfl", ""),
    ],
)
def test_an_item_is_the_entry_of_a_manifest(item: dict[str, str], generation: str, program: str) -> None:
    entry = Item(**item).entry(3)
    assert (entry.line, entry.generation, entry.predicted_proof) == (3, generation, program)


@pytest.mark.parametrize("context", ["a\tb", "a\r\n"])
def test_a_context_is_refused_as_in_a_manifest(context: str) -> None:
    assert faults(batch(STATED | {"proof": "", "context": context})) == [("items", 0)]


def test_a_context_beside_a_header_is_refused() -> None:
    item = STATED | {"proof": "", "context": "import A\n", "header": "import B\n"}
    assert faults(batch(item)) == [("items", 0)]


def test_a_context_makes_another_item_and_none_leaves_it_what_it_was() -> None:
    plain = Batch.model_validate(batch(STATED | {"proof": ""}))
    below = Batch.model_validate(batch(STATED | {"proof": "", "context": "import A\n"}))
    assert below.items[0].entry(1).context == "import A\n"
    assert plain.sha256(plain.items[0]) != below.sha256(below.items[0])
    said = plain.items[0].model_dump(exclude={"key", "context", "negate", "hole", *TASK_FIELDS})
    new = {"items", "wait_seconds", "deadline_seconds", "require_all_parts", "feedback", "stop_at_error"}
    new |= {"batch_name", *TASK_FIELDS}
    options = plain.model_dump(exclude=new) | {"accept": []}
    asked = json.dumps([said, options], sort_keys=True).encode()
    assert plain.sha256(plain.items[0]) == hashlib.sha256(asked).digest()


def test_an_unknown_field_is_told_with_the_one_that_was_meant() -> None:
    body = batch({"program": "x", "headr": ""}, {"program": "x", "zzzz": 1}, time_out=3)
    with pytest.raises(ValidationError) as raised:
        Batch.model_validate(body)
    told = {each["loc"]: words_of(each) for each in raised.value.errors()}  # type: ignore[arg-type]
    assert told["items", 0, "headr"] == "no such field; did you mean header?"
    assert told["items", 1, "zzzz"].startswith("no such field; the fields are program, header")
    assert told["time_out",] == "no such field; did you mean timeout?"


def test_very_many_unknown_fields_cost_little_more_than_their_objects() -> None:
    items = [{f"progra{number}x{field}": 1 for field in range(8)} for number in range(MOST_ITEMS)]

    def refused() -> None:
        with pytest.raises(ValidationError):
            Batch.model_validate({"items": items})

    assert calls(refused)["get_close_matches"] < 1000
