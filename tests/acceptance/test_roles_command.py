"""`farm db roles` and `farm db reader`: what they say, and a whole farm with a role for each part."""

from __future__ import annotations

from pathlib import Path

import psycopg
from sqlalchemy import make_url

from farm.embedded import down, ensure
from farm.store.reader import ROLE
from farm.store.rights import Role
from tests.commands import ADMITTED, PROVED, Command, entry, write
from tests.farms import Quiet, serving
from tests.services import serving_http


def as_role(farm: Command, role: str, password: str = "") -> Command:
    url = make_url(farm.settings["FARM_DATABASE_URL"]).set(username=role, password=password or None)
    return farm.having(FARM_DATABASE_URL=url.render_as_string(hide_password=False))


def test_a_whole_farm_works_with_a_role_for_each_part_and_says_which_one_a_command_needs(
    quiet: Quiet, tmp_path: Path
) -> None:
    made = quiet.farm("db", "roles", "--passwords", tmp_path / "passwords")
    assert made.returncode == 0, made.stderr
    assert f"{Role.OWNER}, {Role.WORKER}, {Role.SUBMITTER}, {Role.SERVICE}, {Role.READER} have" in made.stderr
    passwords = {role: (tmp_path / "passwords" / role).read_text().strip() for role in Role}
    assert len(set(passwords.values())) == len(Role)
    assert not any(each in made.stdout + made.stderr for each in passwords.values())
    owner, worker, submitter, service, reader = (as_role(quiet.farm, role) for role in Role)
    path = write(tmp_path / "a.jsonl", entry(PROVED, 1), entry(ADMITTED, 2))
    assert owner("db", "upgrade").returncode == 0
    run = submitter.json("submit", path, "--no-wait")["run"]
    with serving(worker, tmp_path / "worker"), serving_http(service, tmp_path) as served:
        facts = submitter.json("status", run, "--wait")
        assert [(each["verdict"], each["reason"]) for each in facts["verdicts"]] == [
            ("proved", "ok"),
            ("rejected", "has_sorry"),
        ]
        item = {"name": "served", "program": entry(PROVED, 3)["predicted_proof"]}
        (answer,) = served.post(item, wait_seconds=60)["items"]
        assert answer["verdict"] == "proved"
        assert served.ask("GET", "/health/ready")
    assert submitter("export", run).returncode == 0
    assert '"completed"' in path.read_text()
    for farm, words, role in (
        (submitter, ("keys", "add", "x"), Role.OWNER),
        (submitter, ("prune", "--older-than", "1d"), Role.OWNER),
        (worker, ("db", "upgrade"), Role.OWNER),
        (reader, ("status", run), Role.SUBMITTER),
        (submitter, ("worker", "--sweep", "--now"), Role.WORKER),
    ):
        refused = farm(*words)
        needed = f"`farm {words[0]}` needs the role {role}: name its URL in FARM_DATABASE_URL"
        expected = 0 if words[0] == "db" else 1  # there is nothing to migrate
        assert (refused.returncode, needed in refused.stderr) == (expected, bool(expected)), refused.stderr


def test_a_new_role_gets_a_password_that_is_printed_once(quiet: Quiet) -> None:
    quiet.farm("db", "roles")
    again = quiet.farm.json("db", "roles")
    assert (again["new"], again["passwords"], again["has_tables"]) == ([], {}, True)


def test_a_password_is_changed_by_removing_its_file_while_what_runs_goes_on(
    settled: Path, pair: str, tmp_path: Path
) -> None:
    rules = settled / "postgres" / "pg_hba.conf"
    rules.write_text(f"local all {Role.WORKER} scram-sha-256\n{rules.read_text()}")
    servers = ensure(settled, servers=pair, worker=False)
    url = make_url(servers.database_url).set(username="cloud", database="managed")
    with psycopg.connect(servers.database_url.replace("+psycopg", ""), autocommit=True) as superuser:
        # The administrator that a managed PostgreSQL gives, whose users are no superusers.
        superuser.execute("CREATE ROLE cloud LOGIN CREATEROLE CREATEDB")
        superuser.execute("CREATE DATABASE managed OWNER cloud")
    farm = Command(
        {
            "FARM_HOME": str(settled),
            "FARM_DATABASE_URL": url.render_as_string(hide_password=False),
            "FARM_BROKER_URL": servers.broker_url,
        }
    )
    passwords, file = tmp_path / "passwords", tmp_path / "passwords" / Role.WORKER
    try:
        made = farm("db", "roles", "--passwords", passwords)
        assert "farm db upgrade" in made.stderr  # an empty database has no tables yet
        assert as_role(farm, Role.OWNER)("db", "upgrade").returncode == 0
        before = as_role(farm, Role.WORKER, file.read_text().strip())
        url = before.settings["FARM_DATABASE_URL"].replace("+psycopg", "")
        with psycopg.connect(url) as running:
            file.unlink()
            assert farm("db", "roles", "--passwords", passwords).returncode == 0
            assert running.execute("SELECT count(*) FROM checks").fetchone() == (0,)
        refused = before("status", "--workers")
        assert (refused.returncode, f"refused the password of `{Role.WORKER}`" in refused.stderr) == (1, True)
        assert as_role(farm, Role.WORKER, file.read_text().strip())("status", "--workers").returncode == 0
    finally:
        down(settled)


def test_bad_arguments_of_roles_are_bad_usage(quiet: Quiet, tmp_path: Path) -> None:
    strange = quiet.farm("db", "roles", "--admin-url", "mysql://root@db/farm")
    assert (strange.returncode, "--admin-url=" in strange.stderr) == (2, True)
    (tmp_path / Role.READER).write_text("\n")
    empty = quiet.farm("db", "roles", "--passwords", tmp_path)
    assert (empty.returncode, "the first line is empty" in empty.stderr) == (2, True)
    refused = quiet.farm("db", "roles", "--admin-url", "postgresql://nobody@127.0.0.1:1/farm")
    assert (refused.returncode, "PostgreSQL does not answer" in refused.stderr) == (1, True)


def test_the_reader_is_there_afterwards_and_its_password_is_not_printed(quiet: Quiet, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("very-secret\n")
    said = quiet.farm("db", "reader", "--password-file", file)
    assert said.returncode == 0, said.stderr
    assert "farm_reader" in said.stderr
    assert "very-secret" not in said.stdout + said.stderr
    assert quiet.ask("SELECT count(*) FROM pg_roles WHERE rolname = :role", role=ROLE) == [1]
    assert quiet.farm.json("db", "reader") == {"schema": 1, "role": ROLE, "is_new": False}


def test_a_password_file_that_is_not_there_or_empty_is_bad_usage(quiet: Quiet, tmp_path: Path) -> None:
    absent = quiet.farm("db", "reader", "--password-file", tmp_path / "none")
    assert (absent.returncode, "cannot be read" in absent.stderr) == (2, True)
    (tmp_path / "empty").write_text("\nsecond\n")
    empty = quiet.farm("db", "reader", "--password-file", tmp_path / "empty")
    assert (empty.returncode, "the first line is empty" in empty.stderr) == (2, True)
