"""Copies of a check's files: what is no file is told from what this machine could not read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from farm_workers.box.copy import taken

from tests.descriptors import descriptors_left

CONTENT = b"a module"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "Module.olean").write_bytes(CONTENT)
    return tmp_path / "Module.olean"


@pytest.mark.parametrize("left", [0, 1])
def test_a_file_that_is_there_is_never_called_missing_for_lack_of_descriptors(
    module: Path, left: int
) -> None:
    with descriptors_left(left), pytest.raises(OSError, match="Too many open files"):
        taken(module)
    with descriptors_left(2):
        copy = taken(module)
    assert copy is not None
    assert copy.read() == CONTENT
    copy.close()


@pytest.mark.parametrize("unreadable", ["a closed folder", "a folder that is a file", "a long name"])
def test_what_cannot_be_looked_up_is_an_error_of_this_machine(module: Path, unreadable: str) -> None:
    folder = os.open(module.parent, os.O_RDONLY)
    os.close(folder)
    asked = {
        "a closed folder": (module.name, folder),
        "a folder that is a file": (module / module.name, None),
        "a long name": (module.parent / ("x" * 300), None),
    }
    with pytest.raises(OSError, match=r"\[Errno"):
        taken(*asked[unreadable])


def test_nothing_a_link_a_folder_a_socket_a_pipe_and_an_empty_or_long_file_are_no_module(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(module.parent)
    Path("link").symlink_to(module)
    Path("folder").mkdir()
    Path("empty").touch()
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("nothing", "link", "folder", "empty", "pipe", "socket"):
            assert taken(name) is None, name
    assert taken(module, most_bytes=len(CONTENT) - 1) is None
