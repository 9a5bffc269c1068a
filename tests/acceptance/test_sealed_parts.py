"""Proofs with permitted sorries, and the verdicts of parts and declarations: seals of real modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment

from tests.compiled_modules import HEADER, CompiledModules
from tests.sealing import Image, Sealed

ASKED = "theorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := sorry\n"
Seal = Callable[..., Sealed]


@pytest.fixture(scope="module")
def seal(core: LeanEnvironment, compiled: CompiledModules) -> Iterator[Seal]:
    """Compile a submission and its challenge and seal the first, with a list of its declarations."""

    image = Image(core.lean[0], core.lean_path, compiled(""))

    def seal(submission: str, challenge: str | None = ASKED, **order: Any) -> Sealed:
        order = {"lists": True, "statement_from": [1, 0], **order}
        return image.seal(compiled(submission), challenge and compiled(challenge), **order)

    yield seal
    image.close()


def told(sealed: Sealed) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in sealed["declarations"]}


def parts(sealed: Sealed) -> dict[str, str]:
    return {each["name"]: each["verdict"] for each in sealed["parts"]}


#: A submission, with all sorries permitted: its findings, the permitted constants, and the parts' verdicts.
PARTIAL: dict[str, tuple[str, list[Any], list[str], dict[str, str]]] = {
    "nothing is open": (
        "theorem part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := rfl\n",
        [],
        [],
        {"part": "proved", "goal": "proved"},
    ),
    "one part is open": (
        "theorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := rfl\n",
        [],
        ["part"],
        {"part": "open", "goal": "proved"},
    ),
    "the target is open": (
        "theorem part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := sorry\n",
        [],
        ["goal"],
        {"part": "proved", "goal": "open"},
    ),
    "the target rests on a lemma that is open": (
        "theorem help (n : Nat) : n = n := sorry\n"
        "theorem part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := help 2\n",
        [],
        ["help"],
        {"part": "proved", "goal": "rests_on_open"},
    ),
    "by way of a type": (
        "noncomputable def two : Nat := sorry\ntheorem about : two = two := rfl\n"
        "theorem part : 1 = 1 := (fun _ => rfl) about\ntheorem goal : 2 = 2 := rfl\n",
        [],
        ["two"],
        {"part": "rests_on_open", "goal": "proved"},
    ),
    "a part that is not there": (
        "theorem goal : 2 = 2 := rfl\n",
        [],
        [],
        {"part": "missing", "goal": "proved"},
    ),
    "a part that states something else": (
        "theorem part : 3 = 3 := rfl\ntheorem goal : 2 = 2 := rfl\n",
        [],
        [],
        {"part": "other_statement", "goal": "proved"},
    ),
    "an axiom in the place of a sorry": (
        "axiom help (n : Nat) : n = n\ntheorem part : 1 = 1 := help 1\ntheorem goal : 2 = 2 := rfl\n",
        [("axiom", "help")],
        [],
        {"part": "refused", "goal": "proved"},
    ),
    "a part that is an axiom": (
        "axiom part : 1 = 1\ntheorem goal : 2 = 2 := rfl\n",
        [("axiom", "part")],
        [],
        {"part": "axiom", "goal": "proved"},
    ),
    "an axiom below the target": (
        "axiom help (n : Nat) : n = n\ntheorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := help 2\n",
        [("axiom", "help")],
        ["part"],
        {"part": "open", "goal": "refused"},
    ),
}


#: The type of the second part reaches the first.
ABOUT = "def about (n : Nat) : Prop := (fun _ => n = n) part\n"


def test_the_proof_of_a_part_is_no_way_around_a_sorry_for_a_part_that_speaks_of_it(seal: Seal) -> None:
    asked = f"theorem part : 1 = 1 := sorry\n{ABOUT}theorem goal : about 2 := sorry\n"
    way = "theorem cheat : 2 = 2 := sorry\ntheorem part : 1 = 1 := (fun _ => rfl) cheat\n"
    sealed = seal(f"{way}{ABOUT}theorem goal : about 2 := cheat\n", asked, permitted=["*"], parts_from=[1, 0])
    assert (sealed.words, sealed["permitted"]) == ([], ["cheat"])
    assert parts(sealed) == dict.fromkeys(("part", "goal"), "rests_on_open")
    assert {str(each["rests_on"]) for each in sealed["parts"]} == {"['cheat']"}
    own = f"theorem part : 1 = 1 := sorry\n{ABOUT}theorem goal : about 2 := rfl\n"
    sealed = seal(own, asked, permitted=["part"], parts_from=[1, 0])
    assert parts(sealed) == {"part": "open", "goal": "proved"}  # its own statement speaks of the sorry


def test_a_part_under_another_name_says_by_which_theorem_it_is_proved(seal: Seal) -> None:
    sealed = seal("theorem part : 1 = 1 := sorry\ntheorem mine : 2 = 2 := rfl\n", permitted=["part"])
    assert parts(sealed) == {"part": "open", "goal": "proved"}
    assert [each["by"] for each in sealed["parts"]] == [None, "mine"]


def test_a_module_that_the_kernel_refuses_proves_none_of_its_parts(seal: Seal) -> None:
    skipped = "set_option debug.skipKernelTC true in\ntheorem wrong : 1 = 2 := by decide +kernel\n"
    rest = "theorem part : 1 = 1 := rfl\ntheorem goal : 2 = 2 := sorry\n"
    for permitted, words in (["*"], [("kernel", None)]), ([], [("has_sorry", "goal")]):
        sealed = seal(skipped + rest, permitted=permitted)
        assert (sealed.words, sealed["replay"]["accepted"]) == (words, False)
        assert parts(sealed) == {"part": "unchecked", "goal": "open"}
        assert told(sealed)["wrong"] == "unchecked"
    assert told(seal(skipped + rest, permitted=["*"], replay=False))["wrong"] == "proved"  # tier audit


def test_declarations_are_told_with_kind_axioms_and_place(seal: Seal) -> None:
    sealed = seal(
        "structure Pair where\n  (a b : Nat)\n"
        "noncomputable instance «a b.c» : Inhabited Pair := sorry\n"
        "  noncomputable def «№1».two : Nat := («a b.c».default).a\n"
        "axiom cheat : 1 = 2\n"
        "theorem goal : 2 = 2 := (fun _ => rfl) (@propext True True)\n"
        "theorem last : 1 = 2 := (fun _ => cheat) «№1».two\n",
        None,
        permitted=["*"],
    )
    found = {each["name"]: each for each in sealed["declarations"]}
    verdicts = {
        "Pair": ("inductive", "defined"),
        "Pair.a": ("definition", "defined"),
        "Pair.b": ("definition", "defined"),
        "«a b.c»": ("definition", "open"),
        "«№1».two": ("definition", "rests_on_open"),
        "cheat": ("axiom", "axiom"),
        "goal": ("theorem", "proved"),
        "last": ("theorem", "refused"),
    }
    assert {name: (found[name]["kind"], found[name]["verdict"]) for name in verdicts} == verdicts
    assert (found["goal"]["axioms"], found["«№1».two"]["axioms"]) == (["propext"], ["sorryAx"])
    assert found["last"]["rests_on"] == ["«a b.c»"]
    first = HEADER.count("\n") + 1
    assert (found["Pair"]["line"], found["Pair"]["column"]) == (first, 0)
    assert (found["«№1».two"]["line"], found["«№1».two"]["column"]) == (first + 3, 2)
    assert "Pair.rec" not in found
    assert sealed["declarations_left_off"] == 0


@pytest.mark.parametrize(
    ("submission", "findings", "permitted", "verdicts"), PARTIAL.values(), ids=PARTIAL.keys()
)
def test_with_permitted_sorries_each_part_has_a_verdict(
    seal: Seal, submission: str, findings: list[Any], permitted: list[str], verdicts: dict[str, str]
) -> None:
    sealed = seal(submission, permitted=["*"])
    assert (sealed.words, sealed["permitted"], parts(sealed)) == (findings, permitted, verdicts)
    assert sealed["replay"]["accepted"] is True
