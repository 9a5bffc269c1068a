"""Environment step: the interface of an environment, whatever its proof system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from farm.judging.tiers import Tier
from farm.kinds import Kind


class Environment(Protocol):
    """One proof system with a library, as installed on this machine. Hashable.

    `digest` is a SHA-256, in hex, over everything that can change a verdict; equal on all machines.
    `toolchain` is for people. `tiers` are available here, the strongest first. `second` names the second
    checker, None without one.
    """

    @property
    def name(self) -> str:
        """The name in lines and tables."""

    @property
    def kind(self) -> Kind:
        """The proof system."""

    @property
    def digest(self) -> str:
        """A SHA-256 over everything that can change a verdict."""

    @property
    def toolchain(self) -> str:
        """The version, for people."""

    @property
    def tiers(self) -> Sequence[Tier]:
        """The available tiers, the strongest first."""

    @property
    def second(self) -> str | None:
        """The name of the second checker."""
