"""What a submission may say, and what the platform does with it twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from osmosis_ai.rollout_server.settings import KEY_VARIABLE, TRAINERS_VARIABLE
from osmosis_ai.secret_variables import SECRET_NAMES
from osmosis_executors.shards.frames import VARIABLE as SHARD_VARIABLE
from osmosis_platform.settings import ServerLimits
from pytest_osmosis.spec import CONFIG_ENV
from tests.support.platform_server import Account, PlatformServer, serving, submission

EVALS = "/api/cli/eval-runs"
TRAININGS = "/api/cli/training-runs"
KEY = "sk-test-0123456789abcdefghij"


def experiment(**changes: Any) -> dict[str, Any]:
    """A submission with other values in [experiment]; None takes one out."""
    changed = {**submission()["experiment_config"], **changes}
    return {"experiment_config": {k: v for k, v in changed.items() if v is not None}}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({}, "experiment_config", "is missing"),
    ({"experiment_config": KEY}, "experiment_config", "must be a table"),
    (experiment(rollout=None), "experiment_config.rollout", "is missing"),
    (experiment(rollout="../x"), "experiment_config.rollout", "the name of a directory"),
    (experiment(commit_sha="main"), "experiment_config.commit_sha", "7 to 40 hexadecimal"),
    (experiment(branch="a:b"), "experiment_config.branch", "must be the name of a branch"),
    (
        experiment(branch="a", commit_sha="0123abc"),
        "experiment_config.commit_sha",
        "must be left out where branch says what runs",
    ),
    (experiment(model_path=7), "experiment_config.model_path", "must be one line of text"),
    (experiment(rolout=KEY), "experiment_config.rolout", "is unknown"),
    (experiment(dataset="gone"), "experiment_config.dataset", "no dataset of this name"),
    (submission(training_config={}), "training_config", "is unknown"),
    (submission(evaluation_config={"n": 0}), "evaluation_config.n", "an integer, 1 or more"),
    (submission(evaluation_config={"n": True}), "evaluation_config.n", "an integer, 1 or more"),
    (submission(evaluation_config={"n": 10_001}), "evaluation_config.n", "10,000 at most"),
    (
        submission(evaluation_config={"batch_size": 10**9}),
        "evaluation_config.batch_size",
        "10,000 at most",
    ),
    (submission(evaluation_config={"limit": 1.0}), "evaluation_config.limit", "an integer"),
    (submission(env_config={"A": 1}), "env_config.A", "a string without line breaks"),
    (submission(env_config={"A": f"{KEY}\n"}), "env_config.A", "a string without line breaks"),
    (submission(env_config={KEY: "x"}), "env_config", "[A-Z_][A-Z0-9_]*"),
    (submission(env_config={"_OSMOSIS_X": "x"}), "env_config._OSMOSIS_X", "the platform's"),
    *(
        (submission(env_config={name: "x"}), f"env_config.{name}", "the platform sets itself")
        for name in (SECRET_NAMES, CONFIG_ENV, KEY_VARIABLE, TRAINERS_VARIABLE, SHARD_VARIABLE)
    ),
    (
        submission(secrets={"required": [SECRET_NAMES]}),
        "secrets.required.0",
        "the platform sets itself",
    ),
    (submission(env_config={"A": "x" * 2**17}), "env_config", "131,071 bytes"),
    (submission(secrets={}), "secrets.required", "is missing"),
    (submission(secrets={"required": [KEY]}), "secrets.required.0", "[A-Z][A-Z0-9_]*"),
    (submission(secrets={"required": ["A", "A"]}), "secrets.required.1", "named twice"),
    (
        submission(env_config={"A": "b"}, secrets={"required": ["A"]}),
        "secrets.required.0",
        "is in env_config too",
    ),
]


@pytest.mark.fault(
    "a submission has an unknown field, a value of another type, or names a secret or a dataset "
    "that is not there"
)
@pytest.mark.parametrize(("body", "field", "rule"), WRONG)
def test_a_wrong_submission_is_refused_with_its_field_and_the_rule_and_no_value(
    owner: httpx.Client, body: dict[str, Any], field: str, rule: str
):
    answer = owner.post(EVALS, json=body)
    document = answer.json()
    assert (answer.status_code, document["field"]) == (422, field)
    assert rule in document["error"]
    assert document["error"].startswith(f"{field}: ")
    assert KEY not in answer.text


def test_a_training_run_takes_its_own_sections_and_has_the_same_calls(
    client: httpx.Client,
):
    body = submission(
        training_config={"lr": 1e-6},
        sampling_config={"rollout_top_p": 1},
        checkpoints_config={"eval_interval": 5},
        advanced_config={"anything": {"at": ["all", 1]}},
    )
    assert client.post(EVALS, json=body).status_code == 422
    name = client.post(TRAININGS, json=body).json()["name"]
    assert client.get(TRAININGS).json()["training_runs"][0]["name"] == name
    found = client.get(f"{TRAININGS}/{name}").json()
    assert found["training_run"]["status"] == "pending"
    assert found["config"] == body
    assert client.get(f"{TRAININGS}/{name}/metrics").json()["overview"]["total_samples"] == 0
    assert client.get(f"{TRAININGS}/{name}/report").json()["code"] == "no_report"
    assert client.get(f"{EVALS}/{name}").status_code == 404
    assert client.post(f"{TRAININGS}/{name}/stop", json={}).json()["status"] == "stopped"


@pytest.mark.fault(
    "a submission has an unknown field, a value of another type, or names a secret or a dataset "
    "that is not there"
)
def test_secrets_that_neither_the_user_nor_the_workspace_has_are_named(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    other = platform_server.add_user(f"{account.user}-other", workspace=account.workspace)
    platform_server.add_secret("MINE", account=account)
    platform_server.add_secret("OURS", scope="workspace", account=other)
    platform_server.add_secret("THEIRS", account=other)
    body = submission(secrets={"required": ["MINE", "NONE", "OURS", "THEIRS"]})
    refused = client.post(EVALS, json=body).json()
    assert (refused["code"], refused["details"]) == (
        "missing_secrets",
        {"missing": ["NONE", "THEIRS"]},
    )
    assert client.get(EVALS).json()["total_count"] == 0
    body = submission(secrets={"required": ["MINE", "OURS"]})
    assert client.post(EVALS, json=body).status_code == 201


def test_an_evaluation_of_more_runs_than_a_process_can_hold_is_refused(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    platform_server.add_dataset("large", account=account, row_count=1_010_000)

    def submitted(**evaluation: int) -> httpx.Response:
        body = {**experiment(dataset="large"), "evaluation_config": evaluation}
        return client.post(EVALS, json=body)

    refused = submitted(n=10)
    assert (refused.status_code, refused.json()["code"]) == (422, "too_many_runs")
    assert refused.json()["error"] == (
        "evaluation_config.n: 101,000 rows x 10 are 1,010,000 runs, and one evaluation has "
        "1,000,000 at most: lower n or limit"
    )
    assert submitted(n=10_000, limit=101).json()["field"] == "evaluation_config.n"
    assert submitted(n=10_000, limit=100).status_code == 201


def test_the_same_idempotency_key_submits_once_and_no_other_body(client: httpx.Client):
    def submit(**sections: Any) -> httpx.Response:
        return client.post(
            EVALS, json=submission(**sections), headers={"Idempotency-Key": "one-of-a-kind"}
        )

    with ThreadPoolExecutor(4) as threads:
        answers = [*threads.map(lambda _: submit(), range(4))]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    refused = submit(env_config={"A": "b"})
    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_conflict")
    assert client.get(EVALS).json()["total_count"] == 1


def test_all_that_is_wrong_or_missing_is_reported_together(owner: httpx.Client):
    body = submission(evaluation_config={"n": 0, "limit": 0})
    details = owner.post(EVALS, json=body).json()["details"]
    fields = [problem["field"] for problem in details["problems"]]
    assert fields == ["evaluation_config.limit", "evaluation_config.n"]
    body = {**experiment(dataset="gone"), "secrets": {"required": ["A_KEY", "B_KEY"]}}
    refused = owner.post(EVALS, json=body).json()
    assert refused["code"] == "dataset_not_found"
    assert "no dataset of this name" in refused["error"]
    assert "there is no secret A_KEY, B_KEY; set each with" in refused["error"]
    assert refused["details"] == {"missing": ["A_KEY", "B_KEY"]}


def test_a_dataset_is_found_by_id_file_name_and_stem_when_it_is_ready(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    platform_server.add_dataset("unready", account=account, status="uploading")
    newest = platform_server.add_dataset("my-dataset", account=account)
    for name in (newest, "my-dataset.jsonl", "my-dataset"):
        run = client.post(EVALS, json=experiment(dataset=name)).json()
        found = client.get(f"{EVALS}/{run['id']}").json()
        assert found["dataset"] == {"id": newest, "name": name}
    foreign = platform_server.add_dataset("foreign")
    for name in ("unready", "foreign", foreign, "my-data", "%"):
        refused = client.post(EVALS, json=experiment(dataset=name)).json()
        assert refused["code"] == "dataset_not_found"


def test_a_log_is_read_in_pages_forward_and_backward_and_goes_on_later(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    run_id = platform_server.add_run(account=account)
    for number in range(5):
        platform_server.add_log(run_id, f"line {number}", step="x", details={"n": number})

    def page(**query: Any) -> tuple[list[str], Any]:
        found = client.get(f"{EVALS}/{run_id}/logs", params=query).json()
        return [line["message"][-1] for line in found["logs"]], found["next_cursor"]

    lines, cursor = page(limit=3)
    assert lines == ["0", "1", "2"]
    lines, cursor = page(limit=3, cursor=cursor)
    assert lines == ["3", "4"]
    assert page(cursor=cursor) == ([], cursor)
    platform_server.add_log(run_id, "line 5")
    assert page(cursor=cursor)[0] == ["5"]
    lines, cursor = page(limit=4, direction="backward")
    assert lines == ["5", "4", "3", "2"]
    assert page(limit=4, direction="backward", cursor=cursor) == (["1", "0"], None)
    assert client.get(f"{EVALS}/{run_id}/logs", params={"cursor": "x"}).status_code == 422


def test_metrics_and_the_report_are_what_the_run_has(
    client: httpx.Client, platform_server: PlatformServer, account: Account
):
    run_id = platform_server.add_run(account=account)
    assert client.get(f"{EVALS}/{run_id}/metrics").json() == {
        "eval_run_id": run_id,
        "status": "pending",
        "overview": {
            "duration_ms": None,
            "total_samples": 0,
            "completed_samples": 0,
            "graded": 0,
            "passed": 0,
            "failed": 0,
            "skipped": 0,
            "pass_rate": None,
            "pass_threshold": None,
            "tokens_used": 0,
        },
        "reward_stats": dict.fromkeys(["mean", "median", "std", "min", "max"]),
        "pass_at_k": [],
    }
    assert client.get(f"{EVALS}/{run_id}/report").json()["code"] == "no_report"
    platform_server.set_run(
        run_id, status="finished", report={"a": 1}, metrics={"pass_at_k": [{"k": 1, "value": 0.5}]}
    )
    assert client.get(f"{EVALS}/{run_id}/report").json() == {"a": 1}
    assert client.get(f"{EVALS}/{run_id}/metrics").json()["pass_at_k"] == [{"k": 1, "value": 0.5}]


@pytest.mark.fault(
    "a training run is submitted to a platform without a trainer; the trainer fails, is killed, "
    "or the rollout's server ends before it"
)
def test_a_platform_refuses_training_without_a_trainer_and_a_run_too_many(
    tmp_path: Path,
):
    with serving(tmp_path, has_trainer=False, limits=ServerLimits(runs=1)) as platform:
        platform.add_dataset()
        headers = platform.account.headers
        with httpx.Client(
            base_url=platform.url, headers=headers, verify=False, timeout=60
        ) as client:
            answer = client.post(TRAININGS, json=submission())
            assert client.post(EVALS, json=submission()).status_code == 201
            beyond = client.post(EVALS, json=submission())
    assert beyond.status_code == 409
    assert beyond.json()["error"].startswith("1 of your runs have not ended, which is the limit")
    assert answer.status_code == 422
    assert answer.json()["code"] == "no_trainer"
    assert "this platform has no trainer" in answer.json()["error"]
