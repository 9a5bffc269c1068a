"""Environment step, by command: adds a table to ``farm.toml`` or removes one, and keeps all other text.

People write the file, so it is changed as text: a table is appended, or the lines of one are cut out. The new
text is then parsed, and written only if it has the intended tables.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from farm.errors import SettingsError, UsageError
from farm.files import write_whole
from farm_workers.environments.configured import tables

#: A table as it is written: strings, truth values and lists of strings.
Value = str | bool | list[str]
Keys = Mapping[str, Value]


def text(name: str, written: Keys) -> str:
    """Return a table as TOML."""
    # A JSON string is a basic string of TOML, if DEL is escaped: https://toml.io/en/v1.0.0#string
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in written.items()]
    return "\n".join([f"[environments.{json.dumps(name)}]", *lines, ""]).replace("\x7f", "\\u007f")


def require_room(file: Path, name: str) -> None:
    """Raise UsageError if the file has a table of this name, or the table could not be added."""
    _require_new(file, name)
    folder = file.resolve().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".farm-"):
            pass
    except OSError as error:
        raise SettingsError(_unwritable(file, error)) from error


def _require_new(file: Path, name: str) -> None:
    if name in tables(file, required=False):
        raise UsageError(
            f"{file}: there is an environment {name!r} already; choose another name, or take that one away "
            f"first: farm environments remove {name}"
        )


def keys(file: Path, name: str) -> dict[str, Value]:
    """Return the keys of a table; raises UsageError if no table has this name."""
    known = tables(file, required=False)
    found = known.get(name)
    if not isinstance(found, dict):
        raise UsageError(f"{file}: no environment is called {name!r}; it has: {', '.join(known) or 'none'}")
    return found


def add(file: Path, name: str, written: Keys) -> None:
    """Append a table to the file, which is made if missing; raises SettingsError or UsageError."""
    wanted = json.loads(json.dumps(written))

    def appended(before: str) -> str:
        _require_new(file, name)
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        return f"{before}{gap}{text(name, written)}"

    _change(file, appended, lambda known: {**known, name: wanted}, f"append to it:\n{text(name, written)}")


def remove(file: Path, name: str) -> None:
    """Cut a table out of the file; raises UsageError if it is missing or cannot be cut out."""
    keys(file, name)
    _change(
        file,
        lambda before: _without(before, name),
        lambda known: {key: value for key, value in known.items() if key != name},
        "remove its lines by hand",
    )


def _change(
    file: Path,
    edit: Callable[[str], str],
    expect: Callable[[Mapping[str, object]], Mapping[str, object]],
    remedy: str,
) -> None:
    """Replace the file's text by `edit` of it, if the new text has the tables that `expect` returns."""
    real = file.resolve()
    try:
        with _locked(real.parent):
            known = tables(file, required=False)
            before = real.read_text(encoding="utf-8") if real.exists() else ""
            after = edit(before)
            if _parsed(after) != expect(known):
                raise SettingsError(f"{file}: the file is written in a way that cannot be changed; {remedy}")
            _write(real, after)
    except OSError as error:
        raise SettingsError(_unwritable(file, error)) from error


def _unwritable(file: Path, error: OSError) -> str:
    return (
        f"{file} cannot be written: {error.strerror}; make its folder writable for this user, or name "
        "another file in FARM_ENVIRONMENTS"
    )


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other commands from changing files of this folder inside the block."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _write(real: Path, content: str) -> None:
    """Write the file as a whole, with the mode and the owner that it has."""
    before = real.stat() if real.exists() else None
    write_whole(real, content.encode())
    if before is not None:
        with suppress(PermissionError):  # only root may give files away
            os.chown(real, before.st_uid, before.st_gid)
        real.chmod(before.st_mode & 0o777)


def _parsed(content: str) -> object:
    try:
        return tomllib.loads(content).get("environments", {})
    except tomllib.TOMLDecodeError:
        return None


_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def _without(before: str, name: str) -> str:
    """Cut out the lines from a table's header to the next header, and the comments above it."""
    own = rf"^[ \t]*\[[ \t]*environments[ \t]*\.[ \t]*{_key(name)}[ \t]*\][ \t]*(#[^\n]*)?$"
    found = re.search(own, before, re.MULTILINE)
    if found is None:
        return before
    following = _HEADER.search(before, found.end())
    if following is None:
        return f"{before[: found.start()].rstrip()}\n".removeprefix("\n")
    kept = before[found.end() : following.start()]
    above = re.search(r"(?:^[ \t]*(?:#[^\n]*)?\n)*\Z", kept, re.MULTILINE)
    comments = above.group().lstrip("\n") if above else ""
    return before[: found.start()] + comments + before[following.start() :]


def _key(name: str) -> str:
    plain = rf"|{re.escape(name)}" if re.fullmatch(r"[A-Za-z0-9_-]+", name) else ""
    return rf"""(?:"{re.escape(name)}"|'{re.escape(name)}'{plain})"""
