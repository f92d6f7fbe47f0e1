"""Reports as plugins write them down, and as workers send them: plain JSON, and read back whole."""

from __future__ import annotations

import json

import pytest

from tests.support.endpoints import Ask
from tests.support.modes import each_mode
from tests.support.project import Project

LOG = """
import json

import pytest

class Log:
    def __init__(self, config):
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        hook = self.config.hook
        data = hook.pytest_report_to_serializable(config=self.config, report=report)
        data.pop("node", None)  # of xdist
        text = json.dumps(data, allow_nan=False)
        again = hook.pytest_report_from_serializable(config=self.config, data=json.loads(text))
        if hasattr(report, "osmosis"):
            assert again.osmosis == report.osmosis
            assert str(again.longrepr) == str(report.longrepr)
        with open("log.jsonl", "a") as file:
            file.write(text + "\\n")

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Log(config))
"""


@each_mode
def test_what_a_log_of_reports_keeps_is_json_without_a_key_and_reads_back_the_same(
    project: Project, monkeypatch: pytest.MonkeyPatch, workers: int
):
    key = "sk-a-key-that-nobody-may-see"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def answer(ask: Ask) -> str:
        return f"{ask.row} {key} \x1b木" if ask.row == "tell" else ask.row

    project.endpoint.answers = answer
    project.write("conftest.py", LOG)
    project.write("test_other.py", "def test_other():\n    assert [1] == [2]\n")
    project.rows("one", "tell", "raise")
    session = project.run("data.jsonl", "test_other.py", workers=workers)
    assert session.outcomes == {"passed": 1, "failed": 3}
    text = (project.path / "log.jsonl").read_text()
    assert key not in text
    logged = [json.loads(line) for line in text.splitlines()]
    runs = {each["nodeid"]: json.loads(each["osmosis"]) for each in logged if "osmosis" in each}
    assert {name: run["row_index"] for name, run in runs.items() if run.get("scores")} == {
        f"data.jsonl::row-{row}[run-0]": row for row in (0, 1)
    }
    assert runs["data.jsonl::row-1[run-0]"]["answer"] == "tell *** \x1b木"
    assert runs["data.jsonl::row-2[run-0]"]["error"].startswith("LookupError: no such drawer")
    [other] = [each for each in logged if each["outcome"] == "failed" and "osmosis" not in each]
    assert other["nodeid"] == "test_other.py::test_other"
