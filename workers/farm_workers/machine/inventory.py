"""Lists the environments that workers serve and those of this machine, for `farm environments`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from farm.judging.advisories import Advisory, advisories
from farm.store.environments import Pending, ServedEnvironment
from farm_workers.environments.environment import Environment
from farm_workers.environments.lean_environment import LeanEnvironment
from farm_workers.machine.environments import Installed


@dataclass(frozen=True, kw_only=True, slots=True)
class Listed:
    """An environment's name, its installation and problem on this machine, and its workers' record.

    `is_declared` marks an environment that is declared in the database and that no worker has served yet.
    """

    name: str
    here: Environment | None
    problem: str | None
    served: ServedEnvironment | None
    is_served_now: bool
    is_declared: bool = False
    pending: Sequence[Pending] = ()

    @property
    def known(self) -> Environment | ServedEnvironment | None:
        """The environment of this machine, else the served one; None if neither exists."""
        return self.here or self.served

    @property
    def headers(self) -> tuple[str, ...]:
        """The headers whose images this machine prewarms."""
        return self.here.headers if isinstance(self.here, LeanEnvironment) else ()

    @property
    def kind(self) -> str | None:
        """The environment's proof system, None if it is neither sound on this machine nor served."""
        return self.known.kind if self.known else None

    @property
    def checker(self) -> str | None:
        """The name of the second checker, None without one."""
        if self.here is not None:
            return self.here.second
        return self.served.checker if self.served else None

    @property
    def tiers(self) -> tuple[str, ...]:
        """The tiers that its workers serve, else those that this machine could serve."""
        known = self.served or self.here
        return tuple(known.tiers) if known else ()

    @property
    def advisories(self) -> tuple[Advisory, ...]:
        """The known soundness bugs of its kernel."""
        return (advisories(self.known.toolchain) or ()) if self.known else ()

    @property
    def state(self) -> str:
        """The state of its service and of its installation on this machine, in words."""
        return f"{self._service()}; {self._here()}"

    def _service(self) -> str:
        if self.served is None:
            return self._pending() or ("declared, never served" if self.is_declared else "never served")
        if not self.is_served_now and (words := self._pending()):
            return words
        return "served" if self.is_served_now else f"not served for {self.served.silent_seconds:.0f} s"

    def _pending(self) -> str:
        return "; ".join(each.words for each in self.pending)

    def _here(self) -> str:
        if self.problem is not None:
            return f"broken here: {self.problem}"
        if self.here is None:
            return "not installed here"
        if self.served is not None and self.served.digest != self.here.digest:
            return f"installed here with another digest than the one served, {self.served.digest[:12]}"
        if isinstance(self.here, LeanEnvironment) and not self.here.forks:
            why = "does not fit" if self.here.fit else f"not tried; see farm environments fit {self.name}"
            return f"installed here, not forked: {why}"
        return "installed here"


def listed(served: Iterable[ServedEnvironment], here: Installed, *, silence_seconds: float) -> list[Listed]:
    """Return all environments that are served, declared or on this machine, sorted by name.

    An environment counts as served if a worker's heartbeat named it within the last `silence_seconds`.
    """
    told = {each.name: each for each in served}
    known = {name: each for name, each in told.items() if not each.is_only_declared}
    heard = {name for name, each in known.items() if each.silent_seconds <= silence_seconds}
    return [
        Listed(
            name=name,
            here=here.sound.get(name),
            problem=here.problems.get(name),
            served=known.get(name),
            is_served_now=name in heard,
            is_declared=name in told and name not in known,
            pending=told[name].pending if name in told else (),
        )
        for name in sorted({*told, *here.names})
    ]
