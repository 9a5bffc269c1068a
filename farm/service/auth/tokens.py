"""The tokens of API keys: makes one, reads it from a request, compares it. Pure.

A token is `farm_ID_SECRET`: 12 hexadecimal digits that name the key, and 256 random bits in base64url. Only
the secret's sha256 is stored. A plain digest is enough: 256 random bits cannot be found by trial.
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
class ApiToken:
    """The parts of a token; the secret is left out of the `repr`, and so of every log."""

    id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls) -> ApiToken:
        """Return a new random token."""
        return cls(id=secrets.token_hex(6), secret=secrets.token_urlsafe(32))

    @classmethod
    def parse(cls, words: str) -> ApiToken | None:
        """Return the token in a text, None if the text is not a token."""
        found = _TOKEN.fullmatch(words)
        return None if found is None else cls(id=found[1], secret=found[2])

    @property
    def text(self) -> str:
        """The token as a client sends it."""
        return f"farm_{self.id}_{self.secret}"

    @property
    def sha256(self) -> bytes:
        """The digest of the secret, as the store has it."""
        return digest(self.secret)


def is_id(words: str) -> bool:
    """Return whether a text could be a key's id."""
    return _ID.fullmatch(words) is not None


def digest(secret: str) -> bytes:
    """Return the sha256 of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def is_same(one: bytes, other: bytes) -> bool:
    """Return whether two digests are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(one, other)


def presented(authorization: Sequence[str]) -> str | None:
    """Return the token in the one `Authorization` header of a request, None without exactly one header.

    A token may also be the password of the scheme Basic, for clients that can only be given an address:
    ``http://farm:TOKEN@host``. Two headers count as none: a proxy may have checked one, and the service
    would check the other.
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
