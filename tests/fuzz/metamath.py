"""Proofs of a database, mutated: the farm's verifier and `metamath` must agree on every one.

python -m tests.fuzz.metamath --examples 1000
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from farm_workers.systems.metamath.database import Database, Theorem
from farm_workers.systems.metamath.proof import IncompleteProof, ProofTooLarge, WrongProof, verify

SET = Path("/usr/share/metamath/databases/set.mm")
_TOGETHER = 250
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Mutants:
    """Makes mutants of the proofs of a database, each behind the theorem's own hypotheses."""

    def __init__(self, database: Path, seed: int) -> None:
        self.theorems: list[Theorem] = []
        self.database = Database(database.read_text(encoding="ascii"), self.theorems.append)
        self._random = random.Random(seed)
        self._labels = list(self.database.frames)
        self._inactive = [
            hypothesis.label
            for frame in self.database.frames.values()
            for hypothesis in frame.hypotheses
            if not hypothesis.variable
        ]

    def make(self, number: int) -> str:
        """Return a block with a mutant of some proof; labels of hypotheses are new."""
        theorem = self._random.choice(self.theorems)
        names = {
            h.label: f"mutant-{number}.{n}" for n, h in enumerate(theorem.frame.hypotheses) if not h.variable
        }
        labels, letters = self._split(theorem.proof)
        for _ in range(self._random.choice((0, 1, 1, 1, 2, 3))):
            self._random.choice((self._change_labels, self._change_letters))(labels, letters)
        tokens = [names.get(label, label) for label in labels]
        proof = f"( {' '.join(tokens)} ) {''.join(letters)}" if letters else " ".join(tokens)
        words = self.database.words
        given = [
            f"{names[h.label]} $e {words(h.expression)} $."
            for h in theorem.frame.hypotheses
            if not h.variable
        ]
        apart = [f"$d {words(one)} {words(other)} $." for one, other in sorted(theorem.disjoint)]
        if apart and self._random.random() < 0.1:
            apart.pop(self._random.randrange(len(apart)))
        stated = f"mutant-{number} $p {words(theorem.frame.statement)} $= {proof} $."
        return "\n".join(["${", *apart, *given, stated, "$}"])

    @staticmethod
    def _split(proof: str) -> tuple[list[str], list[str]]:
        tokens = proof.split()
        if tokens[0] != "(":
            return tokens, []
        close = tokens.index(")")
        return tokens[1:close], list("".join(tokens[close + 1 :]))

    def _change_labels(self, labels: list[str], _letters: list[str]) -> None:
        new = self._random.choice(self._inactive if self._random.random() < 0.3 else self._labels)
        self._change(labels, new)

    def _change_letters(self, labels: list[str], letters: list[str]) -> None:
        if letters:
            self._change(letters, self._random.choice(_LETTERS))
        else:
            self._change_labels(labels, letters)

    def _change(self, items: list[str], new: str) -> None:
        at = self._random.randrange(len(items) + 1)
        how = self._random.choice(("insert", "replace", "drop", "swap")) if at < len(items) else "insert"
        if how == "insert":
            items.insert(at, new)
        elif how == "replace":
            items[at] = new
        elif how == "drop":
            del items[at]
        else:
            other = self._random.randrange(len(items))
            items[at], items[other] = items[other], items[at]


def ours(database: Database, block: str) -> bool | None:
    """Return whether the farm's verifier accepts a block, None where it came to a limit."""
    try:
        verify(database.behind(block), database.frames, database.variables)
    except (WrongProof, IncompleteProof):
        return False
    except ProofTooLarge:
        return None
    return True


def theirs(path: Path, blocks: Sequence[str], first: int) -> list[bool]:
    """Return whether `metamath` accepts each of the blocks."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "database.mm").symlink_to(path)
        Path(folder, "main.mm").write_text("$[ database.mm $]\n" + "\n".join(blocks), encoding="ascii")
        asked = [f"verify proof mutant-{first + number}" for number in range(len(blocks))]
        ended = subprocess.run(
            ["metamath", "set scroll continuous", "read main.mm", *asked, "exit"],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
        )  # fmt: skip
    assert "No errors were found.  However" in ended.stdout, ended.stdout[-2000:]
    parts = ended.stdout.split("MM> verify proof ")[1:]
    assert len(parts) == len(blocks)
    return [_is_accepted(part, f"mutant-{first + number}") for number, part in enumerate(parts)]


def _is_accepted(part: str, label: str) -> bool:
    """Whether what follows a command's echo is the one line of a good proof."""
    lines = [line for line in part.splitlines()[1:] if line and not line.startswith("MM>")]
    return lines == [f"{label} "]


def main() -> None:
    """Compare, and end with status 1 at a disagreement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", type=Path, default=SET)
    given = parser.parse_args()
    mutants = Mutants(given.database, given.seed)
    counts: Counter[str] = Counter()
    for first in range(0, given.examples, _TOGETHER):
        blocks = [mutants.make(n) for n in range(first, min(first + _TOGETHER, given.examples))]
        for block, accepted in zip(blocks, theirs(given.database, blocks, first), strict=True):
            found = ours(mutants.database, block)
            counts["too large" if found is None else "accepted" if found else "rejected"] += 1
            if found is not None and found != accepted:
                counts["disagreements"] += 1
                print(f"metamath {'accepts' if accepted else 'rejects'} this:\n{block}\n")  # noqa: T201
    print(dict(counts))  # noqa: T201
    sys.exit(counts["disagreements"] > 0)


if __name__ == "__main__":
    main()
