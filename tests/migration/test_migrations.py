"""The migrations make exactly the tables that the code works with, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from farm_migrations.tables import metadata
from sqlalchemy import Engine, make_url, text

from farm.assembly.challenge import Challenge
from farm.embedded import down, ensure
from farm.errors import DatabaseVersion, FarmError, ServerDown
from farm.judging.assurance import Assurance
from farm.judging.tiers import Tier
from farm.store import postgres
from farm.store.queries import Queries
from farm.store.transitions import Store
from tests.processes import PATIENCE, eventually

MIGRATIONS = Path(__file__).parents[2] / "migrations" / "farm_migrations"


def test_the_migrated_database_is_what_the_models_say(database: Engine) -> None:
    with database.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_the_migrated_constraints_are_what_the_models_say(database: Engine, empty_database_url: str) -> None:
    fresh = postgres.connect(empty_database_url, application="farm-test")
    metadata.create_all(fresh)
    asked = text(
        "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0 ORDER BY 1, 2"
    )
    with database.connect() as migrated, fresh.connect() as created:
        found = [row for row in migrated.execute(asked) if not row[0].startswith("alembic")]
        assert found == list(created.execute(asked))
    fresh.dispose()


def test_the_newest_revision_is_the_one_the_code_names() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_heads() == [postgres.SCHEMA]


def test_upgrades_started_together_all_succeed(empty_database_url: str) -> None:
    program = "import sys; from farm.store import postgres; postgres.upgrade(sys.argv[1])"
    command = [sys.executable, "-c", program, empty_database_url]
    nodes = [subprocess.Popen(command) for _ in range(4)]
    assert [node.wait(timeout=60 * PATIENCE) for node in nodes] == [0, 0, 0, 0]
    engine = postgres.connect(empty_database_url, application="farm-test")
    postgres.require_schema(engine)
    engine.dispose()


def test_a_second_upgrade_changes_nothing(empty_database_url: str) -> None:
    assert postgres.upgrade(empty_database_url) == (None, postgres.SCHEMA)
    assert postgres.upgrade(empty_database_url) == (postgres.SCHEMA, postgres.SCHEMA)


def test_an_empty_database_is_refused_with_the_command_that_mends_it(empty_database_url: str) -> None:
    engine = postgres.connect(empty_database_url, application="farm-test")
    with pytest.raises(DatabaseVersion, match=r"^the database is empty; run: farm db upgrade$"):
        postgres.require_schema(engine)
    engine.dispose()


def _at(database: Engine, revision: str, *, oldest: str) -> str:
    """Make a database look like one of a later release, and return its URL."""
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :at"), {"at": revision})
        connection.execute(text("UPDATE compatibility SET oldest = :oldest"), {"oldest": oldest})
    return database.url.render_as_string(hide_password=False)


def test_a_newer_database_that_only_has_more_is_used_and_left_alone(database: Engine) -> None:
    url = _at(database, "9999", oldest=postgres.SCHEMA)
    postgres.require_schema(database)
    assert postgres.upgrade(url) == ("9999", "9999")


def test_a_newer_database_that_takes_this_farm_no_more_is_refused_and_left_alone(database: Engine) -> None:
    url = _at(database, "9999", oldest="9998")
    words = f"at revision 9999, which needs a farm of revision 9998 or newer, .* of {postgres.SCHEMA}"
    with pytest.raises(DatabaseVersion, match=words):
        postgres.require_schema(database)
    with pytest.raises(DatabaseVersion, match=f"{words}; install a newer farm"):
        postgres.upgrade(url)
    with database.connect() as connection:
        assert postgres.revision(connection) == "9999"


def test_a_server_that_is_not_there_is_said_to_be_down_without_its_password() -> None:
    engine = postgres.connect("postgresql+psycopg://farm:secret@127.0.0.1:1/farm", application="farm-test")
    with pytest.raises(ServerDown, match="PostgreSQL does not answer at postgresql") as refused:
        postgres.require_schema(engine)
    assert "secret" not in str(refused.value)
    assert "farm:***@127.0.0.1:1" in str(refused.value)


def test_a_refused_password_is_not_taken_for_a_server_that_is_down(settled: Path, pair: str) -> None:
    rules = settled / "postgres" / "pg_hba.conf"
    rules.write_text(f"local all guarded scram-sha-256\n{rules.read_text()}")
    servers = ensure(settled, servers=pair, worker=False)
    try:
        url = make_url(servers.database_url).set(username="guarded", password="secret")
        engine = postgres.connect(url.render_as_string(hide_password=False), application="farm-test")
        with pytest.raises(
            ServerDown, match="refused the password of `guarded`; correct FARM_DATABASE_URL"
        ) as told:
            postgres.require_schema(engine)
        assert "secret" not in str(told.value)
        engine.dispose()
    finally:
        down(settled)


def _at_revision(url: str, revision: str) -> Engine:
    engine = postgres.connect(url, application="farm-test")
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine
    command.upgrade(config, revision)
    return engine


def test_a_migration_that_does_not_get_a_table_gives_up_says_so_and_can_be_repeated(
    empty_database_url: str,
) -> None:
    engine = _at_revision(empty_database_url, "0014")
    with engine.connect() as reading:
        reading.execute(text("LOCK TABLE jobs IN ACCESS SHARE MODE"))
        holder = rf"held by process {reading.scalar(text('SELECT pg_backend_pid()'))} of \w+ \(farm-test"
        with pytest.raises(FarmError, match=rf"gave up .*changed nothing.*{holder}.*farm db upgrade"):
            postgres.upgrade(empty_database_url, lock_seconds=1)
        with engine.connect() as connection:
            assert postgres.revision(connection) == "0014"
    assert postgres.upgrade(empty_database_url) == ("0014", postgres.SCHEMA)
    engine.dispose()


def test_a_migration_that_loses_a_deadlock_begins_again(empty_database_url: str) -> None:
    engine = _at_revision(empty_database_url, "0014")
    held, wanted = "workers", "jobs"  # the migration locks them in the other order
    with engine.connect() as other, ThreadPoolExecutor(1) as pool:
        # PostgreSQL rolls back the transaction that finds the deadlock: only the migration looks for one.
        other.execute(text("SET deadlock_timeout = '10min'"))
        other.execute(text(f"LOCK TABLE {held} IN ACCESS SHARE MODE"))
        migrating = pool.submit(postgres.upgrade, empty_database_url, lock_seconds=int(60 * PATIENCE))
        eventually(lambda: _waits_for(engine, held))
        other.execute(text(f"LOCK TABLE {wanted} IN ACCESS SHARE MODE"))
        other.rollback()
        assert migrating.result() == ("0014", postgres.SCHEMA)
    eventually(lambda: _deadlocks(engine) == 1)
    engine.dispose()


def _waits_for(engine: Engine, table: str) -> bool:
    waiting = text(
        "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = to_regclass(:table))"
    )
    with engine.connect() as connection:
        return bool(connection.scalar(waiting, {"table": table}))


def _deadlocks(engine: Engine) -> int:
    asked = text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    with engine.connect() as connection:
        return int(connection.scalar(asked) or 0)


_JUDGED = """
    INSERT INTO environments (name, digest, toolchain, seen_at, tiers)
    VALUES ('core', 'd1', 'Lean 4.35.0', now(), '{kernel,audit,lean}');
    INSERT INTO runs (id, options, farm_version) VALUES ('run1', '{}', '0');
    INSERT INTO manifests (run_id, number, path, sha256, size) VALUES ('run1', 0, '/a.jsonl', 'f', 1);
    INSERT INTO programs VALUES (sha256('x'), 'x'), (sha256('y'), 'y');
    INSERT INTO checks (
        program_sha256, submitted, challenge_sha256, challenge_name, environment, environment_digest,
        checker_version, tier, native, axioms, policy, wall_seconds, cpu_seconds, memory_mib, priority, turn,
        status, attempt)
    SELECT sha256('x'), '[]', sha256('y'), 'name', 'core', 'd1', '', 'audit', false, '[]', '{}', 30, 60, 4096,
           2, turn, CASE WHEN turn = 0 THEN 'done' ELSE 'queued' END, 1
    FROM generate_series(0, 1) AS turn;
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings)
    SELECT 'run1', 0, turn, id, 'name', '[]', '[]' FROM checks;
    INSERT INTO attempts (check_id, number, worker, started_at, outcome, detail)
    SELECT id, 1, 'w', now(), 'proved', '' FROM checks WHERE turn = 0;
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, audit, statement, wall_seconds,
        cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, 1, 'proved', 'ok', '', '[]', '[]', '{"accepted": true}', 'compared', 1, 1, 1, '', '', '', ''
    FROM checks WHERE turn = 0;
"""


def test_a_run_of_the_first_release_keeps_its_verdicts_and_goes_on(empty_database_url: str) -> None:
    engine = _at_revision(empty_database_url, "0014")
    with engine.begin() as connection:
        connection.execute(text(_JUDGED.replace(":", "\\:")))
    assert postgres.upgrade(empty_database_url) == ("0014", postgres.SCHEMA)
    queries = Queries(engine)
    tally = queries.tally("run1")
    assert (tally.statuses, tally.verdicts) == ({"done": 1, "queued": 1}, {("proved", "ok"): 1})
    (first, _) = queries.judged("run1", 0)
    assert first.verdict is not None
    assert (first.tier, first.verdict.statement, first.verdict.trusts) == ("audit", "compared", [])
    assert [attempt["outcome"] for attempt in queries.attempts("run1", 0, 0)] == ["proved"]
    (claim,) = Store(engine).claim(["core"], worker="w", lease_seconds=60)
    assert claim.attempt == 2
    assert (claim.check.program, claim.check.submitted) == ("x", ())
    assert claim.check.assurance == Assurance(tier=Tier.AUDIT, axioms=())
    assert claim.check.challenge == Challenge(program="y", name="name")
    engine.dispose()


def test_a_database_that_is_older_than_any_release_is_refused_with_the_remedy(database: Engine) -> None:
    with database.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0013'"))
    words = "at revision 0013, of a farm before 0014, .*; name an empty database in FARM_DATABASE_URL"
    with pytest.raises(DatabaseVersion, match=words):
        postgres.require_schema(database)
    with pytest.raises(DatabaseVersion, match=words):
        postgres.upgrade(database.url.render_as_string(hide_password=False))
