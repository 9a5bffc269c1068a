"""`farm db reader`: what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

from farm.store.reader import ROLE
from tests.farms import Quiet


def test_the_role_is_there_afterwards_and_its_password_is_not_printed(quiet: Quiet, tmp_path: Path) -> None:
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
