"""Assembly knows prose by its own signs, and takes other text for Lean, whichever words begin it."""

from __future__ import annotations

import pytest

from farm.assembly.program import AssemblyOptions, assemble
from farm.assembly.vocabulary import looks_like_prose
from farm.manifest.entry import Entry

STATEMENT = "theorem t (a b : Nat) (h : a = b) : b = a := by"
ECHO = f"```lean4\n{STATEMENT}\n  sorry\n```\n"

PROSE = """
Here is the proof:
Sure! Below is the Lean code
Sure, this works
We proceed by induction.
To solve this problem, we use linarith.
Let's break it down
Certainly!
Proof
**Proof.**
### Solution
1. We expand the product.
- First we rewrite.
Complete Lean 4 code:
I'll use omega
By AM-GM, we get the result.
the following proof works
proof:
so we are done by linarith
simp, then linarith finishes it
apply the previous lemma to get the result
Solution approach
Attempt 2
以下是证明：
証明
Доказательство
Der Beweis folgt aus
La preuve repose sur une récurrence
La démonstration est la suivante :
Usamos inducción sobre el número
✅ it compiles
“Proof”
• first
$x^2$ is positive
\\boxed{2}
`omega` works
<answer>
""".strip().splitlines()

LEAN = """
plausible_tac h x
tfae_finish
aesop_cat
mycustom! foo
my_tactic? [h]
intro a
use a
exact this
exact that
refine is_open
simp [foo, bar]
exact ⟨a, b⟩
Nat.le_of_lt h
And.intro h hb
h.trans hk
Hpq hp
Hpq hp hq hr
H x
‹a = b›.symm
α_rec h
éa.symm
λ x => h
by simp
fun x => by simp
calc a = b := by simp
rw [foo, bar] at this
· intro x
repeat { intro x, simp }
have h : a = b := by simp
""".strip().splitlines()


def test_a_line_of_prose_reads_as_prose() -> None:
    for line in PROSE:
        assert looks_like_prose(f"\n{line}\nsimp", 0, len(line) + 1), line


def test_a_line_of_lean_does_not() -> None:
    for line in LEAN:
        assert not looks_like_prose(f"\n{line}\nthe end", 0, len(line) + 1), line


def program(generation: str) -> str:
    entry = Entry(
        path="m.jsonl",
        line=1,
        name="t",
        header="",
        formal_statement=STATEMENT,
        generation=generation,
        predicted_proof="",
    )
    return assemble(entry, AssemblyOptions())[0].text


def test_text_behind_a_block_that_repeats_the_statement_is_the_proof() -> None:
    for tactic in [each for each in LEAN if not each.startswith(("by ", "fun ", "λ "))]:
        assert program(f"{ECHO}{tactic}") == f"{STATEMENT}\n  {tactic}", tactic


@pytest.mark.parametrize("nothing", ["", "\n", " \n\n"])
def test_such_a_block_with_nothing_behind_it_stays_the_answer(nothing: str) -> None:
    assert program(f"{ECHO}{nothing}") == f"{STATEMENT}\n  sorry"


def test_prose_behind_such_a_block_is_not() -> None:
    for prose in PROSE:
        assert program(f"{ECHO}{prose}") == f"{STATEMENT}\n  sorry", prose


@pytest.mark.parametrize("tactic", ["tfae_finish", "plausible_tac h", "aesop_cat"])
def test_a_proof_before_the_fence_that_ends_it_is_not_lost(tactic: str) -> None:
    assert program(f"{tactic}\n```\nsimp\n```\n") == f"{STATEMENT}\n  {tactic}"


def test_prose_before_a_block_leaves_it_the_proof() -> None:
    for prose in PROSE:
        assert program(f"{prose}\n```\ntfae_finish\n```\n") == f"{STATEMENT}\n  tfae_finish", prose
