"""The values of options in one session: command line before ini file before default.

A wrong value is a `pytest.UsageError` of one sentence, raised before anything runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .. import compat
from .table import BY_NAME, OPTIONS, REPLACED_BY, Option

if TYPE_CHECKING:
    from ..spec import SessionSpec

PLAN = pytest.StashKey[Callable[[pytest.Config], "SessionSpec"]]()
"""Returns the session that options and ini file ask for, as features plan it."""
TEMPORARY_OUTPUT = "osmosis_output_is_temporary"
"""The attribute of pytest's options, which workers get too, that a command sets."""

TYPED = pytest.StashKey[list[str]]()
"""The words that the user typed, where another command has started the session."""


class OptionReader:
    """Reads options: command line before ini file before default, converted and checked."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def raw(self, name: str) -> Any:
        """Return the text (or list, or bool) that was given, or None; never a default."""
        option = BY_NAME[name]
        value = getattr(self._config.option, option.dest, None)
        if value is not None:
            return value
        if any(self.on_command_line(other) for other in REPLACED_BY.get(name, ())):
            return None
        may_be_empty = name == "system-prompt" and option.ini_name in compat.ini_keys(self._config)
        return self._ini(option) or ("" if may_be_empty else None)

    def naming(self) -> list[str]:
        """Return the options given that say alone what is evaluated."""
        return [
            option.name
            for option in OPTIONS
            if option.names_evaluation and self.raw(option.name) is not None
        ]

    @property
    def output_is_temporary(self) -> bool:
        """Whether the JSON report is one that a command removes at its end: nothing names it."""
        return bool(getattr(self._config.option, TEMPORARY_OUTPUT, False))

    def attribute(self, name: str) -> Any:
        """Return what a feature has put among pytest's options, which workers get too, or None."""
        return getattr(self._config.option, name, None)

    def _ini(self, option: Option) -> Any:
        if option.flag:
            return self._config.getini(option.ini_name)
        value = compat.ini_value(self._config, option.ini_name, is_list=option.repeatable)
        if option.ini_twin is None:
            return value
        twin = compat.ini_value(self._config, option.ini_twin, is_list=True)
        if value and twin:
            raise pytest.UsageError(
                f"{option.ini_name} and {option.ini_twin} are the same key: give one of them"
            )
        return value or twin

    def on_command_line(self, name: str) -> bool:
        """Return whether the command line gave it, and not the ini file."""
        return getattr(self._config.option, BY_NAME[name].dest, None) is not None

    def __call__(self, name: str) -> Any:
        """Return the checked value, or the option's default."""
        option = BY_NAME[name]
        value = self.raw(name)
        if value is None:
            return () if option.repeatable else False if option.flag else option.default
        if option.flag:
            return bool(value)
        if option.repeatable:
            return tuple(self._parsed(option, text) for text in value)
        parsed = self._parsed(option, str(value))
        return self.resolved(name, parsed) if option.is_path else parsed

    def fields(self, part: str) -> dict[str, Any]:
        """Return the values that options have for the fields of a part of the spec, by field."""
        filled = [each for each in OPTIONS if each.fills and each.fills.startswith(f"{part}.")]
        return {str(each.fills).partition(".")[2]: self(each.name) for each in filled}

    def distinct(
        self,
        name: str,
        key: Callable[[str], Any] = str,
        *,
        canonical: Callable[[str], str] = str,
    ) -> dict[Any, str]:
        """Return the values by their keys; raise `pytest.UsageError` where one is given twice."""
        values: dict[Any, str] = {}
        for text in map(canonical, self(name)):
            if (found := key(text)) in values:
                raise pytest.UsageError(
                    f"{self.spelled(name)} {text!r} is given twice; give it once"
                )
            values[found] = text
        return values

    def path(self, name: str, text: str) -> Path:
        """Return the path, from the current directory, or from the root if the ini file gave it."""
        base = (
            self._config.invocation_params.dir
            if self.on_command_line(name)
            else self._config.rootpath
        )
        try:
            given = Path(text).expanduser()
        except RuntimeError:  # `~unknown`: reported as missing when it is opened
            given = Path(text)
        return base / given

    def resolved(self, name: str, text: str) -> Path:
        """Return the path without links; a loop of links shows when the file is opened.

        What is no regular file stays as it is: `/dev/stdout` leads to what has no path.
        """
        from ..storage.atomic_write import is_special

        path = self.path(name, text)
        if is_special(path):
            return Path(os.path.abspath(path))
        try:
            return path.resolve()
        except (OSError, RuntimeError):
            return Path(os.path.abspath(path))

    def spelled(self, name: str) -> str:
        """Return the name by which the user gave it: the option or the ini key."""
        option = BY_NAME[name]
        if self.on_command_line(name):
            words = [str(word).partition("=")[0] for word in self._config.invocation_params.args]
            is_short = option.short in words and option.flag_name not in words
            return option.short if option.short and is_short else option.flag_name
        twin = option.ini_twin
        if twin is not None and compat.ini_value(self._config, twin, is_list=True):
            return twin
        return option.ini_name

    def as_given(self, message: str) -> str:
        """Return a message, the option that it begins with under the name that the user gave it."""
        found = re.match(r"--osmosis-([a-z-]+)", message)
        if found is None or found[1] not in BY_NAME or self.raw(found[1]) is None:
            return message
        return self.spelled(found[1]) + message[found.end() :]

    def _parsed(self, option: Option, text: str) -> Any:
        try:
            return option.parse(text)
        except ValueError as error:
            from osmosis_ai.secret_variables import masking  # only for a mistake

            shown = "" if option.name == "extra-body" else f" {masking()(text)!r}"
            if option.name == "header":  # what follows may be a key, as a field of the body may
                shown = f" {text.partition('=')[0]}"
            raise pytest.UsageError(f"{self.spelled(option.name)}{shown}: {error}") from None


def named(config: pytest.Config) -> bool:
    """Return whether options or ini name an evaluation, or the model or time of tests."""
    given = OptionReader(config)
    names = "agent", "data", "model", "run"
    return any(given.raw(name) is not None for name in names) or bool(given.naming())
