"""The migrations make exactly the tables that the code works with, on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
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
    assert [node.wait(timeout=60) for node in nodes] == [0, 0, 0, 0]
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


_OLD = """
    INSERT INTO environments VALUES ('core', 'd1', 'Lean 4.35.0', now());
    INSERT INTO runs (id, options, farm_version) VALUES ('run1', '{}', '0');
    INSERT INTO programs VALUES (sha256('x'), 'x');
    INSERT INTO checks (
        run_id, program_sha256, environment, tier, wall_seconds, cpu_seconds, memory_mib, status)
    VALUES ('run1', sha256('x'), 'core', 'fast', 30, 60, 4096, 'queued');
"""


def test_what_waits_in_a_database_of_an_earlier_farm_is_judged_with_the_policy(
    empty_database_url: str,
) -> None:
    engine = _at_revision(empty_database_url, "0001")
    with engine.begin() as connection:
        connection.execute(text(_OLD))
        check_id = connection.scalar(text("SELECT id FROM checks"))
    assert postgres.upgrade(empty_database_url) == ("0001", postgres.SCHEMA)
    (claim,) = Store(engine).claim(["core"], worker="w", lease_seconds=60)
    assert claim.check_id == check_id
    ((start, end),) = claim.check.submitted or ()
    assert start == 0
    assert end > len(claim.check.program)
    assert claim.check.assurance == Assurance(tier=Tier.LEAN)
    engine.dispose()


def test_an_early_first_revision_with_some_of_the_second_is_brought_along(empty_database_url: str) -> None:
    engine = _at_revision(empty_database_url, "0001")
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE checks ADD COLUMN submitted JSONB NOT NULL"))
        connection.execute(text("ALTER TABLE verdicts ADD COLUMN audit JSONB"))
    postgres.upgrade(empty_database_url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_a_migration_that_does_not_get_a_table_gives_up_says_so_and_can_be_repeated(
    empty_database_url: str,
) -> None:
    engine = _at_revision(empty_database_url, "0002")
    with engine.connect() as reading:
        reading.execute(text("LOCK TABLE jobs IN ACCESS SHARE MODE"))
        with pytest.raises(FarmError, match=r"gave up .*changed nothing.*farm db upgrade"):
            postgres.upgrade(empty_database_url, lock_seconds=1)
        with engine.connect() as connection:
            assert postgres.revision(connection) == "0002"
    assert postgres.upgrade(empty_database_url) == ("0002", postgres.SCHEMA)
    engine.dispose()


_JUDGED = """
    INSERT INTO environments VALUES ('core', 'd1', 'Lean 4.35.0', now());
    INSERT INTO runs (id, options, farm_version) VALUES ('run1', '{}', '0');
    INSERT INTO manifests (run_id, number, path, sha256, size) VALUES ('run1', 0, '/a.jsonl', 'f', 1);
    INSERT INTO programs VALUES (sha256('x'), 'x');
    INSERT INTO challenges VALUES (sha256('name and y'), 'name', 'y');
    INSERT INTO checks (
        run_id, program_sha256, submitted, challenge_sha256, environment, tier, axioms, policy,
        wall_seconds, cpu_seconds, memory_mib, status, attempt, lease_until)
    SELECT 'run1', sha256('x'), '[]', sha256('name and y'), 'core', 'fast', '[]', '{}', 30, 60, 4096,
           status, 1, CASE WHEN status = 'running' THEN now() END
    FROM unnest(ARRAY['done', 'running']) AS status;
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings)
    SELECT 'run1', 0, id, id, 'name', '[]', '[]' FROM checks;
    INSERT INTO attempts (check_id, number, worker, ended_at, outcome)
    SELECT id, 1, 'w', CASE WHEN status = 'done' THEN now() END, CASE WHEN status = 'done' THEN 'proved' END
    FROM checks;
    INSERT INTO verdicts (
        check_id, run_id, attempt, verdict, reason, detail, messages, hits, wall_seconds, cpu_seconds,
        peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, 'run1', 1, 'proved', 'ok', '', '[]', '[]', 1, 1, 1, '', '', '', '' FROM checks
    WHERE status = 'done';
"""


def test_a_run_of_an_earlier_farm_keeps_its_verdicts_and_goes_on(empty_database_url: str) -> None:
    engine = _at_revision(empty_database_url, "0002")
    with engine.begin() as connection:
        connection.execute(text(_JUDGED))
    postgres.upgrade(empty_database_url)
    queries = Queries(engine)
    tally = queries.tally("run1")
    assert (tally.statuses, tally.verdicts) == ({"done": 1, "queued": 1}, {("proved", "ok"): 1})
    assert [attempt["outcome"] for attempt in queries.attempts("run1", 0, 1)] == ["proved"]
    (claim,) = Store(engine).claim(["core"], worker="w", lease_seconds=60)
    assert claim.attempt == 2
    assert claim.check.program == "x"
    assert claim.check.challenge == Challenge(program="y", name="name")
    engine.dispose()


_TIERS = """
    INSERT INTO environments VALUES
        ('core', 'd1', 'Lean 4.35.0', now(), 'replay', true),
        ('bare', 'd1', 'Lean 4.35.0', now(), NULL, true),
        ('old', 'd1', 'Lean 4.22.0', now(), NULL, false);
    INSERT INTO runs (id, options, farm_version) VALUES
        ('run1', '{"assurance": {"tier": "fast", "confirm": "gold"}}', '0'), ('run2', '{}', '0');
    INSERT INTO manifests (run_id, number, path, sha256, size) VALUES
        ('run1', 0, '/a.jsonl', 'f', 1), ('run2', 0, '/a.jsonl', 'f', 1);
    INSERT INTO programs VALUES (sha256('x'), 'x');
    INSERT INTO checks (
        program_sha256, submitted, environment, environment_digest, checker_version, tier, confirm, axioms,
        policy, wall_seconds, cpu_seconds, memory_mib, priority, turn, status)
    SELECT sha256('x'), '[]', 'core', 'd1', '', tier, confirm, '[]', '{"axiom": "reject", "query": "off"}',
           30, 60, 4096, 2, turn, CASE WHEN turn = 0 THEN 'done' ELSE 'queued' END
    FROM (VALUES (0, 'fast', 'gold'), (1, 'fast', 'strict'), (2, 'strict', NULL), (3, 'gold', NULL),
                 (4, 'fast', NULL)) AS asked (turn, tier, confirm);
    INSERT INTO jobs (run_id, manifest, line, check_id, name, segments, warnings)
    SELECT 'run1', 0, turn, id, 'name', '[]', '[]' FROM checks;
    INSERT INTO verdicts (
        check_id, attempt, verdict, reason, detail, messages, hits, audit, accepted_first, wall_seconds,
        cpu_seconds, peak_memory_kib, isolation, environment_digest, toolchain, checker_version)
    SELECT id, 1, 'proved', 'ok', '', '[]', '[]', '{"accepted": true}', true, 1, 1, 1, '', '', '', ''
    FROM checks WHERE turn = 0;
"""


def test_a_check_of_an_earlier_farm_believes_whom_its_last_look_would_have_believed(
    empty_database_url: str,
) -> None:
    engine = _at_revision(empty_database_url, "0003")
    with engine.begin() as connection:
        connection.execute(text(_TIERS.replace(":", "\\:")))
    postgres.upgrade(empty_database_url)
    queries = Queries(engine)
    assert {each.name: [*each.tiers] for each in queries.served()} == {
        "core": ["kernel", "audit", "lean"],
        "bare": ["audit", "lean"],
        "old": ["lean"],
    }
    assert [queries.run(run_id).tier for run_id in ("run1", "run2")] == ["kernel", ""]
    (line, *_) = queries.judged("run1", 0)
    assert line.verdict is not None
    assert (line.tier, line.verdict.statement, line.verdict.trusts) == ("kernel", "compared", [])
    found = Store(engine).claim(["core"], worker="w", lease_seconds=60, most=9)
    assured = [claim.check.assurance for claim in found]
    assert [each and each.tier for each in assured] == ["audit", "audit", "kernel", "lean"]
    # A rule can still reject where no module decides, and nowhere else.
    assert [each and sorted(each.policy.actions) for each in assured] == [
        *[["query"]] * 3,
        ["axiom", "query"],
    ]
    engine.dispose()
