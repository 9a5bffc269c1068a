"""Counts that every transaction adds to without waiting for another; nothing here commits.

A row that all recorders update would make them wait for each other. So each transaction inserts a row of its
own, the sum of all rows is the count, and now and then one transaction puts the sums in the rows' place.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

#: So many rows are let be.
_FEW = 500

# Rows of transactions that are under way are not seen, and stay.
_ADD_UP = text("""
    WITH added AS (
        DELETE FROM tallies WHERE (SELECT count(*) FROM (SELECT FROM tallies LIMIT :few) AS counted) >= :few
        RETURNING subject, word, number
    )
    INSERT INTO tallies SELECT subject, word, sum(number) FROM added GROUP BY subject, word
""")


def add_up(connection: Connection, *, few: int = _FEW) -> None:
    """Put one row of each count in the place of many; to be called by one transaction at a time."""
    connection.execute(_ADD_UP, {"few": few})
