"""Ready scorers as eval functions: by name, and configured in a module."""

from __future__ import annotations

from tests.support.project import Project

APP = """
from osmosis_ai import scorers

close = scorers.number(tolerance=0.5)


def answer(question):
    return f"It is {question}."
"""


def test_by_name_with_settings_and_as_values_of_a_module(project: Project) -> None:
    project.write("app.py", APP)
    project.rows({"user_prompt": "6.4", "ground_truth": "6", "system_prompt": ""})
    session = project.run(
        "--eval-fn=number(tolerance=0.5)", "--eval-fn=app:close", "--eval-fn=exact",
        "--osmosis-gate=mean[number] >= 1", "--osmosis-gate=mean[app:close] >= 1",
        agent="app:answer", model=None, base_url=None, eval_fn="includes",
    )  # fmt: skip
    [run] = session.runs
    assert session.ret == 0, session.out
    assert run["scores"] == {
        "includes": 1.0, "number(tolerance=0.5)": 1.0, "app:close": 1.0, "exact": 0.0,
    }  # fmt: skip
    assert run["reasons"] == {"exact": "'It is 6.4.', wanted '6'"}


def test_a_name_that_no_scorer_has_is_one_sentence(project: Project) -> None:
    project.rows("a")
    session = project.run(eval_fn="incudes")
    assert session.ret == 4
    assert session.mistake.startswith("--osmosis-eval-fn 'incudes': no scorer 'incudes'; there are")
