"""Evaluations over HTTP: submitted, listed, shown, stopped."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import httpx
from sqlalchemy import inspect, select

from osmosis_ai.platform.run_kinds import EVALUATION
from osmosis_platform.accounts.tokens import CallerWorkspace
from osmosis_platform.database.models import Dataset, LogLine, Run, Workspace, now
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.runs import records
from tests.support.platform_server import Account, PlatformServer, submission

EVALS = "/api/cli/eval-runs"


def test_a_submitted_evaluation_is_recorded_as_pending_and_shown_by_name_and_id(
    client: httpx.Client, account: Account
):
    body = submission(evaluation_config={"limit": 3, "pass_threshold": 1}, env_config={"A": "b"})
    body["experiment_config"] = {**body["experiment_config"], "branch": "a/b"}
    answer = client.post(EVALS, json=body)
    run = answer.json()
    assert (answer.status_code, run["status"]) == (201, "pending")
    for key in (run["id"], run["name"]):
        found = client.get(f"{EVALS}/{key}").json()
        assert found["eval_run"]["id"] == run["id"]
        assert found["eval_run"]["creator_name"] == account.user
        assert found["eval_run"]["interruptions"] == 0
        assert found["config"]["evaluation_config"] == {"limit": 3, "pass_threshold": 1}
        assert found["env_config"] == {"A": "b"}
        assert (found["rollout"]["name"], found["dataset"]["name"]) == ("my-rollout", "my-dataset")
        fields = [found[name] for name in ("entrypoint", "branch", "commit_sha", "results")]
        assert fields == ["main.py", "a/b", None, None]


def test_runs_are_listed_in_pages_the_newest_first_without_what_is_stored_behind_the_reports(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    names = [client.post(EVALS, json=submission()).json()["name"] for _ in range(3)]
    first = client.get(EVALS, params={"limit": 2}).json()
    assert [run["name"] for run in first["eval_runs"]] == names[:0:-1]
    assert (first["total_count"], first["has_more"], first["next_offset"]) == (3, True, 2)
    rest = client.get(EVALS, params={"limit": 2, "offset": 2}).json()
    assert [run["name"] for run in rest["eval_runs"]] == names[:1]
    assert (rest["has_more"], rest["next_offset"]) == (False, None)
    workspace = CallerWorkspace(account.workspace_id, account.workspace, "acme/agents", "owner")
    with platform_server.database.reading() as session:
        (run, *_), _ = records.newest(session, EVALUATION, workspace, limit=20, offset=0)
    stored = [column.name for column in Run.__table__.columns]
    assert inspect(run).unloaded >= {*stored[stored.index("report") :]}


def test_stopping_ends_a_run_can_be_repeated_and_is_refused_of_one_that_has_ended(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    run = client.post(EVALS, json=submission()).json()
    for _ in range(2):
        stopped = client.post(f"{EVALS}/{run['name']}/stop", json={}).json()
        assert stopped["status"] == "stopped"
        assert stopped["completed_at"].endswith("Z")
    run_id = platform_server.add_run(account=account, status="finished")
    answer = client.post(f"{EVALS}/{run_id}/stop", json={})
    assert (answer.status_code, answer.json()["code"]) == (409, "already_ended")


def test_a_run_is_deleted_with_its_log_and_files_once_nothing_of_it_goes_on(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    dataset = platform_server.add_dataset("other", account=account)
    ours = {"account": account, "dataset_id": dataset}
    later = now() + timedelta(minutes=1)
    run_id = platform_server.add_run(status="running", name="a-run", lease_until=later, **ours)
    other = platform_server.add_run(status="failed", name="other", **ours)
    platform_server.add_log(run_id, "something")
    room = RunFolder.of_run(platform_server.settings.data, run_id)
    for path in (room.journal_dir / "journal", room.trained / "checkpoint"):
        path.parent.mkdir(parents=True)
        path.touch()

    def refused() -> tuple[int, str]:
        answer = client.delete(f"{EVALS}/a-run")
        return answer.status_code, answer.json()["error"]

    assert refused() == (409, "the evaluation a-run is running: stop it first")
    platform_server.set_run(run_id, status="stopped", completed_at=now())
    ending = "processes of the evaluation a-run are ending: try again in some seconds"
    assert refused() == (409, ending)
    platform_server.set_run(run_id, lease_until=now())
    assert client.delete(f"/api/cli/datasets/{dataset}").status_code == 200
    answer = client.delete(f"{EVALS}/a-run")
    assert answer.json() == {"id": run_id, "name": "a-run", "deleted": True}
    assert not room.folder.exists()
    assert client.get(f"{EVALS}/{run_id}").status_code == 404
    with platform_server.database.reading() as session:
        assert session.scalar(select(LogLine.id).where(LogLine.run_id == run_id)) is None
        assert session.get(Dataset, dataset) is not None  # the other run's
    assert client.delete(f"{EVALS}/{other}").status_code == 200
    with platform_server.database.reading() as session:
        assert session.get(Dataset, dataset) is None


def test_a_client_on_this_machine_is_sent_the_folder_that_is_cloned(
    client: httpx.Client, account: Account, platform_server: PlatformServer
):
    def answer(**headers: str) -> dict[str, Any]:
        found: dict[str, Any] = client.get("/api/cli/verify", headers=headers).json()["workspace"]
        return found

    for url, folder in ((None, None), ("https://x/a/b", None), ("/srv/agents", "/srv/agents")):
        with platform_server.database.writing() as session:
            session.get_one(Workspace, account.workspace_id).clone_url = url
        assert answer().get("clone_folder") == folder
    assert "clone_folder" not in answer(**{"X-Forwarded-For": "203.0.113.9"})


def test_the_token_says_who_asks_and_ends_when_it_is_revoked(
    client: httpx.Client, account: Account
):
    found = client.get("/api/cli/verify").json()
    assert found["user"] == {
        "id": account.user_id,
        "email": f"{account.user}@x.test",
        "name": account.user,
    }
    assert found["workspace"]["role"] == "owner"
    assert client.delete(f"/api/cli/tokens/{found['token_id']}").status_code == 200
    assert client.get("/api/cli/verify").status_code == 401
