"""Errors of an evaluation.

ConfigurationError    it cannot be prepared
  NoRows              its dataset has no rows, or none is selected
EvalFnError           no score was returned, sys.exit was called, or the input cannot be copied
"""

from __future__ import annotations


class ConfigurationError(Exception):
    """An evaluation cannot be prepared; `str()` is the sentence for the user."""


class NoRows(ConfigurationError):
    """There is nothing to run."""


class EvalFnError(Exception):
    """An eval function gave no score; `str()` names the function and what it returned."""
