"""The rules: their names, and the threat of a text that they hit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Action(StrEnum):
    """The treatment of a submission that a rule hits."""

    REJECT = "reject"
    REPORT = "report"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """A place that a rule hits: its offsets in the program, its line from 1 and its column from 0."""

    rule: str
    action: Action
    start: int
    end: int
    line: int
    column: int
    text: str


#: Every rule by its name, with the threat of a text that it hits. The tier ``lean`` rejects such a text; the
#: other tiers only report hits, because there the compiled module decides.
RULES: Mapping[str, str] = MappingProxyType(
    {
        "axiom": "assumes the statement to prove",
        "opaque": "declares a constant with a hidden value",
        "unsafe": "bypasses the kernel",
        "run": "runs code while Lean elaborates the text",
        "initialize": "runs code when the compiled module is imported",
        "metaprogram": "changes the meaning of later text",
        "replaced_code": "runs code other than the proved code",
        "option": "turns off a check, or hides or adds messages",
        "stop": "stops Lean before the end",
        "messages": "hides messages",
        "imports": "chooses the foundations of the statement",
        "trusted_name": "uses an axiom that proves anything",
        "native": "trusts the compiler",
        "not_read": "is too long for the policy to scan",
    }
)
