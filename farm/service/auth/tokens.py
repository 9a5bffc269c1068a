"""The tokens of API keys: how one is made, read from a request, and compared. Pure.

A token is `farm_ID_SECRET`: 12 hexadecimal digits that name the key, and 256 random bits in base64url. Only
the secret's sha256 is stored. A plain digest is enough: nobody can try all secrets of so many bits.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

_ID = re.compile(r"[0-9a-f]{12}", re.ASCII)
_TOKEN = re.compile(r"farm_([0-9a-f]{12})_([A-Za-z0-9_-]{43})", re.ASCII)
# https://www.rfc-editor.org/rfc/rfc9110#name-authorization: the scheme's case does not matter.
_LONGEST = 200
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]{1,200})", re.ASCII | re.IGNORECASE)
_BASIC = re.compile(r"basic +([A-Za-z0-9+/=]{1,400})", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A token in its parts; its secret is not shown in a `repr`, and so in no log."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> Token:
        """Return a token that nobody has."""
        return cls(id=secrets.token_hex(6), secret=secrets.token_urlsafe(32))

    @classmethod
    def parse(cls, words: str) -> Token | None:
        """Return the token that a text is, None when it is none."""
        found = _TOKEN.fullmatch(words)
        return None if found is None else cls(id=found[1], secret=found[2])

    @property
    def text(self) -> str:
        """The token as its user presents it."""
        return f"farm_{self.id}_{self.secret}"

    @property
    def sha256(self) -> bytes:
        """The digest of the secret, by which it is recognized."""
        return digest(self.secret)


def is_id(words: str) -> bool:
    """Return whether a text could be a key's id."""
    return _ID.fullmatch(words) is not None


def digest(secret: str) -> bytes:
    """Return the sha256 of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Return whether two digests are equal, after a time that does not tell where they differ."""
    return hmac.compare_digest(one, other)


def presented(authorization: Sequence[str]) -> str | None:
    """Return the token that the `Authorization` headers of a request present, None without exactly one.

    A token may also be the password of the scheme Basic: clients that cannot send a token can be given an
    address with one, as in ``http://farm:TOKEN@host``. Of two headers a proxy may have checked one and the
    service the other, so two present nothing.
    """
    if len(authorization) != 1:
        return None
    words = authorization[0].strip(" \t")
    if found := _BEARER.fullmatch(words):
        return found[1]
    found = _BASIC.fullmatch(words)
    return None if found is None else _password(found[1])


def _password(credentials: str) -> str | None:
    try:
        _, separator, password = base64.b64decode(credentials, validate=True).decode("ascii").partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return password if separator and len(password) <= _LONGEST else None
