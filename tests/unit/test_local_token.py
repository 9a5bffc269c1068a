"""The local token of a service: its files, who can read them, and who may have written them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from farm.errors import FarmError, ServerDown, UsageError
from farm.service.auth.local_token import LOCAL, Local, distrust, published, read, write
from farm.service.auth.tokens import ApiToken, presented

URL = "http://127.0.0.1:8700"
FILES = ("http.json", "http.token")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    return home


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def shown(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.name.startswith(("http.", ".farm-")))


def test_what_is_published_is_read_and_gone_at_the_end(home: Path) -> None:
    with published(home, URL) as local:
        assert read(home) == local
        assert json.loads((home / "http.json").read_text()) == {"url": URL}
        assert (home / "http.token").read_text() == local.token
    with pytest.raises(ServerDown, match=r"is not there; start it: farm serve"):
        read(home)
    assert shown(home) == ["http.lock"]


def test_a_home_that_is_not_there_is_made_private(tmp_path: Path) -> None:
    with published(tmp_path / "home", URL):
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_each_start_has_its_own_token_and_a_header_can_present_it(home: Path) -> None:
    tokens = [Local.new(URL).token for _ in range(100)]
    assert len(set(tokens)) == 100
    assert [presented([f"Bearer {each}"]) for each in tokens] == tokens
    assert all(ApiToken.parse(each) is None for each in tokens)  # no API key's


def test_the_token_and_nothing_else_is_the_owners() -> None:
    local = Local.new(URL)
    assert local.verify(local.token) == LOCAL
    others = ("", local.token[:-1], local.token + "A", local.token.upper(), "gr\xf6\xdfe", "\0", "\ud800")
    assert [local.verify(each) for each in (*others, Local.new(URL).token)] == [None] * 8
    assert local.token not in f"{local} {local!r}"


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_at_no_moment_can_others_read_a_file(home: Path, mask: int) -> None:
    seen: set[int] = set()

    def look(*_: object) -> None:
        # After each function that is called: whatever is in the folder then.
        for entry in list(os.scandir(home)):
            if entry.name.startswith(("http.", ".farm-")):
                seen.add(entry.stat(follow_symlinks=False).st_mode & 0o777)

    with umask(mask):
        sys.setprofile(look)
        try:
            write(home, Local.new(URL))
            write(home, Local.new(URL))
        finally:
            sys.setprofile(None)
    assert seen
    assert not {mode for mode in seen if mode & 0o077}
    assert {(home / name).stat().st_mode & 0o777 for name in FILES} == {0o600}


@pytest.mark.parametrize("name", FILES)
def test_a_planted_link_is_replaced_and_what_it_leads_to_is_left_alone(home: Path, name: str) -> None:
    victim = home.parent / "victim"
    victim.write_text("precious")
    (home / name).symlink_to(victim)
    with published(home, URL) as local:
        assert read(home) == local
        assert not (home / name).is_symlink()
    assert victim.read_text() == "precious"


def test_a_planted_link_in_place_of_the_lock_is_refused(home: Path) -> None:
    (home / "http.lock").symlink_to(home.parent / "elsewhere")
    with pytest.raises(FarmError, match=r"http\.lock cannot be written: .*; remove it"), published(home, URL):
        pass
    assert not (home.parent / "elsewhere").exists()


def test_a_file_that_others_have_open_does_not_get_the_token(home: Path) -> None:
    (home / "http.token").write_text("")
    (home / "http.token").chmod(0o666)
    with (home / "http.token").open() as theirs, published(home, URL):
        assert theirs.read() == ""


@pytest.mark.parametrize("name", FILES)
def test_a_folder_in_the_way_is_told_and_nothing_is_left_behind(home: Path, name: str) -> None:
    (home / name).mkdir()
    with pytest.raises(FarmError, match=rf"{name} cannot be written: .*; remove it"):
        write(home, Local.new(URL))
    assert not [each for each in shown(home) if each.startswith(".")]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("mode", [0o640, 0o620, 0o604, 0o602, 0o644, 0o666, 0o777])
def test_files_that_others_can_read_or_change_are_not_used(home: Path, name: str, mode: int) -> None:
    write(home, Local.new(URL))
    (home / name).chmod(mode)
    with pytest.raises(UsageError, match="other users can read or change it; remove it"):
        read(home)


@pytest.mark.parametrize("name", FILES)
def test_a_link_is_not_used(home: Path, name: str) -> None:
    write(home, Local.new(URL))
    (home / name).rename(home / "real")
    (home / name).symlink_to(home / "real")
    with pytest.raises(UsageError, match="it is a symbolic link"):
        read(home)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_holds_up_nobody(home: Path, name: str, make: Callable[[Path, int], None]) -> None:
    write(home, Local.new(URL))
    (home / name).unlink()
    make(home / name, 0o600)
    with pytest.raises(UsageError, match="it is not a file"):
        read(home)


def test_a_file_of_another_user_is_not_used(home: Path) -> None:
    write(home, Local.new(URL))
    found = (home / "http.token").stat()
    assert distrust(found, user=os.geteuid()) is None
    assert distrust(found, user=os.geteuid() + 1) == f"it is of user {os.geteuid()}, not {os.geteuid() + 1}"


WRONG = {
    "an empty address": ("http.json", ""),
    "no object": ("http.json", "[]"),
    "no url": ("http.json", "{}"),
    "half of an address": ("http.json", '{"url": "http://127'),
    "a url that is no text": ("http.json", '{"url": 8700}'),
    "another scheme": ("http.json", '{"url": "file:///etc/passwd"}'),
    "two lines": ("http.json", '{"url": "http://localhost\\r\\nX: y"}'),
    "no ASCII": ("http.json", '{"url": "http://gr\xf6\xdfe"}'),
    "nested too deeply": ("http.json", "[" * 4000),
    "no token": ("http.token", ""),
    "half of a token": ("http.token", "farm_local_abc"),
    "a token of two lines": ("http.token", f"{Local.new(URL).token}\r\nX: y"),
    "a megabyte": ("http.token", "farm_local_" + "A" * 1_000_000),
}


@pytest.mark.parametrize("what", WRONG)
def test_files_that_the_farm_did_not_write_are_refused(home: Path, what: str) -> None:
    name, content = WRONG[what]
    write(home, Local.new(URL))
    (home / name).write_text(content)
    with pytest.raises(UsageError, match=rf"{name} cannot be used: .*; remove it"):
        read(home)


def test_the_end_of_a_service_leaves_the_files_of_the_next_one(home: Path) -> None:
    with published(home, URL):
        later = Local.new("http://127.0.0.1:8701")
        write(home, later)
    assert read(home) == later


def test_files_that_somebody_else_put_there_stay(home: Path) -> None:
    with published(home, URL):
        (home / "http.token").write_text("theirs")
    assert shown(home) == ["http.json", "http.lock", "http.token"]


def test_files_that_are_gone_are_not_missed_at_the_end(home: Path) -> None:
    with published(home, URL):
        for name in FILES:
            (home / name).unlink()


def test_a_home_that_is_gone_is_not_missed_at_the_end(home: Path) -> None:
    with published(home, URL):
        shutil.rmtree(home)


def test_while_a_service_runs_others_of_its_home_leave_its_files_alone(home: Path) -> None:
    with published(home, URL) as first:
        with published(home, "http://127.0.0.1:8701") as second:
            assert (first.is_published, second.is_published) == (True, False)
            assert first.token != second.token
            assert read(home) == first
        assert read(home) == first
    with published(home, "http://127.0.0.1:8701") as third:
        assert third.is_published
        assert read(home) == third


def test_of_services_that_start_together_one_is_found(home: Path) -> None:
    for _ in range(50):
        everybody, done = threading.Barrier(4), threading.Barrier(4)
        found: list[bool] = []

        def serve(
            everybody: threading.Barrier = everybody,
            done: threading.Barrier = done,
            found: list[bool] = found,
        ) -> None:
            everybody.wait(20)
            with published(home, URL) as local:
                done.wait(20)
                found.append(local.is_published and read(home) == local)

        threads = [threading.Thread(target=serve) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(found) == [False, False, False, True]
