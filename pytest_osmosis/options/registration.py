"""The options and ini keys, added to pytest's parser."""

from __future__ import annotations

from typing import Any

import pytest

from .. import compat
from .groups import FIRST, in_groups
from .table import BY_NAME, OPTIONS, Option


def register(parser: pytest.Parser) -> None:
    """Add the canonical options and ini keys."""
    for title, names in in_groups(BY_NAME).items():
        group = _group(parser, title)
        for option in map(BY_NAME.__getitem__, names):
            _add(group, option, option.flag_name, _help(option))
    for option in OPTIONS:
        ini_type: Any = "bool" if option.flag else "linelist" if option.repeatable else None
        ini_help = option.help.replace("%%", "%")
        parser.addini(option.ini_name, ini_help, type=ini_type, default=_ini_default(option))
        if option.ini_twin is not None:
            parser.addini(option.ini_twin, f"the same as {option.ini_name}", ini_type, default=[])


def _group(parser: pytest.Parser, title: str) -> pytest.OptionGroup:
    what = "evaluate LLM agents as test suites: " if title == FIRST else ""
    return parser.getgroup(f"osmosis {title}", f"osmosis: {what}{title}")


def register_short(parser: pytest.Parser) -> None:
    """Add the short spellings that no other plugin has taken; called when all are loaded."""
    taken = compat.option_names(parser)
    if taken is None:
        return
    for option in OPTIONS:
        if option.short is None or option.short in taken:
            continue  # the canonical spelling always works
        group = _group(parser, option.group)
        _add(group, option, option.short, f"short for {option.flag_name}")


def _add(group: pytest.OptionGroup, option: Option, spelling: str, text: str) -> None:
    settings: dict[str, Any] = {"action": "store_true"}
    if not option.flag:
        action = "append" if option.repeatable else "store"
        settings = {"action": action, "metavar": option.metavar}
    if option.const is not None:
        settings |= {"nargs": "?", "const": option.const}
    group.addoption(spelling, dest=option.dest, default=None, help=text, **settings)


def _help(option: Option) -> str:
    return option.help if option.default is None else f"{option.help} (default: {option.default})"


def _ini_default(option: Option) -> Any:
    return [] if option.repeatable else False if option.flag else ""
