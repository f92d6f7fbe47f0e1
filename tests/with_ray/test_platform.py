"""A platform whose evaluations run on a cluster: what is submitted, what is stopped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from osmosis_executors.ray.executor import RayExecutor
from tests.osmosis_platform.execution import test_end_to_end as end_to_end
from tests.osmosis_platform.execution.test_end_to_end import SECRET
from tests.platform_server import PlatformServer, serving
from tests.with_ray.conftest import RayCluster

workspace = end_to_end.workspace
osmosis = end_to_end.osmosis


@pytest.fixture
def platform(workspace: Path, tmp_path: Path, cluster: RayCluster) -> Iterator[PlatformServer]:
    config = workspace / "configs/eval/answers.toml"
    config.write_text(config.read_text().replace("[evaluation]", "[evaluation]\nbatch_size = 4"))
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
test_stopping_ends_the_shards_too = (
    end_to_end.test_stopping_ends_every_process_and_keeps_what_was_finished
)
