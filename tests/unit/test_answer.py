"""The model's answer: thinking, the final answer key, and the blocks between fences."""

from __future__ import annotations

import pytest

from farm.assembly.answer import after_key, fenced_blocks, without_thinking


def contents(text: str) -> list[tuple[str, str, bool]]:
    blocks, _ = fenced_blocks(text, (0, len(text)))
    return [(block.tag, text[block.start : block.end], block.closed) for block in blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```lean4\na\n```", [("lean4", "a\n", True)]),
        ("~~~ Lean\na\n~~~", [("lean", "a\n", True)]),
        ("````lean\n```\na\n````", [("lean", "```\na\n", True)]),
        ("~~~\n```\na\n~~~", [("", "```\na\n", True)]),
        ("```lean\na\n````", [("lean", "a\n", True)]),
        ("   ```lean\n   a\n   ```", [("lean", "   a\n", True)]),
        ("> ```lean\n> a\n> ```", [("lean", "> a\n", True)]),
        ("- ```lean\n  a\n  ```", [("lean", "  a\n", True)]),
        ("```lean title=x\na\n```", [("lean", "a\n", True)]),
        ("```{.lean4 .numbers}\na\n```", [("lean4", "a\n", True)]),
        ("```lean\r\na\r\n```\r\n", [("lean", "a\r\n", True)]),
        ("```lean\na", [("lean", "a", False)]),
        ("```lean\na\n```lean\nb\n```", [("lean", "a\n", False), ("lean", "b\n", True)]),
        ("```lean\na```", [("lean", "a", True)]),
        ("```lean\n-- ```\na\n```", [("lean", "-- ```\na\n", True)]),
        ("```lean\n/-\n```\n-/\na\n```", [("lean", "/-\n```\n-/\na\n", True)]),
        ("```lean\n/-\na\n```", [("lean", "/-\na\n", True)]),
        ("say ```lean a``` now", [("lean", "a", True)]),
        ("say ```a``` now", []),
        ("so:```lean\na\n```", [("lean", "a\n", True)]),
        ("``` lean", [("lean", "", False)]),
    ],
)
def test_fences_make_blocks(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert contents(text) == expected


def test_the_first_fence_is_known_though_it_opens_nothing() -> None:
    text = "a\n```\n"
    assert fenced_blocks(text, (0, len(text)))[1] == 2


@pytest.mark.parametrize(
    ("text", "answer", "opened"),
    [
        ("a", "a", None),
        ("<think>a</think>b", "b", None),
        ("a</think>b", "b", None),
        ("<think>a</think>b</think>c", "c", None),
        ("<THINK>a thought</THINK>b", "b", None),
        ("<thinking>a</thinking>b", "b", None),
        ("a<think>b", "a", 1),
        ("```a```<think>b</think>c", "```a```", None),
        ("a<think>b</think> ", "a", None),
        ("<think>a<think>b</think>c", "c", None),
        ("thinking aloud", "thinking aloud", None),
    ],
)
def test_thinking_is_not_the_answer(text: str, answer: str, opened: int | None) -> None:
    span, at = without_thinking(text)
    assert (text[slice(*span)], at) == (answer, opened)


@pytest.mark.parametrize(
    ("key", "expected"), [("KEY", " b KEY c"), ("", "a KEY b KEY c"), ("OTHER", "a KEY b KEY c")]
)
def test_the_answer_begins_after_the_first_key(key: str, expected: str) -> None:
    text = "a KEY b KEY c"
    assert text[slice(*after_key(text, (0, len(text)), key))] == expected
