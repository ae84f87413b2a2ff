from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command("completion", epilog='Example: eval "$(ddtree-patch completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options in SHELL."""
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "ddtree-patch", "_DDTREE_PATCH_COMPLETE").source())
