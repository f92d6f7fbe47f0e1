"""The features, in the order in which the seams call them.

Every pytest session imports this, and of each feature only its folder, which says its options. All
options together are imported from here, where the table is whole.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from ..options.table import (
    BY_NAME,
    FIRST,
    GROUPS,
    OPTIONS,
    SPELLINGS,
    FeatureEntry,
    Option,
    add_features,
)
from ..reports.formats import REPORTS
from .bisect import BISECT
from .breakdown import BREAKDOWN
from .budgets import BUDGETS
from .cassettes import CASSETTES
from .clusters import CLUSTERS
from .comparison import COMPARISON
from .config_files import CONFIG_FILES
from .early_stopping import EARLY_STOPPING
from .env_file import ENV_FILE
from .html import HTML
from .hub import HUB
from .labels import LABELS
from .markdown import MARKDOWN
from .marked_functions import MARKED_FUNCTIONS
from .numbers import NUMBERS
from .quarantine import QUARANTINE
from .rescore import RESCORE
from .shards import SHARDS
from .tables import TABLES
from .tracing import TRACING
from .workspace_results import WORKSPACE_RESULTS

if TYPE_CHECKING:
    import pytest

    from ..session.seams import Feature
    from ..spec import SessionSpec

__all__ = ["BY_NAME", "FIRST", "GROUPS", "OPTIONS", "REPORTS", "SPELLINGS", "Option"]

FEATURES = (
    ENV_FILE,
    CONFIG_FILES,
    HUB,
    MARKED_FUNCTIONS,
    CASSETTES,
    RESCORE,
    TRACING,
    SHARDS,
    COMPARISON,
    CLUSTERS,
    NUMBERS,
    BUDGETS,
    EARLY_STOPPING,
    BISECT,
    QUARANTINE,
    LABELS,
    MARKDOWN,
    HTML,
    TABLES,
    BREAKDOWN,
    WORKSPACE_RESULTS,
)  # fmt: skip

add_features(FEATURES)


def features_of(config: pytest.Config, spec: SessionSpec) -> tuple[Feature, ...]:
    """Return the features that a session asks for."""
    asked = [each for each in FEATURES if each.feature and each.name in spec.parts]
    return tuple(_class_of(each)(config, spec.parts[each.name]) for each in asked)


def _class_of(entry: FeatureEntry) -> type[Feature]:
    module = import_module(f".{entry.name}.feature", __package__)
    found: type[Feature] = getattr(module, entry.feature)
    return found


def load_early(config: pytest.Config) -> list[str]:
    """Have features act before any conftest.py is loaded; return their lines of the header."""
    return [line for each in FEATURES for line in each.load(config)]


def change_arguments(config: pytest.Config) -> None:
    """Have features change arguments and options before any of them is used."""
    for each in FEATURES:
        each.change_arguments(config)
