"""list, info, stop, logs and download, as typed in a workspace, against a platform on loopback."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai.platform.client import Limits
from osmosis_cli.errors import run
from osmosis_cli.main import cli
from osmosis_cli.platform import connection
from pytest_osmosis.reports.json_writer import write
from tests.support.command import Osmosis
from tests.support.fake_platform import FAULTS_OF_COMMANDS, TOKEN, FakePlatform, Request
from tests.support.made_results import result_of, suite_of
from tests.support.narrow_terminal import COLUMNS, NarrowTerminal
from tests.support.pushed_workspace import GIT_TOKEN, make_workspace

LIMITS = Limits(answer_bytes=1 << 20, file_bytes=1 << 20, tries=1)
IMPATIENT = replace(LIMITS, read_s=0.05, answer_s=0.05)
"""For faults that never end; anything else may take its time on a busy machine."""
NOW = datetime(2026, 11, 22, 12, 0, 0, 0, timezone.utc)
EVALS = "/api/cli/eval-runs"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        yield make_workspace(tmp_path_factory.mktemp("made"), patch)


@pytest.fixture
def osmosis(
    osmosis: Osmosis, workspace: Path, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Osmosis]:
    """The command in the workspace, with a login at the platform; it never waits."""
    monkeypatch.chdir(workspace)
    monkeypatch.setattr("osmosis_cli.platform.connection.LIMITS", LIMITS)
    monkeypatch.setattr("osmosis_cli.platform.run_text.utc_now", lambda: NOW)
    monkeypatch.setattr("osmosis_cli.platform.run_info.POLL_S", 0)
    osmosis.hidden = (TOKEN, GIT_TOKEN)
    yield osmosis.logged_in(platform)
    for request in platform.requests:
        assert request.headers["authorization"] == f"Bearer {TOKEN}"
        assert request.headers["x-osmosis-git"] == "acme/agents"
    assert GIT_TOKEN not in str(platform.requests)


def ago(**parts: float) -> str:
    """A time of the wire."""
    return (NOW - timedelta(**parts)).isoformat().replace("+00:00", "Z")


def a_run(name: str = "calm-otter-17", status: str = "running", **values: Any) -> dict[str, Any]:
    return {
        "id": f"id-of-{name}",
        "name": name,
        "status": status,
        "created_at": ago(minutes=5),
        "started_at": ago(minutes=4),
        "completed_at": None,
        "creator_name": "Ada",
        "model": {"name": "openai/gpt-5-mini"},
        "dataset": {"name": "my-dataset"},
        "rollout": {"name": "my-rollout"},
        **values,
    }


def detail(**values: Any) -> dict[str, Any]:
    found = a_run(**values)
    head = {name: found.pop(name) for name in tuple(found) if not isinstance(found[name], dict)}
    return {
        "eval_run": head,
        **found,
        "entrypoint": "main.py",
        "commit_sha": None,
        "branch": "release/2",
        "config": {"experiment_config": {}, "evaluation_config": {"limit": 20, "n": 2}},
        "env_config": {"REGION": "not-shown"},
        "results": None,
    }


METRICS = {
    "eval_run_id": "id-of-calm-otter-17",
    "status": "finished",
    "overview": {
        "duration_ms": 90000, "total_samples": 40, "completed_samples": 40, "graded": 40,
        "passed": 36, "failed": 4, "skipped": 0, "pass_rate": 0.9, "pass_threshold": 1.0,
        "tokens_used": 12345,
    },
    "reward_stats": {"mean": 0.9, "median": 1.0, "std": 0.3, "min": 0.0, "max": 1.0},
    "pass_at_k": [{"k": 1, "value": 0.9}, {"k": 2, "value": 0.99}],
}  # fmt: skip
COMMANDS = {
    "list": ("eval", "list"),
    "info": ("eval", "info", "x"),
    "stop": ("eval", "stop", "x", "--yes"),
    "logs": ("eval", "logs", "x"),
    "download": ("eval", "download", "x"),
    "train info": ("train", "info", "x", "--watch"),
}


# ---- a platform that fails


@pytest.mark.fault(
    "the platform answers 401, 403, 404, 409, 422, 426, 429, 500, a web page, another document, "
    "a redirect; slowly, not at all, too much; or hangs up"
)
@pytest.mark.parametrize("fault", FAULTS_OF_COMMANDS)
def test_a_failure_is_one_line_or_one_json_error(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch, fault: str
):
    platform.fault = fault
    if fault in ("slow", "silent"):
        monkeypatch.setattr("osmosis_cli.platform.connection.LIMITS", IMPATIENT)
    status, out, err = osmosis("eval", "info", "x")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("Error: ")
    status, out, err = osmosis("eval", "stop", "x", "--yes", "--json")
    assert (status, out, err.count("\n")) == (1, "", 1)
    error = json.loads(err)["error"]
    assert platform.url in error["message"]
    assert error["exit_code"] == 1
    if fault.isdigit():
        assert error["details"]["status"] == int(fault)
        assert error["details"]["request_id"] == "req-77"


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(
    ("fault", "said"), [("401", "run `osmosis login`"), ("500", "(request req-77)")]
)
def test_each_command_says_what_the_platform_refuses(
    osmosis: Osmosis, platform: FakePlatform, words: tuple[str, ...], fault: str, said: str
):
    platform.fault = fault
    err = osmosis.error(*words)
    assert said in err
    assert "\x1b" not in err


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_without_a_login_each_command_says_how_to_log_in(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    words: tuple[str, ...],
):  # fmt: skip
    monkeypatch.delenv("OSMOSIS_TOKEN")
    monkeypatch.setenv("OSMOSIS_CONFIG_DIR", str(tmp_path))
    err = osmosis.error(*words)
    assert err == f"Error: you are not logged in at {platform.url}: run `osmosis login`\n"
    assert not platform.requests


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_platform_that_is_not_there_is_said_with_the_next_step(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("OSMOSIS_PLATFORM_URL", url)
        monkeypatch.setenv("OSMOSIS_TOKEN_PLATFORM_URL", url)
        monkeypatch.setattr("osmosis_cli.platform.run_info._TRIES", 0)
        status, out, err = osmosis(*words, "--json")
    assert (status, out) == (1, "")
    assert json.loads(err)["error"]["message"].endswith(
        f"cannot reach {url}: connection refused; is it running, and is OSMOSIS_PLATFORM_URL right?"
    )


def test_out_of_a_workspace_there_are_no_runs(
    osmosis: Osmosis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    assert "is in no Git work tree" in osmosis.error("eval", "list")


@pytest.mark.fault("the name of a run has slashes, or is `..`")
@pytest.mark.parametrize("name", ["", " ", ".", ".."])
def test_a_name_that_is_none_is_refused(osmosis: Osmosis, platform: FakePlatform, name: str):
    assert "is neither a name nor an id" in osmosis.error("eval", "info", name, status=2)
    assert not platform.requests


# ---- list


@pytest.mark.fault("text of the platform has control characters, a token, or a URL with a password")
def test_a_list_is_a_table_with_relative_times(osmosis: Osmosis, platform: FakePlatform):
    runs = [a_run(), a_run("old\x1b[31m-owl", "odd\u202estate", created_at=ago(days=4), model={})]
    platform.answers["GET", EVALS] = {"eval_runs": runs, "total_count": 7, "has_more": True}
    platform.answers["GET", EVALS]["next_offset"] = 2
    out = osmosis.out("eval", "list", "--limit", "2")
    rest = ["openai/gpt-5-mini", "my-dataset", "my-rollout"]
    assert [re.split(r"  +", line) for line in out.splitlines()] == [
        ["name", "status", "model", "dataset", "rollout", "created", "by"],
        ["calm-otter-17", "running", *rest, "5 min ago", "Ada"],
        [r"old\x1b[31m-owl", r"odd\u202estate", "unknown", *rest[1:], "4 days ago", "Ada"],
        ["2 of 7; all of them: osmosis eval list --all"],
    ]


def test_in_a_narrow_terminal_the_list_has_fewer_columns(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    platform.answers["GET", EVALS] = {"eval_runs": [a_run("calm-ötter")], "has_more": False}
    terminal = NarrowTerminal(monkeypatch)
    assert run(cli, ["eval", "list"]) == 0
    header, row = terminal.lines()
    assert header.split() == ["name", "status", "created"]
    assert row == r"calm-\xf6tter   running  5 min ago".replace("   ", "  ")
    assert len(row) <= COLUMNS


def test_a_list_as_json_is_what_the_platform_says(osmosis: Osmosis, platform: FakePlatform):
    runs = [a_run(odd_field=1), {}]
    platform.answers["GET", EVALS] = {"eval_runs": runs, "total_count": 2, "has_more": False}
    assert osmosis.document("eval", "list", "--all") == {
        "eval_runs": runs,
        "total_count": 2,
        "has_more": False,
    }
    assert osmosis("eval", "list")[1].splitlines()[2].split() == ["?", *["unknown"] * 6]


def test_an_empty_list_says_how_to_submit(osmosis: Osmosis, platform: FakePlatform):
    path = "/api/cli/training-runs"
    platform.answers["GET", path] = {"training_runs": [], "total_count": 0, "has_more": False}
    assert osmosis("train", "list") == (
        0,
        "no training runs were submitted in this workspace; submit one: osmosis train submit "
        "configs/training/NAME.toml\n",
        "",
    )


# ---- info


def test_info_shows_what_runs_and_its_results(osmosis: Osmosis, platform: FakePlatform):
    ended = detail(status="finished", completed_at=ago(minutes=1), interruptions=2)
    platform.answers["GET", f"{EVALS}/calm-otter-17"] = ended
    platform.answers["GET", f"{EVALS}/calm-otter-17/metrics"] = METRICS
    assert osmosis("eval", "info", "calm-otter-17") == (
        0,
        "calm-otter-17  finished\n"
        "  id           id-of-calm-otter-17\n"
        "  created      5 min ago by Ada\n"
        "  started      4 min ago\n"
        "  interrupted  2 times\n"
        "  ended        60 s ago, after 3 min\n"
        "  model        openai/gpt-5-mini\n"
        "  dataset      my-dataset\n"
        "  rollout      my-rollout, main.py\n"
        "  branch       release/2\n"
        "  commit       not pinned\n"
        "  evaluation   limit 20, n 2\n"
        "  env          REGION\n"
        "results\n"
        "  40/40 samples, 40 graded, 36 passed, 4 failed, 0 skipped\n"
        "  pass rate 90.0% (a score of 1 or more passes)\n"
        "  pass@1 0.9, pass@2 0.99\n"
        "  reward: mean 0.9, median 1, std 0.3, min 0, max 1\n"
        "  12,345 tokens\n",
        "",
    )
    assert osmosis.document("eval", "info", "calm-otter-17") == {**ended, "metrics": METRICS}


def test_info_says_the_verdict_and_the_gates(osmosis: Osmosis, platform: FakePlatform):
    gate = {"gate": "mean >= 0.9", "outcome": "failed", "sentence": "0.8\x1b[2J"}
    platform.answers["GET", f"{EVALS}/calm-otter-17"] = detail(status="finished")
    platform.answers["GET", f"{EVALS}/calm-otter-17/metrics"] = {
        **METRICS, "verdict": "failed", "gates": [gate, 5],
    }  # fmt: skip
    _, out, _ = osmosis("eval", "info", "calm-otter-17")
    assert "results\n  verdict: failed\n  gate  mean >= 0.9  FAILED: 0.8" in out
    assert "\x1b" not in out


def test_what_the_platform_leaves_out_is_unknown(osmosis: Osmosis, platform: FakePlatform):
    platform.answers["GET", f"{EVALS}/x"] = {"eval_run": {"name": 5, "status": ["odd"]}}
    out = osmosis.out("eval", "info", "x")
    assert out.startswith("?  unknown\n")
    assert "  created  unknown by unknown\n" in out
    platform.answers["GET", f"{EVALS}/x"] = {}
    assert osmosis.failure("eval", "info", "x")["code"] == "bad_answer"


def test_a_command_to_copy_has_nothing_that_a_terminal_or_a_shell_acts_on(
    osmosis: Osmosis, platform: FakePlatform
):
    platform.answers["GET", f"{EVALS}/x/metrics"] = {"overview": {"total_samples": 5}}
    for name, shown in (("\x1b]0;pwn\x07; id", "b7"), ("x; touch y", "b7"), ("calm-1", "calm-1")):
        platform.answers["GET", f"{EVALS}/x"] = {"eval_run": {**a_run(name), "id": "b7"}}
        _, out, _ = osmosis("eval", "info", "x")
        assert f"osmosis eval logs {shown}\n" in out or f"osmosis eval info {shown} -" in out
        assert "\x1b" not in out and "\n  \n" not in out
    platform.answers["GET", f"{EVALS}/x"] = {"eval_run": a_run("n" * 9999)}
    assert max(map(len, osmosis("eval", "info", "x")[1].splitlines()[:-1])) < 220


@pytest.mark.fault("the name of a run has slashes, or is `..`")
def test_a_name_is_one_segment_of_the_path(osmosis: Osmosis, platform: FakePlatform):
    osmosis("eval", "info", "a/../b?c=1#d")
    assert platform.requests[0].path == f"{EVALS}/a%2F..%2Fb%3Fc%3D1%23d"


@pytest.mark.parametrize(
    ("group", "last", "status"),
    [("eval", "finished", 0), ("eval", "stopped", 1), ("train", "crashed", 1)],
)
def test_watching_ends_with_the_run_and_its_result_is_the_status(
    osmosis: Osmosis, platform: FakePlatform, group: str, last: str, status: int
):
    path, key = ("eval-runs", "eval_run") if group == "eval" else ("training-runs", "training_run")
    states = iter(["pending", "running", "running", last])

    def answer(request: Request) -> tuple[int, Any]:
        found = detail(status=next(states))
        return 200, {key: found.pop("eval_run"), **found}

    platform.answers["GET", f"/api/cli/{path}/x"] = answer
    found, out, err = osmosis(group, "info", "x", "--watch")
    assert found == status
    assert out.startswith(f"calm-otter-17  {last}\n")
    assert err == "calm-otter-17  pending  4 min\ncalm-otter-17  running  4 min\n"


def test_watching_as_json_is_one_document_also_for_a_run_that_failed(
    osmosis: Osmosis, platform: FakePlatform
):
    states = iter(["running", "failed"])
    platform.answers["GET", f"{EVALS}/x"] = lambda request: (200, detail(status=next(states)))
    status, out, err = osmosis("eval", "info", "x", "--watch", "--json")
    assert (status, err) == (1, "")
    assert json.loads(out)["eval_run"]["status"] == "failed"


@pytest.mark.fault("the platform is away while a run is watched")
def test_watching_outlasts_a_platform_that_is_away_for_a_while(
    osmosis: Osmosis, platform: FakePlatform
):
    answers = iter([(503, {"error": "restarting"}), (200, detail(status="finished"))])
    platform.answers["GET", f"{EVALS}/x"] = lambda request: next(answers)
    status, _, err = osmosis("eval", "info", "x", "--watch")
    assert status == 0
    assert "failed: restarting; try again later" in err
    platform.answers["GET", f"{EVALS}/x"] = lambda request: (503, {"error": "gone"})
    platform.requests.clear()
    assert osmosis("eval", "info", "x", "--watch")[0] == 1
    assert len(platform.requests) == 11


@pytest.mark.fault("Ctrl-C while a run is watched")
def test_ctrl_c_leaves_the_run_alone_and_says_so(
    osmosis: Osmosis, platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
):
    platform.answers["GET", f"{EVALS}/x"] = detail()

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("osmosis_cli.platform.run_info.sleep", interrupt)
    err = osmosis.error("eval", "info", "x", "--watch", status=130)
    assert err.endswith("Error: the evaluation continues; end it with: osmosis eval stop x\n")
    assert [request.method for request in platform.requests] == ["GET", "GET"]


# ---- stop


@pytest.mark.fault("no terminal to ask on")
def test_stopping_needs_a_yes_where_there_is_no_terminal(osmosis: Osmosis, platform: FakePlatform):
    err = osmosis.error("eval", "stop", "x", status=2)
    assert "there is no terminal to ask on: give --yes" in err
    assert not platform.requests
    assert "--json asks no question: give --yes too" in osmosis("eval", "stop", "x", "--json")[2]


def test_stopping_sends_one_empty_request(osmosis: Osmosis, platform: FakePlatform):
    platform.answers["POST", f"{EVALS}/x/stop"] = a_run(status="stopped")
    assert osmosis("eval", "stop", "x", "--yes") == (0, "calm-otter-17: stopped\n", "")
    (request,) = platform.requests
    assert request.body == {}
    assert len(request.headers["idempotency-key"]) == 32
    assert osmosis.document("eval", "stop", "x", "--yes")["status"] == "stopped"


@pytest.mark.parametrize(("typed", "status"), [(b"y\n", 0), (b"\n", 1)])
def test_on_a_terminal_stopping_asks(
    osmosis: Osmosis, platform: FakePlatform, typed: bytes, status: int
):
    platform.answers["GET", f"{EVALS}/x"] = detail()
    platform.answers["POST", f"{EVALS}/x/stop"] = a_run(status="stopped")
    found, out, _ = osmosis("eval", "stop", "x", stdin=typed, terminal=True)
    assert found == status
    assert out.startswith("stop calm-otter-17, which is running? [y/N]: ")
    assert [request.method for request in platform.requests] == ["GET", "POST"][: 2 - status]


def test_a_run_that_has_ended_is_not_asked_about(osmosis: Osmosis, platform: FakePlatform):
    platform.answers["GET", f"{EVALS}/x"] = detail(status="failed")
    said = "Error: calm-otter-17 has ended already: it is failed\n"
    assert osmosis("eval", "stop", "x", stdin=b"y\n", terminal=True) == (1, "", said)


# ---- logs


def log(*messages: str, cursor: str | None = None, **values: Any) -> dict[str, Any]:
    lines = [
        {"timestamp": "2026-11-22T10:00:00Z", "level": "info", "step": "build", "message": message}
        for message in messages
    ]
    return {"logs": [{**line, **values} for line in lines], "next_cursor": cursor}


def local(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}"


@pytest.mark.fault("text of the platform has control characters, a token, or a URL with a password")
def test_a_log_is_read_to_its_end(osmosis: Osmosis, platform: FakePlatform):
    pages = {
        None: log("one", "two\nlines\x1b[2J", cursor="c1"),
        "c1": log("three", details={"a": 1}),
    }
    platform.answers["GET", f"{EVALS}/x/logs"] = lambda request: (
        200, pages[request.query.get("cursor")],
    )  # fmt: skip
    when = local("2026-11-22T10:00:00+00:00")
    assert osmosis("eval", "logs", "x") == (
        0,
        f"{when}  info     build: one\n"
        f"{when}  info     build: two\n"
        f"{' ' * 30}lines\\x1b[2J\n"
        f"{when}  info     build: three\n"
        f'{" " * 30}{{"a": 1}}\n',
        "",
    )
    status, out, _ = osmosis("eval", "logs", "x", "--json")
    assert (status, [line["message"] for line in json.loads(out)["logs"]]) == (
        0,
        ["one", "two\nlines\x1b[2J", "three"],
    )


def test_the_last_lines_are_asked_for_backward_and_printed_forward(
    osmosis: Osmosis, platform: FakePlatform
):
    pages = {None: log("five", "four", cursor="c1"), "c1": log("three", "two", cursor="c2")}
    platform.answers["GET", f"{EVALS}/x/logs"] = lambda request: (
        200, pages[request.query.get("cursor")],
    )  # fmt: skip
    _, out, _ = osmosis("eval", "logs", "x", "-n", "3")
    assert [line.rpartition(" ")[2] for line in out.splitlines()] == ["three", "four", "five"]
    assert {request.query["direction"] for request in platform.requests} == {"backward"}
    assert osmosis("eval", "logs", "x", "-n", "3", "--follow")[0] == 2


@pytest.mark.parametrize("has_cursor", [True, False])
def test_following_prints_each_line_once_until_the_run_has_ended(
    osmosis: Osmosis, platform: FakePlatform, has_cursor: bool
):
    """A platform may give a cursor at the end, from which it goes on, or none."""
    messages = ["one"]
    states = iter(["running", "running", "finished"])

    def logs(request: Request) -> tuple[int, Any]:
        start = int(request.query.get("cursor", 0))
        return 200, log(*messages[start:], cursor=str(len(messages)) if has_cursor else None)

    def state(request: Request) -> tuple[int, Any]:
        messages.append(f"line-{len(messages)}")
        return 200, detail(status=next(states))

    platform.answers["GET", f"{EVALS}/x/logs"] = logs
    platform.answers["GET", f"{EVALS}/x"] = state
    out = osmosis.out("eval", "logs", "x", "--follow")
    assert [line.rpartition(" ")[2] for line in out.splitlines()] == [
        "one", "line-1", "line-2", "line-3",
    ]  # fmt: skip


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_following_outlasts_a_platform_that_is_away_for_a_while(
    osmosis: Osmosis, platform: FakePlatform, options: tuple[str, ...]
):
    away = (503, {"error": "restarting"})
    logs = iter([(200, log("one", cursor=None)), away, (200, log("one", "two", cursor=None))])
    states = iter([(200, detail(status="running")), away, (200, detail(status="finished"))])
    last = []

    def state(request: Request) -> Any:
        return next(states)

    def lines(request: Request) -> Any:
        last[:] = [next(logs, *last)]
        return last[0]

    platform.answers["GET", f"{EVALS}/x/logs"] = lines
    platform.answers["GET", f"{EVALS}/x"] = state
    status, out, err = osmosis("eval", "logs", "x", "--follow", *options)
    assert (status, out.count("one"), out.count("two")) == (0, 1, 1)
    assert err.count("restarting") == (0 if options else 2)


# ---- download


def test_a_downloaded_report_is_one_that_the_commands_take(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    path = tmp_path / "results.json"
    write(result_of(suite_of([[1.0, 0.0]])), path)
    content = path.read_bytes()
    path.unlink()
    platform.answers["GET", f"{EVALS}/x/report"] = lambda request: (200, content)
    out = osmosis.out("eval", "download", "x", "-o", str(path))
    assert out == f"{path}: {len(content):,} bytes; show it: osmosis eval report {path}\n"
    assert path.read_bytes() == content
    assert osmosis("eval", "report", str(path))[0] == 0
    found = osmosis.document("eval", "download", "x", "-o", str(path))
    assert found == {"path": str(path), "bytes": len(content)}


def test_conversations_are_downloaded_beside_the_report_where_the_command_finds_them(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connection, "workspace_repository", lambda: "acme/agents")
    write(result_of(suite_of([[1.0, 0.0]])), tmp_path / "x.json")
    report = (tmp_path / "x.json").read_bytes()
    said = b'{"row_index": 0, "run_index": 0, "messages": []}\n'
    platform.answers["GET", f"{EVALS}/x/report"] = lambda request: (200, report)
    words = ("eval", "download", "x", "--conversations", "-o", "x.json")
    (tmp_path / "x.json").unlink()
    gone = {"error": "the evaluation x has no conversations here", "code": "no_conversations"}
    platform.answers["GET", f"{EVALS}/x/conversations"] = lambda request: (404, gone)
    status, out, err = osmosis(*words)
    assert (status, out, gone["error"] in err) == (1, "", True)
    assert not list(tmp_path.iterdir())
    platform.answers["GET", f"{EVALS}/x/conversations"] = lambda request: (200, said)
    status, out, _ = osmosis(*words)
    assert (status, out.splitlines()[1]) == (0, f"x.trajectories.jsonl: {len(said)} bytes")
    assert (tmp_path / "x.trajectories.jsonl").read_bytes() == said
    assert (tmp_path / "x.json").read_bytes() == report
    status, out, _ = osmosis(*words[:-1], "y.json", "--json")
    assert json.loads(out)["conversations"] == {"path": "y.trajectories.jsonl", "bytes": len(said)}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--type", "artifacts"),
            "'artifacts' is not there: files that a rollout writes stay where it ran",
        ),
        (("--type", "metrics", "--rows", "1"), "--rows is for conversations, and --type names"),
        (("--rows", "x"), "--rows: 'x' is not a row"),
        (("--rows", "7"), "--rows 7: the evaluation has no such row"),
        (("--conversations",), "--conversations is for -o FILE.json; here it is --type report"),
        (("--overwrite", "-o", "x.json"), "--overwrite is for a folder of results, and x.json a"),
    ],
)
def test_what_is_not_there_to_download_is_refused(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path, words: tuple[str, ...], sentence: str
):
    write(result_of(suite_of([[1.0, 0.0]])), tmp_path / "x.json")
    report = (tmp_path / "x.json").read_bytes()
    platform.answers["GET", f"{EVALS}/x/report"] = lambda request: (200, report)
    err = osmosis.error("eval", "download", "x", *words, status=2)
    assert sentence in err
    assert not Path(".osmosis").exists()


@pytest.mark.fault("the platform has no report of a run, or sends something else")
def test_a_platform_without_reports_says_so_in_one_sentence(
    osmosis: Osmosis, platform: FakePlatform, tmp_path: Path
):
    err = osmosis.error("eval", "download", "x", "-o", str(tmp_path / "r.json"))
    assert err == (
        f"Error: {platform.url} has no report of evaluation 'x': no route GET {EVALS}/x/report "
        "(request req-77)\n"
    )
    assert not list(tmp_path.iterdir())
    why = {"error": "the evaluation x has no report: it is pending", "code": "no_report"}
    platform.answers["GET", f"{EVALS}/x/report"] = lambda request: (404, why)
    _, _, err = osmosis("eval", "download", "x", "-o", str(tmp_path / "r.json"))
    assert why["error"] in err


@pytest.mark.fault("the platform has no report of a run, or sends something else")
def test_what_is_no_report_is_not_kept(osmosis: Osmosis, platform: FakePlatform, tmp_path: Path):
    for content in (b"{}", b"[", b'{"summary": 1}'):
        platform.answers["GET", f"{EVALS}/x/report"] = lambda request, c=content: (200, c)
        status, _, err = osmosis("eval", "download", "x", "-o", str(tmp_path / "r.json"))
        assert (status, err) == (
            1,
            "Error: what the platform sent is no report of an evaluation; nothing was written\n",
        )
    assert not list(tmp_path.iterdir())
