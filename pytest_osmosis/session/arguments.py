"""What pytest collects: the data files that the command line names, and its own arguments."""

from __future__ import annotations

import pytest

from ..items.gates import take_named
from ..options.reader import OptionReader
from ..spec import SessionSpec
from .selection import is_below_any


def narrow(config: pytest.Config, spec: SessionSpec) -> None:
    """Collect the data files: alone when the command line names them, else beside the tests.

    Explicit arguments (paths, node ids) stay, and get company only where the command line names
    an agent too.
    """
    files = list(dict.fromkeys(str(each.data) for each in spec.evals))
    if spec.deciding.gates and take_named(config):
        config.args[:] = files
    if not files:
        return
    given = OptionReader(config)
    if config.args_source is config.ArgsSource.ARGS:
        if not given.on_command_line("agent"):
            return
    elif given.on_command_line("data") or given("only") or spec.rescore:
        config.args[:] = files
    config.args.extend(file for file in files if not is_below_any(file, config.args))
