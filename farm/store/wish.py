"""A worker's wish for the image of its next claims; pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Alike:
    """A wish for claims that share an image: checks of one class in one environment.

    Those of `tenant` before `turn` were claimed already. If `exact` is false, the wish is for the image with
    the lowest number from `image` on.
    """

    environment: str
    priority: int
    image: int
    tenant: int = 0
    turn: int = 0
    exact: bool = True

    def row(self) -> dict[str, object]:
        """Return the wish as the parameters of a claim."""
        return {
            "environment": self.environment,
            "class": int(self.priority),
            "image": self.image,
            "exact": self.exact,
        }
