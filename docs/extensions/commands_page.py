"""The directive `osmosis-commands`: the page of commands, made from the commands."""

from __future__ import annotations

from command_reference import reference
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from osmosis_cli.main import cli


class Commands(SphinxDirective):
    """All commands with their options, in the order of the help."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the page changes with the code, not with its own file
        return self.parse_text_to_nodes(reference(cli), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("osmosis-commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
