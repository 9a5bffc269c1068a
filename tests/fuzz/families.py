"""Families of hostile texts: read at twice the length, none may take much more than twice the time.

A family repeats one tricky fragment, and is read as a program and as answers of several shapes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from farm.assembly.challenge import challenge_to
from farm.assembly.declaration import kept_target
from farm.assembly.program import AssemblyOptions, Program, assemble
from farm.lean_text.header import header_end
from farm.lean_text.policy.screen import Policy, Screen
from farm.lean_text.scanner import opaque_spans, sorry_tokens, tokens
from farm.manifest.entry import Entry

#: By name: what stands once before the fragment, and the fragment.
FAMILIES = {
    "openers of comments": ("", "/-"),
    "closed comments": ("/-", "-/ /-"),
    "line comments": ("", "--\n"),
    "quotes": ("", '"'),
    "backslashes": ('"', "\\"),
    "apostrophes": ("", "'"),
    "raw strings": ("", 'r#"'),
    "numbered raw strings": ("", 'r#x##"r#x##"'),
    "hashes": ("r", "#"),
    "holes": ("", 's!"{'),
    "closed holes": ("", 's!"{x}"\n'),
    "quoted names": ("", "«"),
    "dotted names": ("", "a."),
    "brackets": ("", "("),
    "attributes": ("", "@[simp "),
    "attributes of attributes": ("", "@[to_additive (attr := simp) "),
    "white space": ("x", " "),
    "line ends": ("x", "\n"),
    "carriage returns": ("x", " \r"),
    "short lines": ("", "x\n"),
    "indented lines": ("", "   x\n"),
    "one long name": ("", "a"),
    "numbers": ("", "1."),
    "imports": ("", "import A\n"),
    "headers": ("", "open A\nset_option a 1\n"),
    "modifiers": ("", "public "),
    "axioms": ("", "axiom a : b\n"),
    "options": ("", "set_option trace.x true\n"),
    "opened": ("open ", "A "),
    "notations": ("", 'notation "a" '),
    "hidden words": ("|", "--axiom @[ attribute\n|"),
    "scopes": ("", "namespace A\n"),
    "variables": ("", " variable x\n"),
    "included": ("", "  include x in\n"),
    "helpers": ("", "lemma a : p := q\nvariable x\n"),
    "statements": ("", "theorem t : 1 = 1 := by\n"),
    "half statements": ("", "theorem t (a := "),
    "keywords": ("", "theorem "),
    "fences": ("", "```\n"),
    "fences in a line": ("", "```x "),
    "fences behind white space": (None, "```x "),
    "tagged fences": ("", "```lean4\nx\n"),
    "tildes": ("", "~~~x"),
    "tildes behind white space": (None, "~~~ "),
    "thoughts": ("", "<think>x</think>"),
    "ends of thoughts": ("", "</think>"),
    "operators": ("by\n", "+--"),
    "sorries": ("", "sorry\n"),
    "bars": ("", "\n | a => b"),
    "lets": ("", "let a := b\n"),
    "wrong encodings": ("", "\ud800\0\ufeff"),
}
SHAPES = {
    "bare": "{}",
    "fenced": "```lean\n{}\n```",
    "before": "```lean\ntheorem h : 2 = 2 := rfl\n{}\ntheorem t : 1 = 1 := by\n  rfl\n```",
    "behind": "```lean\ntheorem t : 1 = 1 := by\n{}\n```",
    "term": "```lean\ntheorem t : 1 = 1 := f\n{}\n```",
}
#: Shorter times are not compared: they are the machine's as much as the text's.
SECONDS = 0.02
MOST_GROWTH = 3.0
_STATEMENT = "theorem t : 1 = 1 := by\n"
_POLICY = Policy()


def text_of(family: str, size: int) -> str:
    """Return the text of a family that has a length."""
    before, unit = FAMILIES[family]
    before = " " * (size // 2) if before is None else before
    return before + unit * ((size - len(before)) // len(unit))


@dataclass(frozen=True, kw_only=True, slots=True)
class Growth:
    """How much longer a step takes for a text of twice the length, and how long."""

    family: str
    step: str
    size: int
    seconds: float
    factor: float

    @property
    def is_linear(self) -> bool:
        """Whether it takes no more than is allowed."""
        return self.factor <= MOST_GROWTH


def _entry(answer: str, statement: str = _STATEMENT, header: str = "import A\n") -> Entry:
    return Entry(
        path="",
        line=1,
        name="",
        header=header,
        formal_statement=statement,
        generation=answer,
        predicted_proof="",
    )


def steps(family: str, size: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield what is done with a family's text: names and calls."""
    text = text_of(family, size)
    yield "tokens", lambda: sum(1 for _ in tokens(text))
    yield "opaque_spans", lambda: sum(1 for _ in opaque_spans(text, 0, len(text)))
    yield "sorry_tokens", lambda: sorry_tokens(text + "\nsorry")
    yield "header_end", lambda: header_end(text)
    yield "hits", lambda: _POLICY.hits(text + "\naxiom")
    yield "challenge_to", lambda: challenge_to("", f"{text}\n{_STATEMENT}{text}")
    yield "assemble header", lambda: assemble(_entry("rfl", header=text), AssemblyOptions())
    for profile in ("nemo-2025-11", "nemo-2025-08"):
        yield (
            profile,
            partial(assemble, _entry(SHAPES["fenced"].format(text)), AssemblyOptions(profile=profile)),
        )
    for shape, around in SHAPES.items():
        entry = _entry(around.format(text))
        yield f"assemble {shape}", partial(assemble, entry, AssemblyOptions())
        if shape in ("before", "behind"):  # the programs of the others are much the same
            yield f"look {shape}", partial(_looked_at, assemble(entry, AssemblyOptions())[0])


def _looked_at(made: Program) -> object:
    return Screen(policy=_POLICY, submitted=made.submitted).look(made.text, header="import A\n")


def _seconds(call: Callable[[], object], times: int, *, at_least: float = SECONDS) -> float:
    """Return the best processor time of a few calls, of one when that is below what counts."""
    best = float("inf")
    gc.disable()  # as timeit does: when it collects is not the text's doing
    for _ in range(times):
        kept_target.cache_clear()
        begun = time.process_time()
        call()
        best = min(best, time.process_time() - begun)
        if best < at_least:
            break
    gc.enable()
    return best


def growths(family: str, largest: int, smallest: int = 2000) -> Iterator[Growth]:
    """Yield how each step's time grows with each doubling of a family's text, shorter times left out.

    A family is not read at greater lengths than the one at which a step takes too long.
    """
    last: dict[str, float] = {}
    is_linear = True
    size = smallest
    while size <= largest and is_linear:
        for name, call in steps(family, size):
            took = _seconds(call, 3)
            if took > SECONDS and name in last:
                growth = Growth(family=family, step=name, size=size, seconds=took, factor=took / last[name])
                if not growth.is_linear:  # once more: something else may have been running
                    growth = _again(growth)
                is_linear = is_linear and growth.is_linear
                yield growth
            last[name] = max(took, 1e-6)
        size *= 2


def _again(growth: Growth) -> Growth:
    shorter, longer = (
        _seconds(dict(steps(growth.family, size))[growth.step], 15, at_least=0)
        for size in (growth.size // 2, growth.size)
    )
    return replace(growth, seconds=longer, factor=longer / max(shorter, 1e-6))
