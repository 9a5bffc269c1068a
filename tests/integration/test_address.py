"""A database with a standby: the farm connects to the host that takes writes, whichever that is."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from sqlalchemy import Engine, text

from farm.settings import sqlalchemy_url
from farm.store.postgres import connect


@pytest.mark.parametrize("form", ["{dead},{there}", "{there},{dead}"])
def test_a_host_that_does_not_answer_is_left_out(database: Engine, form: str) -> None:
    own = database.url
    host = quote(str(own.host or own.query["host"]), safe="")
    there = host if own.port is None else f"{host}:{own.port}"
    user = own.username if own.password is None else f"{own.username}:{quote(str(own.password), safe='')}"
    hosts = form.format(dead="127.0.0.1:1", there=there)
    url = f"postgresql://{user}@{hosts}/{own.database}?target_session_attrs=read-write"
    engine = connect(sqlalchemy_url(url), application="test")
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT current_database()")) == own.database
    engine.dispose()
