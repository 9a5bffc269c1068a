"""Programs from answers: profile `farm` against cases kept as data, and what holds for every profile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.assembly.program import PROFILES, AssemblyOptions, Program, assemble
from farm.assembly.segments import LineMap, Location, starts_in
from farm.errors import UsageError
from farm.manifest.entry import Entry
from tests.bench.around import answers
from tests.counted import assert_linear

CASES = Path(__file__).parents[1] / "cases" / "assembly"
HEADER = "import Mathlib\n\nopen Real\n\n"
STATEMENT = "theorem t (a b : ℕ) (h : a = b) : b = a := by\n"


def entry(
    generation: str, *, header: str = HEADER, statement: str = STATEMENT, predicted_proof: str = ""
) -> Entry:
    return Entry(
        path="manifest.jsonl",
        line=1,
        name="t",
        header=header,
        formal_statement=statement,
        generation=generation,
        predicted_proof=predicted_proof,
    )


def cases() -> Iterator[Any]:
    for path in sorted(CASES.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(line)
            yield pytest.param(case, id=f"{path.stem}: {case['name']}")


@pytest.mark.parametrize("case", list(cases()))
def test_an_answer_becomes_the_program_that_the_case_says(case: dict[str, Any]) -> None:
    line = case["line"]
    made, *others = assemble(
        entry(line["generation"], header=line["header"], statement=line["formal_statement"]),
        AssemblyOptions(**case["options"]),
    )
    assert made.text == case["program"]
    assert [[w.code, w.origin, w.line, w.column] for w in made.warnings] == case["warnings"]
    assert [other.text for other in others] == case.get("others", [])


def test_a_line_with_a_program_is_used_as_it_is() -> None:
    made, *_ = assemble(entry("simp", predicted_proof="-- ready\0"), AssemblyOptions())
    assert made.text == "-- ready\0"
    assert made.submitted == ((0, len(made.text)),)
    assert [segment.origin for segment in made.segments] == ["predicted_proof"]


def test_a_line_with_a_program_can_be_assembled_anew() -> None:
    made, *_ = assemble(entry("simp", predicted_proof="-- ready"), AssemblyOptions(reassemble=True))
    assert made.text == HEADER + STATEMENT + "  simp"


@pytest.mark.parametrize("options", [{"profile": "nemo"}, {"extract_code_mode": "middle"}])
def test_an_unknown_profile_or_mode_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="unknown"):
        assemble(entry("simp"), AssemblyOptions(**options))  # type: ignore[arg-type]


def test_the_models_text_begins_after_header_and_statement() -> None:
    made, *_ = assemble(entry("```lean4\n  simp\n```"), AssemblyOptions())
    assert made.text[: made.submitted[0][0]] == HEADER + STATEMENT


def test_the_models_text_begins_with_its_helpers() -> None:
    made, *_ = assemble(entry(f"```lean4\nlemma a : p := q\n{STATEMENT}  simp\n```"), AssemblyOptions())
    assert made.text[: made.submitted[0][0]] == HEADER


#: Answers that repeat the theorem, with a place for a text of any length.
REPEATING = {
    "above": f"{{}}{STATEMENT}  exact h.symm\n",
    "below": f"{STATEMENT}  exact h.symm\n{{}}",
    "within": f"{STATEMENT}  have : True := True.intro\n{{}}  exact h.symm\n",
    "after the header": f"{HEADER}{{}}{STATEMENT}  exact h.symm\n",
    "below a lemma": f"theorem a : True := True.intro\n{{}}{STATEMENT}  exact h.symm\n",
    "in a fence": f"So:\n```lean4\n{{}}{STATEMENT}  exact h.symm\n```\n",
}


@pytest.mark.parametrize("answer", REPEATING.values(), ids=REPEATING)
def test_an_answer_of_any_length_that_repeats_its_theorem_becomes_one_program(answer: str) -> None:
    remark = "-- a remark\n"

    def commands(times: int) -> list[list[str]]:
        made = assemble(entry(answer.format(remark * times)), AssemblyOptions())
        return [
            [line for line in each.text.splitlines() if line not in ("", remark.strip())] for each in made
        ]

    (short, *_), long = commands(1), commands(50_000)
    assert short in long
    for program in (short, *long):
        assert sum(line.startswith("theorem t ") for line in program) == 1


def sources(line: Entry) -> dict[str, str]:
    fields = ("header", "formal_statement", "generation", "predicted_proof")
    return {field: getattr(line, field) for field in fields}


def test_a_position_in_the_proof_leads_to_the_models_answer() -> None:
    line = entry("So:\n```lean4\nsimp\n  exact h\nring\n```")
    made, *_ = assemble(line, AssemblyOptions())
    row = made.text.count("\n", 0, made.text.index("exact")) + 1
    place = LineMap(made.segments, made.text, starts_in(made.segments, sources(line))).locate(row, 4)
    assert place == Location(origin="generation", line=4, column=2)


def test_a_position_in_the_statement_leads_to_the_statement() -> None:
    line = entry("simp")
    made, *_ = assemble(line, AssemblyOptions())
    assert LineMap(made.segments, made.text, starts_in(made.segments, sources(line))).locate(
        HEADER.count("\n") + 1, 8
    ) == Location(origin="formal_statement", line=1, column=8)


def test_the_end_of_the_program_leads_to_the_end_of_the_answer() -> None:
    line = entry("simp")
    made, *_ = assemble(line, AssemblyOptions())
    row = made.text.count("\n") + 1
    place = LineMap(made.segments, made.text, starts_in(made.segments, sources(line))).locate(
        row, len("  simp")
    )
    assert place == Location(origin="generation", line=1, column=4)


@pytest.mark.parametrize(("line", "column"), [(0, 0), (1, 500), (99, 0), (1, -1)])
def test_a_position_outside_the_program_leads_nowhere(line: int, column: int) -> None:
    made, *_ = assemble(entry("simp"), AssemblyOptions())
    assert (
        LineMap(made.segments, made.text, starts_in(made.segments, sources(entry("simp")))).locate(
            line, column
        )
        is None
    )


def test_what_the_farm_wrote_itself_leads_nowhere() -> None:
    line = entry("fun x => x")
    made, *_ = assemble(line, AssemblyOptions())
    row = made.text.count("\n") + 1
    assert made.text.endswith("  exact fun x => x")
    assert LineMap(made.segments, made.text, starts_in(made.segments, sources(line))).locate(row, 3) is None


FRAGMENTS = (
    *(
        "```lean4\n",
        "```",
        "\n```\n",
        "~~~",
        "````",
        "<think>",
        "</think>",
        "**FINAL ANSWER**",
        STATEMENT,
        HEADER,
    ),
    *(
        "theorem t",
        " := by\n",
        ":=",
        "by ",
        "sorry",
        "  simp\n",
        "\n",
        "  ",
        "/-",
        "-/",
        "--",
        '"',
        "'",
        "«",
        "»",
    ),
    *(
        "lemma a : p := q\n",
        "namespace X\n",
        "end X\n",
        "variable (x)\n",
        "where",
        "\n| 0 => x",
        "(",
        ")",
        "@[simp] ",
    ),
    *(
        "exact\n",
        "· ",
        "set_option a true in\n",
        "/-- d -/ ",
        "fun x =>",
        "\r\n",
        "\t",
        "\x0b",
        "\x85",
        "\0",
        "\ud800",
    ),
    *(
        "import A\n",
        "begin",
        "open Nat\n",
        "example : p",
        "let x := 1\n",
        's!"{',
        "}",
        "r#",
        "#eval 1\n",
        "def",
        "❌",
    ),
)
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=25).map("".join)
OPTIONS = st.builds(
    AssemblyOptions,
    profile=st.sampled_from(sorted(PROFILES)),
    extract_code_mode=st.sampled_from(["last", "first"]),
    restate_formal_statement=st.booleans(),
    strip_theorem_from_proof=st.booleans(),
)


def assert_segments_are_verbatim(made: Program, line: Entry) -> None:
    reached = 0
    for segment in made.segments:
        source = getattr(line, segment.origin)
        end = segment.origin_start + segment.length
        assert segment.start >= reached
        reached = segment.start + segment.length
        assert made.text[segment.start : reached] == source[segment.origin_start : end]
    assert reached <= len(made.text)


@given(
    generation=TEXTS, statement=st.just(STATEMENT) | TEXTS, header=st.just(HEADER) | TEXTS, options=OPTIONS
)
def test_every_text_gives_a_program_whose_pieces_are_verbatim(
    generation: str, statement: str, header: str, options: AssemblyOptions
) -> None:
    line = entry(generation, statement=statement, header=header)
    for other in assemble(line, options):
        assert_segments_are_verbatim(other, line)


@given(generation=TEXTS)
def test_what_the_farm_adds_to_an_answer_is_white_space_and_a_few_words(generation: str) -> None:
    made, *_ = assemble(entry(generation), AssemblyOptions())
    added, reached = "", 0
    for segment in made.segments:
        added += made.text[reached : segment.start] + " "
        reached = segment.start + segment.length
    assert set((added + made.text[reached:]).split()) <= {"exact", "fun", "{", "}"}


@given(generation=TEXTS)
def test_the_statement_always_stands_in_the_program_to_the_letter(generation: str) -> None:
    made = assemble(entry(generation), AssemblyOptions())
    restated = [each for each in made if STATEMENT in each.text]
    assert restated == list(made)[-len(restated) :]
    assert len(restated) >= len(made) - 1


def test_a_texts_candidates_end_in_the_program_of_the_farms_own_preamble() -> None:
    answer = f"```lean4\nnamespace X\nvariable (m : ℕ)\n{STATEMENT}  simp\nend X\n```"
    own, restated, last = assemble(entry(answer), AssemblyOptions())
    assert own.text.startswith(f"{HEADER}namespace X\nvariable")
    assert restated.text.startswith(f"{HEADER}variable")
    assert last.text == f"{HEADER}{STATEMENT}  simp"


def test_repeated_lines_that_one_program_has_once_make_two_programs() -> None:
    answer = f"```lean4\nvariable (n : ℕ)\nvariable (n : ℕ)\n{STATEMENT}  simp\n```"
    line = entry(answer, header="import Mathlib\n\n", statement=f"variable (n : ℕ)\n{STATEMENT}")
    assert [each.text.count("variable") for each in assemble(line, AssemblyOptions())] == [2, 1]


def test_ordinary_answers_have_one_program() -> None:
    made = [assemble(each, AssemblyOptions()) for each in answers.entries(64)]
    assert [each for each in made if len(each) > 1] == []


def test_a_line_without_a_statement_is_the_models_text() -> None:
    made = assemble(entry("```lean4\ntheorem x : True := trivial\n```", statement=""), AssemblyOptions())
    assert [each.text for each in made] == [f"{HEADER}theorem x : True := trivial"]


UNITS = (
    *(
        "```\n",
        "```lean4\n",
        "```lean4 a ",
        "`",
        "~~~\n",
        "(",
        "/-",
        "/-```\n",
        "<think>",
        "</think><think>",
        "|",
    ),
    *(
        "theorem t ",
        "theorem t : p := by\n sorry\n",
        "def a ",
        "namespace X\n",
        "\nend",
        "variable\n",
        "@[a] ",
    ),
    *("open A in\n", "```lean4```lean4\n", "/- ```lean\n", "by\n", "-- c\n", "@[a [b]] ", "import A\n"),
    *("«", '"', 'r#"', 's!"{', ":= ", "let ", "\n", "  a\n", "· \n", "x in ", "-/ ", "lemma a : p := q\n"),
)


@pytest.mark.parametrize("profile", sorted(PROFILES))
@pytest.mark.parametrize("unit", UNITS)
def test_nonsense_takes_work_that_grows_with_its_length(profile: str, unit: str) -> None:
    def assembling(size: int) -> Callable[[], object]:
        answer = "```lean4\n" + unit * (size // len(unit)) + "\n" + STATEMENT + "  simp\n```"
        return partial(assemble, entry(answer), AssemblyOptions(profile=profile))

    assert_linear(assembling, 4000, timed=250_000)
