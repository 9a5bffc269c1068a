"""What a client is told of an item: where Lean's words stand in what it sent, how much of them, and ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.program import AssemblyOptions
from farm.client.results import parse_result
from farm.documents import encoded
from farm.judging.audit import COMPARED, UNREBUILT
from farm.judging.places import Place
from farm.judging.submit_options import SubmitOptions
from farm.judging.verdict import Particulars, judge_text
from farm.lean_text.positions import line_and_column
from farm.runs.batch import Items
from farm.service.answers import MOST_CHARACTERS, MOST_MESSAGES, item_id, item_of, result, waits_for
from farm.service.requests import Item
from farm.store.environments import ServedEnvironment
from farm.store.records import Judged, StoredVerdict

CORE = ServedEnvironment(
    name="core",
    digest="d",
    toolchain="Lean 4.35.0",
    tiers=("kernel", "audit", "lean"),
    checker=None,
    checker_version="1",
    silent_seconds=0.0,
)
OPTIONS = SubmitOptions(assembly=AssemblyOptions(), environment="core")


def message(text: str, *, line: int = 1, column: int = 0, **more: object) -> dict[str, object]:
    said = {"severity": "error", "kind": "", "text": text, "line": line, "column": column}
    return said | {"end_line": None, "end_column": None} | more


def verdict(*messages: dict[str, object], **facts: object) -> StoredVerdict:
    known = {
        "outcome": "proved",
        "reason": "ok",
        "detail": "Lean and its kernel accept the proof.",
        "messages_json": json.dumps(messages),
        "hits_json": "[]",
        "audit_json": '{"accepted": true, "module_sha256": "abc"}',
        "goals_json": None,
        "statement": COMPARED,
        "trusts": [],
        "wall_seconds": 0.5,
        "cpu_seconds": 0.25,
        "peak_memory_kib": 7,
        "isolation": "cgroup+bwrap",
        "environment_digest": "d",
        "toolchain": "Lean 4.35.0",
        "checker_version": "1",
        "preamble": None,
        "trace_id": None,
        "facts_json": None,
    }
    return StoredVerdict(**(known | facts))


def judged(item: Item, told: StoredVerdict | None, *, status: str = "done", **more: object) -> Judged:
    """Return what the store would give of an item."""
    (prepared,) = Items([item.entry(1)], OPTIONS, [CORE]).prepared
    farms = told is not None and told.preamble == "farm"
    check, job = prepared.check, prepared.job
    sha256 = check.fallback_sha256 if farms else check.program_sha256
    assert sha256 is not None
    known = {
        "run_id": "b",
        "manifest": 0,
        "line": 1,
        "name": item.name,
        "group": item.group,
        "status": status,
        "cancelled": None,
        "shared": False,
        "attempt": 1,
        "environment": "core",
        "tier": "kernel",
        "source": dict(prepared.texts)[sha256],
        "sha256": sha256,
        "segments_json": json.dumps(job.fallback_segments if farms else job.segments),
        "warnings_json": "[]",
        "verdict": told,
    }
    return Judged(**(known | more))


def told(item: Item, *messages: dict[str, object], **facts: object) -> dict[str, object]:
    of_job = {name: facts.pop(name) for name in ("warnings_json",) if name in facts}
    found = judged(item, verdict(*messages, **facts), **of_job)
    return answer_of(found)


def answer_of(found: Judged, **asked: Any) -> dict[str, Any]:
    """Return what a client reads of an item, as JSON."""
    given = {"index": 0, "key": None, "accept": (), "waits_for": None} | asked
    answer = result(found, **given)
    said: dict[str, Any] = json.loads(json.dumps(encoded(answer)))
    assert parse_result(said) == answer
    return said


def place_of(item: Item, words: str, **facts: object) -> tuple[str, str]:
    """Return the origin, and the words there, of a message about the first place of these words."""
    program = judged(item, verdict(**facts)).program
    at = program.index(words)
    line, column = program.count("\n", 0, at) + 1, at - (program.rfind("\n", 0, at) + 1)
    end = {"end_line": line, "end_column": column + len(words)}
    (place,) = told(item, message("m", line=line, column=column, **end), **facts)["messages"]
    answer = item.program or item.proof or item.generation or ""
    fields = {"answer": answer, "header": item.header, "formal_statement": item.formal_statement}
    text = fields.get(place["origin"], program).split("\n")[place["line"] - 1]
    assert place["end_line"] == place["line"]
    return place["origin"], text[place["column"] : place["end_column"]]


STATED = {"header": "import Core\n\n", "formal_statement": "theorem ℝ (n : Nat) : n = n := by"}
CODE = "theorem ℝ (n : Nat) : n = n := by\n  simp 𝔸\n  rfl"


class TestAPlace:
    def test_in_a_program_is_as_lean_says_it(self) -> None:
        assert place_of(Item(program="\n\n𝔸 theorem t"), "theorem t") == ("answer", "theorem t")

    def test_in_a_proof_is_the_proof_s(self) -> None:
        item = Item(**STATED, proof=CODE)
        assert place_of(item, "simp 𝔸") == ("answer", "simp 𝔸")
        assert place_of(item, "rfl") == ("answer", "rfl")

    def test_in_a_generation_is_the_generation_s(self) -> None:
        item = Item(**STATED, generation=f"Thinking\n\n𝔸𝔸\n```lean4\n{CODE}\n```\nDone")
        assert place_of(item, "simp 𝔸") == ("answer", "simp 𝔸")

    def test_in_the_header_or_statement_is_theirs(self) -> None:
        item = Item(**STATED, proof=CODE)
        assert place_of(item, "import Core") == ("header", "import Core")
        assert place_of(item, "n = n")[0] == "formal_statement"

    def test_is_that_of_the_program_with_the_farm_s_preamble_where_that_counted(self) -> None:
        ours = "open Nat in\n" + CODE
        item = Item(**STATED, generation=f"```lean4\nopen Nat\n{ours}\n```")
        assert judged(item, verdict(preamble="farm")).program != judged(item, verdict()).program
        for preamble in ("farm", "model"):
            assert place_of(item, "simp 𝔸", preamble=preamble) == ("answer", "simp 𝔸")

    @pytest.mark.parametrize("line", [0, 10**6, -1])
    def test_outside_the_program_is_told_as_it_is(self, line: int) -> None:
        (place,) = told(Item(**STATED, proof=CODE), message("m", line=line, column=3))["messages"]
        assert (place["origin"], place["line"], place["column"]) == ("assembled", line, 3)

    @given(st.data())
    def test_of_whatever_kind_is_never_an_error(self, data: st.DataObject) -> None:
        number = st.one_of(st.none(), st.integers(-2, 9), st.integers())
        place = {"line": data.draw(st.integers()), "column": data.draw(st.integers())}
        place |= {"end_line": data.draw(number), "end_column": data.draw(number)}
        forms: list[dict[str, str]] = [
            {"program": CODE},
            STATED | {"proof": CODE},
            STATED | {"generation": ""},
        ]
        item = Item(**data.draw(st.sampled_from(forms)))
        (found,) = told(item, message("m", **place))["messages"]
        assert found["text"] == "m"


class TestWhatLeanSaid:
    def test_is_told_whole_up_to_the_bound(self) -> None:
        said = [message("a" * (MOST_CHARACTERS - 1)), message("b")]
        answer = told(Item(program=CODE), *said)
        assert [len(each["text"]) for each in answer["messages"]] == [MOST_CHARACTERS - 1, 1]
        assert answer["messages_cut"] is False

    @pytest.mark.parametrize(
        "sizes", [[MOST_CHARACTERS + 1], [MOST_CHARACTERS, 1], [MOST_CHARACTERS - 1, 2, 5]], ids=str
    )
    def test_is_cut_above_it_and_says_so(self, sizes: list[int]) -> None:
        answer = told(Item(program=CODE), *(message("x" * size) for size in sizes))
        assert sum(len(each["text"]) for each in answer["messages"]) == MOST_CHARACTERS
        assert answer["messages_cut"] is True

    @pytest.mark.parametrize("count", [MOST_MESSAGES, MOST_MESSAGES + 1])
    def test_is_so_many_messages_at_most(self, count: int) -> None:
        answer = told(Item(program=CODE), *(message("x") for _ in range(count)))
        assert len(answer["messages"]) == MOST_MESSAGES
        assert answer["messages_cut"] is (count > MOST_MESSAGES)

    @pytest.mark.parametrize("fillers", [("warning", "unused"), ("information", "seen")])
    @pytest.mark.parametrize("size", [1, 300], ids=["many", "long"])
    def test_what_decides_is_kept_before_the_rest_in_the_order_of_places(
        self, fillers: tuple[str, str], size: int
    ) -> None:
        severity, text = fillers
        rest = [message(text * size, line=line, severity=severity) for line in range(1, 401)]
        error = message("the error", line=401)
        sorry = message("declaration uses `sorry`", line=200, severity="warning", kind="hasSorry")
        answer = told(Item(program=CODE), *rest[:200], sorry, *rest[200:], error)
        lines = [each["program"]["line"] for each in answer["messages"]]
        assert {200, 401} < {*lines}
        assert lines == sorted(lines)
        assert answer["messages_cut"] is True
        assert sum(len(each["text"]) for each in answer["messages"]) <= MOST_CHARACTERS

    def test_an_error_is_kept_before_sorries_and_warnings_before_information(self) -> None:
        sorries = [
            message("declaration uses 'sorry'", line=line, severity="warning") for line in range(1, 101)
        ]
        talk = [message("talk", line=line, severity="information") for line in range(101, 201)]
        answer = told(Item(program=CODE), *sorries, message("the error", line=101), *talk)
        assert answer["messages"][-1]["text"] == "the error"
        warning = message("unused", line=300, severity="warning")
        answer = told(Item(program=CODE), *talk, warning)
        assert answer["messages"][-1]["text"] == "unused"


def placed(line: int, column: int, start: int) -> dict[str, object]:
    """Return what the store has of the place that a verdict's sentence names."""
    place = Place(line=line, column=column, start=start)
    return {"facts_json": json.dumps(encoded(Particulars(place=place)))}


class TestADetail:
    """It names the same place as the messages: that of the answer, and the program's beside it."""

    ITEM = Item(**STATED, generation=f"Thinking\n\n```lean4\n{CODE}\n```\nDone")

    @pytest.mark.parametrize(
        ("detail", "expected"),
        [
            ("Error at {}: Unknown", "Error at {} of the answer ({} of the program): Unknown"),
            ("A declaration at {} is admitted, not proved.", None),
            ("Lean's own heartbeat limit stopped the program at {}.", None),
            ("The policy does not allow 'a at line 1, column 1: b' at {}: it (rule run).", None),
            ("Error at {}: no at line 3, column 3: here", None),
        ],
    )
    def test_has_the_answers_position_and_the_programs_beside_it(
        self, detail: str, expected: str | None
    ) -> None:
        program = judged(self.ITEM, verdict()).program
        line, column = line_and_column(program, program.index("simp"))
        place = f"line {line}, column {column}"
        (said,) = told(self.ITEM, message("m", line=line, column=column))["messages"]
        own = f"line {said['line']}, column {said['column']}"
        assert own != place
        expected = expected or detail.replace("{}", "{} of the answer ({} of the program)")
        facts = placed(line, column, detail.rindex(" at {}"))
        assert told(self.ITEM, detail=detail.format(place), **facts)["detail"] == expected.format(own, place)

    def test_of_a_text_that_lean_cannot_read_has_the_answers_position_too(self) -> None:
        item = Item(**STATED, generation=f"Thinking\n\n```lean4\n{CODE}\n  -- a\0b\n```")
        found = judge_text(judged(item, verdict()).program)
        assert found is not None
        said = told(item, outcome="rejected", reason="invalid_text", detail=found.detail)["detail"]
        assert said.startswith(
            "The program contains a NUL character at line 7, column 6 of the answer (line "
        )

    def test_says_that_a_position_is_the_programs_where_the_farm_wrote_that_part(self) -> None:
        facts = placed(9999, 2, len("Error"))
        detail = told(self.ITEM, detail="Error at line 9999, column 2: Unknown", **facts)["detail"]
        assert detail == "Error at line 9999, column 2 of the program: Unknown"

    def test_stays_as_it_is_where_the_answer_is_the_whole_program(self) -> None:
        detail = "Error at line 2, column 2: Unknown"
        assert told(Item(program=CODE), detail=detail, **placed(2, 2, len("Error")))["detail"] == detail

    @pytest.mark.parametrize(
        "detail", ["Lean crashed: at line 3, column 2.", "", "Error: at line 1, column 1"]
    )
    def test_without_a_position_of_the_farms_stays_as_it_is(self, detail: str) -> None:
        assert told(self.ITEM, detail=detail)["detail"] == detail


def test_what_assembling_has_noticed_is_told_at_its_place_in_the_answer() -> None:
    item = Item(**STATED, generation="<think>only thoughts")
    (prepared,) = Items([item.entry(1)], OPTIONS, [CORE]).prepared
    answer = told(item, warnings_json=json.dumps(prepared.job.warnings))
    assert {each["code"] for each in answer["warnings"]} >= {"unclosed_thinking"}
    assert {(each["origin"], each["line"]) for each in answer["warnings"]} == {("answer", 1)}


class TestAnItem:
    def test_without_a_verdict_has_no_reward(self) -> None:
        item = Item(program=CODE, name="n", group="g")
        for status in ("queued", "running", "cancelled"):
            found = judged(item, None, status=status, cancelled="user" if status == "cancelled" else None)
            answer = answer_of(found, index=3, key="k", accept=("unchecked",), waits_for="nobody")
            assert (answer["verdict"], answer["reward"], answer["status"]) == (None, None, status)
            assert answer["waits_for"] == ("nobody" if status == "queued" else None)
            assert answer["reason"] == ("user" if status == "cancelled" else None)
            assert (answer["index"], answer["key"], answer["name"], answer["group"]) == (3, "k", "n", "g")

    @pytest.mark.parametrize(
        ("facts", "reward", "weaker"),
        [
            ({}, 1.0, []),
            ({"statement": None}, 0.0, ["unchecked"]),
            ({"trusts": ["compiler"]}, 0.0, ["native"]),
            ({"trusts": ["a sorry of the dataset"]}, 0.0, ["sorry"]),
            ({"isolation": "rlimit"}, None, ["forgeable"]),
            ({"trusts": [UNREBUILT]}, None, ["unrebuilt"]),
            ({"trusts": [UNREBUILT, "compiler"]}, 0.0, ["native", "unrebuilt"]),
            ({"outcome": "rejected", "reason": "error"}, 0.0, []),
            ({"outcome": "judge_error", "reason": "worker_lost"}, None, []),
        ],
    )
    def test_with_one_is_worth_what_that_is(
        self, facts: dict[str, object], reward: float | None, weaker: list[str]
    ) -> None:
        answer = told(Item(program=CODE), **facts)
        assert (answer["reward"], answer["weaker"]) == (reward, weaker)

    def test_that_is_not_done_is_worth_nothing_yet_though_a_verdict_is_there(self) -> None:
        found = judged(Item(program=CODE), verdict(), status="running")
        assert answer_of(found)["reward"] is None


class TestAnId:
    @given(st.from_regex(r"\A[a-z0-9]{1,16}\Z"), st.integers(1, 99_999_999))
    def test_names_the_item_that_it_was_made_of(self, batch: str, line: int) -> None:
        assert item_of(item_id((batch, line))) == (batch, line)

    @pytest.mark.parametrize(
        "odd",
        ["", "-", "-1", "b-", "b", "b-x", "b--1", "b-²", "b\0-1", "é-1", "b-999999999", "b c-1", "b-1\n"],
    )
    def test_that_is_none_names_nobody(self, odd: str) -> None:
        assert item_of(odd) is None

    @given(st.text())
    def test_of_whatever_characters_is_never_an_error(self, odd: str) -> None:
        found = item_of(odd)
        assert found is None or item_id(found) == odd

    def test_has_one_form(self) -> None:
        assert item_of("b-01") is None
        assert item_of("b-0") is None


def test_an_environment_is_waited_for_when_it_is_unknown_or_silent() -> None:
    words = "no worker serves core at the moment"
    assert waits_for("core", {}, seconds=30) == waits_for("core", {"core": 31.0}, seconds=30) == words
    assert waits_for("core", {"core": 30.0}, seconds=30) is None
