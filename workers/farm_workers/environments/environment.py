"""Environment step: what an environment is, whatever proof system it is of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from farm.judging.tiers import Tier
from farm.kinds import Kind


class Environment(Protocol):
    """One proof system with a library, as it is on this machine. Hashable.

    `digest` is a SHA-256, in hex, over all that decides what a check means; equal on all machines.
    `toolchain` is for people. `tiers` can be had here, the strongest first. `second` names what is asked
    besides the first checker, None for nothing.
    """

    @property
    def name(self) -> str:
        """How lines and tables call it."""

    @property
    def kind(self) -> Kind:
        """The proof system."""

    @property
    def digest(self) -> str:
        """A SHA-256 over all that decides."""

    @property
    def toolchain(self) -> str:
        """The version, for people."""

    @property
    def tiers(self) -> Sequence[Tier]:
        """Those that can be had here."""

    @property
    def second(self) -> str | None:
        """Who is asked besides."""
