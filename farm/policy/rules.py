"""The rules: what each is called, what a text that it hits could do, and what is done about that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Action(StrEnum):
    """What becomes of a submission that a rule hits."""

    REJECT = "reject"
    REPORT = "report"
    OFF = "off"


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """A rule: what is done by default, and what a text that it hits could do."""

    action: Action
    threat: str


_REJECT, _REPORT, _OFF = Action.REJECT, Action.REPORT, Action.OFF

#: Every rule by its name. `native` is a switch of its own: what it hits rests on the compiler.
RULES: Mapping[str, Rule] = MappingProxyType(
    {
        "axiom": Rule(action=_REJECT, threat="assumes what was to be proved"),
        "opaque": Rule(action=_REJECT, threat="declares a constant whose value nobody sees"),
        "unsafe": Rule(action=_REJECT, threat="leaves what the kernel checks"),
        "run": Rule(action=_REJECT, threat="runs code while Lean reads the text"),
        "initialize": Rule(action=_REJECT, threat="runs code when the compiled text is imported"),
        "metaprogram": Rule(action=_REJECT, threat="changes what later text means"),
        "replaced_code": Rule(action=_REJECT, threat="runs other code than was proved about"),
        "option": Rule(action=_REJECT, threat="turns off a check, or hides or adds messages"),
        "stop": Rule(action=_REJECT, threat="keeps Lean from reading on"),
        "messages": Rule(action=_REJECT, threat="hides messages"),
        "imports": Rule(action=_REJECT, threat="chooses what the statement stands on"),
        "trusted_name": Rule(action=_REJECT, threat="uses an axiom that proves anything"),
        "token": Rule(action=_REJECT, threat="declares a token that makes text look like what it is not"),
        "hidden": Rule(action=_REJECT, threat="may hide code in what looks like a comment or a string"),
        "native": Rule(action=_REJECT, threat="trusts the compiler"),
        "partial": Rule(action=_REPORT, threat="declares a constant whose value nobody sees"),
        "notation": Rule(action=_REPORT, threat="changes how later text is read"),
        "instance": Rule(action=_REPORT, threat="changes what later text means"),
        "attribute": Rule(action=_REPORT, threat="changes what later text means"),
        "scope": Rule(action=_REPORT, threat="changes what names in later text mean, or what is assumed"),
        "definition": Rule(action=_REPORT, threat="gives a name a meaning of its own"),
        "setting": Rule(action=_REPORT, threat="changes what later text means"),
        "query": Rule(action=_REPORT, threat="prints"),
        "search": Rule(action=_REPORT, threat="may come out otherwise with another library"),
        "limits": Rule(action=_OFF, threat="lifts Lean's own limits"),
    }
)
