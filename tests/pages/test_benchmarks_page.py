"""The command of each published set on the page runs, on rows in that shape, with a right figure.

The rows are written for these tests; the hub and the models are on loopback.
"""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import pytest

from tests.support.endpoints import Ask, Endpoint
from tests.support.hub import Hub, ask_here, serving
from tests.support.project import NO_NEIGHBOURS, Project

from .blocks import ROOT, Block, blocks
from .shell import LOCAL

PAGE = ROOT / "docs" / "guides" / "benchmarks.md"
JUDGE = "gpt-5-mini"
COLOURS = ["red", "green", "blue", "grey"]
CODE = "Like this:\n```python\ndef f(x):\n    return x{}\n```"
Rows = list[dict[str, Any]]


def said(text: str, *answers: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": text},
        *({"role": "assistant", "content": answer} for answer in answers),
    ]


def asked(column: str, **more: Any) -> Rows:
    """Three rows; a function makes the value of each."""
    return [
        {
            column: f"{name}: what is it?",
            **{key: value(at) if callable(value) else value for key, value in more.items()},
        }
        for at, name in enumerate(("First", "Second", "Third"))
    ]


class Published(NamedTuple):
    """Rows in the shape of a set, what the model answers to each, and the scores of that."""

    rows: Rows
    answers: Mapping[str, str]
    """By a word of the row's prompt."""
    scores: list[float]
    prompts: Iterable[str] = ()
    """What is in the prompt of the first row."""


def published(rows: Rows, *answers: str, scores: list[float], prompts: Iterable[str] = ()) -> Any:
    by_word = dict(zip(("First", "Second", "Third"), answers, strict=True))
    return Published(rows, by_word, scores, prompts)


SETS: dict[str, Published] = {
    "GSM8K": published(
        asked("question", answer=lambda at: f"Twice {at} is <<2*{at}={2 * at}>>.\n#### {2 * at}"),
        "It is 0.", "I think 3.", "2 + 2 = 4\n#### 4", scores=[1, 0, 1],
    ),
    "MATH": published(
        asked(
            "problem",
            solution=lambda at: rf"So $\boxed{{\frac{{{at + 1}}}{{2}}}}$.",
            answer=lambda at: rf"\frac{{{at + 1}}}{{2}}",
            level=2,
        ),
        "$\\boxed{0.5}$", "$\\boxed{2}$", "The answer is $\\frac{6}{4}$.", scores=[1, 0, 1],
    ),
    "HumanEval": published(
        [
            {
                "task_id": f"HumanEval/{at}",
                "prompt": f'def f(x):\n    """{name}: add {at}."""\n',
                "entry_point": "f",
                "canonical_solution": f"    return x + {at}\n",
                "test": f"def check(candidate):\n    assert candidate(1) == {1 + at}\n",
            }
            for at, name in enumerate(("First", "Second", "Third"))
        ],
        CODE.format(""), CODE.format(""), "    return x + 2", scores=[1, 0, 1],
    ),
    "MBPP": published(
        asked(
            "text",
            code="def f(x): ...",
            test_list=lambda at: [f"assert f(1) == {1 + at}", f"assert f(2) == {2 + at}"],
            test_setup_code="",
        ),
        CODE.format(""), CODE.format(" * 2"), CODE.format(" + 2"), scores=[1, 0, 1],
        prompts=["assert f(2) == 2"],
    ),
    "MMLU": published(
        asked("question", subject=lambda at: f"s{at}", choices=COLOURS, answer=lambda at: at),
        "A", "Answer: C", "It is blue.", scores=[1, 0, 1], prompts=["A. red\nB. green"],
    ),
    "ARC": published(
        asked(
            "question",
            choices=lambda at: {"text": COLOURS, "label": [*("1234" if at == 1 else "ABCD")]},
            answerKey=lambda at: "A3C"[at],
        ),
        "(A)", "2", "The answer is C.", scores=[1, 0, 1], prompts=["D. grey"],
    ),
    "HellaSwag": published(
        asked("ctx", endings=COLOURS, label=lambda at: str(at + 1)),
        "B", "A", "D", scores=[1, 0, 1], prompts=["C. blue"],
    ),
    "TruthfulQA": published(
        asked("question", best_answer=lambda at: f"Nothing at all happens, {at}.",
              correct_answers=["Nothing"], incorrect_answers=["You die"]),
        "right", "wrong", "right again", scores=[1, 0, 1],
    ),
    "MT-bench": published(
        [
            {"question_id": 80 + at, "category": "math", "prompt": [f"{name}: 2+2?", "And 3+3?"]}
            for at, name in enumerate(("First", "Second", "Third"))
        ],
        "right", "wrong", "right", scores=[1, 0, 1],
    ),
    "IFEval": published(
        asked("prompt", key=lambda at: at, instruction_id_list=["punctuation:no_comma"],
              kwargs=[{}]),
        "right", "wrong", "right", scores=[1, 0, 1],
    ),
    "Tool calls": published(
        asked(
            "query",
            answers=lambda at: json.dumps([{"name": "area", "arguments": {"side": at}}]),
            tools=json.dumps([{"name": "area", "description": "Square.", "parameters": {}}]),
        ),
        '[{"name": "area", "arguments": {"side": 0}}]',
        '[{"name": "area", "arguments": {"side": 7}}]',
        '```json\n[{"arguments": {"side": 2}, "name": "area"}]\n```',
        scores=[1, 0, 1], prompts=['"description": "Square."'],
    ),
    "Rows for verl": published(
        [
            {
                "data_source": "openai/gsm8k",
                "prompt": said(f"{name}: 3 + {at}?"),
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": str(3 + at)},
                "extra_info": {"index": at, "answer": "2"},
            }
            for at, name in enumerate(("First", "Second", "Third"))
        ],
        "#### 3", "2", "5", scores=[1, 0, 1],
    ),
    "Rows for TRL": published(
        [
            {"messages": said(f"{name}: capital?", f"It is the city {at}.")}
            for at, name in enumerate(("First", "Second", "Third"))
        ],
        "right", "wrong", "right", scores=[1, 0, 1],
    ),
}  # fmt: skip


def commands() -> dict[str, Block]:
    """The block of each section of the page that has one."""
    lines = PAGE.read_text("utf-8").splitlines()
    found = {}
    for block in blocks(PAGE):
        titles = [line[3:] for line in lines[: block.line] if line.startswith("## ")]
        found[titles[-1]] = block
    return found


def content(rows: Rows, name: str) -> bytes:
    """The rows as a file of that name."""
    if name.endswith(".parquet"):
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(rows), sink := io.BytesIO())
        return sink.getvalue()
    if name.endswith(".json"):
        return json.dumps(rows).encode()
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def answer_as(found: Published) -> Callable[[Ask], str]:
    """A model that answers as it shall, and a judge that knows which answers are right."""

    def answer(ask: Ask) -> str:
        if ask.model == JUDGE:
            return json.dumps({"score": float("right" in ask.row), "explanation": "Seen."})
        return next(text for word, text in found.answers.items() if word in ask.row)

    return answer


def test_the_page_has_a_command_for_each_set():
    assert [*commands()] == [*SETS] and len(SETS) >= 12


@pytest.mark.parametrize("name", SETS)
def test_the_command_of_a_set_gives_the_right_figure(
    pytester: pytest.Pytester,
    endpoint: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
):
    found, [command] = SETS[name], commands()[name].commands
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{NO_NEIGHBOURS} -n0 --osmosis-output=out.json")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-judge")
    endpoint.answers = answer_as(found)
    program, *words = shlex.split(command.replace(LOCAL, endpoint.base_url))
    path = words[words.index("--osmosis-data") + 1]
    files: dict[str, dict[str, dict[str, bytes]]] = {}
    if path.startswith("hf://"):
        _, _, _, owner, dataset, inner = path.split("/", 5)
        inner = inner.replace("*", "00000-of-00001.parquet")
        files = {f"{owner}/{dataset}": {"main": {inner: content(found.rows, inner)}}}
    else:
        (local := pytester.path / path).parent.mkdir(parents=True)
        local.write_bytes(content(found.rows, path))
    with serving(Hub(files)) as hub:
        ask_here(hub, monkeypatch, tmp_path_factory.mktemp("hub"))
        project = Project(pytester, endpoint)
        session = project.plain(*words)
    assert program == "pytest" and session.ret == 1, session.out + session.err
    scores = [each["scores"] for each in session.runs]
    assert [score for each in scores for score in each.values()] == found.scores
    [figures] = session.report["summary"]["eval_fns"].values()
    assert figures["mean"] == pytest.approx(sum(found.scores) / 3)
    prompts = [ask.row for ask in endpoint.seen if ask.model != JUDGE and "First" in ask.row]
    assert all(text in prompts[0] for text in found.prompts)
