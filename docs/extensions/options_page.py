"""The directive `osmosis-options`: the options page, made from the plugin's own table."""

from __future__ import annotations

import re
from collections.abc import Sequence

from docutils import nodes
from option_examples import introduction
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from pytest_osmosis.features.table import BY_NAME, GROUPS, Option


def heading(option: Option) -> str:
    """The option as it is typed."""
    if option.const is not None:
        return f"{option.flag_name}[={option.metavar}]"
    return option.flag_name if option.flag else f"{option.flag_name} {option.metavar or 'VALUE'}"


def facts(option: Option) -> list[str]:
    """What the table says besides the help text, one line each."""
    twin = f" or `{option.ini_twin}`" if option.ini_twin else ""
    several = ", one value a line" if option.repeatable else ""
    lines = [f"ini: `{option.ini_name}`{twin}{several}"]
    if option.short:
        lines.append(f"short: `{option.short}`, where no other plugin has that name")
    if option.repeatable:
        lines.append("may be given several times")
    if option.default is not None:
        lines.append(f"default: `{option.default}`")
    if option.needs:
        lines.append(f"without effect, and refused, unless given with {_listed(option.needs)}")
    if option.excludes or len(option.replaces) in range(1, 6):
        lines.append(f"not beside {_listed((*option.excludes, *option.replaces))}")
    return lines


def _listed(names: Sequence[str]) -> str:
    return " or ".join(f"`{BY_NAME[name].flag_name}`" for name in names)


def entry(option: Option) -> str:
    """One option as Markdown."""
    text = re.sub(r"--osmosis-[\w-]+", r"`\g<0>`", option.help.replace("%%", "%"))
    bullets = "\n".join(f"- {line}" for line in facts(option))
    title = f"(option-{option.name})=\n### `{heading(option)}`"
    return f"{title}\n\n{text[0].upper()}{text[1:]}.\n\n{bullets}\n"


def page() -> str:
    """All options as Markdown, in the groups of the help."""
    parts: list[str] = []
    for title, options in GROUPS.items():
        parts += [f"## {title[0].upper()}{title[1:]}\n", introduction(title)]
        parts += map(entry, options)
    return "\n".join(parts)


class Options(SphinxDirective):
    """All options, in the groups of the help."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()  # the page changes with the code, not with its own file
        return self.parse_text_to_nodes(page(), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("osmosis-options", Options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
