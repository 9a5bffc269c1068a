"""Help texts: nothing in them is truncated, however narrow the terminal is."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

#: Click wraps no paragraph behind it.
_AS_IT_IS = "\b\n"


class CommandGroup(TyperGroup):
    """Commands whose list has the whole first sentence of each, and whose examples can be copied."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        for command in self.commands.values():
            if not command.short_help:
                command.short_help = (command.help or "").partition("\n\n")[0]
        super().format_commands(ctx, formatter)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, whose example stays on its line."""
        found = super().get_command(ctx, cmd_name)
        if found is not None and found.epilog and not found.epilog.startswith(_AS_IT_IS):
            found.epilog = _AS_IT_IS + found.epilog
        return found
