"""Errors of configuration.

ConfigurationError    an evaluation cannot be prepared
  NoRows              its dataset has no rows, or none is selected
"""

from __future__ import annotations


class ConfigurationError(Exception):
    """An evaluation cannot be prepared; `str()` is the sentence for the user."""


class NoRows(ConfigurationError):
    """There is nothing to run."""
