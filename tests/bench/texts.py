"""Benchmarks, what becomes of an answer before Lean sees it: assembly, policy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from farm.assembly.program import AssemblyOptions, Program, assemble
from farm.lean_text.policy.screen import Policy, Screen
from farm.manifest.entry import Entry
from tests.bench.around.answers import LINES, entries
from tests.bench.checks.figures import Figure

#: How often each figure is measured.
TIMES = 3


def assembly() -> Iterator[Figure]:
    """Assemble answers of 2 KB, on one core."""
    lines = entries(LINES)
    rates = tuple(_rate(lines) for _ in range(2 * TIMES - 1))
    yield Figure(key="assembly", name="assembly", unit="lines/s", samples=rates, at_least=20_000)


def _rate(lines: list[Entry]) -> float:
    options = AssemblyOptions()
    started = time.process_time()
    for entry in lines:
        assemble(entry, options)
    return len(lines) / (time.process_time() - started)


def policy() -> Iterator[Figure]:
    """Look at assembled answers of 2 KB as a worker does, and at the same with a word that rules know."""
    made = [assemble(entry, AssemblyOptions())[0] for entry in entries(LINES // 10)]
    for key, name, more in (
        ("policy", "policy, a proof of 2 KB", ""),
        ("policy_suspect", "policy, the same with a helper definition", "\nprivate def helper := 1\n"),
    ):
        screens = [(_screen(program, more), program.text + more) for program in made]
        milliseconds = []
        for screen, text_ in screens:
            started = time.process_time_ns()
            screen.look(text_, header="import Mathlib\n")
            milliseconds.append((time.process_time_ns() - started) / 1e6)
        yield Figure(key=key, name=name, unit="ms", samples=(median(milliseconds),), at_most=1.0)


def _screen(program: Program, more: str) -> Screen:
    end = len(program.text)
    return Screen(
        policy=Policy(), submitted=(*program.submitted, *([(end, end + len(more))] if more else []))
    )
