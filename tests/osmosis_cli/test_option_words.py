"""What the plugin prints, in the command's words."""

from __future__ import annotations

import pytest

from osmosis_cli.option_words import own_words


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("--osmosis-n 0: expected 1 or more", "--n 0: expected 1 or more"),
        ("--osmosis-agent 'server:loop': no", "--agent 'server:loop': no"),
        ("--osmosis-agent 'mcp:./tools': no folder", "--mcp './tools': no folder"),
        ('--osmosis-agent "mcp:it\'s": no', '--mcp "it\'s": no'),
        (
            "--osmosis-n:\n  osmosis eval --osmosis-n 2 -- --osmosis-only\nor --osmosis-n 3",
            "--n:\n  osmosis eval --n 2 -- --osmosis-only\nor --n 3",
        ),
    ],
)
def test_options_are_named_as_the_command_spells_them(said: str, message: str):
    assert own_words(said) == message
