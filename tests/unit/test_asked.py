"""An option is declared once: flags, requests, the client's types and the documentation follow from that."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from farm.asked import BATCH, EVERYWHERE, LINE, RUN, WHETHER, Flag, declared, option
from farm.cli.flags import OptionsOf, spread
from farm.client import asked_fields as client_fields
from farm.client.requests import Fields
from farm.judging.submit_options import SubmitOptions
from farm.manifest.entries import FIELDS
from farm.service.requests import Batch, Item
from tests.asked_fields import OPTIONS, WRITTEN, client, http_page, reliability_page, service, tasks_page
from tests.binary_rows import CORE, OTHER, prepared, rows_of

#: A value for each option that differs from its default, as a batch says it and as flags say it.
SAID: Mapping[str, tuple[object, list[str]]] = {
    "profile": ("nemo-2025-11", ["--profile", "nemo-2025-11"]),
    "environment": ("other", ["--environment", "other"]),
    "timeout": (7.5, ["--timeout", "7.5"]),
    "cpu": (9.5, ["--cpu", "9.5"]),
    "memory_mib": (77, ["--memory-mib", "77"]),
    "tier": ("audit", ["--tier", "audit"]),
    "native": (True, ["--native"]),
    "require_all_parts": (True, ["--require-all-parts"]),
    "share": (False, ["--no-share"]),
    "priority": ("interactive", ["--priority", "interactive"]),
    "deadline_seconds": (90.0, ["--deadline", "90s"]),
    "stop_on_first_proof": (True, ["--stop-on-first-proof"]),
    "goals": (True, ["--goals"]),
    "stop_at_error": (True, ["--stop-at-error"]),
    "forbid": (["simp"], ["--forbid", "simp"]),
    "declarations": (True, ["--declarations"]),
    "permit_sorry": (["helper"], ["--permit-sorry", "helper"]),
    "answers": (False, ["--no-answers"]),
    "answer_must": ("numeral", ["--answer-must", "numeral"]),
    "task": ("either", ["--task", "either"]),
}
#: The same for options that only one of the two has.
IN_BATCHES: Mapping[str, object] = {
    "axioms": ["propext"],
    "expected_answer": "5",
    "negates": True,
    "feedback": True,
    "accept": ["lean"],
    "batch_name": "b",
}
IN_RUNS: Mapping[str, list[str]] = {
    "final_answer_key": ["--final-answer-key", "Answer:"],
    "extract_code_mode": ["--extract-code-mode", "first"],
    "restate_formal_statement": ["--no-restate-formal-statement"],
    "strip_theorem_from_proof": ["--no-strip-theorem-from-proof"],
    "reassemble": ["--reassemble"],
    "policy": ["--policy", "native=off"],
    "axiom": ["--axiom", "Other.choice"],
    "require_statement": ["--require-statement"],
    "accept_advisories": ["--accept-advisories"],
    "no_answer": ["--no-answer", "reject"],
}
USUAL = {"environment": "core", "memory_mib": 4096}


DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sped:
    """An option as a developer would add it."""

    speed: bool = option(
        False,
        places=EVERYWHERE,
        form=WHETHER,
        absent=False,
        meaning="checks are fast",
        flag=Flag(help="Check fast."),
        identity=True,
    )


#: All options, and one more.
MORE = (*OPTIONS, *declared(Sped))


def of_flags(*flags: str) -> SubmitOptions:
    """Return the options that a command makes of flags."""
    app, found = typer.Typer(), list[SubmitOptions]()

    def submit(said: Annotated[dict[str, Any], OptionsOf(SubmitOptions)]) -> None:
        found.append(SubmitOptions.of(USUAL | said))

    app.command()(spread(submit))
    ended = CliRunner().invoke(app, list(flags))
    assert ended.exit_code == 0, ended.output
    return found[0]


def of_batch(**said: object) -> SubmitOptions:
    """Return the options that the service makes of a batch, in the class of a run."""
    body = {"items": [{"program": "x"}], "priority": "batch", **said}
    return Batch.model_validate(body).submit_options(environment="core", memory_mib=4096)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_file_agrees_with_the_declarations(path: Path) -> None:
    text = path.read_text()
    assert WRITTEN[path](text) == text, "run: make settings"


def test_every_option_is_tried_below_at_each_of_its_places() -> None:
    places = {each.name: each.places for each in OPTIONS}
    assert {*SAID, *IN_BATCHES} == {name for name, place in places.items() if place & BATCH}
    assert {*SAID, *IN_RUNS} == {name for name, place in places.items() if place & RUN}


@pytest.mark.parametrize("name", SAID)
def test_flags_and_requests_make_the_same_options(name: str) -> None:
    said, flags = SAID[name]
    assert of_flags(*flags) == of_batch(**{name: said}) != of_flags()


@pytest.mark.parametrize("name", IN_RUNS)
def test_a_flag_that_no_request_has_changes_the_options(name: str) -> None:
    assert of_flags(*IN_RUNS[name]) != of_flags()


def test_without_flags_a_run_has_the_options_of_a_batch_that_says_nothing() -> None:
    assert of_flags() == of_batch() == SubmitOptions(environment="core")


def test_lines_and_items_have_the_options_that_may_stand_in_a_line() -> None:
    own = {each.name for each in OPTIONS if each.places & LINE}
    assert own <= FIELDS
    assert own == Item.model_fields.keys() & {each.name for each in OPTIONS}
    assert own == Fields.__annotations__.keys() & {each.name for each in OPTIONS}


def test_the_client_may_set_all_options_of_a_batch_but_the_deadline_of_its_call() -> None:
    own = {each.name for each in OPTIONS if each.places & BATCH}
    assert client_fields.Options.__annotations__.keys() == own - {"deadline_seconds"}


def key_of(tmp_path: Path, options: SubmitOptions) -> bytes:
    """Return the key by which a line's check is shared in a run with some options."""
    line = {"name": "a", "header": "", "formal_statement": "theorem a : True := by", "generation": "trivial"}
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(line) + "\n")
    with prepared(path, 0, options, (CORE, OTHER), processes=0) as blocks:
        (row,) = rows_of(blocks)
    key = row["identity"]
    assert isinstance(key, bytes)
    return key


def test_checks_are_the_same_unless_an_option_of_their_identity_differs(tmp_path: Path) -> None:
    usual = key_of(tmp_path, of_flags())
    flags = {name: flags for name, (_, flags) in SAID.items() if name not in ("share", "profile")}
    # What these do to a program is in its text.
    flags |= {"policy": IN_RUNS["policy"], "axiom": IN_RUNS["axiom"]}
    differing = {name for name, words in flags.items() if key_of(tmp_path, of_flags(*words)) != usual}
    assert differing == {each.name for each in OPTIONS if each.identity} & flags.keys()


def test_a_new_option_reaches_everything_that_is_written() -> None:
    assert '    speed: Annotated[bool, Field(description="checks are fast")] = False\n' in service(MORE)
    assert "    #: Checks are fast.\n    speed: bool\n" in client(MORE)
    use, why = DOCS / "use", DOCS / "why"
    assert "| `speed` | false | checks are fast |\n" in http_page((use / "http.md").read_text(), MORE)
    row = "| `speed` | `--speed`, batch, line and item | checks are fast |\n"
    assert row in tasks_page((use / "tasks.md").read_text(), MORE)
    assert "`speed`" in reliability_page((why / "reliability.md").read_text(), MORE)
