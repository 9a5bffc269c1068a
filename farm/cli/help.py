"""Help texts: nothing in them is cut, however narrow the terminal is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Group(TyperGroup):
    """Commands whose list has the whole first sentence of each."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        for command in self.commands.values():
            if not command.short_help:
                command.short_help = (command.help or "").partition("\n\n")[0]
        super().format_commands(ctx, formatter)
