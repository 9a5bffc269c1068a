"""The rules: their names, the threat of a text that they hit, and those that the tier lean rejects."""

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
class Rule:
    """A rule: the threat of a text that it hits, and whether the tier ``lean`` rejects such a text.

    The other tiers only report hits, because there the compiled module decides.
    """

    threat: str
    is_doubted: bool = False


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


def _doubted(threat: str) -> Rule:
    return Rule(threat=threat, is_doubted=True)


#: Every rule by its name.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "axiom": _doubted("assumes the statement to prove"),
        "opaque": _doubted("declares a constant with a hidden value"),
        "unsafe": _doubted("bypasses the kernel"),
        "run": _doubted("runs code while Lean elaborates the text"),
        "initialize": _doubted("runs code when the compiled module is imported"),
        "metaprogram": _doubted("changes the meaning of later text"),
        "replaced_code": _doubted("runs code other than the proved code"),
        "option": _doubted("turns off a check, or hides or adds messages"),
        "stop": _doubted("stops Lean before the end"),
        "messages": _doubted("hides messages"),
        "imports": _doubted("chooses the foundations of the statement"),
        "trusted_name": _doubted("uses an axiom that proves anything"),
        "native": _doubted("trusts the compiler"),
        "not_read": _doubted("is too long for the policy to scan"),
        "partial": Rule(threat="declares a constant with a hidden value"),
        "notation": Rule(threat="changes how later text is parsed"),
        "instance": Rule(threat="changes the meaning of later text"),
        "attribute": Rule(threat="changes the meaning of later text"),
        "scope": Rule(threat="changes the meaning of names in later text, or the assumptions"),
        "definition": Rule(threat="redefines a name"),
        "setting": Rule(threat="changes the meaning of later text"),
        "query": Rule(threat="prints"),
        "search": Rule(threat="may give another result with another library"),
        "limits": Rule(threat="raises Lean's own limits"),
    }
)
