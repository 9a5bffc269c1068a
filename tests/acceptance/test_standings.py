"""Proofs with permitted sorries, and the verdicts of parts and declarations: seals of real modules."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from farm_workers.environments.lean_environment import LeanEnvironment
from sealing import Image, Sealed

from tests.bench.checks.bare import launched

HEADER = "prelude\nimport Core\n"
ASKED = "theorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := sorry\n"
Seal = Callable[..., Sealed]


@pytest.fixture(scope="module")
def seal(core: LeanEnvironment, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seal]:
    """Compile a submission and its challenge and seal the first, with a list of its declarations."""

    def compiled(text: str) -> Path:
        source = tmp_path_factory.mktemp("program") / "Program.lean"
        source.write_text(HEADER + text)
        words = launched([*core.lean, "-j1", "-o", str(source.with_suffix(".olean")), str(source)])
        environment = {"PATH": "/usr/bin:/bin", "LEAN_PATH": ":".join(core.lean_path)}
        said = subprocess.run(
            words, cwd=source.parent, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert said.returncode == 0, said.stdout
        return source.with_suffix(".olean")

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
        [],
        [],
        {"part": "refused", "goal": "proved"},
    ),
    "an axiom below the target": (
        "axiom help (n : Nat) : n = n\ntheorem part : 1 = 1 := sorry\ntheorem goal : 2 = 2 := help 2\n",
        [("axiom", "help")],
        ["part"],
        {"part": "open", "goal": "refused"},
    ),
}


@pytest.mark.parametrize(
    ("submission", "findings", "permitted", "verdicts"), PARTIAL.values(), ids=PARTIAL.keys()
)
def test_with_permitted_sorries_each_part_has_a_verdict(
    seal: Seal, submission: str, findings: list[Any], permitted: list[str], verdicts: dict[str, str]
) -> None:
    sealed = seal(submission, permitted=["*"])
    assert (sealed.words, sealed["permitted"], parts(sealed)) == (findings, permitted, verdicts)
    assert sealed["replay"]["accepted"] is True
