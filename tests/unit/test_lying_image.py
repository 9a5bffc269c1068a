"""What an image that has read a stranger's context says to the worker: it may be anything."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from farm_workers.box.isolation import Isolation
from farm_workers.box.once import watched
from farm_workers.box.supervisor import BoxFailed
from farm_workers.images import protocol
from farm_workers.images.fork import Fork, ImageGone
from farm_workers.images.serve import Workshop

from farm.limits import Limits
from tests.isolation_levels import open_files
from tests.processes import eventually, process

#: What is said at the gate, with how many descriptors; and at the end.
LIES = {
    "nothing": (protocol.READY, 1, b""),
    "no numbers": (protocol.READY, 1, b"0 many few"),
    "one number": (protocol.READY, 1, b"0"),
    "a negative one": (protocol.READY, 1, b"-1 0 0"),
    "numbers without end": (protocol.READY, 1, b"9" * 5000),
    "bytes that are no text": (protocol.READY, 1, b"\xff\xfe"),
    "two folders": (protocol.READY, 2, b"0 many few"),
}


def image(gate: bytes, descriptors: int, end: bytes) -> Callable[[bytes, Sequence[int]], None]:
    """Return how to order something of an image that says these words of every fork."""

    def send(_what: bytes, files: Sequence[int]) -> None:
        if os.fork() == 0:
            os.dup2(files[protocol.SOCKET], 3)
            os.closerange(4, 4096)  # the worker's own ends
            with socket.socket(fileno=3) as worker:
                socket.send_fds(worker, [gate], [os.open("/", os.O_RDONLY) for _ in range(descriptors)])
                worker.recv(protocol.MOST_BYTES)
                if end:
                    worker.send(end)
            os._exit(0)

    return send


def stopped(_what: bytes, files: Sequence[int]) -> None:
    """Order something of an image that forks, then says and reaps nothing, as if it was stopped."""
    if os.fork() == 0:
        os.dup2(files[protocol.SOCKET], 3)
        os.closerange(4, 4096)
        if os.fork() == 0:
            with socket.socket(fileno=3) as worker:
                socket.send_fds(worker, [protocol.READY], [os.open("/", os.O_RDONLY)])
                worker.recv(protocol.MOST_BYTES)
                signal.pause()
        signal.pause()


@pytest.mark.parametrize(("gate", "descriptors", "end"), LIES.values(), ids=LIES)
@pytest.mark.timeout(60)
def test_a_lie_is_a_failure_of_the_farm_and_leaves_nothing_open(
    gate: bytes, descriptors: int, end: bytes, tmp_path: Path
) -> None:
    isolation = Isolation(groups=None, namespaces=None, folder=tmp_path, missing=())
    before = open_files()
    fork = Fork(image(gate, descriptors, end), protocol.CHECK, {}, isolation=isolation, limits=Limits())
    try:
        fork.go()
        os.waitpid(fork.pid, 0)
        run = fork.ended()
        assert run.box_error is not None
        assert run.exit_status is None
        assert not fork.is_told
    finally:
        fork.close()
    assert open_files() <= before


@pytest.mark.parametrize("gate", [b"", b"no", b"ready?", protocol.FAILED + b"\xff", protocol.READY])
@pytest.mark.timeout(60)
def test_another_word_at_the_gate_or_no_folder_is_no_fork(gate: bytes, tmp_path: Path) -> None:
    isolation = Isolation(groups=None, namespaces=None, folder=tmp_path, missing=())
    before = open_files()
    with pytest.raises((ImageGone, BoxFailed)):
        Fork(image(gate, 0, b""), protocol.CHECK, {}, isolation=isolation, limits=Limits())
    os.wait()
    assert open_files() <= before


def test_a_fork_finds_the_folder_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir(mode=0o755)
    workshop = Workshop(tmp_path)
    before = (tmp_path / "home").stat()
    for _ in range(2):
        workshop.clear()
        assert {*tmp_path.iterdir()} == {tmp_path / "home", workshop.folder}
        assert list(workshop.folder.iterdir()) == []
        after = (tmp_path / "home").stat()
        assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)
        (workshop.folder / "Module.olean").write_text("a proof")
        (tmp_path / "home" / "note").write_text("a proof")
        (tmp_path / "home").chmod(0o500)
        (tmp_path / "deep" / "er").mkdir(parents=True)
        (tmp_path / "deep" / "er" / "note").write_text("a proof")
        (tmp_path / "deep" / "away").symlink_to("/")
        (tmp_path / "deep").chmod(0o0)
        os.mkfifo(tmp_path / "pipe")


def test_a_fork_whose_image_is_stopped_is_over_at_its_limit(tmp_path: Path) -> None:
    isolation = Isolation(groups=None, namespaces=None, folder=tmp_path, missing=())
    limits, before = Limits(wall_seconds=0.2), open_files()
    fork = Fork(stopped, protocol.CHECK, {}, isolation=isolation, limits=limits)
    working = process(fork.pid)
    assert working is not None
    image = working.parent
    try:
        fork.go()
        run = watched(fork, limits, isolation)
        fork.close()
        assert (run.limit, run.box_error) == ("wall", None)
    finally:
        os.kill(image, signal.SIGKILL)
    os.waitpid(image, 0)
    eventually(lambda: process(fork.pid) is None)
    eventually(lambda: open_files() == before)
