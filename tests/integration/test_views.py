"""The views of the schema `report`: what they count, what their page says, and who can read them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import errors
from sqlalchemy import Engine, text

from farm.embedded import Servers, down, ensure
from farm.errors import FarmError
from farm.judging.messages import HEARTBEAT_KIND
from farm.judging.report import Message
from farm.runs import revise
from farm.store import postgres
from farm.store.queries import Queries
from farm.store.reader import ROLE, make_reader
from farm.store.transitions import Store
from tests.dashboards import filled, queries
from tests.farms import CORE, claimed, finished, load

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "views.md").read_text()
PROGRAM = "theorem t : 1 + 1 = 2 := rfl -- the secret of a program"


HEARTBEAT = Message(
    severity="error", kind=HEARTBEAT_KIND, text="x", line=1, column=0, end_line=None, end_column=None
)


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def ask(engine: Engine, question: str, **values: object) -> list[dict[str, object]]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(text(question), values).mappings()]


def judge(store: Store, run_id: str, line: int, **facts: object) -> None:
    (row,) = ask(
        store.engine, "SELECT check_id FROM jobs WHERE run_id = :run AND line = :line", run=run_id, line=line
    )
    assert finished(store, claimed(store, int(str(row["check_id"]))), **facts)


@pytest.fixture
def run_id(store: Store, tmp_path: Path) -> str:
    """A run of six lines: two answers to a problem, a copy, two of a group, one that waits."""
    answers = [
        {"name": "sum", "predicted_proof": PROGRAM, "timeout": 2},
        {"name": "sum", "predicted_proof": PROGRAM + "2", "timeout": 2},
        {"name": "sum", "predicted_proof": PROGRAM, "timeout": 2},
        {"name": "a", "group": "g", "predicted_proof": PROGRAM + "3"},
        {"name": "b", "group": "g", "predicted_proof": PROGRAM + "4"},
        {"name": "", "predicted_proof": PROGRAM + "5"},
    ]
    run_id = load(store, tmp_path / "a.jsonl", *answers)
    judge(store, run_id, 1)
    judge(store, run_id, 2, limit="wall", wall_seconds=2.5, cpu_seconds=2.0)
    judge(store, run_id, 4, limit="cpu", cpu_seconds=61.0)
    judge(store, run_id, 5, limit="memory")
    return run_id


def test_a_line_has_its_limits_and_what_it_used_of_them(store: Store, run_id: str) -> None:
    asked = "SELECT * FROM report.lines WHERE run_id = :run AND line = 2"
    (line,) = ask(store.engine, asked, run=run_id)
    assert (line["verdict"], line["reason"], line["status"]) == ("timeout", "wall_limit", "done")
    assert (line["wall_seconds"], line["wall_limit_seconds"], line["wall_use"]) == (2.5, 2.0, 1.25)
    assert (line["cpu_limit_seconds"], line["cpu_use"]) == (4.0, 0.5)
    assert (line["memory_mib"], line["memory_limit_mib"]) == (2.0, 4096)
    assert line["memory_use"] == 2.0 / 4096


def test_a_run_counts_what_the_farm_itself_counts(store: Store, run_id: str) -> None:
    (run,) = ask(store.engine, "SELECT * FROM report.runs WHERE run_id = :run", run=run_id)
    tally = Queries(store.engine).tally(run_id)
    assert (run["kind"], run["tier"], len(run["manifests"])) == ("manifests", "kernel", 1)  # type: ignore[arg-type]
    assert run["lines"] == tally.total == 6
    assert run["unfinished"] == tally.unfinished == 1
    assert run["judged"] == sum(tally.verdicts.values()) == 5
    assert run["proved"] == tally.verdicts["proved", "ok"] == 2
    assert (run["timeouts"], run["wall_limits"], run["cpu_limits"], run["memory_limits"]) == (2, 1, 1, 1)
    # The third line shares the check of the first, whose 0.4 s count once.
    assert run["cpu_seconds"] == pytest.approx(0.4 + 2.0 + 61.0 + 0.4)
    assert run["timeout_cpu_seconds"] == pytest.approx(63.0)


def test_a_run_counts_each_way_in_which_a_line_ends(store: Store, tmp_path: Path) -> None:
    lines = [{"name": f"t{number}", "predicted_proof": f"{PROGRAM} {number}"} for number in range(5)]
    run_id = load(store, tmp_path / "ends.jsonl", *lines)
    judge(store, run_id, 1)
    judge(store, run_id, 2, box_error="why")
    judge(store, run_id, 3, messages=(HEARTBEAT,))
    judge(store, run_id, 4, audit=None, kernel_limit="time")
    revise.cancel(store, run_id)
    (run,) = ask(store.engine, "SELECT * FROM report.runs WHERE run_id = :run", run=run_id)
    ends = ("proved", "judge_errors", "heartbeat_limits", "kernel_times", "timeouts", "cancelled", "judged")
    assert [run[end] for end in ends] == [1, 1, 1, 1, 2, 1, 4]
    shares = {"Judged": 4 / 5, "Proved": 1 / 3, "Timed out": 2 / 3}
    for panel, share in shares.items():
        (query,) = (each for each in queries() if each.is_sql and each.panel == panel)
        (row,) = ask(store.engine, filled(query.text, window="1m", span="1h", run=run_id))
        assert list(row.values()) == [pytest.approx(share)], panel


def test_a_contested_verdict_is_told_of_each_of_its_lines(store: Store, run_id: str) -> None:
    asked = "SELECT line, contested FROM report.lines WHERE run_id = :run ORDER BY line"
    (query,) = (each for each in queries() if each.panel == "Contested verdicts")
    listed = filled(query.text, window="1m", span="1h", run=run_id)
    assert ask(store.engine, listed) == []
    with store.engine.begin() as connection:
        connection.execute(text("SELECT contest(array_agg(check_id)) FROM jobs WHERE line = 1"))
    told = [row["contested"] for row in ask(store.engine, asked, run=run_id)]
    assert told == [True, False, True, False, False, None]  # the first and the third share a check
    assert [row["line"] for row in ask(store.engine, listed)] == [1, 3]


def test_a_problem_is_a_group_else_a_name_else_a_line_as_the_farm_counts_them(
    store: Store, run_id: str
) -> None:
    asked = "SELECT * FROM report.problems WHERE run_id = :run ORDER BY problem"
    rows = ask(store.engine, asked, run=run_id)
    assert [(row["problem_by"], row["problem"], row["lines"], row["timeouts"]) for row in rows] == [
        ("line", "0:6", 1, 0),
        ("group", "g", 2, 1),
        ("name", "sum", 3, 1),
    ]
    solved = Queries(store.engine).solved(run_id)
    assert (solved.problems, solved.problems_solved) == (3, 1)
    assert sum(bool(row["proved"]) for row in rows) == 1


def test_the_newest_runs_cost_no_more_than_their_own_lines(store: Store, tmp_path: Path) -> None:
    for nth in range(40):
        entries = [{"name": "t", "predicted_proof": f"{PROGRAM} {nth} {k}"} for k in range(5)]
        load(store, tmp_path / f"{nth}.jsonl", *entries)
    asked = """
        SELECT * FROM (
            SELECT run_id FROM report.runs WHERE owner IS NULL ORDER BY created_at DESC LIMIT 3
        ) AS newest JOIN report.runs USING (run_id)
    """
    with store.engine.begin() as connection:
        # A table of 200 lines is read whole where the server has counted them, which it does now and then.
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        (plan,) = connection.scalar(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {asked}"))
    assert sum(_jobs_read(plan["Plan"])) == 15


def test_a_queue_is_what_waits_and_what_workers_hold_in_each_environment(
    store: Store, run_id: str, tmp_path: Path
) -> None:
    store.declare("idle", toolchain="4.35.0")
    (waiting,) = ask(store.engine, "SELECT id FROM checks WHERE status = 'queued'")
    with store.engine.begin() as connection:
        connection.execute(
            text("UPDATE checks SET queued_at = now() - interval '90 s' WHERE status = 'queued'")
        )
    asked = "SELECT * FROM report.queues ORDER BY environment"
    core, idle = ask(store.engine, asked)
    assert (core["environment"], core["waiting"], core["held"]) == ("core", 1, 0)
    assert core["oldest_seconds"] == pytest.approx(90, abs=30)
    assert list(idle.values()) == ["idle", 0, 0, None]
    claimed(store, int(str(waiting["id"])))
    core, _ = ask(store.engine, asked)
    assert (core["waiting"], core["held"], core["oldest_seconds"]) == (0, 1, None)


def test_a_long_queue_costs_a_scaler_no_more_than_its_beginning(store: Store, tmp_path: Path) -> None:
    entries = [{"name": "t", "predicted_proof": f"{PROGRAM} {k}"} for k in range(100)]
    load(store, tmp_path / "long.jsonl", *entries)
    copied = """
        INSERT INTO checks SELECT (jsonb_populate_record(checks, jsonb_build_object(
            'id', checks.id + 1000000 * nth, 'turn', checks.turn + 1000000 * nth, 'identity', NULL))).*
        FROM checks, generate_series(1, 150) AS nth
    """
    with store.engine.begin() as connection:
        connection.execute(text(copied))
        connection.execute(text("ANALYZE checks"))  # as autovacuum does within a minute of a load
        connection.execute(text("SET LOCAL random_page_cost = 1.1"))  # as the reader's role has it
        (plan,) = connection.scalar(text("EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM report.queues"))
        queue = connection.execute(text("SELECT * FROM report.queues")).one()
    assert queue.waiting == 10_000
    assert sum(_rows_read(plan["Plan"], "checks")) <= 10_000 + 3 * 1_000


def _rows_read(node: dict[str, object], table: str) -> Iterator[int]:
    if node.get("Relation Name") == table:
        yield int(node["Actual Rows"]) * int(node["Actual Loops"])  # type: ignore[call-overload]
        yield int(node.get("Rows Removed by Filter", 0))  # type: ignore[call-overload]
    for child in node.get("Plans", []):  # type: ignore[attr-defined]
        yield from _rows_read(child, table)


def _jobs_read(node: dict[str, object]) -> Iterator[int]:
    if node.get("Relation Name") == "jobs":
        yield int(node["Actual Rows"]) * int(node["Actual Loops"])  # type: ignore[call-overload]
        yield int(node.get("Rows Removed by Filter", 0))  # type: ignore[call-overload]
    for child in node.get("Plans", []):  # type: ignore[attr-defined]
        yield from _jobs_read(child)


def _documented(view: str) -> list[str]:
    section = PAGE.partition(f"## `report.{view}`")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)`", section, re.MULTILINE)


def test_the_page_has_the_views_and_their_columns(database: Engine) -> None:
    asked = """
        SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'report' ORDER BY table_name, ordinal_position
    """
    found: dict[str, list[str]] = {}
    for row in ask(database, asked):
        found.setdefault(str(row["table_name"]), []).append(str(row["column_name"]))
    assert set(re.findall(r"^## `report\.(\w+)`", PAGE, re.MULTILINE)) == set(found)
    assert _documented("lines") == found["lines"]
    assert _documented("runs") == found["runs"]
    own, counts = found["problems"][:3], found["problems"][3:]
    assert _documented("problems") == [*own, "lines"]
    assert counts == found["runs"][found["runs"].index("lines") :]


@pytest.fixture
def as_reader(store: Store, run_id: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A connection of the role that reads views, to a farm with a run in it."""
    make_reader(store.engine, password=None)
    url = store.engine.url.set(drivername="postgresql", username=ROLE)
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as connection:
        yield connection


@pytest.mark.parametrize("view", ["runs", "lines", "problems", "queues"])
def test_the_reader_reads_each_view(as_reader: psycopg.Connection[tuple[object, ...]], view: str) -> None:
    rows = as_reader.execute(f"SELECT * FROM report.{view}").fetchall()
    assert rows
    assert "secret of a program" not in str(rows)


def test_the_reader_is_refused_everything_else(
    as_reader: psycopg.Connection[tuple[object, ...]], database: Engine
) -> None:
    tables = ask(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    assert len(tables) > 9
    for row in tables:
        with pytest.raises(errors.InsufficientPrivilege):
            as_reader.execute(f"SELECT count(*) FROM public.{row['tablename']}")
    as_reader.execute("SET default_transaction_read_only = off")
    for statement in (
        "CREATE TABLE public.mine (a int)",
        "CREATE VIEW report.mine AS SELECT 1",
        "UPDATE report.lines SET name = ''",
        "DELETE FROM report.runs",
        "SELECT pg_read_file('/etc/passwd')",
        "COPY (SELECT 1) TO PROGRAM 'true'",
        "CREATE ROLE other",
        # What sweeps and submissions wait for.
        "SELECT 1 FROM alembic_version FOR UPDATE",
        "INSERT INTO submitting VALUES ('')",
    ):
        with pytest.raises((errors.InsufficientPrivilege, errors.ObjectNotInPrerequisiteState)):
            as_reader.execute(statement)


def test_no_privilege_stands_open_to_every_role(database: Engine) -> None:
    asked = """
        SELECT table_name, grantee FROM information_schema.table_privileges
        WHERE table_schema IN ('public', 'report') AND grantee NOT IN (current_user, 'farm_reader')
    """
    assert ask(database, asked) == []


def test_the_password_is_what_opens_and_repeating_without_one_keeps_it(settled: Path, pair: str) -> None:
    rules = settled / "postgres" / "pg_hba.conf"
    rules.write_text(f"local all {ROLE} scram-sha-256\n{rules.read_text()}")
    servers: Servers = ensure(settled, servers=pair, worker=False)
    postgres.upgrade(servers.database_url)
    engine = postgres.connect(servers.database_url, application="farm-test")
    try:
        password = secrets.token_urlsafe()
        assert make_reader(engine, password=password)
        assert not make_reader(engine, password=None)
        reader = engine.url.set(drivername="postgresql", username=ROLE)
        for word, opens in ((password, True), ("wrong", False)):
            url = reader.set(password=word).render_as_string(hide_password=False)
            if opens:
                with psycopg.connect(url) as connection:
                    connection.execute("SELECT FROM report.runs")
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("SET default_transaction_read_only = off")
                    connection.execute(f"ALTER ROLE {ROLE} SET statement_timeout = 0")
                assert not make_reader(engine, password=None)
                with psycopg.connect(url) as connection:
                    assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
            else:
                with pytest.raises(psycopg.OperationalError):
                    psycopg.connect(url)
    finally:
        engine.dispose()
        down(settled)


def test_a_user_who_may_not_make_roles_is_told_what_to_do(settled: Path, pair: str) -> None:
    servers: Servers = ensure(settled, servers=pair, worker=False)
    postgres.upgrade(servers.database_url)
    engine = postgres.connect(servers.database_url, application="farm-test")
    try:
        with engine.begin() as connection:
            connection.execute(text("CREATE ROLE humble LOGIN"))
        url = engine.url.set(username="humble").render_as_string(hide_password=False)
        humble = postgres.connect(url, application="farm-test")
        with pytest.raises(
            FarmError, match=r"did not let humble make the role farm_reader: .*docs/reference/views\.md"
        ):
            make_reader(humble, password=None)
        humble.dispose()
    finally:
        engine.dispose()
        down(settled)
