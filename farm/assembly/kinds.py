"""Assembly step, the kinds: how the lines of each proof system become programs and challenges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from farm.assembly import hol_light, metamath, program
from farm.assembly.challenge import Challenge, challenge_to
from farm.assembly.foreign import refuse_foreign
from farm.assembly.images import image_of
from farm.assembly.program import AssemblyOptions, Program
from farm.kinds import Kind
from farm.manifest.entry import Entry


def _the_only_one(_entry: Entry, _program: Program) -> int:
    return 0


def _itself(challenge: Challenge) -> str:
    return challenge.program


class Assembling(NamedTuple):
    """How the lines of one system are assembled; both raise StatementFault for a line that is wrong.

    `image` numbers what can be forked from one process, 0 where that is the environment's only one.
    `challenge` is given a line's header, context and statement, and is None where that states nothing;
    `unproved` makes the program of one that proves nothing of it.
    """

    assemble: Callable[[Entry, AssemblyOptions], Program]
    challenge: Callable[[str, str, str], Challenge | None]
    image: Callable[[Entry, Program], int] = _the_only_one
    unproved: Callable[[Challenge], str] = _itself


def assembling(kind: str) -> Assembling:
    """Return how the lines of a kind are assembled; raises KeyError for one that this farm does not know."""
    return _ASSEMBLING[Kind(kind)]


def _stated_in_lean(header: str, context: str, statement: str) -> Challenge | None:
    refuse_foreign(header=header, formal_statement=statement)
    return challenge_to(header, statement, context)


_ASSEMBLING: Mapping[Kind, Assembling] = MappingProxyType(
    {
        Kind.LEAN: Assembling(assemble=program.assemble, challenge=_stated_in_lean, image=image_of),
        Kind.METAMATH: Assembling(assemble=metamath.assemble, challenge=metamath.state),
        Kind.HOL_LIGHT: Assembling(
            assemble=hol_light.assemble, challenge=hol_light.challenge, unproved=hol_light.unproved
        ),
    }
)
