"""The options of `osmosis eval`, and their translation into arguments of pytest.

Every option of the plugin is here under its own name without the prefix; the table below adds the
spellings that are the command's own. Values pass through unread: what is wrong with one is said by
the plugin. Runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import click

from pytest_osmosis.features.table import FIRST, GROUPS, OPTIONS, Option

from ..option_words import KEY_VARIABLE, own_words
from ..shared_options import COMPLETIONS, MCP_HELP, complete_folders

DEBUG_DIR = ".osmosis/debug"

SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "agent": ("-m", "--module", "--agent"),
    "data": ("-d", "--dataset", "--data"),
    "output": ("-o", "--output"),
}

_USUAL = (
    "agent", "data", "eval-fn", "model", "base-url", "api-key-env", "n", "pass-threshold",
    "max-turns", "temperature", "max-tokens", "batch-size", "limit", "offset", "gate", "output",
    "html",
)  # fmt: skip
"""The options of the plugin that `--help` lists; `--help-all` lists them all."""
_TERMINAL = "the terminal"
_NOT_OFFERED = ("only", "run")
"""Options of the plugin that the command has no use for: it runs the evaluation alone."""
_DECIDED = ("api-key", "env-file", *_NOT_OFFERED)
"""Options of the plugin whose value the command decides itself; files of variables are read by the
root of all commands."""


def own_spellings(option: Option) -> tuple[str, ...]:
    """Return how the command spells an option of the plugin."""
    return SPELLINGS.get(option.name, (f"--{option.name}",))


def click_options() -> list[click.Parameter]:
    """The command's options: those of the plugin, then its own switches."""
    offered = [_click_option(each) for each in OPTIONS if each.name not in _NOT_OFFERED]
    return [*offered, *_SWITCHES]


def usual(parameters: Iterable[click.Parameter]) -> list[click.Parameter]:
    """Return the parameters that most evaluations need, in the order of `--help`."""
    by_key = {parameter.name: parameter for parameter in parameters}
    own = in_help_groups(by_key.values())[_TERMINAL]
    return [*(by_key[_key(name)] for name in _USUAL if _key(name) in by_key), *own]


def in_help_groups(parameters: Iterable[click.Parameter]) -> dict[str, list[click.Parameter]]:
    """Return the parameters by the titles under which the help lists them."""
    by_key = {parameter.name: parameter for parameter in parameters}
    groups = {
        title: [by_key.pop(key) for each in options if (key := _key(each.name)) in by_key]
        for title, options in GROUPS.items()
    }
    if mcp := by_key.pop("mcp", None):
        groups[FIRST].insert(1, mcp)
    groups[_TERMINAL] = list(by_key.values())
    return groups


MCP_OPTION = click.Option(["--mcp"], metavar="DIR", shell_complete=complete_folders, help=MCP_HELP)
"""Of the command itself: a config file names its agent otherwise."""

_SWITCHES = (
    click.Option(["-q", "--quiet"], is_flag=True, help="Less on the terminal (pytest's -q)."),
    click.Option(
        ["--debug"],
        is_flag=True,
        help=f"More on the terminal (pytest's -vv), and the agents' events in {DEBUG_DIR} "
        "unless --debug-dir names another place.",
    ),
    click.Option(
        ["--json", "as_json"],
        is_flag=True,
        help="Print the JSON report, and nothing else, on stdout.",
    ),
)


def _click_option(option: Option) -> click.Option:
    # is_flag=False makes the value optional; to be given for such options alone.
    optional = {} if option.const is None else {"is_flag": False, "flag_value": option.const}
    kind: dict[str, Any] = optional or {"is_flag": option.flag or None}
    return click.Option(
        [_key(option.name), *own_spellings(option)],
        metavar=None if option.flag else _metavar(option),
        **kind,
        multiple=option.repeatable,
        shell_complete=COMPLETIONS.get(option.metavar or ""),
        help=help_text(option),
    )


def _metavar(option: Option) -> str | None:
    return option.metavar if option.const is None else f"[={option.metavar}]"


def _key(name: str) -> str:
    return name.replace("-", "_")


def help_text(option: Option) -> str:
    """Return what the command's help says about an option of the plugin."""
    text = own_words(option.help.replace("%%", "%"))
    if option.repeatable:
        text += "; repeatable"
    if option.default is not None:
        text += f" (default: {option.default})"
    return f"{text[0].upper()}{text[1:]}."


def to_pytest_args(values: Mapping[str, Any], extra: Sequence[str] = ()) -> list[str]:
    """Return the pytest command line for the given option values; `extra` follows it untouched."""
    args = ["-p", "osmosis", "--osmosis-only"]
    for option in OPTIONS:
        if option.name not in _DECIDED:
            args += translate(option, values.get(_key(option.name)), option.flag_name)
    if values.get("api_key"):
        args.append(f"--osmosis-api-key-env={KEY_VARIABLE}")
    if values.get("quiet"):
        args.append("-q")
    if values.get("debug"):
        args.append("-vv")
        if not values.get("debug_dir"):
            args.append(f"--osmosis-debug-dir={DEBUG_DIR}")
    return [*args, *extra]


def translate(option: Option, value: Any, spelling: str) -> Iterator[str]:
    """Yield the words that give an option a value under one of its names."""
    if option.flag:
        if value:
            yield spelling
    elif option.repeatable:
        every = [value] if isinstance(value, str) else value or ()  # a config file has one
        yield from (f"{spelling}={one}" for one in every)
    elif value is not None:
        yield f"{spelling}={value}"
