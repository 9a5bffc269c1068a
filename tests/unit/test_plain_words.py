"""Riddle words in prose: each folder has a ceiling, which only falls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plain_words import ENOUGH, Count, Prose, counted, faults, folder_of, prose_of, prose_of_python

#: The most riddle words in 1 000 words of a folder's prose; all other folders have `ENOUGH`.
CEILINGS: dict[str, float] = {}

SOURCE = '''"""What a module does."""

x = "who is no prose"  # told apart


def f() -> None:
    """Return nothing.

    Nobody asks.
    """
    if x == "what":
        raise ValueError(f"there are so many {x} left", "anew")
    print("whoever prints")
'''


def test_every_folder_keeps_its_ceiling_and_no_ceiling_is_too_high() -> None:
    assert list(faults(counted(CEILINGS), CEILINGS)) == []


def test_prose_is_docstrings_comments_and_raised_messages() -> None:
    assert sorted(prose_of_python(SOURCE)) == [
        Prose(1, "What a module does."),
        Prose(3, "# told apart"),
        Prose(7, "Return nothing.\n\n    Nobody asks.\n    "),
        Prose(12, " left"),
        Prose(12, "anew"),
        Prose(12, "there are so many "),
    ]


def test_code_blocks_of_a_page_are_no_prose(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# What\n\n```\nwho\n```\n\nwhom\n", encoding="utf-8")
    (found,) = prose_of(page)
    assert found.text.split() == ["#", "What", "whom"]
    assert found.text.count("\n") == 7


@pytest.mark.parametrize(
    ("text", "riddles", "words"),
    [
        ("What it is, who asks, and so many more.", 3, 9),
        ("Whatever somewhat retold", 0, 3),
        ("It is left; there is none of it.", 3, 8),
        ("", 0, 0),
    ],
)
def test_riddles_are_whole_words(text: str, riddles: int, words: int) -> None:
    count = Count()
    count.add([Prose(1, text)])
    assert (count.riddles, count.words) == (riddles, words)


@pytest.mark.parametrize(
    ("riddles", "ceiling", "fault"),
    [
        (21, 20, None),
        (22, 20, "a: 22.0 riddle words in 1 000, above its ceiling of 20"),
        (17, 20, None),
        (16, 20, "a: only 16.0 riddle words in 1 000; lower its ceiling to 16.0"),
        (0, 20, "a: only 0.0 riddle words in 1 000; lower its ceiling to 3.0"),
        (0, ENOUGH, None),
        (5, None, "a: 5.0 riddle words in 1 000, above its ceiling of 3"),
        (4, None, None),
    ],
)
def test_a_ceiling_is_kept_and_falls(riddles: int, ceiling: float | None, fault: str | None) -> None:
    ceilings = {} if ceiling is None else {"a": ceiling}
    found = list(faults({"a": Count(riddles=riddles, words=1000)}, ceilings))
    assert [each.partition(". ")[0] for each in found] == ([] if fault is None else [fault])


def test_a_ceiling_without_prose_is_named() -> None:
    assert list(faults({}, {"gone": 5.0})) == ["gone: has no prose any more; remove its ceiling"]


def test_a_folder_has_the_ceiling_of_the_nearest_folder_above_it(tmp_path: Path) -> None:
    ceilings = {"farm/service": 5.0, "farm/service/page": 4.0, "README.md": 9.0, ".": 7.0}
    places = {"farm/service/auth/keys.py": "farm/service", "farm/service/page/site.py": "farm/service/page"}
    places |= {"farm/api.py": "farm", "README.md": "README.md", "SECURITY.md": "."}
    assert {each: folder_of(tmp_path / each, ceilings, tmp_path) for each in places} == places
