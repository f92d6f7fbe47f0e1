"""What a prompt template costs a row, against Jinja2's sandbox with nothing of ours around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pytest_osmosis.dataset.prompt_template import PromptTemplate

from .bench import Bench
from .figures import timed
from .rounds import interleaved
from .table import Line

TEMPLATE = "{{ question }}\n{% for c in choices %}{{ 'ABCD'[loop.index0] }}. {{ c }}\n{% endfor %}"


def prompts(bench: Bench) -> list[Line]:
    """Render the question and the options of each row."""
    rows: list[dict[str, Any]] = [
        {"question": f"What is {at} + 1?", "choices": ["a", "b", "c", "d"], "answer": at % 4}
        for at in range(bench.size(20_000))
    ]
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    bare, ours = environment.from_string(TEMPLATE).render, PromptTemplate(TEMPLATE).render

    def each(render: Callable[[dict[str, Any]], str]) -> None:
        for row in rows:
            render(row)

    works = {"bare": timed(partial(each, bare)), "ours": timed(partial(each, ours))}
    found = interleaved(works, repeats=bench.repeats)
    ratio = found["ours"].cheaper_than(found["bare"])
    return [
        Line(
            *("prompts", f"{len(rows):,} rows", "ours, Jinja2's sandbox / ours"),
            ratio.show(2),
            goal="0.83 at least",
        )
    ]
