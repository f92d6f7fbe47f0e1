"""What was found in the first rows of a file: how an evaluation of it would be asked for.

What is found is proposed, never taken: it stands in the refusal of a file that does not fit, and in
`osmosis preview`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...escaping import counted
from ..decoding import brief
from ..truths import scorer_for

_COLUMNS_SHOWN = 24
_NAME_WIDTH = 36
_JUDGE = "openai/gpt-5-mini"
HELPFUL = 'judge("helpful")'
_NO_PROMPT = "name the question: --osmosis-map COLUMN=user_prompt"


@dataclass(frozen=True, slots=True)
class Shape:
    """What was found in the first rows of a file."""

    columns: tuple[tuple[str, str, str], ...]
    """The name of each, what it would be (empty: extra data), and its first value in short."""
    has_prompt: bool
    """Whether anything can be sent to an agent."""
    maps: tuple[str, ...] = ()
    template: str | None = None
    where: tuple[str, ...] = ()
    scorer: str | None = None
    """As `--osmosis-eval-fn` names it; of a judge without its model."""
    why: str = ""
    """What speaks for the scorer."""
    either: tuple[str, ...] = ()
    """Maps of which one must be chosen, where two columns may be the truth."""
    remarks: tuple[str, ...] = ()
    otherwise: str = _NO_PROMPT
    """What to do where nothing is proposed."""

    def flags(self) -> list[tuple[str, str]]:
        """Return the options that ask for it, by their names without prefix, and their values."""
        flags = [("map", text) for text in (*self.maps, *self.either[:1])]
        if self.template is not None:
            flags.append(("prompt-template", self.template))
        flags += [("where", text) for text in self.where]
        if self.scorer is not None:
            flags.append(("eval-fn", self.scorer))
        return flags

    def scored_by(self, truths: Sequence[Any]) -> Shape:
        """Return it with the scorer that fits the truths which an evaluation has."""
        present = [truth for truth in truths if truth is not None]
        is_of_columns = str(self.scorer).startswith(("choice", "code", "math", "tools", "judge"))
        if not present or (is_of_columns and self.scorer != HELPFUL):
            return self
        scorer, why = scorer_for(present)
        return replace(self, scorer=scorer, why=why)

    def table(self) -> list[str]:
        """Return a line for each column: its name, what it would be, and its first value."""
        columns = self.columns[:_COLUMNS_SHOWN]
        names = [brief(name, quoted=False, longest=_NAME_WIDTH) for name, _, _ in columns]
        width = max(map(len, names), default=0)
        rows = zip(names, columns, strict=True)
        lines = [f"{name:<{width}}  {role or '-':<13} {text}" for name, (_, role, text) in rows]
        more = len(self.columns) - len(columns)
        return [*lines, f"and {counted(more, 'other column')}"] if more else lines

    def words(self) -> str:
        """Return the table, what is to be known, and the options, without a command line."""
        lines = [f"  {line}" for line in (*self.table(), *self.remarks)]
        flags = (f"--osmosis-{name} {shlex.quote(value)}" for name, value in self.flags())
        if self.has_prompt:
            return "\n".join([*lines, f"add {' '.join(flags)}"])
        return "\n".join([*lines, self.otherwise])


def with_judge(scorer: str, settings: Mapping[str, str]) -> str:
    """Return a scorer as it is typed: with the model that judges, where one does."""
    if not scorer.startswith("judge("):
        return scorer
    given = {"model": _JUDGE, **settings}.items()
    return f"{scorer[:-1]}, {', '.join(f'{name}={json.dumps(text)}' for name, text in given)})"
