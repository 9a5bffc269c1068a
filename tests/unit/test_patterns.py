"""The regular expressions of the farm: a group that is repeated possessively fails where a round began.

Python 3.11.2, which Debian 12 has, goes on where the last, failing round ended.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import re._constants as codes  # the parser's own words; there is no public way to a parsed pattern
import re._parser as parser
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import farm_workers
import pytest

import farm
from farm.lean_text.scanner import NAME

#: The forms of ``(?!)`` that parsers give.
_FAILURES = frozenset({"[(ASSERT_NOT, (1, []))]", "[(FAILURE, ())]"})
_SINGLE = {codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN}


def possessive(items: Any) -> Iterator[str]:
    """Yield the groups that a parsed pattern repeats possessively without a last alternative ``(?!)``."""
    for code, value in items:
        if code is codes.POSSESSIVE_REPEAT and not _is_safe(value[2]):
            yield str(value[2])
        yield from (found for each in _within(code, value) for found in possessive(each))


def _is_safe(body: Any) -> bool:
    code, value = body[0]
    if code is codes.SUBPATTERN:
        return len(body) == 1 and _is_safe(value[3])
    is_branch = code is codes.BRANCH and str(value[1][-1]) in _FAILURES
    return len(body) == 1 and (code in _SINGLE or is_branch)


def _within(code: Any, value: Any) -> list[Any]:
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [value[2]]
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    if code is codes.BRANCH:
        return list(value[1])
    if code is codes.GROUPREF_EXISTS:
        return [each for each in value[1:] if each]
    return [value] if code is codes.ATOMIC_GROUP else []


def modules(package: ModuleType) -> list[str]:
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [each.name for each in found if not each.name.endswith("__main__")]


def test_no_pattern_of_a_module_goes_on_where_a_round_of_a_group_fails() -> None:
    for name in [*modules(farm), *modules(farm_workers)]:
        for word, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                flags = value.flags & ~(re.UNICODE if isinstance(value.pattern, bytes) else 0)
                assert list(possessive(parser.parse(value.pattern, flags))) == [], word


@pytest.mark.parametrize(
    ("pattern", "number"),
    [
        (r"a*+[bc]++", 0),
        (r"(?:ab)*+", 1),
        (r"(?:a|bc)*+", 1),
        (r"(?=(?:a(?:b|cd)++)*)", 1),
        (r"(?:ab|(?!))*+", 0),
        (r"(?:a|bc|(?!))*+", 0),
        (r"(?>(?:ab)*)", 0),
    ],
)
def test_a_group_that_is_repeated_possessively_is_found(pattern: str, number: int) -> None:
    assert len(list(possessive(parser.parse(pattern)))) == number


@pytest.mark.parametrize("behind", ["", ".", ". b", ".1", ".«", "..", ".\n"])
def test_a_name_ends_before_a_dot_that_no_name_follows(behind: str) -> None:
    found = re.match(NAME, f"a.b{behind}")
    assert found is not None
    assert found[0] == "a.b"
