"""Image step, recipes: describes the input that an image reads before it forks. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """The input of an image; images of equal recipes are interchangeable.

    `header` is text of imports alone. `context` is a whole text that begins with it and is read to its end,
    which runs its author's code. `module` is the compiled form of such a text, which is read as data and goes
    through the kernel; `table` is the file with the environment's table of dependencies. An image has
    a context, a module, or neither. An image with a context or a module is a fork of its header's image.
    """

    header: str = ""
    context: str = ""
    module: bytes = b""
    table: Path | None = None

    @property
    def runs_code(self) -> bool:
        """Whether making the image runs untrusted code."""
        return bool(self.context)

    @property
    def kind(self) -> str:
        """The part that it reads below the header: ``context``, ``module`` or ``header`` without one."""
        return "context" if self.context else "module" if self.module else "header"

    @property
    def origin(self) -> Recipe | None:
        """The recipe of the image that this one is forked from, None for an image in its own box."""
        return Recipe(header=self.header) if self.context or self.module else None

    @property
    def words(self) -> list[bytes]:
        """The texts that identify a recipe."""
        texts = self.header, self.context
        return [*(text.encode("utf-8", "surrogatepass") for text in texts), self.module]
