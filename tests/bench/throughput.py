"""Benchmarks, the steps before and after the worker: assembly, submit, export, sending."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from sqlalchemy import text

from farm.manifest import fingerprint
from farm.policy import Policy, Screen
from farm.program import AssemblyOptions, Program, assemble
from tests.bench.assembly import LINES, entries, rate
from tests.bench.farm_at_work import FarmAtWork, Measured, farm_at_work, in_own_process
from workers.bench.figures import Figure

#: How often each figure is measured.
TIMES = 3


def assembly() -> Iterator[Figure]:
    """Assemble answers of 2 KB, on one core."""
    lines = entries(LINES)
    rates = tuple(rate(lines) for _ in range(2 * TIMES - 1))
    yield Figure(key="assembly", name="assembly", unit="lines/s", samples=rates, at_least=20_000)


def policy() -> Iterator[Figure]:
    """Look at assembled answers of 2 KB as a worker does, and at the same with a word that rules know."""
    made = [assemble(entry, AssemblyOptions()) for entry in entries(LINES // 10)]
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


def write_manifest(path: Path, lines: int) -> Path:
    """Write so many lines as users have them: 32 answers a problem, and fields of their own.

    All programs differ.
    """
    made = entries(min(lines, LINES))
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            entry = made[number % len(made)]
            name = f"algebra_{number // 32}_"
            fields = {
                "name": name,
                "split": "test",
                "informal_prefix": "/-- What is the value of `f x + f y`? -/\n",
                "header": entry.header,
                "formal_statement": entry.formal_statement.replace("algebra_", name),
                "generation": entry.generation.replace("algebra_", name),
                "num_generated_tokens": 700 + number % 100,
                "generation_time": number / 7,
            }
            file.write(json.dumps(fields, ensure_ascii=number % 2 == 0) + "\n")
    return path


def submit_and_export(lines: int) -> Iterator[Figure]:
    """Submit a large manifest, and export its verdicts, each in a process of its own."""
    with farm_at_work() as farm:
        manifest = write_manifest(farm.home.parent / "answers.jsonl", lines)
        submitted = [_submit_afresh(farm, manifest) for _ in range(TIMES)]
        yield from _both("submit", lines, submitted, at_least=10_000)
        run = submitted[-1].result
        _judge_all(farm)
        with _as_submitted(farm, run, manifest) as restore:
            exported = []
            for _ in range(TIMES):
                restore()
                exported.append(in_own_process("export", farm.database_url, run))
            restore()
            known = [in_own_process("again", farm.database_url, str(manifest)) for _ in range(TIMES)]
        assert {one.result for one in exported} == {str(lines)}, "not every line was exported"
        assert all(farm.queries.tally(one.result).shared == lines for one in known), (
            "not every line was known"
        )
        yield from _both("export", lines, exported, at_least=20_000)
        yield from _both("known", lines, known, at_least=20_000)


def _both(step: str, lines: int, samples: list[Measured], *, at_least: float) -> Iterator[Figure]:
    rates = tuple(lines / sample.seconds for sample in samples)
    peaks = tuple(sample.peak_mib for sample in samples)
    yield Figure(key=step, name=f"{step}, {lines} lines", unit="lines/s", samples=rates, at_least=at_least)
    yield Figure(key=f"{step}_memory", name=f"{step}, peak memory", unit="MiB", samples=peaks, at_most=200)


def _submit_afresh(farm: FarmAtWork, manifest: Path) -> Measured:
    """Submit into an empty store: a program that is there already would cost less."""
    with farm.engine.begin() as connection:
        connection.execute(text("TRUNCATE runs, programs, checks CASCADE"))
    return in_own_process("submit", farm.database_url, str(manifest))


_MESSAGE = """[{"severity": "error", "kind": "", "line": 14, "column": 4, "end_line": 14, "end_column": 12,
"text": "linarith failed to find a contradiction\\ncase a\\na b c : ℝ\\nh : a + b + c - 1 > 3\\n⊢ False"}]"""

_JUDGE = text("""
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, 1, CASE WHEN id % 3 = 0 THEN 'proved' ELSE 'rejected' END,
           CASE WHEN id % 3 = 0 THEN 'ok' ELSE 'error' END, 'as Lean says',
           CASE WHEN id % 3 = 0 THEN '[]' ELSE CAST(:messages AS jsonb) END, '[]',
           1.5, 1.25, 345678, 'rlimit', repeat('0', 64), 'Lean 4.35.0', '0.1.0'
    FROM checks
""")


def _judge_all(farm: FarmAtWork) -> None:
    """Give every line a verdict, two of three with a message, as if workers had."""
    with farm.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET status = 'done', attempt = 1"))
        connection.execute(_JUDGE, {"messages": _MESSAGE})
    with farm.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


@contextmanager
def _as_submitted(farm: FarmAtWork, run: str, manifest: Path) -> Iterator[Callable[[], None]]:
    """Yield a function that makes the manifest, and what the store knows of it, as before any export."""
    copy = shutil.copyfile(manifest, manifest.with_suffix(".copy"))
    stored = fingerprint(copy)

    def restore() -> None:
        shutil.copyfile(copy, manifest)
        farm.store.exporting(run, 0, sha256=stored.sha256, size=stored.size)
        farm.store.exported(run, 0)

    yield restore
