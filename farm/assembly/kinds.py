"""Assembly step, the kinds: how the lines of each proof system become programs and challenges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from farm.assembly import metamath, program
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.program import AssemblyOptions, Program
from farm.kinds import Kind
from farm.manifest.entry import Entry


class Assembling(NamedTuple):
    """How the lines of one system are assembled; both raise StatementFault for a line that is wrong.

    `challenge` is given a line's header, context and statement, and is None where that states nothing.
    """

    assemble: Callable[[Entry, AssemblyOptions], Program]
    challenge: Callable[[str, str, str], Challenge | None]


def assembling(kind: str) -> Assembling:
    """Return how the lines of a kind are assembled; raises KeyError for one that this farm does not know."""
    return _ASSEMBLING[Kind(kind)]


def _stated_in_lean(header: str, _context: str, statement: str) -> Challenge | None:
    return challenge_to(header, statement)


_ASSEMBLING: Mapping[Kind, Assembling] = MappingProxyType(
    {
        Kind.LEAN: Assembling(assemble=program.assemble, challenge=_stated_in_lean),
        Kind.METAMATH: Assembling(assemble=metamath.assemble, challenge=metamath.state),
    }
)
