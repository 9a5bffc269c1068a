"""PostgreSQL is lost and comes back from a backup: what was archived is there, the rest is judged anew."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, make_url, text

from farm.embedded.binaries import find_pair
from farm.store import postgres
from farm.store.queries import Queries
from tests.chaos.servers import Servers
from tests.commands import ENDLESS, PROVED, WRONG, Command, Running, entry, verdicts, write
from tests.deploy.page import settings
from tests.farms import serving, wait_for_run
from tests.processes import PATIENCE, eventually

KINDS = [PROVED, WRONG, ENDLESS, ENDLESS, ENDLESS, WRONG, ENDLESS, PROVED, ENDLESS, ENDLESS]

_SECTION = "Backup and restore"


def configured(archive: Path, *names: str) -> str:
    """Return settings of the page, with this folder for the archive."""
    return settings(_SECTION, *names).replace("/archive/", f"{archive}/")


_FACTS = text("""
    SELECT run_id, line, checks.id, attempt, verdicts.verdict, reason, decided_at
    FROM jobs JOIN checks ON checks.id = check_id JOIN verdicts USING (check_id, attempt)
    ORDER BY run_id, line
""")


@dataclass(frozen=True)
class Site:
    """A farm whose PostgreSQL archives its log, and is lost and restored by the test."""

    farm: Command
    servers: Servers
    engine: Engine
    data: Path
    folder: Path

    @property
    def queries(self) -> Queries:
        return Queries(self.engine)

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def ask(self, question: str) -> Any:
        with self.engine.connect() as connection:
            return connection.scalar(text(question))

    def facts(self) -> set[tuple[object, ...]]:
        """Return which lines have a verdict, by which attempt, and when they got it."""
        with self.engine.connect() as connection:
            return {tuple(row) for row in connection.execute(_FACTS)}

    def program(self, name: str, *words: str) -> None:
        """Run a program of PostgreSQL's on this server."""
        url = make_url(self.engine.url)
        where = ["-h", str(url.query["host"]), "-U", str(url.username)]
        postgres, _ = find_pair(os.environ.get("FARM_TEST_SERVERS", "wheels"))
        command = [*postgres.command(name), *where, *words]
        subprocess.run(command, check=True, capture_output=True)

    def base_backup(self) -> Path:
        backup = self.folder / "backup"
        self.program("pg_basebackup", "-D", str(backup), "-X", "none", "-c", "fast")
        return backup

    def archived(self) -> None:
        """Wait until all that is committed now is in the archive."""
        last = self.ask("SELECT pg_walfile_name(pg_switch_wal())")
        eventually(lambda: (self.archive / last).exists())

    def lose(self) -> None:
        """Lose PostgreSQL with all that it had, and whatever Redis knew."""
        self.servers.postgres.end_by(signal.SIGKILL)
        shutil.rmtree(self.data)
        self.servers.valkey.end_by(signal.SIGKILL)

    def restore(self, backup: Path) -> None:
        # Not shutil.copytree: the server insists on whose its files are.
        subprocess.run(["cp", "-a", str(backup), str(self.data)], check=True)
        configuration = self.data / "postgresql.conf"
        configuration.write_text(configuration.read_text() + configured(self.archive, "restore_command"))
        (self.data / "recovery.signal").touch()
        self.servers.start_postgres()
        self.servers.start_valkey()
        eventually(lambda: not self.ask("SELECT pg_is_in_recovery()"))


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A farm whose PostgreSQL archives its log."""
    home = tmp_path / "servers"
    servers = Servers(home)
    archive = tmp_path / "archive"
    archive.mkdir()
    configuration = home / "postgres" / "postgresql.conf"
    servers.postgres.end_by(signal.SIGINT)
    configuration.write_text(
        configuration.read_text() + configured(archive, "wal_level", "archive_mode", "archive_command")
    )
    servers.start_postgres()
    url = servers.new_database("saved")
    engine = postgres.connect(url, application="farm-test")
    farm = Command(
        {
            "FARM_HOME": str(tmp_path / "home"),
            "FARM_DATABASE_URL": url.replace("+psycopg", "", 1),
            "FARM_BROKER_URL": servers.broker_url(1),
            "FARM_LEASE_SECONDS": str(2 * PATIENCE),
            "FARM_CONCURRENCY": "2",
            "FARM_ISOLATION": "rlimit",
        }
    )
    yield Site(farm, servers, engine, home / "postgres", tmp_path)
    engine.dispose()
    servers.end()


def a_manifest(site: Site, first: int) -> Path:
    """Return a manifest whose programs are no other's."""
    made = (entry(kind, number) for number, kind in enumerate(KINDS, first))
    return write(site.folder / f"from-{first}.jsonl", *made)


@contextmanager
def submitting(site: Site, manifest: Path) -> Iterator[Running]:
    with site.farm.started(site.folder / f"submit-{manifest.stem}", "submit", manifest) as submit:
        yield submit


def dump(site: Site) -> None:
    site.program("pg_dump", "-Fc", "-f", str(site.folder / "farm.dump"), "saved")


def undump(site: Site) -> None:
    """Put the database of the dump in the place of the one that there is."""
    site.engine.dispose()
    site.program("dropdb", "--force", "saved")
    site.program("createdb", "saved")
    site.program("pg_restore", "-d", "saved", "--exit-on-error", str(site.folder / "farm.dump"))


def check_all(site: Site, run_id: str) -> None:
    """Check that each line of a run has one verdict, the right one, by its last attempt."""
    tally = site.queries.tally(run_id)
    assert tally.statuses == {"done": len(KINDS)}
    found = {fact[1]: fact[4:6] for fact in site.facts() if fact[0] == run_id}
    assert found == dict(enumerate(KINDS, 1))


def test_from_a_base_backup_and_the_archived_log_nothing_committed_is_lost(
    site: Site, tmp_path: Path
) -> None:
    first, second = a_manifest(site, 100), a_manifest(site, 200)
    with serving(site.farm, tmp_path / "worker") as worker:
        with submitting(site, first) as submit:
            wait_for_run(site.queries, first, "done")
            backup = site.base_backup()
            assert submit.ended() == 0, submit.said
        with submitting(site, second) as submit:
            run_id = wait_for_run(site.queries, second, "done")
            known = site.facts()
            site.archived()
            site.lose()
            site.restore(backup)
            assert known <= site.facts()
            assert submit.ended(seconds=100) == 0, submit.said
        assert worker.process.poll() is None
        check_all(site, run_id)
        check_all(site, site.queries.runs()[-1].id)
    assert verdicts(first) == verdicts(second) == KINDS


def test_after_an_older_backup_what_it_does_not_know_is_judged_again_and_no_file_is_harmed(
    site: Site, tmp_path: Path
) -> None:
    old, new = a_manifest(site, 100), a_manifest(site, 200)
    with serving(site.farm, tmp_path / "worker") as worker:
        with submitting(site, old) as submit:
            run_id = wait_for_run(site.queries, old, "done")
            dump(site)
            assert submit.ended() == 0, submit.said
        assert site.farm("submit", new).returncode == 0
        exported = old.read_bytes(), new.read_bytes()
        worker.process.terminate()  # what a worker holds is not in the backup
        assert worker.ended() == 0, worker.said
    undump(site)
    assert [run.id for run in site.queries.runs()] == [run_id]
    with serving(site.farm, tmp_path / "again"):
        assert site.farm("status", run_id, "--wait", seconds=100).returncode == 0
        check_all(site, run_id)
        # The file has verdicts of which the database knows nothing: somebody else's work.
        refused = site.farm("export", run_id)
        assert refused.returncode == 5
        assert "-o OTHER.jsonl" in refused.stderr
        assert (old.read_bytes(), new.read_bytes()) == exported
        assert site.farm("export", run_id, "-o", tmp_path / "other.jsonl").returncode == 0
        assert verdicts(tmp_path / "other.jsonl") == KINDS
        # Submitted again they are runs of their own, which need no Lean for what is known.
        for manifest in (old, new):
            said = site.farm("submit", manifest, seconds=100)
            assert said.returncode == 0, said.stderr
            assert verdicts(manifest) == KINDS


def test_a_worker_that_lived_through_the_restore_of_an_older_backup_decides_nothing_of_another_line(
    site: Site, tmp_path: Path
) -> None:
    """Its check has the id and the attempt of another one now: the moment of the claim tells them apart."""
    with serving(site.farm, tmp_path / "worker") as worker:
        dump(site)
        old = write(tmp_path / "old.jsonl", entry(ENDLESS, 1, timeout=6.0))
        new = write(
            tmp_path / "new.jsonl", entry(PROVED, 2), entry(WRONG, 3), entry(ENDLESS, 4, timeout=12.0)
        )
        with submitting(site, old):
            wait_for_run(site.queries, old, "running")
            ids = site.ask("SELECT array_agg(id) FROM checks")
            undump(site)
            assert site.queries.runs() == []
            said = site.farm("submit", new, seconds=100)
        assert said.returncode == 0, said.stderr
        assert set(ids) <= set(site.ask("SELECT array_agg(id) FROM checks"))
        assert verdicts(new) == [PROVED, WRONG, ENDLESS]
        assert worker.process.poll() is None
