"""Keywords straight before and behind every token of Lean's: none makes a false statement proved."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from farm_workers.checking.checker import Checker
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.exploits.corpus import Case, judged

from farm.judging.tiers import Tier
from farm.judging.verdict import Outcome

#: The token table of Lean 4.35 with the embedded library, one token a line.
TOKENS = (Path(__file__).parents[1] / "cases" / "tokens.txt").read_text(encoding="utf-8").split()
#: Commands that prove anything, and how.
COMMANDS = {
    "axiom wrong : 1 = 2": "wrong",
    "set_option debug.skipKernelTC true": "by decide +kernel",
    'macro "wrong!" : term => `(sorryAx _ true)': "wrong!",
}
BEFORE = (
    "{token}{command}",
    "example : Nat := 1{token}{command}",
    "#check {token}{command}",
    "#check Nat{token}{command}",
    "#check 1{token}1{command}",
    "example : Nat := 0x1{command} -- {token}",
)
SEED = int(os.environ.get("FARM_TEST_SEED") or random.randrange(1 << 32))
MOST = 4 * int(os.environ.get("FARM_TEST_AFTER", "5"))


def texts() -> Iterator[str]:
    """Yield every program with a token of Lean's before or behind a keyword."""
    for token in TOKENS:
        for command, proof in COMMANDS.items():
            word, _, rest = command.partition(" ")
            told = [form.format(token=token, command=command) for form in BEFORE]
            for line in [*told, f"{word}{token}{rest}", f"{word} {rest}{token}"]:
                yield f"set_option warn.sorry false\n{line}\ntheorem t : 1 = 2 := {proof}\n"


@pytest.mark.timeout(3600)
def test_no_token_hides_a_keyword(checker: Checker, core: LeanEnvironment) -> None:
    chosen = random.Random(SEED).sample(list(texts()), MOST)
    found = [judged(checker, core, _case(text), Tier.KERNEL) for text in chosen]
    proved = [each.case.program for each in found if each.verdict.outcome is Outcome.PROVED]
    assert proved == [], f"FARM_TEST_SEED={SEED}"
    odd = [each.verdict.detail for each in found if each.verdict.outcome is Outcome.JUDGE_ERROR]
    assert odd == [], f"FARM_TEST_SEED={SEED}"


@pytest.mark.parametrize(("command", "proof"), COMMANDS.items())
def test_lean_reads_a_keyword_straight_behind_a_numeral(
    checker: Checker, core: LeanEnvironment, command: str, proof: str
) -> None:
    text = f"set_option warn.sorry false\nexample : Nat := 1{command}\ntheorem t : 1 = 2 := {proof}\n"
    assert judged(checker, core, _case(text), Tier.KERNEL).verdict.reason in ("axiom", "kernel", "has_sorry")


def _case(text: str) -> Case:
    return Case(name=text, kind="tokens", statement="theorem t : 1 = 2 := by sorry", program=text)
