"""The queue on a real Redis: what is committed is sent, ids and nothing else, and Redis may lose it all."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from celery import Celery
from commands import PROVED, entry
from farms import CORE, load
from processes import eventually
from sqlalchemy import Engine, text

from farm.broker import VERIFY, application, publish, queue, require_broker, resend_when_empty
from farm.errors import ServerDown
from farm.store import Served, Store

OTHER = Served(name="other", digest="d2", toolchain="Lean 4.35.0")


@dataclass(frozen=True)
class Queues:
    """The queues of a farm, and the store that they carry ids of."""

    app: Celery
    redis: redis.Redis
    store: Store

    def messages(self, environment: str = "core") -> list[dict[str, object]]:
        return [json.loads(raw) for raw in self.redis.lrange(f"farm:{queue(environment)}", 0, -1)]

    def ids(self, environment: str = "core") -> list[int]:
        """Return the check ids in a queue, oldest first."""
        bodies = [json.loads(base64.b64decode(str(m["body"]))) for m in self.messages(environment)]
        return [check_id for arguments, *_ in reversed(bodies) for check_id in arguments]

    def ask(self, question: str) -> list[int]:
        with self.store.engine.connect() as connection:
            return list(connection.scalars(text(question)))

    def unsent(self) -> list[int]:
        return self.ask("SELECT id FROM checks WHERE published_at IS NULL AND status = 'queued' ORDER BY id")

    def age(self) -> None:
        """Make what was sent a long time ago."""
        with self.store.engine.begin() as connection:
            connection.execute(text("UPDATE checks SET published_at = published_at - interval '1 hour'"))


@pytest.fixture
def queues(database: Engine, redis_database: tuple[str, redis.Redis]) -> Iterator[Queues]:
    url, client = redis_database
    store = Store(database)
    store.register([CORE, OTHER])
    app = application(url)
    yield Queues(app, client, store)
    app.close()


def test_every_stored_check_is_sent_once_in_order(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(5)))
    stored = queues.unsent()
    assert len(stored) == 5
    publish(queues.app, queues.store)
    assert queues.ids() == stored
    assert queues.unsent() == []
    publish(queues.app, queues.store)
    assert queues.ids() == stored


def test_a_message_names_the_task_and_one_id(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    (check_id,) = queues.unsent()
    publish(queues.app, queues.store)
    (message,) = queues.messages()
    assert message["headers"]["task"] == VERIFY
    arguments, keywords, _ = json.loads(base64.b64decode(message["body"]))
    assert (arguments, keywords) == ([check_id], {})


def values(client: redis.Redis, key: bytes) -> object:
    match client.type(key):
        case b"list":
            return client.lrange(key, 0, -1)
        case b"set":
            return client.smembers(key)
        case b"zset":
            return client.zrange(key, 0, -1)
        case b"hash":
            return client.hgetall(key)
        case _:
            return client.get(key)


def everything(queues: Queues) -> str:
    """Return all that Redis holds, with what is in base64 decoded too."""
    found = [repr((key, values(queues.redis, key))) for key in queues.redis.scan_iter()]
    bodies = [base64.b64decode(message["body"]).decode() for message in queues.messages()]
    return "\n".join(found + bodies)


def test_redis_never_holds_a_program_a_name_or_a_path(queues: Queues, tmp_path: Path) -> None:
    program = "theorem very_secret : True := trivial"
    load(queues.store, tmp_path / "hidden.jsonl", {"name": "my_name", "predicted_proof": program})
    publish(queues.app, queues.store)
    held = everything(queues)
    assert VERIFY in held
    for word in ("very_secret", "my_name", "hidden"):
        assert word not in held


def test_nothing_is_sent_before_it_is_committed(queues: Queues, tmp_path: Path) -> None:
    waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with ThreadPoolExecutor(1) as submitter:
        with queues.store.engine.connect() as connection:
            # The load stops at its last table: all of its checks are there, and none is committed.
            connection.execute(text("LOCK TABLE verdicts IN SHARE MODE"))
            stored = submitter.submit(load, queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
            eventually(lambda: queues.ask(waits))
            publish(queues.app, queues.store)
            assert queues.redis.dbsize() == 0
            connection.rollback()
        publish(queues.app, queues.store, run_id=stored.result())
    assert len(queues.ids()) == 1


def test_a_run_can_be_sent_alone(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    (other,) = queues.unsent()
    mine = load(queues.store, tmp_path / "b.jsonl", entry(PROVED, 2))
    publish(queues.app, queues.store, run_id=mine)
    assert queues.unsent() == [other]
    assert len(queues.ids()) == 1


def test_every_environment_has_a_queue_of_its_own(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1), entry(PROVED, 2, environment="other"))
    first, second = queues.unsent()
    publish(queues.app, queues.store)
    assert (queues.ids("core"), queues.ids("other")) == ([first], [second])


def test_a_line_that_was_judged_without_a_check_is_not_sent(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", {"predicted_proof": "nul \0"})
    publish(queues.app, queues.store)
    assert queues.ids() == []


def test_several_senders_at_once_send_each_check_once(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", *(entry(PROVED, number) for number in range(2500)))
    stored = queues.unsent()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: publish(queues.app, queues.store), range(4)))
    assert sorted(queues.ids()) == stored
    assert queues.unsent() == []


@pytest.fixture(params=["redis+socket:///nowhere/redis.sock", "redis://:hush@127.0.0.1:1/0"])
def broken(request: pytest.FixtureRequest) -> Iterator[Celery]:
    app = application(request.param)
    yield app
    app.close()


def test_a_redis_that_is_down_is_named_and_what_was_to_be_sent_stays_unsent(
    queues: Queues, broken: Celery, tmp_path: Path
) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    stored = queues.unsent()
    with pytest.raises(ServerDown, match=r"Redis does not answer at redis.*start it") as raised:
        publish(broken, queues.store)
    assert "hush" not in str(raised.value)
    assert queues.unsent() == stored
    publish(queues.app, queues.store)
    assert queues.ids() == stored


def test_a_redis_that_is_down_is_noticed_before_anything_is_stored(broken: Celery) -> None:
    with pytest.raises(ServerDown, match="Redis does not answer"):
        require_broker(broken)


def test_a_redis_that_answers_is_named(queues: Queues) -> None:
    assert require_broker(queues.app).startswith("redis+socket://")


def test_what_redis_lost_is_sent_again(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    stored = queues.unsent()
    publish(queues.app, queues.store)
    queues.age()
    queues.redis.flushdb()
    resend_when_empty(queues.app, queues.store, ["core"], seconds=10)
    assert queues.unsent() == stored
    publish(queues.app, queues.store)
    assert queues.ids() == stored


def test_what_was_sent_a_moment_ago_is_not_sent_again(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    publish(queues.app, queues.store)
    queues.redis.flushdb()
    resend_when_empty(queues.app, queues.store, ["core"], seconds=10)
    assert queues.unsent() == []


def test_what_still_waits_in_its_queue_is_not_sent_again(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    publish(queues.app, queues.store)
    queues.age()
    resend_when_empty(queues.app, queues.store, ["core"], seconds=10)
    assert queues.unsent() == []


def test_only_who_serves_an_environment_sends_its_checks_again(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1, environment="other"))
    publish(queues.app, queues.store)
    queues.age()
    queues.redis.flushdb()
    resend_when_empty(queues.app, queues.store, ["core"], seconds=10)
    assert queues.unsent() == []


def test_a_check_that_is_being_worked_on_is_not_sent_again(queues: Queues, tmp_path: Path) -> None:
    load(queues.store, tmp_path / "a.jsonl", entry(PROVED, 1))
    (check_id,) = queues.unsent()
    publish(queues.app, queues.store)
    queues.redis.flushdb()
    queues.store.claim(check_id, worker="w", served=["core"], lease_seconds=60)
    queues.age()
    resend_when_empty(queues.app, queues.store, ["core"], seconds=10)
    publish(queues.app, queues.store)
    assert queues.ids() == []
