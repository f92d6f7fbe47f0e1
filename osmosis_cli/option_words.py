"""Messages of the plugin in the command's words: `--n`, where they say `--osmosis-n`.

The plugin, its workers and pytest write for people who type `pytest`. What they print passes
through here, so that no message has to know which program was typed. Of options it knows only
`--mcp` by name, which the plugin has not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO, cast

KEY_VARIABLE = "OSMOSIS_EVAL_API_KEY"
"""Where a key given as `--api-key` travels, so that no argument list of ours holds it."""
_OPTION = re.compile(r"--osmosis-(?=[a-z])")
_MCP = re.compile(r"""--osmosis-agent (['"])mcp:""")
"""The agent that `--mcp` names."""
_FOR_PYTEST = re.compile(r"(?<= )osmosis eval .* -- .*")
"""A command line with words behind the dashes: those go to pytest as they are."""


def own_words(text: str) -> str:
    """Return the text with the options of the plugin as the command spells them."""
    if "osmosis" not in text.lower():
        return text
    if found := _FOR_PYTEST.search(text):
        end = text.index(" -- ", found.start())
        return own_words(text[:end]) + text[end : found.end()] + own_words(text[found.end() :])
    return _OPTION.sub("--", _MCP.sub(r"--mcp \1", text)).replace(KEY_VARIABLE, "--api-key")


class _OwnWords:
    """A text stream that speaks in the command's words; all but writing is the target's."""

    def __init__(self, target: TextIO) -> None:
        self._target = target

    def write(self, text: str) -> int:
        """Write the text in the command's words."""
        self._target.write(own_words(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line in the command's words."""
        self._target.writelines(map(own_words, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


@contextmanager
def in_own_words() -> Iterator[None]:
    """Have everything that is printed to the standard streams say the command's options."""
    out, err = (cast("TextIO", _OwnWords(stream)) for stream in (sys.stdout, sys.stderr))
    with redirect_stdout(out), redirect_stderr(err):
        yield
