"""The options `--context` and `--context-tokens`, which add shorter contexts to lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

if TYPE_CHECKING:
    from farm_workers.machine.abridging import Wanted

Context = Annotated[
    str,
    Option(
        "--context",
        metavar="SETTING",
        help="Add a shorter context: none, definitions, statements, no-proofs or full.",
        show_default=False,
    ),
]
ContextTokens = Annotated[
    int | None,
    Option(
        min=0,
        help="Most tokens of the shorter context; the earliest declarations are dropped first.",
        show_default=False,
    ),
]


def contexts_wanted(context: str, tokens: int | None) -> Wanted | None:
    """Return the shorter contexts that the two options want, None for none. Raises UsageError."""
    from farm.errors import UsageError
    from farm_workers.machine.abridging import Setting, Wanted

    if not context and tokens is not None:
        raise UsageError("--context-tokens belongs to --context: add, for example, --context full")
    if context and context not in list(Setting):
        raise UsageError(f"--context {context}: choose one of {', '.join(Setting)}")
    return Wanted(setting=Setting(context), most_tokens=tokens) if context else None
