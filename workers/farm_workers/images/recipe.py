"""Image step, recipes: what an image reads before it forks. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """What an image is made of; images of equal recipes can stand for each other.

    `header` is text of imports alone. `context` is a whole text that begins with it and is read to its end,
    which runs code of whoever wrote it. `module` is what such a text was compiled to, which is read as data
    and goes through the kernel. An image has one of the two, or neither; with one it is forked from that of
    its header.
    """

    header: str = ""
    context: str = ""
    module: bytes = b""

    @property
    def runs_code(self) -> bool:
        """Whether making the image runs what strangers have written."""
        return bool(self.context)

    @property
    def kind(self) -> str:
        """What it reads below the header: ``context``, ``module`` or ``header`` where there is nothing."""
        return "context" if self.context else "module" if self.module else "header"

    @property
    def origin(self) -> Recipe | None:
        """The recipe of the image that this one is forked from, None for one that begins by itself."""
        return Recipe(header=self.header) if self.context or self.module else None

    @property
    def words(self) -> list[bytes]:
        """What makes a recipe the one that it is."""
        texts = self.header, self.context
        return [*(text.encode("utf-8", "surrogatepass") for text in texts), self.module]
