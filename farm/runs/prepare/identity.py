"""Preparation step: the cache key of a check, which equal checks have in common. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from struct import Struct

from farm.characters import storable
from farm.judging.submit_options import SubmitOptions
from farm.store.columns import spans_json
from farm.store.environments import ServedEnvironment
from farm.store.new_lines import NewCheck

_float8 = Struct("!d").pack


def environment_key(served: ServedEnvironment, options: SubmitOptions) -> str:
    """Return the part of the cache key that all lines of a run in this environment share, as JSON."""
    assurance = options.assurance
    same = {
        "environment": [served.name, served.digest, served.checker_version],
        "tier": assurance.tier,
        "native": assurance.native,
        "axioms": sorted(assurance.axioms),
        "policy": assurance.stored_policy,
    } | {name: True for name in ("goals", "stop_at_error") if getattr(options, name)}
    return canonical(same)


def cache_key(environment: str, check: NewCheck) -> bytes:
    """Return the sha256 of environment, limits, programs and challenge, as canonical JSON.

    ``environment`` is the `environment_key`. PostgreSQL computes the same from the check's columns where a
    role is not trusted with it (revision 0026), so all parts are written as PostgreSQL writes them.
    """
    limits = _limits_key(check.wall_seconds, check.cpu_seconds, check.memory_mib)
    first = _program_key(check.program_sha256, check.submitted)
    if check.context_end:
        first += f',{{"context_end":{check.context_end}}}'
    if check.task is not None:
        first += f',{{"task":"{sha256(check.task.encode()).hexdigest()}"}}'
    challenge = "null"
    if check.challenge_sha256 is not None:
        challenge = _challenge_key(check.challenge_sha256, check.challenge_name or "")
    others = ""
    if check.fallback_sha256 is not None:
        others += f",{_program_key(check.fallback_sha256, check.fallback_submitted or ())}"
    if check.restated_sha256 is not None:
        others += f',{{"restated":[{_program_key(check.restated_sha256, check.restated_submitted or ())}]}}'
    return sha256(f"[{environment},{limits},{first},{challenge}{others}]".encode()).digest()


def _program_key(digest: bytes, submitted: Sequence[Sequence[int]]) -> str:
    return f'"{digest.hex()}",{spans_json(submitted)}'


# Thousands of lines share a challenge, and nearly all the limits.
@lru_cache(maxsize=1024)
def _challenge_key(digest: bytes, name: str) -> str:
    return canonical([digest.hex(), storable(name)])


@lru_cache(maxsize=256)
def _limits_key(wall_seconds: float, cpu_seconds: float, memory_mib: int) -> str:
    return canonical([_float8(wall_seconds).hex(), _float8(cpu_seconds).hex(), memory_mib])


def canonical(value: object) -> str:
    """Return the canonical JSON of a value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
