"""Shell completion: the scripts that a shell loads, and the answers to what it asks then.

Both are click's own. It knows no command.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import get_completion_class, shell_complete

from .errors import COMPLETION_VARIABLE, PROGRAM

EPILOG = """\b
Examples:
  osmosis completion bash > ~/.local/share/bash-completion/completions/osmosis
  osmosis completion zsh > "${fpath[1]}/_osmosis"
  osmosis completion fish > ~/.config/fish/completions/osmosis.fish
"""


@click.command("completion", epilog=EPILOG)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.option("--json", "as_json", is_flag=True, help="Print the script as a JSON document.")
@click.pass_context
def completion_command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the script that lets SHELL complete commands and options of osmosis."""
    kind = get_completion_class(shell)
    assert kind is not None, "click completes the three shells that the argument admits"
    # The template, not `source()`: that runs a bash to look at its version.
    kit = kind(ctx.find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    script = kit.source_template % kit.source_vars()
    if as_json:
        import json

        script = json.dumps({"shell": shell, "script": script})
    click.echo(script)


def answer_shell(command: click.Command) -> int:
    """Answer the question that the completion script has put into the environment."""
    asked = os.environ[COMPLETION_VARIABLE]
    return shell_complete(command, {}, PROGRAM, COMPLETION_VARIABLE, asked)
