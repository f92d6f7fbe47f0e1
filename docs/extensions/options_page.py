"""The directive `osmosis-options`: the options page, made from the plugin's own table."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from pytest_osmosis.options import OPTIONS, Option


def heading(option: Option) -> str:
    """The option as it is typed."""
    return option.flag_name if option.flag else f"{option.flag_name} {option.metavar or 'VALUE'}"


def facts(option: Option) -> list[str]:
    """What the table says besides the help text, one line each."""
    lines = [f"ini: `{option.ini_name}`{', one value a line' if option.repeatable else ''}"]
    if option.short:
        lines.append(f"short: `{option.short}`, where no other plugin has that name")
    if option.repeatable:
        lines.append("may be given several times")
    if option.default is not None:
        lines.append(f"default: `{option.default}`")
    return lines


def entry(option: Option) -> str:
    """One option as Markdown."""
    text = re.sub(r"--osmosis-[\w-]+", r"`\g<0>`", option.help.replace("%%", "%"))
    bullets = "\n".join(f"- {line}" for line in facts(option))
    title = f"(option-{option.name})=\n## `{heading(option)}`"
    return f"{title}\n\n{text[0].upper()}{text[1:]}.\n\n{bullets}\n"


class Options(SphinxDirective):
    """All options, in the table's order."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the page changes with the code, not with its own file
        text = "\n".join(entry(option) for option in OPTIONS)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("osmosis-options", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
