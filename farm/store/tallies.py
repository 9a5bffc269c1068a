"""Counts that every transaction adds to without waiting for another; nothing here commits.

A row that all recorders update would make them wait for each other. So each transaction inserts its own row,
the count is the sum of all rows, and a periodic transaction replaces the rows by their sums.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

#: Up to this number of rows nothing is summed.
_FEW = 500

# Rows of uncommitted transactions are invisible, and stay.
_ADD_UP = text("""
    WITH added AS (
        DELETE FROM tallies WHERE (SELECT count(*) FROM (SELECT FROM tallies LIMIT :few) AS counted) >= :few
        RETURNING subject, word, number
    )
    INSERT INTO tallies SELECT subject, word, sum(number) FROM added GROUP BY subject, word
""")


def add_up(connection: Connection, *, few: int = _FEW) -> None:
    """Replace many rows of each count by one; for one transaction at a time."""
    connection.execute(_ADD_UP, {"few": few})
