"""Prepared blocks as PostgreSQL reads them: every value is the one that was computed."""

from __future__ import annotations

from pathlib import Path

from blocks import COLUMNS, CORE, OPTIONS, OTHER, expected, many, rows_of
from psycopg.rows import dict_row
from sqlalchemy import Engine

from farm.prepare import prepared

# Of COPY's binary format: the signature, no flags, no extension; and the count that says the end.
_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_TRAILER = b"\xff\xff"
_COUNT = len(COLUMNS).to_bytes(2, "big")


def test_postgres_reads_the_rows_of_blocks_as_they_were_computed(database: Engine, tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(many(4000))
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    with database.begin() as connection, connection.connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE staged ({columns}) ON COMMIT DROP")
        with prepared(path, 5, OPTIONS, (CORE, OTHER), processes=2) as blocks:
            kept = []
            with cursor.copy("COPY staged FROM STDIN (FORMAT BINARY)") as copy:
                copy.write(_HEADER)
                for block in blocks:
                    for job, check in zip(block.jobs, block.checks, strict=True):
                        copy.write(_COUNT + job + check)
                    kept.append(block)
                copy.write(_TRAILER)
        found = cursor.execute("SELECT * FROM staged ORDER BY line").fetchall()
    assert found == rows_of(kept)
    computed = expected(path, 5)
    assert [{**row, "identity": None} for row in found] == [{**row, "identity": None} for row in computed]
