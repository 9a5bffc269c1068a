"""Examines each part that the farm needs, for `farm doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points

from farm.broker import require_broker
from farm.connections import Connections
from farm.errors import FarmError


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """One part, whether it works, and a finding or a remedy; `weak` works but is not safe."""

    part: str
    ok: bool
    words: str
    weak: bool = False


def examine(connections: Connections) -> Iterator[Diagnosis]:
    """Examine each part that the farm needs, and yield each finding as soon as it is known.

    Examinations that need this machine (its isolation, its Leans) join by the entry-point group
    ``farm.doctor``: functions from connections to diagnoses.
    """
    settings = connections.settings
    parts: dict[str, Callable[[], str]] = {
        "settings": lambda: f"home {settings.home}, environment {settings.environment}",
        "PostgreSQL": lambda: connections.engine.url.render_as_string(),
        "Redis": lambda: require_broker(connections.broker),
        "workers": lambda: _workers(connections),
    }
    for name, part in parts.items():
        yield _look(name, part)
    for point in entry_points(group="farm.doctor"):
        joined: Callable[[Connections], Iterable[Diagnosis]] = point.load()
        yield from joined(connections)


def _workers(connections: Connections) -> str:
    connections.environments()  # waits for the farm's own worker, which may have been started a moment ago
    return connections.queries.signs_of_life(within_seconds=connections.settings.lease_seconds)


def _look(name: str, part: Callable[[], str]) -> Diagnosis:
    try:
        return Diagnosis(part=name, ok=True, words=part())
    except FarmError as error:
        return Diagnosis(part=name, ok=False, words=str(error))
