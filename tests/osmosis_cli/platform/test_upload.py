"""Results of an evaluation that ran here, uploaded to a real platform; what is refused."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from pytest_osmosis.analysis.gates.evaluate import evaluate_suite
from pytest_osmosis.analysis.gates.parser import parse_gate
from pytest_osmosis.analysis.planned_rows import ran
from pytest_osmosis.features.breakdown.results import Breakdowns, breakdown_of
from pytest_osmosis.features.workspace_results import report as workspace_results
from pytest_osmosis.reports.json_reader import read_result
from pytest_osmosis.reports.json_writer import document_of
from tests.support.command import Osmosis
from tests.support.made_results import NASTY, result_of, suite_of
from tests.support.platform_server import PlatformServer
from tests.support.pushed_workspace import GIT_TOKEN, make_workspace

pytest.importorskip("osmosis_platform.app", reason="the extra `platform` is not installed")
EVALS = "/api/cli/eval-runs"
SECRET = "sk-of-this-machine-0123456789"
SCORES = [[1.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]
AGENT = "rollouts/my-rollout/main.py"
CONFIG = """\
[experiment]
rollout = "my-rollout"
entrypoint = "main.py"
model_path = "openai/gpt-5-mini"
dataset = "data"
[secrets]
required = ["MY_WORD"]
"""


@pytest.fixture
def osmosis(
    osmosis: Osmosis,
    platform_server: PlatformServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Osmosis:
    """The command in a workspace, logged in at a platform."""
    monkeypatch.chdir(make_workspace(tmp_path, monkeypatch))
    monkeypatch.setenv("MY_WORD", SECRET)
    osmosis.hidden = (platform_server.token, GIT_TOKEN, SECRET)
    return osmosis.logged_in(platform_server)


def report(gate: str = "pass@2 >= 0.5", **changed: Any) -> dict[str, Any]:
    """A report of `SCORES`, with a gate."""
    suite = suite_of(SCORES, **{"agent": AGENT, "answer": f"it is {SECRET}", **changed})
    by = breakdown_of(suite, "level", {"easy": [1, 3], "hard": [0, 2]}, confidence=None)
    suite = replace(suite, sections={"by": Breakdowns((by,))})
    gates, own = map(parse_gate, (gate, "each level: pass@2 >= 0.5")), suite.sections["by"]
    judged = evaluate_suite(
        suite, [*gates], ran(suite), references=own.references(suite), lacking="", confidence=None
    )
    return json.loads(json.dumps(document_of(result_of(judged))))


def results(folder: str, document: dict[str, Any]) -> Path:
    """A folder as `osmosis eval run` writes it."""
    path = Path(folder)
    path.mkdir(parents=True)
    (path / "config.toml").write_text(CONFIG)
    (path / "report.json").write_text(json.dumps(document))
    lines = [
        {
            "suite": "data.jsonl",
            "row_index": row["row_index"],
            "run_index": run["run_index"],
            "messages": [
                {"role": "user", "content": NASTY},
                {"role": "assistant", "content": f"it is {SECRET}"},
            ],
            "ground_truth": "391",
        }
        for row in document["rows"]
        for run in row["runs"]
    ]
    said = "".join(f"{json.dumps(line)}\n" for line in lines)
    (path / "report.trajectories.jsonl").write_text(said)
    return path


@pytest.mark.fault("an evaluation is uploaded twice")
def test_results_become_a_run_with_the_same_figures_and_twice_make_one(
    osmosis: Osmosis, platform_server: PlatformServer
):
    document = report()
    folder = results("made", document)
    answer = osmosis("eval", "upload", str(folder), "--json")
    assert answer[0] == 0, answer
    run = json.loads(answer[1])["eval_run"]
    again = osmosis("eval", "upload", str(folder), "--json")
    assert json.loads(again[1])["eval_run"]["id"] == run["id"]
    assert osmosis("eval", "upload", str(folder))[1].startswith(f"uploaded already: {run['name']}")

    listed = osmosis.document("eval", "list")["eval_runs"]
    assert [each["is_local"] for each in listed if each["name"] == run["name"]] == [True]
    assert "finished, local" in osmosis.out("eval", "list")
    assert osmosis.out("eval", "info", run["name"]).startswith(f"{run['name']}  finished, local")
    metrics = osmosis.document("eval", "info", run["name"])["metrics"]
    stated = document["summary"]["eval_fns"]["rewards:exact"]
    assert metrics["pass_at_k"] == [
        {"k": 1, "value": pytest.approx(5 / 8)},
        {"k": 2, "value": pytest.approx(3 / 4)},
    ]
    assert metrics["reward_stats"]["mean"] == pytest.approx(stated["mean"])
    assert metrics["verdict"] == "passed"
    assert [gate["outcome"] for gate in metrics["gates"]] == ["passed"] * 2
    osmosis.out("eval", "download", run["name"], "-o", "there.json", "--conversations")
    there = json.loads(Path("there.json").read_text())
    assert there["summary"]["eval_fns"] == document["summary"]["eval_fns"]
    [column] = there["by"]
    means = {each["value"]: each["eval_fns"]["rewards:exact"]["mean"] for each in column["values"]}
    assert (means, there["by"]) == ({"easy": 1.0, "hard": 0.25}, document["by"])
    assert len(Path("there.trajectories.jsonl").read_text().splitlines()) == 8
    out = osmosis.out("eval", "download", run["name"], "--type", "all", "--rows", "0,2")
    copy = Path(".osmosis/evals", run["name"])
    assert f"{copy}/trajectories: " in out
    lines = [json.loads(line) for line in (copy / "index.jsonl").read_text().splitlines()]
    files = [copy / line["trajectory_filename"] for line in lines if line["row_index"] in (0, 2)]
    assert sorted(files) == sorted((copy / "trajectories").iterdir())
    assert len(files) == 4
    assert not [line for line in lines if "trajectory_filename" in line and line["row_index"] == 1]
    workspace_results.write(
        read_result(folder / "report.json"), Path("metrics.json"), lambda run: None,
        conversations=None, name=run["name"],
    )  # fmt: skip
    metrics = json.loads((copy / "metrics.json").read_text())
    named = {name: metrics["eval_run"][name] for name in ("name", "dataset_name", "rollout_name")}
    assert named == {"name": run["name"], "dataset_name": "data", "rollout_name": "my-rollout"}
    assert metrics == json.loads(Path("metrics.json").read_text())
    assert "tmp" not in (copy / "logs.txt").read_text()
    err = osmosis.error("eval", "download", run["name"], status=2)
    assert "metrics.json is there already: --overwrite replaces it" in err
    kept = [*platform_server.settings.data.rglob("*")]
    assert not [each for each in kept if each.is_file() and SECRET.encode() in each.read_bytes()]
    status, out, _ = osmosis("eval", "compare", "there.json", str(folder / "report.json"))
    assert (status, "no difference" in out) == (0, True), out


def _edited(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    document = report()
    change(document)
    return document


REFUSED_HERE = {
    "8 of 16 runs, since the evaluation ended before its time": report(n=4),
    "stopped once its gates were decided": _edited(
        lambda found: found["summary"].update(halted="every gate is decided")
    ),
    "not an evaluation's report": {"summary": 1},
    "the report is of the agent other/agent.py": report(agent="other/agent.py:x"),
}


@pytest.mark.fault("the results of an evaluation are damaged, or not whole")
@pytest.mark.parametrize("sentence", REFUSED_HERE)
def test_results_that_are_not_whole_are_refused_before_anything_is_sent(
    osmosis: Osmosis, sentence: str
):
    document = REFUSED_HERE[sentence]
    path = Path("made")
    path.mkdir()
    (path / "config.toml").write_text(CONFIG)
    (path / "report.json").write_text(json.dumps(document))
    err = osmosis.error("eval", "upload", "made")
    assert sentence in err
    assert err.count("\n") == 1


def test_a_folder_without_results_and_a_platform_without_the_call_are_refused_in_a_sentence(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch
):
    Path("empty").mkdir()
    wrong = {"empty": "has no report.json", "nothing": "is no folder"}
    for name, what in wrong.items():
        error = osmosis.error("eval", "upload", name, status=2)
        assert f"{name} {what}: name the folder that `osmosis eval run` has written" in error
    folder = results("made", report())
    from osmosis_ai.platform import runs

    monkeypatch.setattr(
        runs.Runs, "begin_import", lambda self, payload: self._client.post("/api/cli/x", payload)
    )
    err = osmosis.error("eval", "upload", str(folder))
    assert "takes no evaluations that ran elsewhere" in err


# ---- what the platform itself refuses


def _passed(document: dict[str, Any]) -> None:
    document["rows"][2]["runs"][0]["passed"] = True


def _gate(document: dict[str, Any]) -> None:
    document["gates"][0]["outcome"] = "failed"


def _values(document: dict[str, Any]) -> None:
    """Of both rows, of which each gate is, one is left: it alone does not reach the number."""
    document["by"][0]["values"][1]["row_indices"] = [2]
    document["by"][0]["values"][0]["row_indices"] = [0, 1, 3]


def _score(document: dict[str, Any]) -> None:
    document["rows"][0]["runs"][0]["scores"]["rewards:exact"] = float("nan")


def _missing(document: dict[str, Any]) -> None:
    document["rows"].pop()


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "row 2, run 0: whether it passed contradicts its scores": _passed,
    "gates[0] is passed by the runs, and failed by the report": _gate,
    "gates[1] is failed by the runs, and passed by the report": _values,
    "the report is none that this version of the platform reads": _score,
    "6 of 8 runs have ended": _missing,
}


def import_of(content: bytes, digest: str | None = None) -> dict[str, Any]:
    """The body that announces an upload."""
    experiment = {
        "rollout": "my-rollout",
        "entrypoint": "main.py",
        "model_path": "calc-7b",
        "dataset": "data",
    }
    return {
        "config": {"experiment_config": experiment},
        "dataset_digest": "4f1c" * 16,
        "file": {"size": len(content), "digest": digest or hashlib.sha256(content).hexdigest()},
    }


def client_of(platform: PlatformServer) -> httpx.Client:
    """Return the first user's client."""
    return httpx.Client(base_url=platform.url, headers=platform.account.headers, timeout=60)


def asked(platform: PlatformServer, path: str) -> httpx.Response:
    """Return what the platform says of an uploaded evaluation."""
    with client_of(platform) as client:
        return client.get(f"{EVALS}/{path}")


def sent(
    platform: PlatformServer, content: bytes, digest: str | None = None
) -> tuple[httpx.Response, str]:
    """Upload a file as a client may, whatever is in it; return the last answer, and the id."""
    with client_of(platform) as client:
        begun = client.post(f"{EVALS}/import", json=import_of(content, digest))
        assert begun.status_code == 201, begun.text
        number = begun.json()["id"]
        client.put(begun.json()["upload"]["presigned_url"], content=content).raise_for_status()
        return client.post(f"{EVALS}/{number}/complete", json={}), number


@pytest.mark.fault("an uploaded evaluation contradicts itself, or is no report")
@pytest.mark.parametrize("sentence", FORGED)
def test_a_report_that_contradicts_its_runs_is_no_run(
    platform_server: PlatformServer, sentence: str
):
    document = report()
    FORGED[sentence](document)
    answer, number = sent(platform_server, json.dumps(document).encode() + b"\n")
    assert (answer.status_code, sentence in answer.json()["error"]) == (422, True), answer.text
    assert asked(platform_server, number).status_code == 404
    assert not (platform_server.settings.data / "datasets" / number).exists()


def test_a_gate_that_needs_what_is_not_uploaded_is_taken_unchecked(platform_server: PlatformServer):
    document = report()
    others = ("agreement(exact) >= 0.6", "each level: mean(tokens) - baseline <= 10%")
    document["gates"] += [{**document["gates"][0], "gate": gate} for gate in others]
    answer, number = sent(platform_server, json.dumps(document).encode() + b"\n")
    assert answer.status_code == 200, answer.text
    kept = asked(platform_server, f"{number}/report").json()["gates"]
    assert ["not checked" in gate["detail"] for gate in kept] == [False, False, True, True]


def test_stated_figures_are_not_taken(platform_server: PlatformServer):
    document = report()
    document["summary"]["eval_fns"]["rewards:exact"].update(mean=1.0, pass_at_1=1.0, pass_at_2=1.0)
    document["summary"]["verdict"] = "failed"
    stated = document["by"][0]["values"][0]
    stated["row_indices"] += [0, 0, 99]
    stated["eval_fns"]["rewards:exact"]["mean"] = 1.0
    answer, number = sent(platform_server, json.dumps(document).encode() + b"\n")
    assert answer.status_code == 200, answer.text
    metrics = asked(platform_server, f"{number}/metrics").json()
    assert [each["value"] for each in metrics["pass_at_k"]] == [5 / 8, 3 / 4]
    assert metrics["verdict"] == "passed"
    kept = asked(platform_server, f"{number}/report").json()
    assert kept["summary"]["eval_fns"]["rewards:exact"]["mean"] == 5 / 8
    assert kept["by"] == report()["by"]


def test_what_is_no_conversation_or_arrives_changed_is_refused(platform_server: PlatformServer):
    first = json.dumps(report(answer=NASTY)).encode() + b"\n"
    wrong = [b'{"row_index": 0}\n', b"[1]\n", b"[" * 99_999 + b"\n", b"\xff\n"]
    line = b'{"suite": "data.jsonl", "row_index": 0, "run_index": 0, "messages": []}\n'
    wrong += [line + line, line.replace(b'"row_index": 0', b'"row_index": 77')]
    for content in wrong:
        answer, _ = sent(platform_server, first + content)
        assert (answer.status_code, "is no conversation" in answer.text) == (422, True)
    answer, _ = sent(platform_server, first, digest="0" * 64)
    assert "its digest is another one" in answer.text


@pytest.mark.fault("an upload of an evaluation is cut off")
def test_an_upload_that_was_cut_off_shows_nothing_and_another_workspace_sees_none(
    platform_server: PlatformServer,
):
    other = platform_server.add_workspace()
    content = json.dumps(report(n=2, agent="later")).encode() + b"\n"
    body = import_of(content)
    with client_of(platform_server) as client:
        count = client.get(EVALS).json()["total_count"]
        begun = client.post(f"{EVALS}/import", json=body).json()
        datasets = client.get("/api/cli/datasets").json()["datasets"]
        assert begun["id"] not in [each["id"] for each in datasets]
        assert client.get(EVALS).json()["total_count"] == count
        assert client.post(f"{EVALS}/{begun['id']}/complete", json={}).status_code == 409
        for verb in ("complete", "abort"):
            answer = client.post(f"{EVALS}/{begun['id']}/{verb}", json={}, headers=other.headers)
            assert answer.status_code == 404
        assert client.post(f"{EVALS}/{begun['id']}/abort", json={}).status_code == 200
        assert client.post(f"{EVALS}/{begun['id']}/complete", json={}).status_code == 404
        body["file"]["size"] = platform_server.settings.limits.import_bytes + 1
        assert client.post(f"{EVALS}/import", json=body).status_code == 413


def test_what_a_report_says_of_times_and_commits_is_shown_where_it_can_be_true(
    platform_server: PlatformServer,
):
    said = {"commit": "../../evil", "branch": None, "dirty": True}
    wrong = (
        {"started_at": -1e12, "commit": "../../evil"},
        {"started_at": 1e308, "commit": 'x" onclick="'},
        {"started_at": 4e9, "commit": "f" * 40},
    )
    for each in wrong:
        document = report()
        git = {**said, "commit": each["commit"]}
        document["environment"] = {
            "versions": {}, "platform": NASTY, "git": git, "command_line": "x",
        }  # fmt: skip
        document["rows"][0]["runs"][0]["started_at"] = each["started_at"]
        document["rows"][0]["runs"][0]["answer"] = f"{NASTY}\x00\ud800"
        answer, number = sent(platform_server, json.dumps(document).encode() + b"\n")
        assert answer.status_code == 200, answer.text
        found = asked(platform_server, number).json()
        assert found["commit_sha"] in (None, "f" * 40)
        run = found["eval_run"]
        assert run["started_at"] in (None, "2026-09-21T14:13:20.000Z")  # that of the other runs
        assert run["completed_at"] <= run["created_at"]


def test_two_uploads_of_one_file_at_once_make_one_run(platform_server: PlatformServer):
    content = json.dumps(report(answer="twice")).encode() + b"\n"
    body = import_of(content)
    with client_of(platform_server) as client:
        begun = [client.post(f"{EVALS}/import", json=body).json() for _ in range(2)]
        for each in begun:
            client.put(each["upload"]["presigned_url"], content=content).raise_for_status()
        paths = [f"{EVALS}/{each['id']}/complete" for each in begun]
        made = [client.post(path, json={}) for path in (*paths, paths[0])]
        assert [answer.status_code for answer in made] == [200] * 3
        assert {answer.json()["id"] for answer in made} == {begun[0]["id"]}
        assert client.post(paths[1], json={}).status_code == 404
        assert client.get(f"{EVALS}/{begun[1]['id']}").status_code == 404


def test_an_upload_that_nobody_completes_is_removed_after_a_week(platform_server: PlatformServer):
    from osmosis_platform.database.models import Dataset, now
    from osmosis_platform.execution.deletion import sweep

    with client_of(platform_server) as client:
        body = import_of(json.dumps(report(answer="left")).encode() + b"\n")
        number = client.post(f"{EVALS}/import", json=body).json()["id"]
    folder = platform_server.settings.data / "datasets" / number
    for days, is_there in ((6, True), (8, False)):
        with platform_server.database.writing() as session:
            session.get_one(Dataset, number).created_at = now() - timedelta(days=days)
        sweep(platform_server.database, platform_server.settings.data)
        with platform_server.database.reading() as session:
            assert (session.get(Dataset, number) is not None, folder.exists()) == (is_there,) * 2
