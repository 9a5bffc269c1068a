"""What a program declares, by the list that a fresh Lean wrote: anything odd is no list."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from farm_workers.lean.cold import declared_names


def key(name: str, module: str = "_stdin", kind: str = "c") -> str:
    return json.dumps({kind: {"m": module, "n": name}})


def listed(references: object) -> tuple[str, ...] | None:
    return declared_names(BytesIO(json.dumps({"references": references}).encode()))


def test_what_is_defined_is_named_and_what_is_used_is_not() -> None:
    assert listed(
        {
            key("A._example"): {"definition": [6, 7, 6, 14], "usages": []},
            key("«a b».x"): {"definition": [8, 8, 8, 17, "«a b».x"], "usages": []},
            key("True", "Core"): {"definition": None, "usages": [[2, 15, 2, 19, "fine"]]},
            key("x", kind="f"): {"definition": [1, 1, 1, 2], "usages": []},
        }
    ) == ("A._example", "«a b».x")


def test_the_first_form_of_a_list_is_known() -> None:
    references = {"c:t": {"definition": [1, 1, 1, 2]}, "f:x": {"definition": [1, 1, 1, 2]}}
    assert listed(references) == ("t",)


@pytest.mark.parametrize(
    "name", [key("Lean.Elab.Command.elabCommand", "Lean.Elab.Command"), "c:Lean.Elab.Command.elabCommand"]
)
def test_a_program_that_uses_lean_s_elaborator_has_no_list(name: str) -> None:
    assert listed({name: {"definition": None, "usages": [[3, 8, 3, 30]]}}) is None


def test_an_option_is_no_use_of_the_elaborator() -> None:
    assert listed({key("Lean.debug.skipKernelTC"): {"definition": None, "usages": []}}) == ()


@pytest.mark.parametrize(
    "references",
    [
        None,
        [],
        {"x": {"definition": None}},
        {"[]": {"definition": None}},
        {"{}": {"definition": None}},
        {'{"c": 1}': {"definition": None}},
        {'{"c": {"n": 1, "m": "a"}}': {"definition": None}},
        {'{"c": {"n": "a"}}': {"definition": None}},
        {key("t"): None},
        {key("t"): {}},
    ],
)
def test_what_has_another_form_is_no_list(references: object) -> None:
    assert listed(references) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff", b'{"references": ' + b"[" * 100_000, b" " * (17 << 20)]
)
def test_any_bytes_can_stand_there(content: bytes) -> None:
    assert declared_names(BytesIO(content)) is None


def test_no_file_is_no_list() -> None:
    assert declared_names(None) is None
