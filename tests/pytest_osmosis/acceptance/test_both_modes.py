"""One rich evaluation in both modes, one process and two workers: its results are the same.

Each mode's session is run once; every test here reads what it left behind.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import pyarrow.parquet as parquet
import pytest

from tests.support import report_page
from tests.support.endpoints import Ask, Endpoint, failure_reply
from tests.support.project import AGENT, NO_NEIGHBOURS, Folder, Session

KEY = "sk-a-key-that-may-be-seen-nowhere"
BATCH_SIZE = 6
MODES = ("one_process", "n2")
PROMPTS = {
    "right": "right", "wrong": "another answer", "raise": "x", "give up": "x", "sleep": "x",
    "linger": "linger", "refused": "x", "boom": "boom", "shout": "shout", "warn": "warn",
}  # fmt: skip
"""The prompt of each row and the answer that is expected."""
FATES = {
    "right": (None, {"rewards:exact": 1.0, "rewards:picky": 1.0}),
    "wrong": (None, {"rewards:exact": 0.0, "rewards:picky": 1.0}),
    "raise": ("agent", {}),
    "give up": ("agent", {}),
    "sleep": ("timeout", {}),
    "linger": ("eval_fn", {"rewards:exact": 1.0}),
    "refused": ("provider", {}),
    "boom": ("eval_fn", {"rewards:exact": 1.0}),
    "shout": (None, {"rewards:exact": 1.0, "rewards:picky": 1.0}),
    "warn": (None, {"rewards:exact": 1.0, "rewards:picky": 1.0}),
}
"""What is wrong with the runs of each row, and their scores."""
GATES = {
    "mean[rewards:exact] >= 0.55": "inconclusive",
    "mean[rewards:exact] >= 0.3": "passed",
    "mean[rewards:exact] >= 0.9": "failed",
}
IDS = [f"data.jsonl::row-{row}[run-{run}]" for row in range(len(PROMPTS)) for run in range(2)]
MARKED_IDS = [
    f"test_marked.py::test_answer[row-{row}-run-{run}]" for row in (0, 1) for run in (0, 1)
]

PICKY = """

async def picky(solution_str):
    if solution_str == "linger":
        await asyncio.sleep(60)
    return {"boom": {}}.get(solution_str, {"score": 1.0})["score"]
"""
MARKED = """
import pytest


@pytest.mark.osmosis(agent="agent:agent_loop", data="marked.jsonl")
def test_answer(rollout):
    assert rollout.solution_str == rollout.ground_truth
"""
LISTENER = """
import os


def tell(*words):
    with open("noted", "a") as file:
        print(os.getpid(), *words, sep="|", file=file)


def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        tell("controller", "")


def pytest_runtest_logstart(nodeid):
    tell("start", nodeid)


def pytest_runtest_logreport(report):
    tell(report.when, report.nodeid)


def pytest_runtest_logfinish(nodeid):
    tell("finish", nodeid)


def pytest_osmosis_summary(result):
    return f"a plugin has seen {len(result.suites)} suites"
"""
ABOUT_THIS_SESSION = ("duration_ms", "total_duration_ms", "started_at", "llm_ms", "environment")


def answer(ask: Ask) -> Any:
    if ask.row == "refused":
        return failure_reply(f"no, {ask.headers['authorization']}")
    return "not so" if ask.row == "wrong" else ask.row


def prepared(path: Path, endpoint: Endpoint) -> Folder:
    folder = Folder(path, endpoint)
    wish = '        wish = messages[-1]["content"]\n'
    assert wish in AGENT
    loud = (
        '        print(f"<{wish}>")\n'
        '        if wish == "warn":\n'
        '            __import__("warnings").warn("mind the gap")\n'
    )
    folder.write("agent.py", AGENT.replace(wish, wish + loud))
    folder.write("rewards.py", (path / "rewards.py").read_text() + PICKY)
    folder.rows(
        *({"user_prompt": prompt, "ground_truth": truth} for prompt, truth in PROMPTS.items())
    )
    folder.rows("beside", {"user_prompt": "more", "ground_truth": "less"}, name="marked.jsonl")
    folder.write("test_marked.py", MARKED)
    folder.write("test_unit.py", "def test_unit(): pass\n")
    folder.write("conftest.py", LISTENER)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The folder of each mode with what its session left behind; run when first asked for."""

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("PYTEST_ADDOPTS", NO_NEIGHBOURS)

        @cache
        def evaluated(mode: str) -> tuple[Folder, Session]:
            with Endpoint(answer, api_key=KEY, latency_s=0.05) as endpoint:
                folder = prepared(tmp_path_factory.mktemp(mode), endpoint)
                args = folder.options(
                    f"-n{MODES.index(mode) * 2}", "-v",
                    f"--batch-size={BATCH_SIZE}", "--osmosis-seed=1",
                    "--osmosis-eval-fn=rewards:picky", "--osmosis-agent-timeout=2",
                    "--osmosis-grader-timeout=2",
                    "--junitxml=out.xml", "-ojunit_logging=all", "--osmosis-html=out.html",
                    "--osmosis-markdown=out.md", "--osmosis-runs-table=out.parquet",
                    *(f"--osmosis-gate={gate}" for gate in GATES),
                    "data.jsonl", "test_marked.py", "test_unit.py", n="2",
                )  # fmt: skip
                return folder, folder.evaluate(*args)

        yield evaluated


@pytest.fixture(params=["one_process", pytest.param("n2", marks=pytest.mark.slow)])
def evaluated(folders: Any, request: pytest.FixtureRequest) -> tuple[Folder, Session]:
    found: tuple[Folder, Session] = folders(request.param)
    return found


@pytest.fixture
def folder(evaluated: tuple[Folder, Session]) -> Folder:
    return evaluated[0]


@pytest.fixture
def session(evaluated: tuple[Folder, Session]) -> Session:
    return evaluated[1]


def cases(session: Session) -> dict[str, Element]:
    return {case.attrib["name"]: case for case in session.junit.iter("testcase")}


def steady(value: Any) -> Any:
    """The value without what differs between any two sessions."""
    if isinstance(value, dict):
        return {k: steady(each) for k, each in value.items() if k not in ABOUT_THIS_SESSION}
    return [steady(each) for each in value] if isinstance(value, list) else value


def heard(folder: Folder) -> dict[str, dict[str, list[str]]]:
    """By process, then by node id: what a plugin's hooks were called with."""
    calls: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for line in (folder.path / "noted").read_text().splitlines():
        process, call, nodeid = line.split("|")
        calls[process][nodeid].append(call)
    return calls


@pytest.mark.slow
@pytest.mark.fault("no xdist, `-n 0`, `-n 1`, `-n 2`")
def test_the_reports_of_both_modes_are_equal(folders: Any):
    texts = []
    for mode in MODES:
        folder, session = folders(mode)
        text = json.dumps(steady(session.report))  # order matters too
        texts.append(text.replace(str(folder.path), "").replace(folder.endpoint.netloc, ""))
    assert texts[0] == texts[1]


def test_each_run_becomes_what_happened_to_it(session: Session):
    rows = [row for row in session.report["rows"] if row["suite"] == "data.jsonl"]
    assert [row["row_index"] for row in rows] == list(range(len(PROMPTS)))
    for row, (error_type, scores) in zip(rows, FATES.values(), strict=True):
        assert [run["run_index"] for run in row["runs"]] == [0, 1]
        for run in row["runs"]:
            assert (run["error_type"], run["scores"]) == (error_type, scores)
    said = {row["runs"][0]["error"] for row in rows}
    assert {"the agent timed out after 2 s", "`rewards:picky` timed out after 2 s"} <= said


def test_pytest_counts_every_outcome_and_fails(session: Session):
    assert session.ret == 1
    counts = session.outcomes
    assert 1 <= counts.pop("warnings") <= 2  # Python shows it once a process
    assert counts == {
        "failed": 3, "passed": 9, "below": 2, "raised": 4, "timeout": 2, "errored": 6, "gate": 1,
    }  # fmt: skip
    assert "1 gate passed" in session.lines[-1]
    assert "1 gate inconclusive" in session.lines[-1]


def test_every_item_is_shown_once_by_its_node_id(session: Session):
    labels = ("PASSED", "FAILED", "BELOW", "RAISED", "TIMEOUT", "ERROR")
    shown = [
        word
        for line in session.lines
        if "%]" in line and any(label in line for label in labels)
        for word in line.split()
        if word.startswith(("data.jsonl::", "test_"))
    ]
    assert sorted(shown) == sorted([*IDS, *MARKED_IDS, "test_unit.py::test_unit"])


@pytest.mark.slow
def test_verbose_lines_name_the_worker_where_there_are_workers(folders: Any):
    for mode, named in (("one_process", 0), ("n2", len(IDS))):
        lines = [line for line in folders(mode)[1].lines if "%] " in line and "data.jsonl" in line]
        assert sum(line.startswith(("[gw0]", "[gw1]")) for line in lines) == named


def test_gates_have_their_three_verdicts(session: Session):
    assert {gate["gate"]: gate["outcome"] for gate in session.report["gates"]} == GATES
    assert GATES.keys() <= cases(session).keys()


def test_each_junit_case_has_its_own_figures_and_its_own_output(session: Session):
    found = cases(session)
    for row, prompt in enumerate(PROMPTS):
        for run in range(2):
            case = found[f"row-{row}[run-{run}]"]
            named = {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}
            assert (named["osmosis_row_index"], named["osmosis_run_index"]) == (str(row), str(run))
            assert named.get("osmosis_error_type") == FATES[prompt][0]
            printed = case.findtext("system-out") or ""
            assert [other for other in PROMPTS if f"<{other}>" in printed] == [prompt]


def test_what_an_agent_warns_of_is_in_the_summary_of_warnings(session: Session):
    assert "UserWarning: mind the gap" in "\n".join(session.section("warnings summary"))


def test_a_plugin_sees_every_item_once_from_its_start_to_its_finish(folder: Folder):
    calls = heard(folder)
    [controller] = [process for process, of in calls.items() if "controller" in of[""]]
    for nodeid in (*IDS, *MARKED_IDS, "test_unit.py::test_unit"):
        seen = calls[controller][nodeid]
        assert (seen[0], seen[-1]) == ("start", "finish"), nodeid
        reports = seen[1:-1]
        assert reports and set(reports) <= {"setup", "call", "teardown"}, nodeid
        assert len(set(reports)) == len(reports), nodeid


@pytest.mark.slow
def test_a_plugin_in_a_worker_sees_its_items(folders: Any):
    calls = heard(folders("n2")[0])
    workers = [of for of in calls.values() if "controller" not in of[""]]
    seen = [nodeid for of in workers for nodeid, words in of.items() if words[:1] == ["start"]]
    assert sorted(seen) == sorted([*IDS, *MARKED_IDS, "test_unit.py::test_unit"])


def test_a_summary_hook_is_called_once(session: Session):
    assert session.lines.count("a plugin has seen 2 suites") == 1


def test_every_file_that_was_asked_for_is_written_and_named(folder: Folder, session: Session):
    lines = session.section("osmosis summary")
    assert lines[lines.index("report: out.json") :][:5] == [
        "report: out.json",
        "Markdown report: out.md",
        "HTML report: out.html",
        "table of runs: out.parquet",
        "conversations: out.trajectories.jsonl",
    ]
    for name in ("out.md", "out.html"):
        text = report_page.text_of(folder.path / name)
        assert "LookupError" in text
        assert "[gw" not in text
    text = (folder.path / "out.md").read_text("utf-8")
    assert "ground truth  another answer" in text
    assert "conversation: out.trajectories.jsonl" in text
    assert (folder.path / "out.html").stat().st_mode & 0o777 == 0o600
    page = report_page.page_of(folder.path / "out.html")
    assert [row["truth"] for row in page.suites[0]["rows"]] == list(PROMPTS.values())
    raised = page.read(2, 0)["frames"]
    assert raised.startswith("Traceback")
    assert raised.endswith("LookupError: no such drawer at {'depth': 1}")
    assert "frames" not in page.read(0, 0) | page.read(1, 0)
    assert page.read(0, 0)["messages"][-1]["role"] == "assistant"
    assert parquet.read_table(folder.path / "out.parquet").num_rows == len(IDS) + len(MARKED_IDS)


def test_every_conversation_is_written_once(folder: Folder):
    lines = (folder.path / "out.trajectories.jsonl").read_text().splitlines()
    keys = [
        (said["suite"], said["row_index"], said["run_index"]) for said in map(json.loads, lines)
    ]
    assert len(set(keys)) == len(keys) == len(IDS) + len(MARKED_IDS)


def test_the_endpoint_sees_no_more_at_once_than_the_batch_size(folder: Folder):
    assert 1 < folder.endpoint.max_in_flight <= BATCH_SIZE
    asked = {row: 2 for row in PROMPTS if row not in ("raise", "give up", "sleep")}
    assert folder.endpoint.by_row == asked | {"beside": 2, "more": 2}
