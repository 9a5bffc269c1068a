"""`farm keys`: what it prints, where, and what it refuses."""

from __future__ import annotations

import hashlib
import json

import pytest

from farm.service.auth.tokens import ApiToken
from tests.farms import Quiet


@pytest.mark.newcomer
def test_a_token_is_printed_alone_and_only_its_digest_is_stored(quiet: Quiet) -> None:
    said = quiet.farm("keys", "add", "trainer")
    assert said.returncode == 0, said.stderr
    token = ApiToken.parse(said.stdout.removesuffix("\n"))
    assert token is not None
    assert token.secret not in said.stderr
    assert "is not shown again" in said.stderr
    assert quiet.ask("SELECT secret_sha256 FROM api_keys") == [hashlib.sha256(token.secret.encode()).digest()]
    for listed in (quiet.farm("keys", "list"), quiet.farm("keys", "list", "--json")):
        assert token.id in listed.stdout
        assert token.secret not in listed.stdout + listed.stderr


def test_a_key_may_all_that_is_not_said_and_no_more_than_is(quiet: Quiet) -> None:
    every = quiet.farm.json("keys", "add", "every")
    assert every.keys() == {
        *("schema", "id", "name", "token"),
        *("scopes", "priorities", "per_second", "in_flight", "most_seconds", "weight"),
    }
    assert every["scopes"] == ["cancel", "read", "submit"]
    assert every["priorities"] == ["batch", "interactive", "online"]
    assert (every["per_second"], every["in_flight"], every["most_seconds"]) == (None, None, None)
    assert every["weight"] == 1
    some = [*("--scope", "read", "--scope", "submit", "--scope", "read", "--priority", "online")]
    limits = ("--per-second", "0.5", "--in-flight", "8", "--most-seconds", "1200", "--weight", "3")
    few = quiet.farm.json("keys", "add", "few", *some, *limits)
    assert (few["scopes"], few["priorities"]) == (["read", "submit"], ["online"])
    assert (few["per_second"], few["in_flight"], few["most_seconds"], few["weight"]) == (0.5, 8, 1200, 3)
    listed = quiet.farm.json("keys", "list")["keys"]
    assert [each["name"] for each in listed] == ["every", "few"]
    assert listed[1].items() >= {name: few[name] for name in few if name not in ("schema", "token")}.items()


@pytest.mark.parametrize(
    ("scopes", "is_warned"),
    [(("read",), True), (("read", "cancel"), True), (("submit",), False), (("read", "submit"), False)],
)
def test_who_makes_a_key_that_nothing_can_be_read_with_is_warned(
    quiet: Quiet, scopes: tuple[str, ...], is_warned: bool
) -> None:
    said = quiet.farm("keys", "add", "ci", *(word for each in scopes for word in ("--scope", each)))
    assert said.returncode == 0
    words = " ".join(said.stderr.split())
    assert ("only its own batches; make one with --scope submit as well" in words) == is_warned


def test_keys_are_listed_for_people_with_what_they_may(quiet: Quiet) -> None:
    quiet.farm("keys", "add", "ci", "--scope", "read", "--priority", "batch", "--per-second", "2.5")
    (row,) = [line for line in quiet.farm("keys", "list").stdout.splitlines() if " ci " in line]
    assert all(f" {word} " in row for word in ("read", "batch", "2.5"))


def test_a_revoked_key_stays_listed_and_its_name_is_free(quiet: Quiet) -> None:
    first = quiet.farm.json("keys", "add", "ci")
    told = quiet.farm.json("keys", "revoke", "ci")
    assert (told["id"], told["revoked_at"] is None) == (first["id"], False)
    second = quiet.farm.json("keys", "add", "ci")
    assert quiet.farm("keys", "revoke", first["id"]).returncode == 0  # again: as it was
    listed = quiet.farm.json("keys", "list")["keys"]
    assert [(each["id"], each["revoked_at"]) for each in listed] == [
        (first["id"], told["revoked_at"]),
        (second["id"], None),
    ]


WRONG = {
    "no name": ((), "Missing argument"),
    "an empty name": (("",), "at most 64 letters"),
    "a name with a blank": (("my key",), "at most 64 letters"),
    "a name that a terminal obeys": (("a\x1b[2J",), "at most 64 letters"),
    "a long name": (("a" * 65,), "at most 64 letters"),
    "a name that looks like an id": (("0123456789ab",), "looks like a key's id"),
    "an unknown scope": (("ci", "--scope", "sumbit"), "choose from submit, read, cancel"),
    "an unknown class": (("ci", "--priority", "first"), "choose from interactive, online, batch"),
    "no rate": (("ci", "--per-second", "0"), "above 0"),
    "a rate that is no number": (("ci", "--per-second", "nan"), "above 0"),
    "an endless rate": (("ci", "--per-second", "inf"), "at most 1000000"),
    "a word for a rate": (("ci", "--per-second", "many"), "--per-second"),
    "nothing in flight": (("ci", "--in-flight", "0"), "above 0"),
    "no weight": (("ci", "--weight", "0"), "above 0"),
    "a weight that is too large": (("ci", "--weight", "101"), "at most 100"),
    "more in flight than there can be": (("ci", "--in-flight", "99999999999"), "at most 10000000"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_key_that_cannot_be_is_bad_usage_and_none_is_made(shared_quiet: Quiet, what: str) -> None:
    arguments, says = WRONG[what]
    said = shared_quiet.farm("keys", "add", *arguments)
    assert (said.returncode, said.stdout) == (2, "")
    assert says in " ".join(said.stderr.split())
    assert "Traceback" not in said.stderr
    assert shared_quiet.ask("SELECT id FROM api_keys") == []


def test_a_name_that_is_taken_is_refused_with_the_remedy(quiet: Quiet) -> None:
    first = quiet.farm("keys", "add", "ci")
    said = quiet.farm("keys", "add", "ci")
    assert (first.returncode, said.returncode, said.stdout) == (0, 2, "")
    assert "farm keys revoke ci" in said.stderr
    assert len(said.stderr.splitlines()) == 1


@pytest.mark.parametrize("which", ["nobody", "", "%", "c", "ci "])
def test_a_key_that_there_is_not_cannot_be_revoked(quiet: Quiet, which: str) -> None:
    quiet.farm("keys", "add", "ci")
    said = quiet.farm("keys", "revoke", which)
    assert (said.returncode, said.stdout) == (2, "")
    assert "farm keys list" in said.stderr
    assert quiet.ask("SELECT name FROM api_keys WHERE revoked_at IS NULL") == ["ci"]


def test_no_key_at_all_is_an_empty_list(shared_quiet: Quiet) -> None:
    assert json.loads(shared_quiet.farm("keys", "list", "--json").stdout) == {"schema": 1, "keys": []}
