"""Options that several commands share: spelt, explained and checked in one place."""

from __future__ import annotations

import click

agent_option = click.option(
    "-m",
    "--module",
    "--agent",
    "module",
    required=True,
    metavar="MODULE:ATTR",
    help="The agent loop: module:attribute or path/to/file.py:attribute, an instance or a class.",
)
"""Gives `module`."""
