"""Preparation step, what equal checks have in common: their parts as identities and rows name them. Pure."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import NamedTuple

from farm.judging.assurance import Assurance
from farm.limits import Limits
from farm.runs.prepare.rows import NULL, field, integer_field, limits_fields, words_field
from farm.store.environments import ServedEnvironment


class Part(NamedTuple):
    """What rows, as fields, and identities, as JSON, have of one part of a check."""

    fields: bytes
    json: str


class Text(NamedTuple):
    """A program as rows and identities name it; `submitted` and `segments` are JSON.

    It begins with the line's context up to `context_end`, 0 without one.
    """

    sha256: bytes
    source: bytes
    submitted: str
    segments: str
    context_end: int = 0

    @property
    def json(self) -> str:
        """What identities name."""
        within = f',{{"context_end":{self.context_end}}}' if self.context_end else ""
        return f'"{self.sha256.hex()}",{self.submitted}{within}'


def limits_part(limits: Limits) -> Part:
    """Return the limits of a check."""
    numbers = [float(limits.wall_seconds), float(limits.cpu_seconds), limits.memory_mib]
    return Part(fields=limits_fields(limits), json=canonical(numbers))


def environment_part(served: ServedEnvironment, assurance: Assurance, *, goals: bool) -> Part:
    """Return an environment, with all that is the same for the run's lines."""
    same = {
        "environment": [served.name, served.digest, served.checker_version],
        "tier": assurance.tier,
        "native": assurance.native,
        "axioms": sorted(assurance.axioms),
        "policy": assurance.stored_policy,
    } | ({"goals": True} if goals else {})
    return Part(fields=words_field(served.name), json=canonical(same))


def challenge_part(sha256: bytes, name: str) -> Part:
    """Return the challenge that a proof is compared with."""
    return Part(fields=field(sha256) + words_field(name), json=canonical([sha256.hex(), name]))


#: The part of a check that compares with no challenge.
UNSTATED = Part(fields=NULL + NULL, json="null")


def identity(environment: Part, limits: Part, challenge: Part, first: Text, second: Text | None) -> bytes:
    """Return what two checks have in common exactly when they are the same, as 32 bytes."""
    fallback = "" if second is None else f",{second.json}"
    same = f"[{environment.json},{limits.json},{first.json},{challenge.json}{fallback}]"
    return sha256(same.encode()).digest()


def check_fields(environment: Part, limits: Part, challenge: Part, first: Text, second: Text | None) -> bytes:
    """Return the fields of a check up to its identity, without its place."""
    fallback = NULL + NULL if second is None else field(second.sha256) + field(second.submitted.encode())
    return b"".join(
        (
            environment.fields,
            limits.fields,
            field(first.sha256),
            challenge.fields,
            field(first.submitted.encode()),
            fallback,
            integer_field(first.context_end),
        )
    )


def canonical(value: object) -> str:
    """Return the canonical JSON of a value, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
