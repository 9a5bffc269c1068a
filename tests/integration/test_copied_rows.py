"""Prepared blocks as PostgreSQL reads them: every value is the one that was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from psycopg.rows import dict_row
from sqlalchemy import Engine

from farm.store.columns import Column, declared
from farm.store.new_lines import JOB_COLUMNS, STAGED_COLUMNS
from tests.binary_rows import CORE, OPTIONS, OTHER, Row, expected, many, prepared, rows_of

# Of COPY's binary format: the signature, no flags, no extension; and the count that says the end.
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"


def copied(database: Engine, columns: Mapping[str, Column], rows: Sequence[bytes]) -> list[Row]:
    """Return what a table of these columns holds after the rows have been copied there."""
    count = len(columns).to_bytes(2, "big")
    listed = declared(columns)
    with database.begin() as connection, connection.connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE copied ({listed}) ON COMMIT DROP")
        with cursor.copy("COPY copied FROM STDIN (FORMAT BINARY)") as copy:
            copy.write(b"".join([_HEADER, *(count + row for row in rows), _TRAILER]))
        return list(cursor.execute("SELECT * FROM copied ORDER BY line"))


def test_postgres_reads_the_rows_of_blocks_as_they_were_computed(database: Engine, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(4000))
    with prepared(path, 5, OPTIONS, (CORE, OTHER), processes=2) as blocks:
        kept = list(blocks)
    jobs = copied(database, JOB_COLUMNS, [job for block in kept for job in block.jobs])
    checks = copied(database, STAGED_COLUMNS, [check for block in kept for check in block.checks])
    found = [job | check for job, check in zip(jobs, checks, strict=True)]
    assert found == rows_of(kept)
    computed = expected(path, 5)
    assert [{**row, "identity": None} for row in found] == [{**row, "identity": None} for row in computed]
