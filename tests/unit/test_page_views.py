"""What the page says, and that hostile text stays text in it."""

from __future__ import annotations

import re
import unicodedata

import pytest

from farm.service.page.escaping import shown
from farm.service.page.responses import HEADERS, POLICY, asset, html
from farm.service.page.views import SIGNS, STATES, parts, place, reasons
from farm.store.looking import LinePlace
from farm.store.queries import Tally


def test_the_parts_of_a_bar_fill_it_and_are_told_in_one_order() -> None:
    tally = Tally(
        statuses={"done": 6, "queued": 1, "cancelled": 1},
        verdicts={("rejected", "error"): 2, ("proved", "ok"): 3, ("rejected", "has_sorry"): 1},
    )
    told = parts(tally)
    assert [(part.word, part.count) for part in told] == [
        ("proved", 3),
        ("rejected", 3),
        ("cancelled", 1),
        ("queued", 1),
    ]
    assert [part.start for part in told] == [0, 37.5, 75, 87.5]
    assert sum(part.width for part in told) == 100
    assert reasons(tally)[0] == ("proved", "ok", 3)


def test_an_empty_run_has_no_parts() -> None:
    assert parts(Tally(statuses={}, verdicts={})) == []


def test_every_state_has_a_sign_of_its_own() -> None:
    assert set(STATES) <= set(SIGNS)
    assert len({SIGNS[state] for state in STATES}) == len(STATES)


@pytest.mark.parametrize(
    "words", ["", ":", "1", "1:", ":1", "-1:2", "1:2:3", "٣:1", "1e3:1", "1:" + "9" * 10]
)
def test_what_is_no_place_is_none(words: str) -> None:
    assert place(words) is None


def test_a_place_is_a_manifest_and_a_line() -> None:
    assert place("2:345") == LinePlace(2, 345)


def test_nothing_that_is_not_seen_stays_hidden() -> None:
    for number in range(0x110000):
        character = chr(number)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in "\n\t":
            assert shown(character).startswith("\\"), f"U+{number:04X}"


def test_what_is_seen_stays_as_it_is() -> None:
    words = "theorem t (ε : ℝ) : ∀ δ > 0, ⟨ε⟩ ≠ 𝔸 := by\n\tnorm_num -- שלום ✓ éé"
    assert shown(words) == words


@pytest.mark.parametrize(
    "words", ["</title><script>alert(1)</script>", "\"' onload=x", "<!--", "{{ 7 * 7 }}", "&lt;b&gt;"]
)
def test_hostile_words_are_text_in_a_page(words: str) -> None:
    body = bytes(html("failed.html", viewer=None, words=words).body).decode()
    assert words not in body or words == "{{ 7 * 7 }}"
    assert "<script>" not in body
    page = bytes(html("sign_in.html", viewer=None, problem=words, next=words).body).decode()
    assert re.findall(r"<script[^>]*>", page) == re.findall(r"<script src=[^>]*>", page)


def test_what_utf_8_cannot_hold_is_written_out() -> None:
    body = bytes(html("failed.html", viewer=None, words="\ud800\u202e\0").body).decode()
    assert r"\ud800\u202e\x00" in body


def test_templates_have_neither_scripts_nor_styles_inside() -> None:
    body = bytes(html("sign_in.html", viewer=None, problem="", next="/page/").body).decode()
    assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", body)


def test_the_policy_lets_nothing_in_from_elsewhere() -> None:
    assert "unsafe" not in POLICY and "http" not in POLICY and "*" not in POLICY
    assert POLICY.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert HEADERS["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("name", ["page.css", "page.js"])
def test_files_of_the_page_name_nothing_elsewhere(name: str) -> None:
    found = asset(name)
    assert found is not None
    assert not re.search(rb"https?://|//[a-z]+\.|@import|url\(", bytes(found.body).replace(b"// ", b""))
    assert found.headers["content-security-policy"] == POLICY


@pytest.mark.parametrize("name", ["", "..", "../site.py", "page.css/", "runs.html"])
def test_no_other_file_is_given(name: str) -> None:
    assert asset(name) is None
