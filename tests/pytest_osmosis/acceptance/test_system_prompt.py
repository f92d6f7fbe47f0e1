"""`--osmosis-system-prompt` and `--osmosis-system-prompt-file`: for rows without one."""

from __future__ import annotations

import pytest

from tests.support.endpoints import Ask
from tests.support.project import Project


@pytest.mark.parametrize(
    "option", ["--osmosis-system-prompt=Be brief.", "--osmosis-system-prompt-file=prompt.txt"]
)
def test_rows_need_no_column_then(project: Project, option: str) -> None:
    project.write("prompt.txt", "Be brief.\n")
    project.write("data.jsonl", '{"user_prompt": "6", "ground_truth": "Be brief."}\n')

    def system(ask: Ask) -> str:
        return str(ask.messages[0]["content"])

    project.endpoint.answers = system
    session = project.run(option)
    assert session.outcomes == {"passed": 1}, session.out
    assert session.report["config"]["settings"]["system_prompt"] == "Be brief."


def test_a_file_that_is_not_there_and_both_at_once_are_usage_errors(project: Project) -> None:
    project.rows("a")
    file = "--osmosis-system-prompt-file=no.txt"
    assert "no.txt': No such file" in project.run(file).mistake
    project.write("no.txt", "b")
    both = project.run("--osmosis-system-prompt=a", file)
    assert both.ret == 4 and "contradict each other" in both.mistake
