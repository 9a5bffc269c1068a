"""Completions on a real Redis: heard after the commit, and whatever becomes of Redis, nobody waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from farm_workers.loop.leases import Leases
from farm_workers.loop.record import Recorder
from sqlalchemy import Engine, text

from farm.completions import Completions, Listener, Publisher, Subscription, channel
from farm.pauses import MOST_SECONDS
from farm.redis_client import redis_url
from farm.runs.submit import watch
from farm.store.attempt import Claim
from farm.store.queries import Queries, Tally
from farm.store.transitions import Store
from tests.commands import PROVED, entry
from tests.farms import CORE, a_decision, load
from tests.own_redis import OwnRedis, own_redis
from tests.processes import eventually

NOWHERE = "redis+socket:///nowhere/redis.sock"


@pytest.fixture
def server(pair: str) -> Iterator[OwnRedis]:
    with own_redis(pair) as found:
        yield found


@pytest.fixture
def store(database: Engine) -> Store:
    store = Store(database)
    store.register([CORE])
    return store


def claims(store: Store, folder: Path, number: int = 1) -> list[Claim]:
    """Claim so many new checks."""
    load(store, folder / "a.jsonl", *(entry(PROVED, each) for each in range(number)))
    return store.claim(["core"], worker="w", lease_seconds=60.0, most=number)


class Ears:
    """What was heard, in its order; an empty set each time that the listener begins to listen."""

    def __init__(self, look: Callable[[frozenset[int]], object] = lambda _ids: None) -> None:
        self.heard: list[frozenset[int]] = []
        self.seen: list[object] = []
        self._look = look

    def __call__(self, check_ids: frozenset[int]) -> None:
        self.seen.append(self._look(check_ids))
        self.heard.append(check_ids)

    @property
    def ids(self) -> set[int]:
        return set().union(*self.heard)

    @property
    def begun(self) -> int:
        return self.heard.count(frozenset())


@contextmanager
def listening(url: str, ears: Ears) -> Iterator[Listener]:
    with Listener(url, ears) as listener:
        eventually(lambda: ears.begun == 1)
        yield listener
    listener.join(20)
    assert not listener.is_alive()


@contextmanager
def recording(store: Store, held: list[Claim], publisher: Publisher) -> Iterator[tuple[Recorder, Leases]]:
    leases = Leases()
    leases.hold(held)
    recorder = Recorder(store, leases, completed=publisher.publish)
    recorder.start()
    try:
        yield recorder, leases
    finally:
        recorder.stop()


def record(store: Store, held: list[Claim], publisher: Publisher) -> None:
    with recording(store, held, publisher) as (recorder, _):
        for claim in held:
            recorder.put((claim, a_decision()))


def statuses(store: Store, check_ids: frozenset[int]) -> set[str]:
    with store.engine.connect() as connection:
        question = text("SELECT DISTINCT status FROM checks WHERE id = ANY(:ids)")
        return set(connection.scalars(question, {"ids": list(check_ids)}))


def test_what_is_heard_of_is_done_already(
    store: Store, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    url = redis_database[0]
    ears = Ears(lambda check_ids: statuses(store, check_ids))
    held = claims(store, tmp_path, 100)
    with listening(url, ears), Publisher(url) as publisher:
        record(store, held, publisher)
        eventually(lambda: ears.ids == {claim.check_id for claim in held})
    assert ears.seen[1:] == [{"done"}] * (len(ears.seen) - 1)


def test_a_batch_of_verdicts_is_one_message(
    store: Store,
    redis_database: tuple[str, redis.Redis],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("farm_workers.loop.record.TOGETHER_SECONDS", 60.0)
    url, ears = redis_database[0], Ears()
    held = claims(store, tmp_path, 20)
    with listening(url, ears), Publisher(url) as publisher:
        record(store, held, publisher)
        eventually(lambda: len(ears.heard) > 1)
    assert ears.heard == [frozenset(), frozenset(claim.check_id for claim in held)]


def test_nothing_is_heard_before_the_commit(
    store: Store, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    (url, client), ears = redis_database, Ears()
    (claim,) = claims(store, tmp_path)
    with (
        listening(url, ears),
        Publisher(url) as publisher,
        recording(store, [claim], publisher) as (recorder, leases),
    ):
        with store.engine.connect() as connection:
            connection.execute(text("SELECT FROM checks FOR UPDATE"))
            recorder.put((claim, a_decision()))
            eventually(lambda: waits_for_a_lock(store))
            client.publish(channel(client), "999999")  # all that was published before is heard before
            eventually(lambda: 999999 in ears.ids)
            assert claim.check_id not in ears.ids
        eventually(lambda: claim.check_id in ears.ids)
        eventually(lambda: not leases.all())


def waits_for_a_lock(store: Store) -> bool:
    with store.engine.connect() as connection:
        question = "SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND wait_event_type = 'Lock'"
        return connection.scalar(text(question), {"name": store.engine.url.database}) == 1


def test_a_late_verdict_that_was_refused_is_not_told_of(
    store: Store, redis_database: tuple[str, redis.Redis], tmp_path: Path
) -> None:
    url, ears = redis_database[0], Ears()
    (claim,) = claims(store, tmp_path)
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE checks SET lease_until = now() - interval '1 second'"))
    assert store.sweep(checker_version="1").taken_back == 1
    with listening(url, ears), Publisher(url) as publisher:
        with recording(store, [claim], publisher) as (recorder, leases):
            recorder.put((claim, a_decision()))
            eventually(lambda: not leases.all())
        publisher.publish([999999])
        eventually(lambda: 999999 in ears.ids)
    assert ears.ids == {999999}


def test_a_redis_that_was_killed_and_started_again_is_heard_again(server: OwnRedis) -> None:
    ears = Ears()
    with Publisher(server.url) as publisher, listening(server.url, ears) as listener:
        publisher.publish([1])
        eventually(lambda: ears.ids == {1})
        server.kill()
        eventually(lambda: not listener.is_listening)
        publisher.publish([2])
        server.start()
        eventually(lambda: ears.begun == 2)
        assert listener.is_listening
        publisher.publish([3])
        eventually(lambda: 3 in ears.ids)


def test_a_redis_that_was_wiped_is_heard_as_before(server: OwnRedis) -> None:
    ears = Ears()
    with Publisher(server.url) as publisher, listening(server.url, ears), server.client() as client:
        client.flushall()
        publisher.publish([1])
        eventually(lambda: ears.ids == {1})


def test_a_listener_whose_connection_was_cut_listens_again(server: OwnRedis) -> None:
    ears = Ears()
    with Publisher(server.url) as publisher, listening(server.url, ears), server.client() as client:
        client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
        eventually(lambda: ears.begun == 2)
        publisher.publish([1])
        eventually(lambda: ears.ids == {1})


def test_verdicts_are_recorded_while_redis_hangs_and_heard_of_when_it_does_not(
    server: OwnRedis, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.completions._SOCKET_SECONDS", 86_400.0)
    ears, held = Ears(), claims(store, tmp_path, 50)
    with Publisher(server.url) as publisher:
        publisher.publish([1])
        eventually(lambda: not publisher._unpublished)  # it waits for Redis a day, and the listener a moment
        monkeypatch.setattr("farm.completions._SOCKET_SECONDS", 0.5)
        _records_while_redis_hangs(server, store, publisher, ears, held)


def _records_while_redis_hangs(
    server: OwnRedis, store: Store, publisher: Publisher, ears: Ears, held: list[Claim]
) -> None:
    with listening(server.url, ears) as listener:
        with server.hung(), recording(store, held, publisher) as (recorder, leases):
            for left, claim in reversed(list(enumerate(reversed(held)))):
                recorder.put((claim, a_decision()))
                # One after the other: so that there are more messages than one.
                eventually(lambda left=left: len(leases) == left)
            assert publisher._unpublished
            assert statuses(store, frozenset(claim.check_id for claim in held)) == {"done"}
            eventually(lambda: not listener.is_listening)
        eventually(lambda: listener.is_listening)
        publisher.publish([999999])
        eventually(lambda: 999999 in ears.ids)


def test_a_publisher_ends_while_redis_hangs(server: OwnRedis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farm.completions._SOCKET_SECONDS", 86_400.0)
    publisher = Publisher(server.url)
    with server.hung():
        publisher.start()
        publisher.publish([1])
        publisher.stop()
        assert publisher.is_alive()  # its thread still waits for Redis


def test_a_publisher_publishes_what_is_left_before_it_ends(redis_database: tuple[str, redis.Redis]) -> None:
    url, ears = redis_database[0], Ears()
    with listening(url, ears):
        with Publisher(url) as publisher:
            for number in range(1000):
                publisher.publish([number])
        eventually(lambda: ears.ids == set(range(1000)))


def test_a_publisher_keeps_only_so_much_while_redis_hangs(server: OwnRedis) -> None:
    ears = Ears()
    publisher = Publisher(server.url)
    for number in range(100_000):
        publisher.publish([number])
    with listening(server.url, ears), publisher:
        eventually(lambda: len(ears.ids) == 4096)


HOSTILE = (
    b"",
    b",",
    b"1,",
    b",1",
    b"-1",
    b"1 2",
    b"1_0",
    b"1.0",
    b"\xff\xfe",
    b"\x00",
    b'["1"]',
    b"9" * 5000,
    "١".encode(),
    b"1\n",
    b"1," * 1_000_000,
    b"x" * 10_000_000,
)


def test_what_no_publisher_sends_is_ignored(redis_database: tuple[str, redis.Redis]) -> None:
    (url, client), ears = redis_database, Ears()
    with listening(url, ears) as listener, Publisher(url) as publisher:
        for message in HOSTILE:
            client.publish(channel(client), message)
        publisher.publish([7])
        eventually(lambda: 7 in ears.ids)
        assert listener.is_listening
    assert ears.heard == [frozenset(), frozenset({7})]


def test_a_callback_that_fails_does_not_end_the_listener(
    redis_database: tuple[str, redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("farm.completions.RETRY_SECONDS", 0.05)
    (url, client), ears = redis_database, Ears()

    def fails_once(check_ids: frozenset[int]) -> None:
        ears(check_ids)
        if check_ids == {1}:
            raise RuntimeError("a bug")

    with Listener(url, fails_once) as listener:
        eventually(lambda: ears.begun == 1)
        client.publish(channel(client), "1")
        eventually(lambda: ears.begun == 2)
        client.publish(channel(client), "2")
        eventually(lambda: ears.ids == {1, 2})
    listener.join(20)


def test_an_error_that_stays_is_logged_once(
    redis_database: tuple[str, redis.Redis], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("farm.completions.RETRY_SECONDS", 0.05)
    ears = Ears()

    def fails(check_ids: frozenset[int]) -> None:
        ears(check_ids)
        raise RuntimeError("a bug")

    with Listener(redis_database[0], fails) as listener:
        eventually(lambda: ears.begun > 3)
    listener.join(20)
    assert [record.levelname for record in caplog.records].count("ERROR") == 1


def test_farms_in_two_databases_of_one_redis_do_not_hear_each_other(server: OwnRedis) -> None:
    other, ears = server.url.replace("virtual_host=0", "virtual_host=3"), Ears()
    assert other != server.url
    with listening(server.url, ears), Publisher(other) as another, Publisher(server.url) as publisher:
        another.publish([1])
        eventually(lambda: not another._unpublished)
        another.stop()
        publisher.publish([2])
        eventually(lambda: 2 in ears.ids)
    assert ears.ids == {2}


def test_threads_of_a_process_share_one_listener(redis_database: tuple[str, redis.Redis]) -> None:
    url, client = redis_database
    completions = Completions(url)
    with completions.following() as first, completions.following() as second:
        eventually(lambda: client.pubsub_numsub(channel(client))[0][1] == 1)
        client.publish(channel(client), "1,2")
        for following in (first, second):
            following.forget()
            client.publish(channel(client), "1,2")
            following.wait(frozenset({1, 2}), 86_400.0)
        assert client.pubsub_numsub(channel(client))[0][1] == 1
    completions.close()
    eventually(lambda: client.pubsub_numsub(channel(client))[0][1] == 0)


def test_whoever_waits_without_redis_waits_no_longer_than_he_said() -> None:
    completions = Completions(NOWHERE)
    with completions.following() as following:
        following.wait(frozenset({1}), 0.3)
    completions.close()


class TestAWatch:
    """Whoever waits for a run is woken when its last checks may have ended."""

    @pytest.fixture
    def held(self, store: Store, tmp_path: Path) -> list[Claim]:
        return claims(store, tmp_path, 3)

    @contextmanager
    def begun(self, store: Store, url: str) -> Iterator[tuple[Future[None], list[Tally]]]:
        """Watch the run in another thread; gives the end of that, and what it saw until then."""
        queries, completions, seen = Queries(store.engine), Completions(url), list[Tally]()
        (run,) = queries.runs()

        def wait() -> None:
            for tally in watch(queries, run.id, completions=completions, trouble=pytest.fail):
                seen.append(tally)

        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(wait), seen
        completions.close()

    @pytest.fixture
    def patient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Without the bell a watch would take minutes."""
        monkeypatch.setattr("farm.runs.submit._FIRST_SECONDS", 300.0)
        monkeypatch.setattr("farm.runs.submit._LONGEST_SECONDS", 300.0)

    @pytest.mark.usefixtures("patient")
    def test_ends_when_the_last_check_has_ended_and_looks_no_more_often(
        self, store: Store, held: list[Claim], redis_database: tuple[str, redis.Redis]
    ) -> None:
        url, client = redis_database
        with self.begun(store, url) as (ending, seen), Publisher(url) as publisher:
            eventually(lambda: seen and client.pubsub_numsub(channel(client))[0][1] == 1)
            for claim in held:
                record(store, [claim], publisher)
            ending.result(60)
        assert seen[-1].verdicts == {PROVED: 3}
        assert len(seen) <= 3  # at once, when it began to listen, and at the end

    def test_ends_without_redis_too(self, store: Store, held: list[Claim]) -> None:
        with self.begun(store, NOWHERE) as (ending, seen), Publisher(NOWHERE) as publisher:
            record(store, held, publisher)
            ending.result(60)
        assert seen[-1].verdicts == {PROVED: 3}

    @pytest.fixture
    def waited(self, monkeypatch: pytest.MonkeyPatch) -> list[tuple[frozenset[int] | None, float]]:
        """What a watch waited for and how many seconds at most; here each wait is a moment."""
        found: list[tuple[frozenset[int] | None, float]] = []
        wait = Subscription.wait

        def noted(self: Subscription, check_ids: frozenset[int] | None, seconds: float) -> None:
            found.append((check_ids, seconds))
            wait(self, check_ids, 0.1)

        monkeypatch.setattr(Subscription, "wait", noted)
        return found

    @pytest.mark.parametrize(
        ("setting", "value"), [("_MOST_AWAITED", 2), ("_COUNTING", 1e9)], ids=["many lines", "slow counting"]
    )
    def test_waits_the_whole_time_where_asking_by_which_checks_it_ends_would_cost_too_much(
        self,
        store: Store,
        held: list[Claim],
        waited: list[tuple[frozenset[int] | None, float]],
        monkeypatch: pytest.MonkeyPatch,
        setting: str,
        value: float,
    ) -> None:
        monkeypatch.setattr(f"farm.runs.submit.{setting}", value)
        with self.begun(store, NOWHERE) as (ending, _), Publisher(NOWHERE) as publisher:
            eventually(lambda: waited)
            record(store, held, publisher)
            ending.result(60)
        assert {check_ids for check_ids, _ in waited} == {None}
        # Counting that takes long is done more rarely.
        assert (min(seconds for _, seconds in waited) == MOST_SECONDS) == (setting == "_COUNTING")

    def test_waits_for_the_checks_by_which_a_run_ends(
        self,
        store: Store,
        held: list[Claim],
        waited: list[tuple[frozenset[int] | None, float]],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr("farm.runs.submit._COUNTING", 0.0)  # counting is cheap, however busy the machine
        with self.begun(store, NOWHERE) as (ending, _), Publisher(NOWHERE) as publisher:
            eventually(lambda: waited)
            record(store, held, publisher)
            ending.result(60)
        assert waited[0][0] == {claim.check_id for claim in held}


@pytest.mark.parametrize(
    ("celery", "redis_py"),
    [
        ("redis+socket:///run/redis.sock", "unix:///run/redis.sock?db=0"),
        ("redis+socket:///run/redis.sock?virtual_host=7", "unix:///run/redis.sock?db=7"),
        ("redis+socket://:hush@/run/redis.sock?virtual_host=7", "unix://:hush@/run/redis.sock?db=7"),
        ("redis://:hush@db:6380/2", "redis://:hush@db:6380/2"),
        ("rediss://db/0?ssl_cert_reqs=CERT_REQUIRED", "rediss://db/0?ssl_cert_reqs=required"),
        ("rediss://db/0?ssl_cert_reqs=none", "rediss://db/0?ssl_cert_reqs=none"),
    ],
)
def test_celerys_url_of_a_broker_is_read_as_redis_py_reads_it(celery: str, redis_py: str) -> None:
    assert redis_url(celery) == redis_py
    assert redis.Redis.from_url(redis_py).get_connection_kwargs().get("password") in (None, "hush")
