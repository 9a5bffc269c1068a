"""Extraction step, history: the commits that made a file and each of its lines, as git has them.

A repository may be hostile: its configuration names programs that git runs. So git reads commits
alone, never the files of the working tree, with every such setting overridden (git-config(1)).
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from farm.errors import UsageError

_SETTINGS = (
    *("core.fsmonitor=false", "core.hooksPath=/dev/null", "core.pager=cat", "diff.external="),
    *("log.showSignature=false", "blame.ignoreRevsFile=", "core.attributesFile=/dev/null"),
)
_VARIABLES = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C.UTF-8",
}
_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A commit, and the time at which it was made, in seconds since 1970."""

    commit: str
    seconds: int

    def told(self) -> dict[str, str]:
        """Return the commit with its date, in UTC."""
        return {"commit": self.commit, "date": datetime.fromtimestamp(self.seconds, UTC).isoformat()}


@dataclass(frozen=True, kw_only=True, slots=True)
class FileHistory:
    """The commit that added a file, under any name, and for each line the commit that wrote it."""

    created: Change | None
    lines: Sequence[Change]

    def of_lines(self, first: int, last: int) -> Change | None:
        """Return the oldest commit of some lines, counted from 1; None where the file has none of them."""
        return min(self.lines[first - 1 : last], key=lambda each: each.seconds, default=None)


class NoHistory(Exception):
    """A file has no history: has the reason."""


def require_repository(folder: Path) -> None:
    """Raise UsageError for a folder that is in no git repository, or in one that git does not trust."""
    try:
        _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        is_shallow = _git(folder, "rev-parse", "--is-shallow-repository").strip() == b"true"
    except NoHistory as error:
        raise UsageError(
            f"--dates: {folder}: git has no history of it ({error}); give a folder of your own git repository"
        ) from error
    if is_shallow:
        raise UsageError(
            f"--dates: {folder}: the clone is shallow, so its oldest commit seems to have written all; "
            "run git fetch --unshallow in it"
        )


def began(folder: Path) -> int:
    """Return the time of a repository's first commit, in seconds since 1970. Raises UsageError."""
    try:
        times = _git(folder, "log", "--max-parents=0", "--no-textconv", "--format=%ct", "HEAD").split()
    except NoHistory as error:
        raise UsageError(f"--split: {folder}: git finds no first commit ({error}); try again") from error
    return min(map(int, times))


def history(folder: Path, name: str, content: bytes) -> FileHistory:
    """Return the history of a file below a folder. Raises NoHistory, also for one that was changed since."""
    if _git(folder, "cat-file", "blob", f"HEAD:./{name}") != content:
        raise NoHistory("it has changes that are not committed")
    lines = blamed(_git(folder, "blame", "--porcelain", "--no-textconv", "HEAD", "--", name))
    form = "--format=%H %ct"
    added = _git(folder, "log", "--follow", "--diff-filter=A", "--no-textconv", form, "--", name).split()
    created = Change(commit=added[-2].decode(), seconds=int(added[-1])) if added else None
    return FileHistory(created=created, lines=lines)


def blamed(porcelain: bytes) -> list[Change]:
    """Return the commit of each line, of the output of ``git blame --porcelain`` (git-blame(1))."""
    times: dict[str, int] = {}
    found, commit = list[str](), ""
    for line in porcelain.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if line.startswith(b"\t"):
            found.append(commit)
            commit = ""
        elif not commit:
            commit = word.decode()
        elif word == b"committer-time":
            times[commit] = int(rest)
    return [Change(commit=each, seconds=times[each]) for each in found]


def _git(folder: Path, *words: str) -> bytes:
    settings = [part for each in _SETTINGS for part in ("-c", each)]
    command = [
        "git",
        "--no-pager",
        "--no-replace-objects",
        "--literal-pathspecs",
        *settings,
        "-C",
        str(folder),
        *words,
    ]
    inherited: Mapping[str, str] = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    try:
        ended = subprocess.run(
            command,
            env={**inherited, **_VARIABLES},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise NoHistory("there is no git on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise NoHistory(f"git did not answer within {_SECONDS:g} s") from error
    if ended.returncode != 0:
        said = ended.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise NoHistory(said or f"git ended with status {ended.returncode}")
    return ended.stdout
