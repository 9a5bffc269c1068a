"""Evaluations as models leave them, judged as workers would, in bulk: what reports are tried on."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Engine, text


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A verdict to be recorded for a line, and what it took."""

    verdict: str = "proved"
    reason: str = "ok"
    wall_seconds: float = 1.0
    cpu_seconds: float = 1.0
    peak_memory_kib: int = 500_000


PROVED = Given()
REJECTED = Given(verdict="rejected", reason="error")
TIMEOUT = Given(verdict="timeout", reason="wall_limit", wall_seconds=30.0, cpu_seconds=29.0)
JUDGE_ERROR = Given(verdict="judge_error", reason="worker_lost", wall_seconds=0.0, cpu_seconds=0.0)

_GIVE = text("""
    WITH given AS (
        SELECT * FROM unnest(
            CAST(:lines AS integer[]), CAST(:verdicts AS text[]), CAST(:reasons AS text[]),
            CAST(:walls AS float8[]), CAST(:cpus AS float8[]), CAST(:peaks AS bigint[])
        ) AS given (line, verdict, reason, wall, cpu, peak)
    ), ended AS (
        UPDATE checks SET status = 'done', attempt = 1, worker = NULL, lease_until = NULL
        FROM given JOIN jobs ON jobs.run_id = :run AND manifest = 0 AND jobs.line = given.line
        WHERE checks.id = check_id AND NOT shared
    )
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT check_id, 1, verdict, reason, 'as Lean says', '[]', '[]', wall, cpu, peak,
           'cgroup2+bwrap', repeat('0', 64), 'Lean 4.35.0', '0.1.0'
    FROM given JOIN jobs ON jobs.run_id = :run AND manifest = 0 AND jobs.line = given.line
    WHERE NOT shared
""")


def give(engine: Engine, run_id: str, verdicts: Sequence[Given | None]) -> None:
    """Record the verdicts of a run's lines, from the first; what is None goes on waiting."""
    given = [(line, each) for line, each in enumerate(verdicts, 1) if each is not None]
    values: dict[str, object] = {
        "run": run_id,
        "lines": [line for line, _ in given],
        "verdicts": [each.verdict for _, each in given],
        "reasons": [each.reason for _, each in given],
        "walls": [each.wall_seconds for _, each in given],
        "cpus": [each.cpu_seconds for _, each in given],
        "peaks": [each.peak_memory_kib for _, each in given],
    }
    with engine.begin() as connection:
        connection.execute(_GIVE, values)


_SUBJECTS = ("algebra", "number_theory", "induction", "inequality", "combinatorics")
_LEVELS = ("easy", "medium", "hard", "olympiad")


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Lines of a manifest and the verdicts of a model of this skill, invented, and the same each time."""

    problems: int
    samples: int
    skill: float = 0.0
    seed: int = 1

    def made(self) -> Iterator[tuple[dict[str, object], Given | None]]:
        """Yield lines, all samples of a problem together, with their verdicts."""
        for number in range(self.problems):
            problem = random.Random(number)
            level = problem.randrange(len(_LEVELS))
            hardness = problem.gauss(1.6 * level - 2.0, 1.3)
            subject = problem.choice(_SUBJECTS)
            chance = random.Random(f"{self.seed} {number}")
            for sample in range(self.samples):
                line: dict[str, object] = {
                    "name": f"{subject}_{number}",
                    "predicted_proof": f"-- {self.seed} {number} {sample}\ntheorem t : True := trivial\n",
                    "difficulty": _LEVELS[level],
                    "subject": subject,
                }
                yield line, _judged(chance, self.skill - hardness)


def _judged(chance: random.Random, ease: float) -> Given | None:
    wall = min(29.5, chance.lognormvariate(1.1 - 0.25 * ease, 0.9))
    used = {
        "wall_seconds": wall,
        "cpu_seconds": wall * chance.uniform(0.8, 1.3),
        "peak_memory_kib": int(chance.uniform(4e5, 3e6)),
    }
    if chance.random() < 1 / (1 + 2.718**-ease):
        return Given(**used)
    kind = chance.random()
    if kind < 0.75:
        reason = chance.choices(("error", "has_sorry", "statement_mismatch"), (12, 2, 1))[0]
        return Given(verdict="rejected", reason=reason, **used)
    if kind < 0.93:
        reason = chance.choices(("wall_limit", "heartbeat_limit", "cpu_limit"), (7, 3, 1))[0]
        return Given(verdict="timeout", reason=reason, wall_seconds=30.0, cpu_seconds=31.0)
    if kind < 0.985:
        return Given(verdict="memory_limit", reason="memory_limit", peak_memory_kib=4 << 20)
    return JUDGE_ERROR
