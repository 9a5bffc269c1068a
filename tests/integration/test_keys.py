"""The keys of the HTTP service on a real PostgreSQL: added, listed, revoked, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import IntegrityError

from farm.errors import ServerDown, UsageError
from farm.service.auth.key_ring import KeyRing
from farm.service.auth.tokens import ApiToken
from farm.store import postgres
from farm.store.keys import Key, Keys, Scope
from tests.processes import eventually

ALL = {"scopes": frozenset(Scope), "classes": frozenset({"interactive", "online", "batch"})}


@pytest.fixture
def keys(database: Engine) -> Keys:
    return Keys(database)


def added(keys: Keys, name: str, **more: object) -> tuple[Key, ApiToken]:
    token = ApiToken.new()
    key = Key(**{"id": token.id, "name": name, **ALL, **more})  # type: ignore[arg-type]
    keys.add(key, token.sha256)
    return key, token


def test_a_key_is_stored_as_it_was_given_and_its_secret_is_not(keys: Keys) -> None:
    key, token = added(
        keys,
        "ci",
        scopes=frozenset({Scope.READ}),
        classes=frozenset({"online"}),
        per_second=0.5,
        in_flight=9,
        most_seconds=1200.0,
    )
    (stored,) = keys.all()
    assert (stored.key, stored.secret_sha256, stored.revoked_at) == (key, token.sha256, None)
    with keys.engine.connect() as connection:
        assert token.secret not in str(connection.scalar(text("SELECT api_keys::text FROM api_keys")))


def test_a_key_without_limits_has_none(keys: Keys) -> None:
    key, _ = added(keys, "ci")
    assert [each.key for each in keys.valid()] == [key]
    assert (key.per_second, key.in_flight) == (None, None)


def test_a_scope_of_a_later_farm_does_not_keep_the_other_keys_from_being_read(keys: Keys) -> None:
    (one, _), (other, _) = added(keys, "one"), added(keys, "other")
    with keys.engine.begin() as connection:
        connection.execute(text("ALTER TABLE api_keys DROP CONSTRAINT api_keys_scopes_known_check"))
        connection.execute(text("UPDATE api_keys SET scopes = '{read,later}' WHERE name = 'one'"))
    assert [each.key for each in keys.valid()] == [replace(one, scopes=frozenset({Scope.READ})), other]


def test_a_name_is_given_once_until_its_key_is_revoked(keys: Keys) -> None:
    first, _ = added(keys, "ci")
    with pytest.raises(UsageError, match=r"a key is called ci already; .* farm keys revoke ci$"):
        added(keys, "ci")
    keys.revoke("ci")
    second, _ = added(keys, "ci")
    assert [each.key for each in keys.valid()] == [second]
    assert [each.key for each in keys.all()] == [first, second]


def test_of_equal_names_given_at_once_one_is_taken(keys: Keys) -> None:
    def one(_: int) -> bool:
        try:
            added(keys, "ci")
        except UsageError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(one, range(8))) == [False] * 7 + [True]


def test_a_key_is_revoked_by_its_name_or_its_id_and_to_do_so_again_changes_nothing(keys: Keys) -> None:
    (one, _), (other, _) = added(keys, "one"), added(keys, "other")
    first = keys.revoke("one")
    assert first.key == one
    assert first.revoked_at is not None
    assert [each.key for each in keys.valid()] == [other]
    assert keys.revoke(one.id) == first
    assert keys.revoke(other.id).key == other
    assert keys.valid() == []


@pytest.mark.parametrize("which", ["", "%", "o", "on", "ONE", "one ", "one\0", "\ud800", "' OR true --"])
def test_nothing_but_a_whole_name_revokes_a_key(keys: Keys, which: str) -> None:
    added(keys, "one")
    with pytest.raises(UsageError, match="farm keys list"):
        keys.revoke(which)
    assert len(keys.valid()) == 1


def test_no_part_of_an_id_revokes_a_key(keys: Keys) -> None:
    key, token = added(keys, "one")
    for which in (key.id[:-1], key.id.upper() + "0", f"{key.id}%", f"{key.id}0", token.text):
        with pytest.raises(UsageError, match="farm keys list"):
            keys.revoke(which)
    assert len(keys.valid()) == 1


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"scopes": frozenset()}, "scopes_known"),
        ({"scopes": frozenset({"everything"})}, "scopes_known"),
        ({"classes": frozenset()}, "classes_known"),
        ({"classes": frozenset({"first"})}, "classes_known"),
        ({"per_second": 0.0}, "limits_positive"),
        ({"per_second": float("nan")}, "limits_positive"),
        ({"per_second": float("inf")}, "limits_positive"),
        ({"in_flight": 0}, "limits_positive"),
        ({"most_seconds": 0.0}, "most_seconds_possible"),
        ({"most_seconds": float("nan")}, "most_seconds_possible"),
        ({"in_flight": -1, "per_second": 1.0}, "limits_positive"),
    ],
)
def test_the_database_keeps_out_what_no_key_can_be(
    keys: Keys, wrong: dict[str, object], constraint: str
) -> None:
    with pytest.raises(Exception, match=f"api_keys_{constraint}_check"):
        added(keys, "ci", **wrong)
    assert keys.all() == []


def test_the_database_keeps_out_what_is_no_sha256(keys: Keys) -> None:
    wrong = text("INSERT INTO api_keys VALUES ('1', 'ci', 'secret', '{read}', '{batch}')")
    with pytest.raises(IntegrityError, match="api_keys_secret_sha256_whole_check"), keys.engine.begin() as c:
        c.execute(wrong)


def test_a_database_that_is_away_is_said_to_be(keys: Keys) -> None:
    engine = postgres.connect("postgresql+psycopg://farm@127.0.0.1:1/farm", application="farm-test")
    away = Keys(engine)
    for ask in (away.all, away.valid, lambda: away.revoke("ci"), lambda: added(away, "ci")):
        with pytest.raises(ServerDown, match="PostgreSQL does not answer"):
            ask()
    engine.dispose()


# Two replicas of the service on one database


def test_each_replica_knows_a_new_key_and_stops_a_revoked_one(keys: Keys) -> None:
    replicas = [KeyRing(keys.valid), KeyRing(keys.valid)]
    assert [ring.verify(ApiToken.new().text) for ring in replicas] == [None, None]
    key, token = added(keys, "ci")
    for ring in replicas:
        eventually(partial(ring.verify, token.text))
        assert ring.verify(token.text) == key
    keys.revoke("ci")
    for ring in replicas:
        eventually(lambda ring=ring: ring.verify(token.text) is None)


def test_a_replica_that_cannot_reach_the_database_admits_and_refuses_nobody(keys: Keys) -> None:
    engine = postgres.connect("postgresql+psycopg://farm@127.0.0.1:1/farm", application="farm-test")
    with pytest.raises(ServerDown, match="PostgreSQL does not answer"):
        KeyRing(Keys(engine).valid).verify(ApiToken.new().text)
    engine.dispose()
