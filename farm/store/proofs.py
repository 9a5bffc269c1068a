"""The proofs of a run in figures: their lengths, and how many different ones there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from farm.limits import Limits
from farm.store.candidates import counted
from farm.store.postgres import Engine, single, streamed

# A line is proved by the program whose preamble is stored, so the spans are those of that program. LIMIT
# keeps the planner from reading a whole table to hash it, as for the outcomes of lines.
_JUDGED = f"""
    JOIN LATERAL (
        SELECT audit ->> 'sealed_sha256' AS sealed, preamble FROM verdicts
        WHERE verdicts.check_id = jobs.check_id AND verdict = 'proved' LIMIT 1
    ) AS verdict ON true
    JOIN LATERAL (
        SELECT environment, wall_seconds, cpu_seconds, memory_mib,
               {counted("sha256")} AS sha256, {counted("submitted")} AS submitted
        FROM checks WHERE id = jobs.check_id LIMIT 1
    ) AS judged ON true
"""
# A proved program is UTF-8 without NUL: others are rejected for their text.
_PROGRAM = """
    JOIN LATERAL (
        SELECT convert_from(source, 'UTF8') AS program FROM programs
        WHERE programs.sha256 = judged.sha256 LIMIT 1
    ) AS stored ON true
"""
_PROOFS = f"""
    WITH proofs AS (
        SELECT CASE WHEN group_name IS NOT NULL THEN 'g' || group_name
                    WHEN name <> '' THEN 'n' || name ELSE 'l' || manifest || ':' || line END AS problem,
               sealed, length.*
        FROM jobs {_JUDGED} {_PROGRAM}
        CROSS JOIN LATERAL (
            SELECT sum((span ->> 1)::integer - (span ->> 0)::integer) AS characters,
                   sum((SELECT count(*) FROM string_to_table(own, E'\\n') AS row
                        WHERE row ~ '[^[:space:]]')) AS lines
            FROM json_array_elements(judged.submitted) AS span
            CROSS JOIN LATERAL substr(program, (span ->> 0)::integer + 1,
                (span ->> 1)::integer - (span ->> 0)::integer) AS own
        ) AS length
        WHERE run_id = %(run_id)s AND cancelled IS NULL
    )
    SELECT count(*) AS proofs, count(DISTINCT problem) AS solved, count(sealed) AS sealed,
           count(DISTINCT (problem, sealed)) FILTER (WHERE sealed IS NOT NULL) AS distinct_proofs,
           count(DISTINCT problem) FILTER (WHERE sealed IS NOT NULL) AS sealed_problems,
           avg(characters)::float8 AS mean_characters,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY characters) AS median_characters,
           avg(lines)::float8 AS mean_lines,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY lines) AS median_lines
    FROM proofs
"""
# The lines that share a check have the same program.
_CHECKS = f"""
    SELECT check_id, count(*) AS lines FROM jobs {_JUDGED}
    WHERE run_id = %(run_id)s AND cancelled IS NULL GROUP BY check_id ORDER BY check_id
"""
_PROGRAMS = f"""
    SELECT jobs.check_id, program, judged.*
    FROM unnest(CAST(%(checks)s AS bigint[])) AS jobs (check_id) {_JUDGED} {_PROGRAM}
"""
#: Programs that are read at once.
_TOGETHER = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class ProofFigures:
    """Figures of the proved lines of a run.

    Characters and lines are those of the program that are the submission's own, without the line's header
    and statement; blank lines do not count. Of `sealed` lines the digest of the sealed module is known; two
    proofs of a problem are distinct if their digests differ. `sealed_problems` have a sealed line.
    """

    proofs: int
    solved: int
    sealed: int
    distinct_proofs: int
    sealed_problems: int
    mean_characters: float | None
    median_characters: float | None
    mean_lines: float | None
    median_lines: float | None

    @property
    def distinct_per_problem(self) -> float | None:
        """The mean number of distinct proofs of a problem with one, None without one."""
        return self.distinct_proofs / self.sealed_problems if self.sealed_problems else None


def proof_figures(engine: Engine, run_id: str) -> ProofFigures:
    """Return the figures of a run's proofs. Raises `ServerDown`."""
    with single(engine) as cursor:
        row = cursor.execute(_PROOFS, {"run_id": run_id}).fetchone()
    return ProofFigures(**dict(row or {}))


@dataclass(frozen=True, kw_only=True, slots=True)
class ProvedProgram:
    """A proved program, its environment and limits, and how many lines of the run it proves.

    `submitted` are the spans of it that are the submission's own, as offsets in code points.
    """

    text: str
    environment: str
    limits: Limits
    submitted: tuple[tuple[int, int], ...]
    lines: int


def proved_checks(engine: Engine, run_id: str) -> Mapping[int, int]:
    """Return the checks that proved lines of a run, each with the number of these. Raises `ServerDown`."""
    return dict(streamed(engine, _CHECKS, {"run_id": run_id}, rows=10_000))


def proved_programs(engine: Engine, checks: Mapping[int, int]) -> Iterator[ProvedProgram]:
    """Yield the programs of checks as `proved_checks` returns them, in bounded memory. Raises `ServerDown`.

    A check whose program was deleted since then has none.
    """
    every = list(checks)
    for first in range(0, len(every), _TOGETHER):
        with single(engine) as cursor:
            found = cursor.execute(_PROGRAMS, {"checks": every[first : first + _TOGETHER]}).fetchall()
        for each in found:
            yield ProvedProgram(
                text=each["program"],
                environment=each["environment"],
                limits=Limits(
                    wall_seconds=each["wall_seconds"],
                    cpu_seconds=each["cpu_seconds"],
                    memory_mib=each["memory_mib"],
                ),
                submitted=tuple((start, end) for start, end in each["submitted"]),
                lines=checks[each["check_id"]],
            )
