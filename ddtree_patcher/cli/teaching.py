"""How help teaches: examples below it, and the nearest name where one is not known."""

from __future__ import annotations

import click

from ..errors import did_you_mean


def examples(*pairs: tuple[str, str]) -> str:
    """An epilog of (what it is for, the command), each on a line of its own."""
    lines = [line for why, command in pairs for line in (f"  # {why}", f"  {command}")]
    return "\n".join(["\b", "Examples:", *lines])


class Group(click.Group):
    """A group that answers an unknown command with the nearest that there is."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}.{did_you_mean(name, known)}", ctx)
        return super().resolve_command(ctx, args)
