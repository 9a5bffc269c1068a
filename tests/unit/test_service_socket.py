"""The unix socket of a service: who can connect to it, and what was at its place before."""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from farm.errors import UsageError
from farm.service.sockets import listening, listening_at


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as asking:
        try:
            asking.connect(str(path))
        except OSError:
            return False
        return True


def left_behind(path: Path) -> None:
    """Leave what a service leaves that was killed."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "http.sock"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_at_no_moment_can_others_connect(path: Path, mask: int) -> None:
    seen: set[int] = set()

    def look(*_: object) -> None:
        for entry in list(os.scandir(path.parent)):
            seen.add(entry.stat(follow_symlinks=False).st_mode & 0o777)

    before = os.umask(mask)
    try:
        sys.setprofile(look)
        try:
            with listening(path):
                sys.setprofile(None)
                assert path.stat().st_mode & 0o777 == 0o600
                assert answers(path)
        finally:
            sys.setprofile(None)
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert seen == {0o600}


def test_its_file_is_gone_at_the_end(path: Path) -> None:
    with listening(path):
        assert path.exists()
    assert not path.exists()


def test_what_a_killed_service_left_is_replaced(path: Path) -> None:
    left_behind(path)
    with listening(path):
        assert answers(path)


def test_another_service_is_not_pushed_aside(path: Path) -> None:
    with listening(path):
        with pytest.raises(UsageError, match="another service listens"), listening(path):
            pass
        assert answers(path)


def test_another_service_that_has_no_place_left_is_not_pushed_aside(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as busy, ExitStack() as waiting:
        busy.bind(str(path))
        busy.listen(0)
        for _ in range(3):
            asking = waiting.enter_context(socket.socket(socket.AF_UNIX))
            asking.setblocking(False)
            try:
                asking.connect(str(path))
            except BlockingIOError:
                break
        with pytest.raises(UsageError, match="another service listens"), listening(path):
            pass


def test_a_file_that_is_no_socket_is_left_alone(path: Path) -> None:
    path.write_text("precious")
    with pytest.raises(UsageError, match="is not a socket"), listening(path):
        pass
    assert path.read_text() == "precious"


def test_a_planted_link_is_not_followed(path: Path) -> None:
    left_behind(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(UsageError, match="is not a socket"), listening(path):
        pass
    assert path.with_name("elsewhere").exists()


def test_the_socket_of_a_later_service_stays(path: Path) -> None:
    with listening(path):
        path.unlink()
        left_behind(path)
    assert path.exists()


def test_nothing_but_the_socket_is_put_into_the_folder(path: Path) -> None:
    with listening(path), pytest.raises(UsageError), listening(path):
        pass
    assert list(path.parent.iterdir()) == []
    path.write_text("precious")
    with pytest.raises(UsageError), listening(path):
        pass
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a" * 200, "cannot be listened on: .*; name a socket with a shorter path"),
        ("missing/http.sock", "the folder .*/missing cannot be used: No such file or directory; make it"),
    ],
)
def test_a_path_that_no_socket_can_have_is_told(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=says), listening(tmp_path / name):
        pass
    assert list(tmp_path.iterdir()) == []


def test_of_services_that_start_together_one_listens(path: Path) -> None:
    for _ in range(20):
        left_behind(path)
        everybody, done = threading.Barrier(4), threading.Barrier(4)
        outcomes: list[bool] = []

        def start(
            everybody: threading.Barrier = everybody,
            done: threading.Barrier = done,
            outcomes: list[bool] = outcomes,
        ) -> None:
            everybody.wait(20)
            with ExitStack() as until:
                try:
                    until.enter_context(listening(path))
                except UsageError:
                    outcomes.append(False)
                else:
                    outcomes.append(True)
                done.wait(20)

        threads = [threading.Thread(target=start) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(outcomes) == [False, False, False, True]


def test_clients_can_connect_to_an_address_before_the_service_has_started() -> None:
    with (
        listening_at("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname(), timeout=10) as client,
    ):
        client.sendall(b"waits")
        served, _ = listener.accept()
        with served:
            assert served.recv(5) == b"waits"


def test_a_second_service_cannot_take_an_address_before_the_first_has_started() -> None:
    with listening_at("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with (
            pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"),
            listening_at("127.0.0.1", port),
        ):
            pass
