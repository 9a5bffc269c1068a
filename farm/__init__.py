"""The farm checks machine-written Lean 4 proofs at scale and says honestly what each is worth.

`Farm`, `Run` and `Verdict` are for programs of yours; docs/use/python.md has examples. `farm.client` asks a
farm over HTTP, and is all that an installation without extras can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from farm.version import VERSION

if TYPE_CHECKING:
    from farm.api import Farm, Run, Verdict

__all__ = ["Farm", "Run", "Verdict", "__version__"]
__version__ = VERSION


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is first asked for: children of a submit import this package, too."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from farm import api
    except ModuleNotFoundError as error:
        from farm.extras import remedy

        raise ImportError(remedy(error)) from error
    return getattr(api, name)
