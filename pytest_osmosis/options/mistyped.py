"""Names of options and of ini keys that are nearly ours: refused with the name that was meant.

What resembles none of ours is left to pytest, which refuses options and warns of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from .. import compat
from .table import OPTIONS

_FLAG, _KEY = "--osmosis-", "osmosis_"


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
        name for name in compat.ini_keys(config) if name.startswith(_KEY) and not _is(name, config)
    ]
    known = [name for option in OPTIONS for name in (option.ini_name, option.ini_twin) if name]
    _refuse(sorted(unknown), known, _KEY, f"no such key, in {config.inipath}")


def _is(name: str, config: pytest.Config) -> bool:
    """Return whether a plugin has added the key."""
    try:
        config.getini(name)
    except ValueError as error:
        return "unknown" not in str(error)
    except (TypeError, pytest.UsageError):  # a wrong value of a key that there is
        pass
    return True


def _refuse(unknown: Iterable[str], known: Sequence[str], prefix: str, what: str) -> None:
    for name in unknown:
        from difflib import get_close_matches

        rests = {each.removeprefix(prefix): each for each in known}
        if close := get_close_matches(name.removeprefix(prefix), rests, n=1):
            raise pytest.UsageError(f"{name}: {what}; did you mean {rests[close[0]]}?")
