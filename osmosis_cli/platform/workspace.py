"""`osmosis workspace` and `osmosis rollout`: the files of a workspace."""

from __future__ import annotations

import subprocess
from pathlib import Path

import click

from ..errors import CommandError, command_errors, usage_errors
from ..eval.lines import say, tell
from ..lazy_group import Entry, LazyGroup
from ..shared_options import json_option, print_json

WORKSPACE_EPILOG = """\b
Example:
  mkdir my-workspace && cd my-workspace && osmosis workspace init
"""
GROUP_EPILOG = """\b
Examples:
  osmosis workspace init
  osmosis workspace switch acme
"""
ROLLOUT_EPILOG = """\b
Examples:
  osmosis rollout init my-rollout
  osmosis rollout init my-rollout --model embedded --limit 5
"""

workspace_group = LazyGroup(
    "workspace",
    table={
        "init": Entry("platform.workspace:workspace_init", "Create a workspace's files."),
        "list": Entry("platform.account:workspace_list", "List those that you are logged in to."),
        "current": Entry("platform.account:workspace_current", "Print the name of the active one."),
        "switch": Entry("platform.account:workspace_switch", "Make another one active."),
    },
    help="Look after workspaces: their files here, and which login is used.",
    epilog=GROUP_EPILOG,
)
rollout_group = LazyGroup(
    "rollout",
    table={"init": Entry("platform.workspace:rollout_init", "Create a rollout that works.")},
    help="Look after the rollouts of a workspace.",
    epilog=ROLLOUT_EPILOG,
)


@click.command("init", epilog=WORKSPACE_EPILOG)
@json_option
def workspace_init(as_json: bool) -> None:
    """Make the Git work tree around the current directory a workspace.

    Creates rollouts/, datasets/, configs/eval/ and configs/training/, the JSON Schemas of config
    files, and a .gitignore that covers .osmosis/ and .env. Where there is no Git work tree, makes
    one. Replaces no file, and may be repeated.
    """
    from osmosis_ai.platform import skeleton, workspace

    root = _work_tree()
    with command_errors(workspace.WorkspaceError, code="workspace"):
        made = skeleton.create_workspace(root)
    for sentence in skeleton.exposures(root):
        tell(f"warning: {sentence}")
    _show(root, made, as_json=as_json, then=["osmosis rollout init my-rollout"])


@click.command("init", epilog=ROLLOUT_EPILOG)
@click.argument("name", metavar="NAME")
@click.option(
    "--model",
    metavar="NAME",
    default="openai/gpt-5-mini",
    show_default=True,
    help="The model in the config file of evaluations; embedded needs no key.",
)
@click.option(
    "--limit",
    type=click.IntRange(1),
    metavar="N",
    help="How many rows that config file evaluates; left out, the platform draws some.",
)
@json_option
def rollout_init(name: str, model: str, limit: int | None, as_json: bool) -> None:
    """Create a rollout, its two config files and a dataset of five rows.

    It runs at once, against the embedded endpoint. Replaces no file.
    """
    from osmosis_ai.platform import skeleton, workspace

    secrets = _key_of(model)
    refused = workspace.NameRefused
    with command_errors(workspace.WorkspaceError, code="workspace"), usage_errors(refused):
        root = workspace.find_root(Path.cwd())
        made = skeleton.create_rollout(root, name, model=model, secrets=secrets, limit=limit)
    evaluate = f"osmosis eval -m rollouts/{name}/main.py:Answer -d datasets/{name}.jsonl"
    then = [f"{evaluate} --model embedded", f"osmosis eval check configs/eval/{name}.toml"]
    if not secrets:
        then = [f"osmosis eval configs/eval/{name}.toml"]
    _show(root, made, as_json=as_json, then=then)


def _key_of(model: str) -> tuple[str, ...]:
    """Return the variable that usually holds the key of a model; none where it needs none."""
    from osmosis_ai.providers import key_variables, parse_model_name
    from pytest_osmosis.spec import ModelSpec

    with usage_errors(ValueError, where="--model: "):
        provider = parse_model_name(model).provider
    return () if ModelSpec(model).persona else key_variables(provider)[:1]


def _work_tree() -> Path:
    """The Git work tree around the current directory; a new one where there is none."""
    from osmosis_ai.platform import workspace

    try:
        return workspace.find_root(Path.cwd())
    except workspace.WorkspaceError:
        _git_init()
        return Path.cwd().resolve()


def _git_init() -> None:
    try:
        done = subprocess.run(
            ["git", "init", "--quiet"], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise CommandError(
            "a workspace is a Git work tree, and git is not installed", code="workspace"
        ) from None
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        raise CommandError(f"git init failed: {said}", code="workspace")


def _show(root: Path, made: list[Path], *, as_json: bool, then: list[str]) -> None:
    names = [path.relative_to(root).as_posix() for path in made]
    if as_json:
        print_json({"root": str(root), "written": names})
        return
    say(f"created in {root}:" if names else f"nothing is missing in {root}")
    for name in names:
        say(f"  {name}")
    say("next:")
    for line in then:
        say(f"  {line}")
