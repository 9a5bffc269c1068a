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


class Programs(NamedTuple):
    """The programs of a check: the first, and those that may be tried after it, the restated one first."""

    first: Text
    restated: Text | None = None
    fallback: Text | None = None

    @property
    def json(self) -> str:
        """What identities name of the others."""
        restated = "" if self.restated is None else f',{{"restated":[{self.restated.json}]}}'
        return ("" if self.fallback is None else f",{self.fallback.json}") + restated

    @property
    def fields(self) -> bytes:
        """The fields of the others."""
        return b"".join(
            NULL + NULL if each is None else field(each.sha256) + field(each.submitted.encode())
            for each in (self.fallback, self.restated)
        )


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


def identity(environment: Part, limits: Part, challenge: Part, programs: Programs) -> bytes:
    """Return what two checks have in common exactly when they are the same, as 32 bytes."""
    same = f"[{environment.json},{limits.json},{programs.first.json},{challenge.json}{programs.json}]"
    return sha256(same.encode()).digest()


def check_fields(environment: Part, limits: Part, challenge: Part, programs: Programs) -> bytes:
    """Return the fields of a check up to its identity, without its place."""
    first = programs.first
    return b"".join(
        (
            environment.fields,
            limits.fields,
            field(first.sha256),
            challenge.fields,
            field(first.submitted.encode()),
            programs.fields,
            integer_field(first.context_end),
        )
    )


def canonical(value: object) -> str:
    """Return the canonical JSON of a value, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
