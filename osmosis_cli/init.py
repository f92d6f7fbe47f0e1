"""`osmosis init`: the files of a first evaluation, which passes at once with the embedded model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .errors import CommandError

AGENT = '''"""An agent with one tool. Put your own in its place: any function works."""

from __future__ import annotations

import json
from typing import Any

from osmosis_ai import RolloutContext, RolloutResult

MULTIPLY = {
    "type": "function",
    "function": {
        "name": "multiply",
        "description": "Multiply two numbers",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
            "required": ["a", "b"],
        },
    },
}


def multiply(a: float, b: float) -> float:
    return a * b


async def agent(ctx: RolloutContext) -> RolloutResult:
    messages: list[dict[str, Any]] = list(ctx.request.messages)
    for _ in range(ctx.request.max_turns):
        answer = await ctx.chat(messages, tools=[MULTIPLY])
        messages.append(answer.message)
        for call in answer.tool_calls:
            result = multiply(**json.loads(call["function"]["arguments"]))
            content = f"{result:g}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
        if not answer.has_tool_calls:
            break
    return ctx.complete(messages)
'''
SCORING = '''"""What a good answer is: ready scorers with settings, and functions of your own."""

from __future__ import annotations

from osmosis_ai import scorers

right = scorers.number(tolerance=0.001)
no_errors = scorers.no_tool_errors()


def short(solution_str: str) -> dict[str, object]:
    length = len(solution_str)
    return {"score": float(length < 500), "reason": f"{length} characters"}
'''
PYPROJECT = """[tool.pytest.ini_options]
osmosis_agent = "agent:agent"
osmosis_data = "questions.jsonl"
osmosis_eval_fns = ["scoring:right", "scoring:no_errors", "scoring:short"]
osmosis_n = "2"
osmosis_model = "embedded/perfect"  # for trying things out: name your own model here
"""
WORKFLOW = Path(__file__).with_name("evaluate.yml")
QUESTIONS = [("6 times 7", "42"), ("12 times 12", "144"), ("8 times 125", "1000")]
SYSTEM = "Answer the question with a number. Use the tools."

EPILOG = """\b
Examples:
  osmosis init
  osmosis init my-evaluation --yes && cd my-evaluation && pytest
"""


def files() -> dict[str, str]:
    """Return the files by their names."""
    rows = [
        {"system_prompt": SYSTEM, "user_prompt": f"What is {question}?", "ground_truth": truth}
        for question, truth in QUESTIONS
    ]
    return {
        "agent.py": AGENT,
        "scoring.py": SCORING,
        "questions.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "pyproject.toml": PYPROJECT,
        ".github/workflows/evaluate.yml": WORKFLOW.read_text(encoding="utf-8"),
    }


@click.command("init", epilog=EPILOG)
@click.argument("folder", default=".", type=click.Path(path_type=Path, file_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print the files as one JSON document.")
def init_command(folder: Path, yes: bool, as_json: bool) -> None:
    """Write a first evaluation into FOLDER: an agent, scoring, questions, settings, a workflow.

    `pytest` in that folder then passes, without a key. No file is overwritten.
    """
    contents = files()
    if taken := [name for name in contents if (folder / name).exists()]:
        raise CommandError(
            f"{', '.join(taken)}: there already; name an empty folder: osmosis init FOLDER",
            code="exists",
        )
    if not (yes or as_json):
        click.confirm(f"Write {', '.join(contents)} into {folder}?", default=True, abort=True)
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if as_json:
        click.echo(json.dumps({"folder": str(folder), "files": list(contents)}))
        return
    click.echo("\n".join(str(folder / name) for name in contents))
    click.echo(f"\nNow: {'' if folder == Path('.') else f'cd {folder} && '}pytest")
