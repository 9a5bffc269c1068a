"""Help texts: nothing in them is truncated, however narrow the terminal is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from typer.core import TyperGroup

#: The commands of `farm --help`, by the house that they belong to; first those that a newcomer needs.
PANELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "First steps": ("submit", "status", "show", "export", "report", "check", "doctor", "down"),
        "Judge: decides on this machine": ("audit", "selftest", "bench", "environments"),
        "Farm: queues, stores and serves": (
            *("worker", "rejudge", "cancel", "prune", "serve", "keys", "metrics", "db"),
        ),
        "Lab: uses verdicts": (
            *("dataset", "extract", "verify-repo", "search", "prove", "holes", "mend", "bundle", "mcp"),
        ),
    }
)

#: Click wraps no paragraph behind it.
_AS_IT_IS = "\b\n"


class CommandGroup(TyperGroup):
    """Commands whose list has the whole first sentence of each, and whose examples can be copied."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands: that of `farm` by panels."""
        for command in self.commands.values():
            if not command.short_help:
                command.short_help = (command.help or "").partition("\n\n")[0]
        if ctx.parent is not None:
            super().format_commands(ctx, formatter)
            return
        for title, names in PANELS.items():
            with formatter.section(title):
                shown = [(name, self.commands[name]) for name in names if name in self.commands]
                formatter.write_dl([(name, command.get_short_help_str(1000)) for name, command in shown])

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, whose example stays on its line."""
        found = super().get_command(ctx, cmd_name)
        if found is not None and found.epilog and not found.epilog.startswith(_AS_IT_IS):
            found.epilog = _AS_IT_IS + found.epilog
        return found
