"""The calls on a real Redis: they say that there is work, and nothing else is ever there."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis
from celery import Celery

from farm.broker import VERIFY, application, call, queue, require_broker
from farm.cli import runs
from farm.cli.doctor import Diagnosis, examine
from farm.connections import Connections
from farm.errors import ServerDown
from farm.settings import Settings
from farm.store.queries import StoredRun
from tests.own_redis import FAULTS, OwnRedis, own_redis
from tests.processes import eventually


@dataclass(frozen=True)
class Queues:
    """The queues of a farm."""

    app: Celery
    redis: redis.Redis

    def messages(self, environment: str = "core") -> list[dict[str, object]]:
        return [json.loads(raw) for raw in self.redis.lrange(f"farm:{queue(environment)}", 0, -1)]


@pytest.fixture
def queues(redis_database: tuple[str, redis.Redis]) -> Iterator[Queues]:
    url, client = redis_database
    app = application(url)
    yield Queues(app, client)
    app.close()


def test_every_environment_has_a_queue_of_its_own(queues: Queues) -> None:
    call(queues.app, ["core", "other"])
    assert [len(queues.messages(name)) for name in ("core", "other", "third")] == [1, 1, 0]


def test_a_call_names_the_task_and_nothing_else(queues: Queues) -> None:
    call(queues.app, ["core"])
    (message,) = queues.messages()
    assert message["headers"]["task"] == VERIFY
    arguments, keywords, _ = json.loads(base64.b64decode(message["body"]))
    assert (arguments, keywords) == ([], {})


@pytest.fixture(params=["redis+socket:///nowhere/redis.sock", "redis://:hush@127.0.0.1:1/0"])
def broken(request: pytest.FixtureRequest) -> Iterator[Celery]:
    app = application(request.param)
    yield app
    app.close()


def test_a_redis_that_is_down_is_named_without_its_password(broken: Celery) -> None:
    with pytest.raises(ServerDown, match=r"Redis does not answer at redis.*start it") as raised:
        call(broken, ["core"])
    assert "hush" not in str(raised.value)


def test_a_redis_that_is_down_is_noticed_before_anything_is_stored(broken: Celery) -> None:
    with pytest.raises(ServerDown, match="Redis does not answer"):
        require_broker(broken)


def test_a_redis_that_hangs_is_one_that_is_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.broker._SOCKET_SECONDS", 0.3)
    with socket.socket(socket.AF_UNIX) as mute:
        mute.bind(str(tmp_path / "redis.sock"))
        mute.listen()
        app = application(f"redis+socket://{tmp_path}/redis.sock")
        with pytest.raises(ServerDown, match=r"Redis does not answer at redis.*Timeout"):
            call(app, ["core"])
        app.close()


@pytest.fixture(scope="module")
def own(pair: str) -> Iterator[OwnRedis]:
    with own_redis(pair) as found:
        yield found


@pytest.mark.parametrize("fault", FAULTS)
def test_a_redis_that_refuses_what_the_farm_asks_is_one_that_is_down_and_its_fault_is_named(
    own: OwnRedis, fault: str
) -> None:
    app = application(own.url)
    with own.refusing(fault):
        with pytest.raises(ServerDown, match=rf"Redis refuses .* at redis.*{fault}.*; \w+") as raised:
            require_broker(app)
        assert "start it" not in str(raised.value)
        with pytest.raises(ServerDown, match=fault):
            call(app, ["core"])
    require_broker(app)
    call(app, ["core"])
    app.close()


#: A part of the remedy for each fault.
REMEDIES = {
    "OOM": "raise its maxmemory",
    "READONLY": "name the primary in FARM_BROKER_URL",
    "NOREPLICAS": "lower its min-replicas-to-write",
    "NOAUTH": "the password in FARM_BROKER_URL",
    "NOPERM": "give its user the rights",
    "MISCONF": "room for its snapshots",
    "max number of clients": "raise its maxclients",
}


def diagnosed(own: OwnRedis, home: Path) -> Diagnosis:
    """Return the diagnosis that `farm doctor` gives of this Redis."""
    settings = Settings(home=home, database_url="postgresql://127.0.0.1:1/none", broker_url=own.url)
    with closing(Connections(settings)) as connections:
        return next(each for each in examine(connections) if each.part == "Redis")


@pytest.mark.parametrize("fault", FAULTS)
def test_doctor_names_the_fault_of_a_redis_that_refuses_and_its_remedy(
    own: OwnRedis, tmp_path: Path, fault: str
) -> None:
    with own.refusing(fault):
        found = diagnosed(own, tmp_path)
    assert not found.ok
    assert fault in found.words
    assert REMEDIES[fault] in found.words
    assert diagnosed(own, tmp_path).ok


def test_doctor_names_a_redis_that_loads_its_data(own: OwnRedis, tmp_path: Path) -> None:
    with own.loading():
        found = diagnosed(own, tmp_path)
        assert not found.ok
        assert "it loads its data; wait" in found.words
        eventually(lambda: diagnosed(own, tmp_path).ok)


def test_a_redis_that_loads_its_data_is_one_that_is_down_until_it_has_loaded(own: OwnRedis) -> None:
    app = application(own.url)
    with own.loading():
        with pytest.raises(ServerDown, match=r"Redis refuses .* at redis.*it loads its data; wait"):
            require_broker(app)
        eventually(lambda: _takes_calls(app))
    app.close()


def _takes_calls(app: Celery) -> bool:
    try:
        call(app, ["core"])
    except ServerDown:
        return False
    return True


def test_a_redis_that_answers_is_named(queues: Queues) -> None:
    assert require_broker(queues.app).startswith("redis+socket://")


def test_a_stored_run_outlives_a_postgresql_that_goes_away_before_the_wait_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = "postgresql://127.0.0.1:1/none"
    settings = Settings(home=tmp_path, database_url=gone, broker_url="redis://127.0.0.1:1/0")
    run = StoredRun(id="k3m9", created_at=datetime.now(UTC), options={}, manifests=())
    with closing(Connections(settings)) as connections:
        runs.call(connections, run)
        assert "the run is stored" in capsys.readouterr().err
        runs.say_unserved(connections, run)
        assert capsys.readouterr().err == ""
        with pytest.raises(ServerDown):
            runs.finish(connections, run, as_json=True)
