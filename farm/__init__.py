"""The farm checks machine-written proofs at scale and reports how far each verdict can be trusted.

`Farm`, `Run` and `Verdict` are for programs of yours; docs/use/python.md has examples. `farm.client` calls
a farm over HTTP, and needs no extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from farm.api import Farm, Run, Verdict

    __version__: str

__all__ = ["Farm", "Run", "Verdict", "__version__"]


def __getattr__(name: str) -> Any:
    """Import a name at its first use: children of a submit import this package, too."""
    if name == "__version__":
        from farm.version import farm_version

        return farm_version()
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from farm import api
    except ModuleNotFoundError as error:
        from farm.extras import remedy

        raise ImportError(remedy(error)) from error
    return getattr(api, name)
