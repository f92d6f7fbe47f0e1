"""The options and ini keys, added to pytest's parser, and keys that are nearly theirs.

Pytest refuses unknown options, and warns of unknown keys: one that resembles ours is refused.
"""

from __future__ import annotations

from typing import Any

import pytest

from .. import compat
from .table import FIRST, GROUPS, OPTIONS, Option

_KEY = "osmosis_"


def register(parser: pytest.Parser) -> None:
    """Add the canonical options and ini keys."""
    for title, options in GROUPS.items():
        group = _group(parser, title)
        for option in options:
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
    for title, options in GROUPS.items():
        for option in options:
            if option.short is not None and option.short not in taken:
                text = f"short for {option.flag_name}"  # which always works
                _add(_group(parser, title), option, option.short, text)


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


def check_keys(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a key of the ini file that resembles one of ours."""
    unknown = [
        name
        for name in compat.ini_keys(config)
        if name.startswith(_KEY) and not _is_known(name, config)
    ]
    known = [name for option in OPTIONS for name in (option.ini_name, option.ini_twin) if name]
    rests = {name.removeprefix(_KEY): name for name in known}
    for name in sorted(unknown):
        from difflib import get_close_matches

        if close := get_close_matches(name.removeprefix(_KEY), rests, n=1):
            raise pytest.UsageError(
                f"{name}: no such key, in {config.inipath}; did you mean {rests[close[0]]}?"
            )


def _is_known(name: str, config: pytest.Config) -> bool:
    """Return whether a plugin has added the key."""
    try:
        config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:  # else the value is wrong
        return "unknown configuration value" not in str(error)
    return True
