"""Training runs: a server of the rollout and the operator's trainer, which only seem to run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from osmosis_platform.execution.services import TrainerCommand
from tests.support.executed_runs import SECRET, Submitted

WORDS = ("train-it", "--well")


@pytest.fixture
def training(submitted: Submitted) -> Submitted:
    """A training run, and a platform with a trainer."""
    submitted.platform.set_run(submitted.run_id, kind="training")
    submitted.children.report = None
    claims = replace(submitted.services.claims, kinds=("training",))
    submitted.services = replace(submitted.services, claims=claims, trainer=TrainerCommand(WORDS))
    return submitted


def test_the_trainer_gets_the_address_of_the_rollout_and_its_secrets_in_its_environment_alone(
    training: Submitted, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_PLATFORM_SECRET_KEY", "of the platform")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    training.children.evaluation = (0, f"epoch 1 {SECRET}\n")
    training.children.server = (None, f"{training.children.server[1]}a tool prints {SECRET}\n")
    run = training.execute()
    assert (run.status, run.results) == ("finished", None)
    server, trainer = training.children.jobs
    assert server.words[-1] == "rollouts/my-rollout/main.py"
    assert server.environment["KEY"] == SECRET
    given = trainer.environment
    key = given["OSMOSIS_ROLLOUT_SERVER_KEY"]
    assert key == server.environment["OSMOSIS_SERVER_API_KEY"]
    assert given["OSMOSIS_TRAINER_ORIGIN"] == server.environment["OSMOSIS_ALLOWED_TRAINERS"]
    assert given["OSMOSIS_ROLLOUT_SERVER_URL"] == "http://127.0.0.1:1"
    assert json.loads(given["OSMOSIS_TRAINING_SECRETS"]) == {"KEY": SECRET}
    assert "KEY" not in given
    assert given["CUDA_VISIBLE_DEVICES"] == "0"
    assert "OSMOSIS_PLATFORM_SECRET_KEY" not in given
    assert trainer.words == WORDS
    config = (training.run_folder.folder / "training.json").read_text()
    assert json.loads(config)["experiment_config"]["model_path"] == "openai/x"
    printed = training.run_folder.output.read_text()
    said = (training.run_folder.folder / "server-address").read_text()
    for text in (config, training.log, printed, said, repr(training.children.jobs)):
        assert SECRET not in text
        assert key not in text
    assert "info train: epoch 1 ***" in training.log
    assert printed == "epoch 1 ***\n"
    assert training.run_folder.trained.is_dir()
    assert not training.run_folder.source.exists()


ENDS = [
    ((3, ""), (None, None), "failed", "the trainer ended with exit status 3"),
    ((137, ""), (None, None), "killed", "the trainer was ended by signal 9"),
    ((None, ""), (1, None), "crashed", "the rollout's server has ended before the trainer"),
    ((0, ""), (1, ""), "failed", "the rollout cannot be served"),
]


@pytest.mark.fault(
    "a training run is submitted to a platform without a trainer; the trainer fails, is killed, "
    "or the rollout's server ends before it"
)
@pytest.mark.parametrize(("trainer", "server", "status", "reason"), ENDS)
def test_how_a_training_run_ends_is_said(
    training: Submitted,
    trainer: tuple[int | None, str],
    server: tuple[int | None, str | None],
    status: str,
    reason: str,
):
    training.children.evaluation = trainer
    printed = training.children.server[1] if server[1] is None else server[1]
    training.children.server = (server[0], printed)
    run = training.execute()
    assert run.status == status
    assert run.results["error"].startswith(reason)
    assert f": {reason}" in training.log


def test_stopping_ends_the_trainer_and_the_server(training: Submitted):
    training.children.evaluation = (None, "")
    training.children.on_wait = lambda: training.platform.set_run(training.run_id, status="stopped")
    assert training.execute().status == "stopped"
    assert [child.status for child in training.children.started] == [143, 143]
    assert "info stop: everything of the run was ended" in training.log
