"""A platform whose evaluations run on a cluster: what is submitted, what is stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osmosis_executors.ray.executor import RayExecutor
from osmosis_executors.table import choose_executor
from tests.osmosis_platform.execution import test_end_to_end as end_to_end
from tests.osmosis_platform.execution.test_end_to_end import SECRET
from tests.support.platform_server import PlatformServer, serving
from tests.support.submitted_runs import log_of, run_of
from tests.with_ray.conftest import RayCluster

WAITS = """
        import asyncio, os, pathlib

        folder = pathlib.Path(os.environ["FOLDER"])
        asked = ctx.prompt[-1]["content"].splitlines()[0]
        while asked not in (folder / "free").read_text() and not (folder / "gate").exists():
            await asyncio.sleep(0.02)
"""
"""Whichever shard has them, the first two rows end, and the others wait."""

workspace = end_to_end.workspace
osmosis = end_to_end.osmosis


@pytest.fixture
def platform(workspace: Path, tmp_path: Path, cluster: RayCluster) -> Iterator[PlatformServer]:
    config = workspace / "configs/eval/answers.toml"
    config.write_text(config.read_text().replace("[evaluation]", "[evaluation]\nbatch_size = 4"))
    main = workspace / "rollouts/answers/main.py"
    main.write_text(main.read_text().replace(end_to_end.WAITS, WAITS))
    rows = (workspace / "datasets/answers.jsonl").read_text().splitlines()
    prompts = [json.loads(row)["user_prompt"].splitlines()[0] for row in rows[: end_to_end.FIRST]]
    (tmp_path / "free").write_text("\n".join(prompts))
    end_to_end.commit(workspace)
    end_to_end.git(workspace, "push", "--quiet", "origin", "main")
    with serving(tmp_path / "data") as server:
        end_to_end.prepare(server, workspace)
        with end_to_end.executing(server, RayExecutor(cluster.address, shards=2)):
            yield server
    stores = [path for path in Path("/dev/shm").glob("*") if path.is_file()]
    written = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert not [each for each in (*written, *stores) if SECRET.encode() in each.read_bytes()]


test_a_submitted_evaluation_on_a_cluster_has_the_figures_of_a_local_one = (
    end_to_end.test_a_submitted_evaluation_has_the_figures_of_a_local_one
)


def test_stopping_ends_the_shards_too(
    osmosis: Callable[..., str], platform: PlatformServer, tmp_path: Path
):
    document = json.loads(osmosis("eval", "submit", "configs/eval/answers.toml", "--yes", "--json"))
    run_id = document["eval_run"]["id"]

    def passed() -> int:
        metrics = run_of(platform, run_id).metrics
        return 0 if metrics is None else int(metrics["overview"]["passed"])

    end_to_end.until(lambda: passed() == end_to_end.FIRST, lambda: log_of(platform, run_id))
    osmosis("eval", "stop", run_id, "--yes")
    osmosis("eval", "info", run_id, "--watch", status=1)
    ended = "info stop: everything of the run was ended; what was finished is kept"
    end_to_end.until(lambda: ended in log_of(platform, run_id), lambda: log_of(platform, run_id))
    assert (run_of(platform, run_id).status, passed()) == ("stopped", end_to_end.FIRST)


def test_without_an_address_each_evaluation_starts_a_cluster_of_its_own(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    (tmp_path / "gate").touch()
    with serving(tmp_path / "data") as server:
        end_to_end.prepare(server, workspace)
        with end_to_end.executing(server, choose_executor("ray")):
            run_id = end_to_end.submit(server, tmp_path)
            end_to_end.until(
                lambda: run_of(server, run_id).status not in ("pending", "running"),
                lambda: log_of(server, run_id),
            )
        found = run_of(server, run_id)
        assert found.status == "finished", log_of(server, run_id)
        assert found.metrics is not None
        assert found.metrics["overview"]["passed"] == 5
