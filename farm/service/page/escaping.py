"""Escapes for the page: characters that hide, reorder or join a model's text become visible. Pure."""

from __future__ import annotations

import re

# Control characters except tab and newline; Unicode's characters for formatting, direction and line ends;
# lone surrogates, which UTF-8 does not have.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff"
    "\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def shown(text: str) -> str:
    """Return a text with its invisible characters as escapes."""
    return _UNSHOWN.sub(lambda found: found.group().encode("unicode_escape").decode("ascii"), text)


def cut(text: str, longest: int) -> tuple[str, int]:
    """Return the beginning of a text, and the number of omitted characters."""
    return text[:longest], max(0, len(text) - longest)
