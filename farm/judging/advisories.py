"""Advisories: finds the known soundness bugs in a Lean 4 toolchain's kernel, for submits and pages.

The table is ``advisories.toml`` beside this file. It finds the bugs of a release by its name; it does not
know the bugs of a modified build.
"""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple


@dataclass(frozen=True, kw_only=True, slots=True)
class Advisory:
    """One bug by which the kernel could accept a proof of False, and the versions of Lean that have it.

    `introduced` is the first version with the bug, empty when that is unknown. `fixed` are the versions with
    the fix: the first on the main line, and the patch releases with a backport. `sources` are
    addresses, or issues and pull requests such as ``leanprover/lean4#14576``.
    """

    id: str
    summary: str
    introduced: str
    fixed: tuple[str, ...]
    sources: tuple[str, ...]


def advisories(toolchain: str) -> tuple[Advisory, ...] | None:
    """Return the known bugs of a toolchain, oldest first; None if its name contains no version of Lean 4.

    The name is a version, the content of a ``lean-toolchain`` file, or a version with the first digits of its
    commit: ``4.35.0``, ``leanprover/lean4:v4.35.0``, ``Lean 4.35.0 (eb6cafb7290e)``, ``4.33.0-rc1``. Any
    other name, such as ``my-lean``, gives None; an empty tuple means that the table lists no bug of the
    version.

    A version has a bug when it is not below `introduced` and no fix reaches it. The versions of a release
    line share their first two numbers. A fix in version F reaches version V when V is not below F, and one of
    these holds:

    - V is in the release line of F.
    - F is the first release of its line, such as ``4.33.0``, or a candidate for it. Release lines branch from
      the main line one after the other, so all later lines have the fix.
    - F is the newest version in `fixed`: all later lines have the fix, even when F is a patch release.

    Any other patch release has a backported fix, from which nothing follows for later lines. A candidate
    comes before its release; a version with another suffix, such as a nightly, comes before both.
    """
    return _known(toolchain, table())


@lru_cache(maxsize=256)
def _known(toolchain: str, known: tuple[Advisory, ...]) -> tuple[Advisory, ...] | None:
    version = _read(toolchain)
    if version is None:
        return None
    return tuple(advisory for advisory in known if _affects(advisory, version))


@cache
def table() -> tuple[Advisory, ...]:
    """Return all advisories, in the order of the file."""
    content = tomllib.loads(files("farm.judging").joinpath("advisories.toml").read_text(encoding="utf-8"))
    return tuple(
        Advisory(**entry | {"fixed": tuple(entry["fixed"]), "sources": tuple(entry["sources"])})
        for entry in content["advisory"]
    )


class _Version(NamedTuple):
    """A version of Lean 4; versions compare in the order of their release.

    `candidate` is the number of a release candidate, infinite for the release itself, and -1 for a nightly, a
    milestone, or any other suffix.
    """

    minor: int
    patch: int
    candidate: float


# Nine digits are more than any version has, and too few for `int` to refuse.
_NAME = re.compile(
    r"(?:Lean |leanprover/lean4:)?v?4\.([0-9]{1,9})\.([0-9]{1,9})(?:-(?:rc([0-9]{1,9})|([^\s()]+)))?"
    r"(?: \([0-9a-f]+\))?"
)


def _read(name: str) -> _Version | None:
    said = _NAME.fullmatch(name)
    if said is None:
        return None
    minor, patch, candidate, other = said.groups()
    if candidate is not None:
        return _Version(int(minor), int(patch), int(candidate))
    return _Version(int(minor), int(patch), math.inf if other is None else -1)


def _affects(advisory: Advisory, version: _Version) -> bool:
    introduced = _read(advisory.introduced)
    if introduced is not None and version < introduced:
        return False
    fixes = [fix for named in advisory.fixed if (fix := _read(named)) is not None]
    held = _surely_holds(version)
    return not any(_reaches(fix, held, newest=fix == max(fixes)) for fix in fixes)


def _reaches(fix: _Version, version: _Version, *, newest: bool) -> bool:
    return version >= fix and (version.minor == fix.minor or fix.patch == 0 or newest)


def _surely_holds(version: _Version) -> _Version:
    """Return the newest version whose fixes this one certainly has.

    A nightly has the number of the next release as soon as the release line below has its first candidate. A
    fix in a later candidate of that line may be newer than the nightly.
    """
    if version.candidate < 0:
        return _Version(version.minor - 1, 0, 1)
    return version
