"""The revision of the database that this farm works with, for programs that import little."""

from __future__ import annotations

#: The newest revision of `farm_migrations`.
SCHEMA = "0029"
