"""SQL is written in the store alone: elsewhere nothing uses a driver or sends a statement."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Folders that talk to PostgreSQL: the store, and the farm's own servers, which make the database.
WITH_SQL = (ROOT / "farm" / "store", ROOT / "farm" / "embedded")
DRIVERS = ("alembic", "psycopg", "sqlalchemy")
#: Methods of connections and cursors that send a statement.
SENDING = ("exec_driver_sql", "execute", "executemany", "scalars")


def uses_of_sql(source: str) -> Iterator[str]:
    """Yield each use of a database driver in a module, with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found = [each.name for each in names]
            case ast.ImportFrom(module=str(module), level=0):
                found = [module]
            case ast.Call(func=ast.Attribute(attr=method), args=[_, *_]) if method in SENDING:
                yield f"{node.lineno}: .{method}("
                continue
            case _:
                continue
        for name in found:
            if name.partition(".")[0] in DRIVERS:
                yield f"{node.lineno}: import {name}"


def outside_the_store() -> list[Path]:
    modules = [path for folder in ("farm", "workers") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [path for path in modules if not any(path.is_relative_to(folder) for folder in WITH_SQL)]


def test_no_module_outside_the_store_sends_a_statement() -> None:
    modules = outside_the_store()
    assert len(modules) > 200
    found = [f"{path.relative_to(ROOT)}:{use}" for path in modules for use in uses_of_sql(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "from sqlalchemy import text",
        "import psycopg.rows",
        "from sqlalchemy.exc import DBAPIError",
        "connection.execute(statement)",
        "store.engine.connect().scalars(question).all()",
    ],
)
def test_a_use_of_sql_is_found_wherever_it_stands(line: str) -> None:
    assert list(uses_of_sql(f"def f():\n    if True:\n        {line}\n"))


def test_the_store_itself_is_full_of_them() -> None:
    modules = [path for path in (ROOT / "farm" / "store").glob("*.py") if path.name != "__init__.py"]
    assert sum(1 for path in modules if list(uses_of_sql(path.read_text()))) > len(modules) // 2
