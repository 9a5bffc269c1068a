"""What the farm works with, looked at part by part, for `farm doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points

from farm.broker import require_broker
from farm.errors import FarmError
from farm.site import Site


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One part, whether it works, and what was found or what to do about it."""

    part: str
    ok: bool
    words: str


def examine(site: Site) -> list[Finding]:
    """Look at each part of a site.

    What only this machine can tell (its Lean, its isolation) joins by the entry-point group ``farm.doctor``:
    a name and a function from a site to words, which raises `FarmError` when the part is broken.
    """
    parts: dict[str, Callable[[Site], str]] = {
        "settings": lambda site: f"home {site.settings.home}, environment {site.settings.environment}",
        "PostgreSQL": lambda site: site.engine.url.render_as_string(),
        "Redis": lambda site: require_broker(site.broker),
        "workers": _workers,
    }
    joined = {point.name: point.load() for point in entry_points(group="farm.doctor")}
    return [_look(site, name, part) for name, part in (parts | joined).items()]


def _workers(site: Site) -> str:
    site.environments()  # waits for the farm's own worker, which may have been started a moment ago
    return site.queries.signs_of_life()


def _look(site: Site, name: str, part: Callable[[Site], str]) -> Finding:
    try:
        return Finding(part=name, ok=True, words=part(site))
    except FarmError as error:
        return Finding(part=name, ok=False, words=str(error))
