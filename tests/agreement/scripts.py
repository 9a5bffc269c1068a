"""Proof scripts to compare: those that the farm ships, those of its core library, and made ones.

A script whose tactics are not known has them in `body` alone, as a text: Lean is asked where one ends.
"""

from __future__ import annotations

import json
import random
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.agreement.connectives import made_proof
from tests.agreement.numbers import numbers

_ROOT = Path(__file__).parents[2]
_CORE = _ROOT / "workers" / "farm_workers" / "environments" / "core" / "Core.lean"
_HEADER = re.compile(r"\A\s*prelude\s+import Core\n")
#: A theorem that is proved by tactics, of which the first may stand on its first line.
_THEOREM = re.compile(
    r"^(?:@\[[^\]]*\] )?(?:protected |private )?theorem (\S+)((?:(?!:= by\b).)*?) := by(?:\n| )(.*)\Z",
    re.DOTALL,
)
#: One made script in so many gets a twin with a mistake.
_MISTAKEN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """A statement without its proof, what stands before it, and the tactics of the proof, as far as known."""

    name: str
    statement: str
    body: str
    tactics: tuple[str, ...] | None = None
    before: str = ""


def _listed(name: str, statement: str, tactics: tuple[str, ...]) -> Script:
    return Script(name=name, statement=statement, body="\n".join(tactics), tactics=tactics)


def scripts(*, made: int, seed: int = 1) -> Iterator[Script]:
    """Yield all scripts; of the made ones so many, the same for the same seed."""
    yield from shipped()
    yield from library()
    for number, (statement, tactics) in enumerate(numbers()):
        yield _listed(f"numbers {number}", statement, tactics)
    chance = random.Random(seed)
    for number in range(made):
        statement, tactics = made_proof(chance)
        yield _listed(f"made {number}", statement, tactics)
        if number % _MISTAKEN == 0:
            yield _listed(f"mistaken {number}", statement, _mistaken(chance, tactics))


def _mistaken(chance: random.Random, tactics: tuple[str, ...]) -> tuple[str, ...]:
    """Return tactics with one left out, doubled, or exchanged with the next."""
    place = chance.randrange(len(tactics))
    before, it, after = tactics[:place], tactics[place : place + 1], tactics[place + 1 :]
    changed = chance.choice(
        [(*before, *after), (*before, *it, *it, *after), (*before, *after[:1], *it, *after[1:])]
    )
    return changed or ("skip",)


def shipped() -> Iterator[Script]:
    """Yield the scripts of the quickstart, of the test cases, and of the tests of the core library."""
    for line in (_ROOT / "examples" / "quickstart.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "timeout" in row:
            continue  # it never ends
        for text in re.findall(r"```lean4?\n(.*?)```", row.get("generation", ""), re.DOTALL):
            header = _HEADER.sub("", row["header"])
            yield from _of_text(f"quickstart {row['name']}", f"{header}\n{text}")
    cases = _ROOT / "tests" / "cases" / "verdict"
    for path in sorted(cases.glob("proved/*/program.lean")):
        yield from _of_text(f"case {path.parent.name}", path.read_text())
    for path in sorted((_ROOT / "tests" / "acceptance" / "core").glob("*.lean")):
        yield from _of_text(f"core/{path.stem}", path.read_text())


def library() -> Iterator[Script]:
    """Yield the proofs of the core library itself, each stated once more."""
    place = []
    for block in _blocks(_CORE.read_text()):
        if re.match(r"(namespace|section|variable|universe)\b", block):
            place.append(block)
        elif re.match(r"end\b", block):
            while not re.match(r"namespace|section", place.pop()):
                pass
        elif found := _THEOREM.match(block):
            name, rest, body = found.groups()
            yield Script(
                name=f"library {name}",
                before="\n".join(place) + "\n",
                statement=f"theorem once_more{rest}",
                body=textwrap.dedent(body).strip("\n"),
            )


def _of_text(name: str, text: str) -> Iterator[Script]:
    """Yield the theorems of a text that are proved by tactics; what stands before each is kept."""
    before = ""
    for block in _blocks(_HEADER.sub("", text)):
        if found := _THEOREM.match(block):
            theorem, rest, body = found.groups()
            yield Script(
                name=f"{name} {theorem}",
                before=before,
                statement=f"theorem {theorem}{rest}",
                body=textwrap.dedent(body).strip("\n"),
            )
        before += f"{block}\n"


def _blocks(text: str) -> Iterator[str]:
    """Yield the lines that begin at the left, each with those behind it that do not."""
    block: list[str] = []
    for line in text.splitlines():
        if block and line[:1].strip():
            yield "\n".join(block).rstrip()
            block = []
        block.append(line)
    yield "\n".join(block).rstrip()
