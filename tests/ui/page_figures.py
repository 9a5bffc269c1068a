"""Measures the page over two runs of many lines: ``python -m tests.ui.page_figures --lines 100000``."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it

import httpx
from sqlalchemy import text

from tests.bench.around.site import FarmAtWork, farm_at_work
from tests.ui.page_site import serving

_TIMES = 15
_RUNS = ("measured", "compared")

_PROGRAM = "convert_to('theorem t' || n || ' \\: True' || repeat(E'\\\\n  trivial -- long', 20), 'UTF8')"
# Of seven lines three are proved, one times out and three have errors; of twenty one waits.
_FILL = f"""
    INSERT INTO programs (sha256, source)
    SELECT sha256(source), source FROM (SELECT {_PROGRAM} AS source FROM generate_series(1, 2 * :lines) n) s;

    INSERT INTO checks (id, program_sha256, submitted, environment, tier, native, axioms, policy,
        wall_seconds, cpu_seconds, memory_mib, environment_digest, checker_version, priority, turn,
        status, attempt)
    SELECT n, sha256({_PROGRAM}), '[]', 'core', 'kernel', false, '[]', '{{}}', 30, 60, 1000, 'd', '1', 2, n,
           CASE WHEN n % 20 = 3 THEN 'queued' ELSE 'done' END, 1
    FROM generate_series(1, 2 * :lines) n;

    INSERT INTO jobs (run_id, manifest, line, check_id, name, group_name, segments, warnings)
    SELECT CASE WHEN n <= :lines THEN :one ELSE :other END, 0, (n - 1) % :lines + 1, n,
           'theorem_' || (n - 1) % :lines / 4, 'group_' || (n - 1) % :lines / 4, '[]', '[]'
    FROM generate_series(1, 2 * :lines) n;

    INSERT INTO verdicts (check_id, attempt, verdict, reason, detail, messages, hits, audit, statement,
        trusts, wall_seconds, cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain,
        checker_version)
    SELECT n, 1, CASE WHEN n % 7 < 3 THEN 'proved' WHEN n % 7 < 4 THEN 'timeout' ELSE 'rejected' END,
           CASE WHEN n % 7 < 3 THEN 'ok' WHEN n % 7 < 4 THEN 'wall_limit' ELSE 'error' END,
           'Error at line 3\\: unknown identifier', jsonb_build_array(jsonb_build_object(
               'severity', 'error', 'text', repeat('unsolved goals ', 30), 'line', 3, 'column', 2)),
           '[]', '{{"accepted"\\: true}}', 'compared', '{{}}', 1.5, 1.2, 100000, 'cgroup1+bwrap', 'd',
           'Lean 4.35.0', '1'
    FROM generate_series(1, 2 * :lines) n WHERE n % 20 <> 3;
"""


def main() -> None:
    """Print how long each page takes the service, the median and the longest of some times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    lines = parser.parse_args().lines
    with farm_at_work() as farm, tempfile.TemporaryDirectory() as folder:
        _fill(farm, lines)
        with serving(farm, Path(folder)) as (url, token, _), httpx.Client(base_url=url, timeout=60) as client:
            client.post("/page/sign-in", data={"token": token}, headers={"Origin": url})
            for name, path in _pages(lines).items():
                times = [_measured(client, path) for _ in range(_TIMES)]
                sys.stdout.write(
                    f"{name:45} {1000 * statistics.median(times):6.0f} ms, at most {1000 * max(times):.0f}\n"
                )


def _pages(lines: int) -> dict[str, str]:
    run = f"/page/runs/{_RUNS[0]}"
    compared = f"/page/compare?one={_RUNS[0]}&other={_RUNS[1]}"
    return {
        "runs": "/page/",
        "run": run,
        "run, counted anew": f"{run}?",
        "run, its last page": f"{run}?after=0:{lines - 100}",
        "run, filtered by a verdict that many have": f"{run}?state=timeout",
        "run, filtered by a verdict that none has": f"{run}?state=judge_error",
        "run, filtered by a name that four lines have": f"{run}?name=theorem_{lines // 4 - 1}",
        "problems": f"{run}/problems",
        "line": f"{run}/0/{lines // 2}",
        "compare lines": compared,
        "compare problems": f"{compared}&by=problems",
    }


def _measured(client: httpx.Client, path: str) -> float:
    if path.endswith("?"):
        time.sleep(6)  # until the count that was made before is too old
    begun = time.perf_counter()
    answer = client.get(path)
    taken = time.perf_counter() - begun
    assert answer.status_code == 200, answer.text
    return taken


def _fill(farm: FarmAtWork, lines: int) -> None:
    values = {"lines": lines, "one": _RUNS[0], "other": _RUNS[1]}
    with farm.engine.begin() as connection:
        for run in _RUNS:
            for table, columns, row in (
                ("runs", "id, options, farm_version", "'{}', '1'"),
                ("manifests", "run_id, number, path, sha256, size", "0, '/m.jsonl', 'x', 1"),
            ):
                connection.execute(
                    text(f"INSERT INTO {table} ({columns}) VALUES (:run, {row})"), {"run": run}
                )
        for statement in _FILL.split(";\n"):
            if statement.strip():
                connection.execute(text(statement), values)
    farm.settle()


if __name__ == "__main__":
    main()
