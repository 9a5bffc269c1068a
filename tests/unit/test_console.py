"""The console of an emulated machine, with a shell in the machine's place."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.vm.machine import UP, Console, MachineFailed


@contextmanager
def saying(script: str) -> Iterator[Console]:
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as machine:
        assert machine.stdout
        yield Console(machine.stdout.fileno())
        machine.kill()


def test_what_it_says_is_passed_on_without_carriage_returns(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    with saying(r"printf 'one\r\n'; sleep 0.1; printf '\r'; sleep 0.1; printf 'two\r\n'") as console:
        console.follow(20)
    assert capfdbinary.readouterr().out == b"one\ntwo\n"


def test_one_that_is_up_has_its_time_and_no_more() -> None:
    within = pytest.raises(MachineFailed, match=r"not done after 0\.5 s(.|\n)*the last line")
    with saying(f"echo {UP.decode()}; echo the last line; exec sleep 600") as console, within:
        console.follow(0.5)


def test_one_that_does_not_come_up_has_its_time_and_no_more() -> None:
    within = pytest.raises(MachineFailed, match=r"did not boot in time(.|\n)*a fault")
    with saying("echo a fault; exec sleep 600") as console, within:
        console.follow(60, boot=0.5)
