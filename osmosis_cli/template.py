"""`osmosis template`: the templates of `osmosis init` and `osmosis rollout init`, by one name."""

from __future__ import annotations

from pathlib import Path

import click

from .errors import CommandError
from .eval.lines import say_table
from .init import init_command
from .lazy_group import Entry, LazyGroup
from .platform.workspace import rollout_init
from .shared_options import json_option, print_json

TEMPLATES = {
    "evaluation": ("osmosis init", "an agent, scoring, questions, settings and a CI workflow"),
    "rollout": ("osmosis rollout init NAME", "a workflow with its grader, in a workspace"),
}
EPILOG = """\b
Examples:
  osmosis template list
  osmosis template apply rollout my-rollout
"""
template_group = LazyGroup(
    "template",
    table={
        "list": Entry("template:list_command", "List the templates."),
        "apply": Entry("template:apply_command", "Write the files of one."),
    },
    help="Look at the templates, and write the files of one.",
    epilog=EPILOG,
)


@click.command("list", epilog=EPILOG)
@json_option
def list_command(as_json: bool) -> None:
    """List the templates, and the commands that also apply them."""
    if as_json:
        print_json(
            {
                "templates": [
                    {"name": name, "command": command, "description": description}
                    for name, (command, description) in TEMPLATES.items()
                ]
            }
        )
        return
    rows = [(name, description, command) for name, (command, description) in TEMPLATES.items()]
    say_table([("name", "what it is", "the same"), *rows])


@click.command("apply", epilog=EPILOG)
@click.argument("name", metavar="NAME")
@click.argument("target", metavar="[TARGET]", default="")
@json_option
@click.pass_context
def apply_command(ctx: click.Context, name: str, target: str, as_json: bool) -> None:
    """Write the files of a template: into the folder TARGET, or as the rollout TARGET."""
    if name == "evaluation":
        ctx.invoke(init_command, folder=Path(target or "."), yes=True, as_json=as_json)
    elif name == "rollout":
        ctx.invoke(rollout_init, name=target or "my-rollout", as_json=as_json)
    else:
        known = ", ".join(TEMPLATES)
        raise CommandError(f"there is no template {name!r}, only {known}", code="not_found")
