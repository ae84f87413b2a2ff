from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .teaching import examples


@click.command(
    "completion",
    epilog=examples(
        ("bash: a line of ~/.bashrc", 'eval "$(ddtree-patch completion bash)"'),
        ("zsh: a line of ~/.zshrc, below compinit", 'eval "$(ddtree-patch completion zsh)"'),
        ("fish: a line of ~/.config/fish/config.fish", "ddtree-patch completion fish | source"),
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script by which SHELL completes commands, options and their values.

    Names of steps, releases and patchsets are completed too; nothing of a patchset is run for it. bash must be 4.4 or
    later.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(ctx.find_root().command, {}, "ddtree-patch", "_DDTREE_PATCH_COMPLETE").source())
