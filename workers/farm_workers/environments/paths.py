"""Environment step, paths: removes this server's own folders from messages for clients and models.

Lean names files in its errors, Python in its exceptions, and so do other kernels. A client need not know
where the farm, its Python and a toolchain are installed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import platformdirs

from farm.judging.report import Report
from farm_workers.environments.environment import Environment

#: The words that replace a folder of the farm, of Python, and of an environment.
_FARM, _PYTHON, _ENVIRONMENT = "<farm>", "<python>", "<environment>"
#: The last folder of a program's path, below the installation's own folder.
_PROGRAMS = ("bin", "lib", "lean")


class Hiding:
    """Replaces the folders of this server, and of one environment, by words for their purpose."""

    def __init__(self, environment: Environment | None) -> None:
        """Look for them; the variable FARM_HOME names the farm's own."""
        named = {_FARM: [*_own()], _PYTHON: [Path(sys.prefix), Path(sys.base_prefix)]}
        named[_ENVIRONMENT] = [] if environment is None else list(_installed(environment))
        self._words = {
            str(path): word for word, paths in named.items() for each in paths for path in _both(each)
        }
        self._words.pop("/", None)
        self._text = _pattern(self._words)
        self._in_json = {
            form: word
            for path, word in self._words.items()
            for form in (path.encode("utf-8", "surrogateescape"), json.dumps(path)[1:-1].encode())
        }
        self._bytes = re.compile(b"(?:" + b"|".join(map(re.escape, _longest(self._in_json))) + rb")(?![\w-])")

    def text(self, text: str) -> str:
        """Return a text without the folders."""
        return self._text.sub(lambda found: self._words[found[0]], text)

    def output(self, output: bytes) -> bytes:
        """Return the output of a process, which may be text or JSON, without the folders."""
        return self._bytes.sub(lambda found: self._in_json[found[0]].encode(), output)

    def report(self, report: Report) -> Report:
        """Return a report in which no text names the folders."""
        hidden: Report = _mapped(report, self.text)
        return hidden


def hiding(environment: Environment | None) -> Hiding:
    """Return the object that hides this server's folders, and those of an environment if it is known."""
    return _known(cast("Hashable", environment))  # every kind has a hash, which the protocol does not say


_known = functools.lru_cache(maxsize=64)(Hiding)


def _own() -> Iterator[Path]:
    yield Path(os.environ.get("FARM_HOME") or platformdirs.user_data_dir("farm")).absolute()
    yield from (Path(__file__).parents[1], Path("/sys/fs/cgroup"))
    with contextlib.suppress(RuntimeError):  # a user without a home, as a cluster may give one
        yield Path.home()


def _installed(value: object) -> Iterator[Path]:
    """Yield the folders that an environment names, and those that its programs are installed in."""
    if dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            yield from _installed(getattr(value, each.name))
    elif isinstance(value, tuple):
        for part in value:
            yield from _installed(part)
    elif isinstance(value, str | Path) and _is_there(str(value)):
        path = Path(value)
        yield path
        while path.name in _PROGRAMS or path.is_file():
            path = path.parent
            yield path


def _is_there(word: str) -> bool:
    try:
        return word.startswith("/") and Path(word).exists()
    except (OSError, ValueError):  # a header is no path, however it begins
        return False


def _both(path: Path) -> tuple[Path, Path]:
    """Return a path as it is written and as its links lead."""
    return path, path.resolve()


def _longest(words: Iterable[Any]) -> list[Any]:
    return sorted(words, key=len, reverse=True)


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    return re.compile("(?:" + "|".join(map(re.escape, _longest(words))) + r")(?![\w-])")


def _mapped(value: Any, text: Callable[[str], str]) -> Any:
    """Return a value with every text in it mapped; unchanged parts stay the same objects."""
    kind: Any = type(value)
    if kind is str:
        return text(value) if "/" in value else value
    if kind in (dict, tuple, list):
        return _mapped_parts(value, kind, text)
    names = _names(kind)
    was = {name: getattr(value, name) for name in names}
    now = {name: new for name, each in was.items() if (new := _mapped(each, text)) is not each}
    return dataclasses.replace(value, **now) if now else value


def _mapped_parts(value: Any, kind: type, text: Callable[[str], str]) -> Any:
    parts = value.values() if kind is dict else value
    mapped = [_mapped(each, text) for each in parts]
    if all(new is old for new, old in zip(mapped, parts, strict=True)):
        return value
    return dict(zip(value, mapped, strict=True)) if kind is dict else kind(mapped)


@functools.cache
def _names(kind: Any) -> tuple[str, ...]:
    """Return the names of a dataclass's fields, nothing for other classes."""
    return tuple(each.name for each in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else ()
