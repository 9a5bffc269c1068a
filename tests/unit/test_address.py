"""The URL of the database: libpq's form with several hosts works, and an unusable one is a sentence."""

from __future__ import annotations

import pytest

from farm.errors import SettingsError
from farm.settings import sqlalchemy_url
from farm.store.address import address
from farm.store.postgres import connect, driver_arguments


def given(url: str) -> dict[str, object]:
    """Return what the driver is given of a URL."""
    found = driver_arguments(connect(sqlalchemy_url(url), application="test"))
    return {key: found[key] for key in ("user", "password", "host", "port", "dbname") if key in found}


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql://u:p@10.0.0.1:5432,10.0.0.2:5433/farm", "10.0.0.1,10.0.0.2", "5432,5433"),
        ("postgres://u:p@one,two:5433/farm?sslmode=require", "one,two", ",5433"),
        ("postgresql://u:p@[::1]:5432,two/farm", "::1,two", "5432,"),
        ("postgresql://u:p@one:1,%2Frun%2Fpg/farm?connect_timeout=3", "one,/run/pg", "1,"),
        ("postgresql://u:p@/farm?host=one:1&host=two:2", "one,two", "1,2"),
        ("postgresql://u:p@/farm?host=one,two&port=1,2", "one,two", "1,2"),
        ("postgresql://u:p@one:1/farm?application_name=a,b", "one", 1),
    ],
)
def test_a_url_may_have_several_hosts(url: str, host: str, port: str | int) -> None:
    assert given(url) == {"user": "u", "password": "p", "host": host, "port": port, "dbname": "farm"}


def test_parameters_stay_with_several_hosts() -> None:
    found = address("postgresql+psycopg://a:5432,b:5432/farm?target_session_attrs=read-write&sslmode=require")
    assert dict(found.query) == {
        "host": "a,b",
        "port": "5432,5432",
        "target_session_attrs": "read-write",
        "sslmode": "require",
    }


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:secret@host:abc/farm",
        "postgresql://u:secret@host:1,other:abc/farm",
        "postgresql://u:secret@[::1/farm",
        "postgresql://u:secret@a:1,[::1/farm",
        "postgresql://u:secret@/farm?host=a:x&host=b",
        "postgresql://u:secret@host/farm?port=x",
        "postgresql://u:secret@host/farm?nope=1",
        "postgresql://u:pass@secret:word@host/farm",
        "postgresql://u:pass@secret,word@host:x/farm",
        "postgresql://u@host/farm?password=secret&nope=1",
    ],
)
def test_an_unusable_url_is_a_sentence_without_the_password(url: str) -> None:
    with pytest.raises(SettingsError, match=r"^FARM_DATABASE_URL=.*: .*; write postgresql://user") as refused:
        connect(sqlalchemy_url(url), application="test")
    assert "secret" not in str(refused.value)
