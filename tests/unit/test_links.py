"""Places outside of a toolchain that its links lead to."""

from __future__ import annotations

from pathlib import Path

from farm_workers.environments.lean_environment import reached


def test_links_to_links_are_followed_at_any_depth_and_each_place_on_the_way_is_given(tmp_path: Path) -> None:
    prefix, store, modules = tmp_path / "lean", tmp_path / "store", tmp_path / "modules"
    (prefix / "bin").mkdir(parents=True)
    (store / "lib" / "lean" / "deep").mkdir(parents=True)
    modules.mkdir()
    (modules / "Init.olean").touch()
    (tmp_path / "current").symlink_to(store)
    (prefix / "lib").symlink_to("../current/lib")
    (store / "lib" / "lean" / "deep" / "Init.olean").symlink_to(modules / "Init.olean")
    found = reached((prefix,), "1")
    assert {prefix, tmp_path / "current" / "lib", store / "lib", modules / "Init.olean"} <= set(found)
    assert tmp_path not in found
    assert modules not in found


def test_a_link_to_nothing_to_itself_or_to_the_inside_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "inside").symlink_to("file")
    (tmp_path / "nowhere").symlink_to("/no/such/place")
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "up").symlink_to(".")
    (tmp_path / "system").symlink_to("/usr/bin/env")
    assert reached((tmp_path,), "1") == (tmp_path,)


def test_of_a_farm_of_links_the_folder_is_given(tmp_path: Path) -> None:
    store, prefix = tmp_path / "store", tmp_path / "lean"
    store.mkdir()
    prefix.mkdir()
    for number in range(40):
        (store / f"M{number}.olean").touch()
        (prefix / f"M{number}.olean").symlink_to(store / f"M{number}.olean")
    assert reached((prefix,), "1") == (prefix, store)


def test_a_folder_that_is_itself_a_link_is_given_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert reached((tmp_path / "link",), "1") == (tmp_path / "link", tmp_path / "real")
