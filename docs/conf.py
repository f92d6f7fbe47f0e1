"""Sphinx configuration; `tox -e docs` builds the pages."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "pytest-osmosis"
author = "The pytest-osmosis maintainers"
release = installed("pytest-osmosis")
version = release

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "commands_page",
    "options_page",
]
exclude_patterns = ["_build"]
smartquotes = False  # --option is no dash
copybutton_prompt_text = "$ "

myst_enable_extensions = ["deflist", "fieldlist"]
myst_heading_anchors = 3

add_module_names = False
default_role = "code"  # docstrings have `names` in single backticks
autodoc_member_order = "bysource"
autodoc_typehints = "signature"

html_theme = "furo"
html_title = "pytest-osmosis"
