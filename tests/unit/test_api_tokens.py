"""Tokens of API keys: what is one, what only looks like one, and what a header presents."""

from __future__ import annotations

import pytest

from farm.service.auth.tokens import ApiToken, digest, is_id, is_same, presented

TOKEN = ApiToken.new()
TEXT = TOKEN.text


def test_a_token_is_read_back_as_it_was_made() -> None:
    assert ApiToken.parse(TEXT) == TOKEN
    assert TEXT.startswith(f"farm_{TOKEN.id}_")
    assert is_id(TOKEN.id)


def test_no_two_tokens_are_alike_and_a_secret_has_256_bits() -> None:
    made = [ApiToken.new() for _ in range(200)]
    assert len({each.id for each in made}) == len({each.secret for each in made}) == 200
    assert all(len(each.secret) == 43 for each in made)  # 6 bits a character


def test_a_token_shows_its_secret_only_to_who_asks_for_it() -> None:
    assert TOKEN.secret not in f"{TOKEN} {TOKEN!r}"


SPOILT = {
    "nothing": "",
    "an id alone": f"farm_{TOKEN.id}",
    "an id with an empty secret": f"farm_{TOKEN.id}_",
    "the beginning of an id": f"farm_{TOKEN.id[:6]}_{TOKEN.secret}",
    "the beginning of a secret": TEXT[:-1],
    "a longer secret": TEXT + "A",
    "a longer id": f"farm_{TOKEN.id}0_{TOKEN.secret}",
    "another prefix": TEXT.replace("farm_", "FARM_"),
    "a line end": TEXT + "\n",
    "NUL at the end": TEXT + "\0",
    "NUL in place of a character": TEXT[:-1] + "\0",
    "digits of another script": f"farm_\u0661{TOKEN.id[1:]}_{TOKEN.secret}",
    "a full-width letter": TEXT[:-1] + "\uff21",
    "a lone surrogate": TEXT[:-1] + "\ud800",
    "a wildcard": f"farm_%_{TOKEN.secret}",
    "SQL": f"farm_' OR 1=1 --_{TOKEN.secret}",
    "a megabyte": "farm_" * 200_000,
    "a secret of a megabyte": f"farm_{TOKEN.id}_{'A' * 1_000_000}",
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_only_looks_like_a_token_is_none(what: str) -> None:
    assert ApiToken.parse(SPOILT[what]) is None


@pytest.mark.parametrize("scheme", ["Bearer ", "bearer ", "BEARER ", "Bearer   "])
def test_a_header_presents_its_token(scheme: str) -> None:
    assert presented([scheme + TEXT]) == TEXT
    assert presented([f" {scheme}{TEXT}\t"]) == TEXT


REFUSED = {
    "no header": [],
    "an empty header": [""],
    "two headers": [f"Bearer {TEXT}", f"Bearer {TEXT}"],
    "a token without a scheme": [TEXT],
    "another scheme": [f"Basic {TEXT}"],
    "a scheme alone": ["Bearer"],
    "an empty token": ["Bearer "],
    "no space": [f"Bearer{TEXT}"],
    "two tokens": [f"Bearer {TEXT} {TEXT}"],
    "two tokens in a list": [f"Bearer {TEXT}, Bearer {TEXT}"],
    "a line end": [f"Bearer {TEXT}\n"],
    "NUL": [f"Bearer {TEXT}\0"],
    "Latin-1, as servers decode headers": ["Bearer gr\xf6\xdfe"],
    "other digits": ["Bearer \u0661\u0662"],
    "a megabyte": ["Bearer " + "A" * 1_000_000],
    "a megabyte of spaces": ["Bearer " + " " * 1_000_000],
}


@pytest.mark.parametrize("what", REFUSED)
def test_any_other_header_presents_nothing(what: str) -> None:
    assert presented(REFUSED[what]) is None


@pytest.mark.parametrize("secret", ["", "gr\xf6\xdfe", "\0", "\ud800", "A" * 1_000_000])
def test_any_text_has_a_digest_that_can_be_compared(secret: str) -> None:
    assert is_same(digest(secret), digest(secret))
    assert not is_same(digest(secret), TOKEN.sha256)
