"""The key ring and what each key uses, by a clock that the tests set and keys that they change."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import FrameType

import pytest

from farm.errors import OverLimit, ServerDown
from farm.service.auth.key_ring import KeyRing
from farm.service.auth.tokens import ApiToken
from farm.store.keys import Key, Scope, StoredKey
from farm.store.limits import Use, bucket, has_limit

TOKEN = ApiToken.new()
KEY = Key(id=TOKEN.id, name="ci", scopes=frozenset({Scope.READ}), classes=frozenset({"online"}))


@dataclass
class Clock:
    """A clock that stands until a test moves it."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Stored:
    """Keys that stand for a database's, and how often they were read."""

    tokens: list[ApiToken] = field(default_factory=lambda: [TOKEN])
    reads: int = 0
    during: Callable[[], object] = lambda: None

    def __call__(self) -> list[StoredKey]:
        self.reads += 1
        self.during()
        moment = datetime.now(UTC)
        return [
            StoredKey(
                key=replace(KEY, id=each.id), secret_sha256=each.sha256, created_at=moment, revoked_at=None
            )
            for each in self.tokens
        ]


@pytest.fixture
def stored() -> Stored:
    return Stored()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ring(stored: Stored, clock: Clock) -> KeyRing:
    return KeyRing(stored, clock=clock)


def test_a_token_is_known_by_its_secret(ring: KeyRing) -> None:
    assert ring.verify(TOKEN.text) == KEY


def test_no_other_text_is_anybodys(ring: KeyRing) -> None:
    other = ApiToken.new()
    for words in (
        *("", "farm", TOKEN.id, TOKEN.secret, "\0", "gr\xf6\xdfe", "\ud800", "farm_" * 100_000),
        *(other.text, replace(TOKEN, secret=other.secret).text, replace(TOKEN, id=other.id).text),
        *(TOKEN.text[:-1], TOKEN.text + "A", TOKEN.text.swapcase(), f"{TOKEN.text}\0", f" {TOKEN.text}"),
        # What the database holds is not what a key's user holds.
        replace(TOKEN, secret=TOKEN.sha256.hex()[:43]).text,
    ):
        assert ring.verify(words) is None


def test_calls_within_three_seconds_are_answered_by_one_reading(
    ring: KeyRing, stored: Stored, clock: Clock
) -> None:
    for _ in range(100):
        assert ring.verify(TOKEN.text)
        clock.now += 0.0299
    assert stored.reads == 1


def test_a_revoked_key_stops_within_five_seconds(ring: KeyRing, stored: Stored, clock: Clock) -> None:
    assert ring.verify(TOKEN.text)
    stored.tokens.clear()
    clock.now += 5
    assert ring.verify(TOKEN.text) is None


def test_the_time_that_a_reading_takes_counts_as_its_age(clock: Clock) -> None:
    def slowly() -> None:
        clock.now += 4

    stored = Stored(during=slowly)
    ring = KeyRing(stored, clock=clock)
    assert ring.verify(TOKEN.text)
    stored.tokens.clear()
    assert ring.verify(TOKEN.text) is None


def test_a_new_key_is_known_at_once(ring: KeyRing, stored: Stored, clock: Clock) -> None:
    assert ring.verify(TOKEN.text)
    stored.tokens.append(ApiToken.new())
    clock.now += 0.3
    assert ring.verify(stored.tokens[-1].text)


def test_who_presents_wrong_tokens_has_the_keys_read_five_times_a_second_at_most(
    ring: KeyRing, stored: Stored, clock: Clock
) -> None:
    for _ in range(1000):
        assert ring.verify(ApiToken.new().text) is None
        clock.now += 0.001
    assert 4 <= stored.reads <= 6
    assert len(vars(ring)["_snapshot"].keys) == 1


@contextmanager
def followed() -> Iterator[list[str]]:
    """The names of all functions that are called inside the block, in order; no collector is among them."""
    names: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_qualname)
        elif event == "c_call":
            names.append(getattr(argument, "__qualname__", ""))

    gc.disable()
    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(None)
        gc.enable()


@pytest.mark.parametrize("seconds", [0.0, 1.0, 10.0])
def test_an_unknown_id_is_answered_by_the_steps_of_a_known_one(
    ring: KeyRing, clock: Clock, seconds: float
) -> None:
    stranger = ApiToken.new()
    steps = []
    for token in (replace(TOKEN, secret=stranger.secret), stranger):
        ring.verify(TOKEN.text)
        clock.now += seconds
        words = token.text
        with followed() as names:
            assert ring.verify(words) is None
        steps.append(names)
    assert "compare_digest" in steps[0]
    # The list of keys has one, in both cases.
    assert steps[0] == steps[1]


def test_many_calls_at_once_wait_for_one_reading(clock: Clock) -> None:
    everybody = threading.Barrier(9)
    stored = Stored(during=lambda: everybody.wait(20))
    ring = KeyRing(stored, clock=clock)
    found: list[Key | None] = []

    def call() -> None:
        found.append(ring.verify(TOKEN.text))

    first = threading.Thread(target=call)
    first.start()

    def later() -> None:
        everybody.wait(20)
        call()

    threads = [first, *(threading.Thread(target=later) for _ in range(8))]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert found == [KEY] * 9
    assert stored.reads == 1


def test_a_database_that_is_away_is_a_failure_and_no_refusal(clock: Clock) -> None:
    def away() -> None:
        raise ServerDown("PostgreSQL does not answer")

    stored = Stored()
    ring = KeyRing(stored, clock=clock)
    assert ring.verify(TOKEN.text)
    stored.during = away
    clock.now += 5
    for _ in range(2):
        with pytest.raises(ServerDown):
            ring.verify(TOKEN.text)
    stored.during = lambda: None
    assert ring.verify(TOKEN.text)


def test_a_reading_that_hangs_does_not_hold_up_other_calls_for_ever(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr("farm.service.auth.key_ring._WAIT_SECONDS", 0.05)
    begun, end = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        assert end.wait(20)

    ring = KeyRing(Stored(during=hang), clock=clock)
    thread = threading.Thread(target=ring.verify, args=(TOKEN.text,))
    thread.start()
    assert begun.wait(20)
    with pytest.raises(ServerDown, match="did not return the keys"):
        ring.verify(TOKEN.text)
    end.set()
    thread.join(20)
    assert ring.verify(TOKEN.text)


# Limits


@dataclass
class Usage:
    """A key's use, whose bucket fills with the time, as PostgreSQL's does."""

    clock: Clock
    use: Use
    at: float

    def admit(self, key: Key, proofs: int = 1) -> None:
        filled = self.use.level + (self.clock.now - self.at) * (key.per_second or 0.0)
        self.use, self.at = replace(self.use, level=min(bucket(key), filled)), self.clock.now
        self.use = self.use.after(key, proofs)

    def release(self, proofs: int) -> None:
        self.use = replace(self.use, in_flight=self.use.in_flight - proofs)


def usage_of(clock: Clock, **limits: float) -> tuple[Usage, Key]:
    key = replace(KEY, **limits)
    return Usage(clock, Use(in_flight=0, level=bucket(key)), clock.now), key


def refused(usage: Usage, key: Key, proofs: int = 1) -> int | None:
    """Return the seconds to wait, as `OverLimit` gives them."""
    with pytest.raises(OverLimit) as raised:
        usage.admit(key, proofs)
    return raised.value.retry_after


def test_a_key_without_limits_is_always_admitted(clock: Clock) -> None:
    usage, key = usage_of(clock)
    for _ in range(100):
        usage.admit(key, 4096)
    assert not has_limit(key)


def test_unfinished_proofs_are_limited_until_they_are_released(clock: Clock) -> None:
    usage, key = usage_of(clock, in_flight=10)
    usage.admit(key, 7)
    assert refused(usage, key, 4) == 1
    usage.admit(key, 3)
    assert refused(usage, key) == 1
    usage.release(2)
    usage.admit(key, 2)
    assert usage.use.in_flight == 10


def test_proofs_that_are_counted_already_need_no_room(clock: Clock) -> None:
    usage, key = usage_of(clock, in_flight=10, per_second=20.0)
    usage.admit(key, 10)
    assert usage.use.after(key, 3, new=0) == Use(in_flight=10, level=7.0)


def test_a_batch_that_never_fits_is_not_to_be_tried_again(clock: Clock) -> None:
    usage, key = usage_of(clock, in_flight=10)
    assert refused(usage, key, 11) is None


@pytest.mark.parametrize("per_second", [0.01, 0.5, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("proofs", [1, 7, 4096])
def test_on_average_no_more_is_admitted_than_the_limit_and_who_waits_as_told_is_admitted(
    clock: Clock, per_second: float, proofs: int
) -> None:
    usage, key = usage_of(clock, per_second=per_second)
    begun, admitted = clock.now, 0
    for _ in range(20):
        usage.admit(key, proofs)
        admitted += proofs
        while True:
            try:
                usage.admit(key, proofs)
            except OverLimit as error:
                assert error.retry_after is not None
                assert error.retry_after >= 1
                clock.now += error.retry_after
                break
            admitted += proofs
        # At the end of a wait that is shorter than a day the next batch is admitted.
        if proofs / per_second > 86_400:
            return
    assert admitted <= (clock.now - begun) * per_second + max(1.0, per_second) + 2 * proofs


def test_a_rate_lets_in_one_seconds_proofs_at_once_and_then_as_many_as_it_says(clock: Clock) -> None:
    usage, key = usage_of(clock, per_second=5.0)
    for _ in range(5):
        usage.admit(key)
    assert refused(usage, key) == 1
    clock.now += 0.2
    usage.admit(key)
    assert refused(usage, key) == 1


def test_a_large_batch_is_paid_for_by_waiting(clock: Clock) -> None:
    usage, key = usage_of(clock, per_second=10.0)
    usage.admit(key, 100)
    assert refused(usage, key, 100) == 10
    clock.now += 9
    assert refused(usage, key) == 1
    assert refused(usage, key, 100) == 1
    clock.now += 1
    usage.admit(key, 100)


def test_what_is_refused_costs_nothing(clock: Clock) -> None:
    usage, key = usage_of(clock, per_second=10.0, in_flight=10)
    for _ in range(100):
        refused(usage, key, 11)
    usage.admit(key, 10)
    clock.now += 1
    for _ in range(100):
        refused(usage, key)
    usage.release(10)
    usage.admit(key, 10)


def test_the_smallest_rate_there_can_be_has_a_wait_that_can_be_told(clock: Clock) -> None:
    usage, key = usage_of(clock, per_second=5e-324)
    usage.admit(key)
    assert refused(usage, key) == 86_400
