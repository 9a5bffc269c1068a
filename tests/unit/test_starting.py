"""Environments of a worker: each is served when it is fit, and one that is unfit is examined again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from farm_workers.environments.environment import Environment
from farm_workers.loop import starting
from farm_workers.loop.starting import Starting
from farm_workers.machine.environments import Configured
from farm_workers.systems.hol_light.environment import HolLightEnvironment

from farm.errors import FarmError, SettingsError
from farm.kinds import Kind
from tests.processes import eventually


def environment(name: str) -> HolLightEnvironment:
    return HolLightEnvironment(
        name=name, digest=f"of {name}", toolchain="1", folder=Path("/"), ocaml=Path("/")
    )


def described(name: str) -> Configured:
    return Configured(kind=Kind.HOL_LIGHT, find=lambda: environment(name))


@dataclass
class Worker:
    """Tells what a worker was told, in order."""

    served: list[str] = field(default_factory=list)
    changes: list[str | None] = field(default_factory=list)

    def serve(self, environment: Environment) -> None:
        self.served.append(environment.name)

    def change(self, environment: Environment | None) -> None:
        self.changes.append(environment and environment.name)

    def start(self, subject: Starting) -> Starting:
        subject.start(found=lambda _: None, serve=self.serve, changed=self.change)
        return subject


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "FIRST_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(starting, "_LONG_SECONDS", 0.1)
    monkeypatch.setattr(starting, "_LOOK_SECONDS", 0.02)


@pytest.fixture
def never() -> Iterator[threading.Event]:
    """What an examination that does not end waits for; it ends with the test."""
    event = threading.Event()
    yield event
    event.set()


def waiting_for(event: threading.Event, *names: str) -> Callable[[Environment], None]:
    def examine(environment: Environment) -> None:
        if environment.name in names:
            event.wait()

    return examine


def test_examinations_that_do_not_end_hold_up_no_other_environment(never: threading.Event) -> None:
    slow = [f"slow {number}" for number in range(5)]
    worker = Worker()
    configured = {name: described(name) for name in (*slow, "core")}
    subject = worker.start(Starting(configured, examine=waiting_for(never, *slow)))
    eventually(lambda: worker.served == ["core"])
    eventually(lambda: worker.changes == ["core"])
    assert {(each.name, each.state) for each in subject.pending()} == {(name, "starting") for name in slow}
    assert all(each.seconds >= 0 and each.retry_seconds is None for each in subject.pending())
    subject.stop()


def test_an_unfit_environment_is_examined_until_it_is_fit() -> None:
    reasons = ["first", "second"]

    def examine(_: Environment) -> None:
        if reasons:
            raise FarmError(reasons.pop(0))

    worker = Worker()
    subject = worker.start(Starting({"core": described("core")}, examine=examine))
    eventually(lambda: worker.served == ["core"])
    eventually(lambda: worker.changes == [None, None, "core"])
    assert subject.pending() == []


def test_an_unfit_environment_has_a_reason_and_a_time_and_stays_unfit_while_it_is_examined_again(
    never: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def examine(environment: Environment) -> None:
        tries.append(environment.name)
        if len(tries) > 1:
            never.wait()
        raise FarmError("it is broken")

    monkeypatch.setattr(starting, "FIRST_RETRY_SECONDS", 0.5)
    subject = Worker().start(Starting({"core": described("core")}, examine=examine))
    eventually(lambda: bool(subject.pending()[0].reason))
    (found,) = subject.pending()
    assert (found.state, found.reason, found.kind) == ("unfit", "it is broken", "hol-light")
    assert found.retry_seconds is not None
    assert "is examined again in " in found.words
    eventually(lambda: len(tries) == 2)
    (again,) = subject.pending()
    assert (again.state, again.retry_seconds) == ("unfit", None)
    assert "is examined again now: it is broken" in again.words
    subject.stop()


def test_the_pauses_between_examinations_grow_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "MOST_RETRY_SECONDS", 0.2)
    tries: list[str] = []

    def examine(environment: Environment) -> None:
        tries.append(environment.name)
        raise FarmError("broken")

    subject = Worker().start(Starting({"core": described("core")}, examine=examine))
    eventually(lambda: len(tries) >= 4)
    eventually(lambda: (subject.pending()[0].retry_seconds or 0) > 0.05)
    assert (subject.pending()[0].retry_seconds or 0) <= 0.2
    subject.stop()


def test_a_table_is_read_again_at_each_examination() -> None:
    found = [SettingsError("no such folder"), environment("core")]

    def find() -> Environment:
        answer = found.pop(0)
        if isinstance(answer, SettingsError):
            raise answer
        return answer

    worker = Worker()
    both = {"core": Configured(kind=Kind.LEAN, find=find), "other": described("other")}
    subject = worker.start(Starting(both, examine=lambda _: None))
    subject.wait_for_one()
    eventually(lambda: sorted(worker.served) == ["core", "other"])


def test_a_worker_whose_tables_are_all_wrong_is_told_so_at_once() -> None:
    def find() -> Environment:
        raise SettingsError("there is no Lean")

    subject = Worker().start(
        Starting({"core": Configured(kind=Kind.LEAN, find=find)}, examine=lambda _: None)
    )
    with pytest.raises(SettingsError, match="no environment is usable: there is no Lean"):
        subject.wait_for_one()
    subject.stop()


def test_an_error_that_nobody_foresaw_is_a_reason_like_any_other() -> None:
    def examine(_: Environment) -> None:
        raise ZeroDivisionError("by zero")

    subject = Worker().start(Starting({"core": described("core")}, examine=examine))
    eventually(lambda: subject.pending()[0].reason == "by zero")
    subject.stop()
