"""Errors of an evaluation.

ConfigurationError    it cannot be prepared
  NoRows              its dataset has no rows, or none is selected
  ShapeError          what must be said of its dataset can be proposed
EvalFnError           no score was returned, sys.exit was called, or the input cannot be copied
"""

from __future__ import annotations

from typing import Any


class ConfigurationError(Exception):
    """An evaluation cannot be prepared; `str()` is the sentence for the user."""


class NoRows(ConfigurationError):
    """There is nothing to run."""


class ShapeError(ConfigurationError):
    """What must be said of the dataset can be proposed, by the `shape` of the file."""

    def __init__(self, sentence: str, shape: Any, *, only: str | None = None) -> None:
        """`shape`: a `Shape` of `dataset/shapes`; `only`: the one option that is lacking."""
        super().__init__(sentence)
        self.shape = shape
        self.only = only


class EvalFnError(Exception):
    """An eval function gave no score; `str()` names the function and what it returned."""
