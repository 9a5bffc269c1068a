"""What a real worker and a real farm tell Prometheus, scraped over HTTP, agrees with the store."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import text

from farm.connections import Connections
from farm.service.backend import Backend
from farm.settings import Settings
from farm.store.keys import Key, Scope
from tests.commands import ADMITTED, ENDLESS, HEADER, PROVED, WRONG, Command, Running, entry, write
from tests.farms import Quiet, a_worker, asking, serving
from tests.http_service import listening
from tests.processes import eventually
from tests.scraping import Told, by, happened, parsed, scraped

MEMORY = Path(__file__).parents[1] / "cases" / "verdict" / "memory_limit" / "doubling_string"
#: A rule of the policy sees it, and the seal refuses it.
ASSUMED = HEADER + "axiom cheat : False\ntheorem assumed : False := cheat\n"


def url_of(running: Running) -> str:
    """Return where a process says that it serves metrics."""
    eventually(lambda: "Metrics are served on " in running.said)
    found = re.search(r"Metrics are served on (\S+)", running.said)
    assert found is not None
    return found[1]


def rows(quiet: Quiet, question: str) -> dict[tuple[str, ...], float]:
    """Return what a question gives: the last column by the ones before it."""
    with quiet.engine.connect() as connection:
        found = connection.execute(text(question)).all()
    return {tuple(map(str, row[:-1])): float(row[-1]) for row in found}


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    """A manifest with a line for most ways in which a check ends."""
    memory = (MEMORY / "program.lean").read_text()
    return write(
        tmp_path / "a.jsonl",
        *(entry(PROVED, number) for number in range(3)),
        *(entry(WRONG, number) for number in (3, 4)),
        entry(ADMITTED, 5),
        entry(ENDLESS, 6),
        {"name": "memory", "predicted_proof": memory, "timeout": 60},
        {"name": "assumed", "predicted_proof": ASSUMED},
    )


def test_a_worker_tells_what_the_store_knows_of_its_checks(
    quiet: Quiet, manifest: Path, tmp_path: Path
) -> None:
    with a_worker(quiet, tmp_path / "worker", FARM_METRICS_PORT="0") as worker:
        url = url_of(worker)
        canaries = happened(scraped(url), "farm_canaries_total", "environment", "result")
        assert set(canaries) == {("core", "passed")}
        assert canaries["core", "passed"] >= 8
        eventually(lambda: by(scraped(url), "farm_checks_total", "reason").get(("crash",)) == 0)
        assert quiet.farm("submit", manifest, "--no-wait", "--memory-mib", 256).returncode == 0
        eventually(lambda: sum(by(scraped(url), "farm_checks_total").values()) == 9, seconds=60)
        told = scraped(url)
    counted = happened(told, "farm_checks_total", "environment", "tier", "verdict", "reason")
    assert counted == rows(
        quiet,
        """
        SELECT environment, tier, verdict, reason, count(*)
        FROM verdicts JOIN checks ON id = check_id GROUP BY 1, 2, 3, 4
        """,
    )
    assert {(verdict, reason) for _, _, verdict, reason in counted} >= {
        *(PROVED, WRONG, ADMITTED, ENDLESS),
        *(("memory_limit", "memory_limit"), ("rejected", "axiom")),
    }
    _agree_on_seconds_and_memory(quiet, told)
    _agree_on_modules_and_text(quiet, told)
    _agree_on_attempts(quiet, told)


def _agree_on_seconds_and_memory(quiet: Quiet, told: Told) -> None:
    for name, column in (
        ("farm_check_wall_seconds", "wall_seconds"),
        ("farm_check_cpu_seconds", "cpu_seconds"),
    ):
        known = rows(quiet, f"SELECT verdict, sum({column}) FROM verdicts GROUP BY 1")
        assert by(told, f"{name}_sum", "verdict") == pytest.approx(known)
        numbers = rows(quiet, "SELECT verdict, count(*) FROM verdicts GROUP BY 1")
        assert by(told, f"{name}_count", "verdict") == numbers
    bytes_used = rows(quiet, "SELECT sum(peak_memory_kib) * 1024 FROM verdicts")
    assert by(told, "farm_check_peak_memory_bytes_sum") == bytes_used
    shares = rows(
        quiet,
        """
        SELECT 'wall', sum(v.wall_seconds / c.wall_seconds) FROM verdicts v JOIN checks c ON id = check_id
        UNION SELECT 'cpu', sum(v.cpu_seconds / c.cpu_seconds) FROM verdicts v JOIN checks c ON id = check_id
        UNION SELECT 'memory', sum(peak_memory_kib / 1024.0 / memory_mib)
        FROM verdicts v JOIN checks c ON id = check_id
        """,
    )
    counted = by(told, "farm_check_limit_ratio_sum", "limit")
    # The share of the wall limit leaves out the waits for a core, which the store does not know.
    assert 0 < counted.pop(("wall",)) <= shares.pop(("wall",)) * (1 + 1e-6)
    assert counted == pytest.approx(shares)
    at_most = by(told, "farm_check_limit_ratio_bucket", "limit", "le")
    assert at_most["wall", "+Inf"] - at_most["wall", "1.0"] == 1


def _agree_on_modules_and_text(quiet: Quiet, told: Told) -> None:
    seals = happened(told, "farm_seals_total", "result")
    assert seals == rows(
        quiet,
        """
        SELECT CASE verdict WHEN 'proved' THEN 'accepted' ELSE reason END, count(*)
        FROM verdicts WHERE audit IS NOT NULL GROUP BY 1
        """,
    )
    assert seals["axiom",] == 1
    hits = happened(told, "farm_policy_hits_total", "rule", "action")
    assert hits == rows(
        quiet,
        """
        SELECT hit ->> 'rule', hit ->> 'action', count(DISTINCT check_id)
        FROM verdicts, jsonb_array_elements(hits) AS hit GROUP BY 1, 2
        """,
    )
    assert hits["axiom", "report"] >= 1


def _agree_on_attempts(quiet: Quiet, told: Told) -> None:
    returned = rows(quiet, "SELECT outcome, count(*) FROM attempts WHERE outcome = 'returned' GROUP BY 1")
    assert happened(told, "farm_leases_returned_total", "outcome") == returned
    begun = rows(quiet, "SELECT count(*) FROM checks")
    assert by(told, "farm_check_wait_seconds_count") == begun
    assert by(told, "farm_kills_total", "cause")["wall",] >= 1
    assert sum(by(told, "farm_forks_total", "purpose").values()) >= 9
    assert by(told, "farm_images_begun_total", "result")["made",] >= 1
    assert by(told, "farm_images", "environment")["core",] >= 1
    assert by(told, "farm_images_memory_bytes", "environment")["core",] > 1 << 20
    state = {name: told[f"farm_worker_{name}", frozenset()] for name in ("slots", "busy_slots", "healthy")}
    assert state == {"slots": 2, "busy_slots": 0, "healthy": 1}
    (info,) = (dict(labels) for name, labels in told if name == "farm_worker_info")
    assert info["worker"].startswith(f"{socket.gethostname()}:")
    assert by(told, "farm_kernels_disagree_total", "environment") == {("core",): 0}


def test_a_worker_whose_port_is_taken_says_so_and_ends_as_after_bad_usage(
    quiet: Quiet, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = quiet.farm("worker", "--metrics-port", port)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith(f"farm: cannot serve metrics on 127.0.0.1:{port}: ")


def test_without_a_port_a_worker_serves_no_metrics(quiet: Quiet, tmp_path: Path) -> None:
    with a_worker(quiet, tmp_path / "worker") as worker:
        assert "metrics" not in worker.said


@pytest.fixture
def metrics(quiet: Quiet, tmp_path: Path) -> Iterator[str]:
    with quiet.farm.started(tmp_path / "metrics", "metrics", "--port", "0") as running:
        yield url_of(running)
        running.process.terminate()
        assert running.ended() == 0


def test_the_farm_is_told_over_a_port_printed_and_by_the_service(
    quiet: Quiet, metrics: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 1), entry(WRONG, 2))
    assert quiet.farm("submit", path, "--no-wait").returncode == 0
    printed = quiet.farm("metrics", "--once")
    assert printed.returncode == 0
    with listening(quiet.farm) as service:
        for told in (parsed(printed.stdout), scraped(metrics), scraped(f"{service}/metrics")):
            assert told["farm_up", frozenset()] == 1
            assert by(told, "farm_queue_checks", "environment", "class") == {("core", "batch"): 2}
            assert by(told, "farm_lines_total", "check") == {("own",): 2, ("shared",): 1}
            assert list(by(told, "farm_run_lines_left", "run").values()) == [3]


def test_the_service_tells_only_who_may_read(quiet: Quiet) -> None:
    key = Key(id="k", name="k", scopes=frozenset({Scope.SUBMIT}), classes=frozenset({"batch"}))
    with listening(quiet.farm, key) as service, pytest.raises(HTTPError, match="403"):
        urlopen(f"{service}/metrics", timeout=30)
    with listening(quiet.farm) as service, pytest.raises(HTTPError, match="401"):
        asked = Request(f"{service}/metrics", headers={"Authorization": "Bearer wrong"})
        urlopen(asked, timeout=30)


def test_a_farm_whose_postgresql_is_away_tells_that_and_goes_on(own_farm: Command, tmp_path: Path) -> None:
    away = own_farm.having(
        FARM_DATABASE_URL="postgresql://farm@127.0.0.1:1/farm", FARM_BROKER_URL="redis://127.0.0.1:1/0"
    )
    printed = away("metrics", "--once")
    assert printed.returncode == 0
    assert {name: value for (name, _), value in parsed(printed.stdout).items()} == {"farm_up": 0}
    assert "secret" not in printed.stderr
    with away.started(tmp_path / "metrics", "metrics", "--port", "0") as running:
        url = url_of(running)
        assert scraped(url) == {("farm_up", frozenset()): 0}
        assert scraped(url) == {("farm_up", frozenset()): 0}


def test_a_farm_of_ones_own_is_told_without_any_setting(own_farm: Command, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(PROVED, 2))
    assert own_farm("submit", path).returncode == 0
    told = parsed(own_farm("metrics", "--once").stdout)
    with asking(own_farm) as (_, queries):
        runs = {(run.id,): 0.0 for run in queries.runs()}
    assert by(told, "farm_run_export_lag_seconds", "run") == runs
    assert happened(told, "farm_attempts_total", "outcome") == {("proved",): len(runs)}


def test_a_lease_that_ends_while_it_is_held_is_told(quiet: Quiet, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", entry(ENDLESS, 1, timeout=60))
    with serving(quiet.farm, tmp_path / "worker", FARM_METRICS_PORT="0") as worker:
        url = url_of(worker)
        assert quiet.farm("submit", path, "--no-wait").returncode == 0
        eventually(lambda: by(scraped(url), "farm_worker_busy_slots") == {(): 1})
        run_id = quiet.queries.runs()[0].id
        assert quiet.farm("cancel", run_id).returncode == 0
        eventually(lambda: by(scraped(url), "farm_leases_lost_total") == {(): 1})
        eventually(lambda: by(scraped(url), "farm_worker_busy_slots") == {(): 0})
        assert by(scraped(url), "farm_kills_total", "cause")["cancelled",] == 1
    assert quiet.ask("SELECT outcome FROM attempts") == ["cancelled"]


def test_a_slow_reading_leaves_the_service_its_threads(quiet: Quiet) -> None:
    connections = Connections(Settings.load(quiet.farm.settings), threads=10)

    async def answered_meanwhile() -> bool:
        backend = Backend(connections)
        asked = [asyncio.ensure_future(backend.metrics(f"text/plain; version={n % 20}")) for n in range(60)]
        with quiet.engine.begin() as connection:
            connection.execute(text("LOCK TABLE tallies IN ACCESS EXCLUSIVE MODE"))
            await asyncio.wait(asked, timeout=0)
            await backend.environments()
            is_before = not any(each.done() for each in asked)
        await asyncio.gather(*asked)
        await backend.close()
        return is_before

    try:
        assert asyncio.run(answered_meanwhile())
    finally:
        connections.close()
