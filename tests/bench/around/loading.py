"""Bench step, what comes before and after the worker: submit, lines known already, export."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from farm.errors import FarmError
from farm.manifest.entries import fingerprint
from tests.bench.around.answers import write_answers
from tests.bench.around.site import FarmAtWork
from tests.bench.around.steps import Step, measured
from tests.bench.checks.figures import Figure

#: Lines a second: committed, and until a worker was called.
_COMMITTED, _CALLED = 10_000, 5_000
_KNOWN = 20_000
#: Seconds that the export of a line may take.
_EXPORT_SECONDS = 5 / 100_000
_MOST_MIB = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """What is submitted: so many lines of 1.1 KB, of which a million are a gigabyte, or `long` ones.

    The bars are for the former.
    """

    count: int
    long: bool = False

    @property
    def key(self) -> str:
        """By what the figures are named."""
        return f"{self.count}_long" if self.long else str(self.count)

    @property
    def words(self) -> str:
        """The same for people."""
        return f"{self.count} lines of {2.7 if self.long else 1.1} KB"

    def bar(self, figure: float) -> float | None:
        """Return the bar that holds for these lines."""
        return None if self.long else figure


def loaded(farm: FarmAtWork, lines: Lines, *, times: int, say: Callable[[str], None]) -> Iterator[Figure]:
    """Yield what it takes to submit lines, to submit them once more when all are known, and to export them.

    Every step has a process of its own, `times` times; the database is empty before each submit.
    """
    say(f"{lines.words}: writing the manifest")
    manifest = write_answers(farm.folder / f"answers-{lines.key}.jsonl", lines.count, brief=not lines.long)
    submitted = []
    for number in range(times):
        say(f"{lines.words}: submit, {number + 1} of {times}")
        farm.empty()
        submitted.append(measured(farm, "submit", str(manifest)))
    yield from _submits(lines, submitted)
    run = submitted[-1].result
    judge_all(farm)
    with _as_submitted(farm, run, manifest) as restore:
        exported, known = [], []
        for number in range(times):
            say(f"{lines.words}: known lines and export, {number + 1} of {times}")
            restore()
            known.append(measured(farm, "again", str(manifest)))
            exported.append(measured(farm, "export", run))
    _require_all(farm, lines.count, known, exported)
    yield _rate(f"known_{lines.key}", f"submit of {lines.words} that are known", lines, known, _KNOWN)
    yield Figure(
        key=f"export_{lines.key}",
        name=f"export of {lines.words}",
        unit="s",
        samples=tuple(step.seconds for step in exported),
        at_most=lines.bar(_EXPORT_SECONDS * lines.count),
    )
    yield from _memory(f"export_memory_{lines.key}", f"export of {lines.words}", exported)
    farm.empty()
    manifest.unlink()


def _submits(lines: Lines, submitted: Sequence[Step]) -> Iterator[Figure]:
    name = f"submit of {lines.words}"
    yield _rate(f"submit_{lines.key}", f"{name}, committed", lines, submitted, _COMMITTED)
    yield Figure(
        key=f"submit_called_{lines.key}",
        name=f"{name}, all offered and a worker called",
        unit="lines/s",
        samples=tuple(lines.count / step.called_seconds for step in submitted),
        at_least=lines.bar(_CALLED),
    )
    yield from _memory(f"submit_memory_{lines.key}", name, submitted)


def _rate(key: str, name: str, lines: Lines, steps: Sequence[Step], at_least: float) -> Figure:
    samples = tuple(lines.count / step.seconds for step in steps)
    return Figure(key=key, name=name, unit="lines/s", samples=samples, at_least=lines.bar(at_least))


def _memory(key: str, name: str, steps: Sequence[Step]) -> Iterator[Figure]:
    for part, words, samples in (
        ("", "peak memory", [step.peak_mib for step in steps]),
        ("_children", "peak memory of its largest child", [step.children_mib for step in steps]),
    ):
        yield Figure(
            key=key + part,
            name=f"{name}, {words}",
            unit="MiB",
            samples=tuple(samples),
            at_most=_MOST_MIB,
        )


def _require_all(farm: FarmAtWork, lines: int, known: Sequence[Step], exported: Sequence[Step]) -> None:
    if {step.result for step in exported} != {str(lines)}:
        raise FarmError("not every line was exported, so the figures are meaningless")
    if any(farm.queries.tally(step.result).shared != lines for step in known):
        raise FarmError("not every line was known, so the figures are meaningless")


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


def judge_all(farm: FarmAtWork) -> None:
    """Give every line a verdict, two of three with a message, as if workers had."""
    with farm.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET status = 'done', attempt = 1"))
        connection.execute(_JUDGE, {"messages": _MESSAGE})
    farm.settle()


@contextmanager
def _as_submitted(farm: FarmAtWork, run: str, manifest: Path) -> Iterator[Callable[[], None]]:
    """Yield a function that makes the manifest, and what the store knows of it, as before any export."""
    copy = shutil.copyfile(manifest, manifest.with_suffix(".copy"))
    stored = fingerprint(copy)

    def restore() -> None:
        shutil.copyfile(copy, manifest)
        farm.store.exporting(run, 0, sha256=stored.sha256, size=stored.size)
        farm.store.exported(run, 0, began=farm.now())

    yield restore
    copy.unlink()
