"""The options and ini keys, added to pytest's parser, and names that are nearly theirs.

A name that resembles one of ours is refused with the name that was meant; any other unknown name is
left to pytest, which refuses options and warns of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from .. import compat
from .table import FIRST, GROUPS, OPTIONS, Option

_FLAG, _KEY = "--osmosis-", "osmosis_"


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


def check_options(parser: pytest.Parser, args: Sequence[str]) -> None:
    """Raise `pytest.UsageError` for an option that resembles one of ours, and is none.

    To be called when every plugin has added its options.
    """
    words = args[: args.index("--")] if "--" in args else args
    given = {str(word).partition("=")[0] for word in words if str(word).startswith(_FLAG)}
    taken = compat.option_names(parser)
    unknown = [] if taken is None else sorted(given - taken)
    _refuse(unknown, [option.flag_name for option in OPTIONS], _FLAG, "no such option")


def check_keys(config: pytest.Config) -> None:
    """Raise `pytest.UsageError` for a key of the ini file that resembles one of ours."""
    unknown = [
        name
        for name in compat.ini_keys(config)
        if name.startswith(_KEY) and not _is_known(name, config)
    ]
    known = [name for option in OPTIONS for name in (option.ini_name, option.ini_twin) if name]
    _refuse(sorted(unknown), known, _KEY, f"no such key, in {config.inipath}")


def _is_known(name: str, config: pytest.Config) -> bool:
    """Return whether a plugin has added the key."""
    try:
        config.getini(name)
    except (TypeError, ValueError, pytest.UsageError) as error:  # else the value is wrong
        return "unknown configuration value" not in str(error)
    return True


def _refuse(unknown: Iterable[str], known: Sequence[str], prefix: str, what: str) -> None:
    for name in unknown:
        from difflib import get_close_matches

        rests = {each.removeprefix(prefix): each for each in known}
        if close := get_close_matches(name.removeprefix(prefix), rests, n=1):
            raise pytest.UsageError(f"{name}: {what}; did you mean {rests[close[0]]}?")
