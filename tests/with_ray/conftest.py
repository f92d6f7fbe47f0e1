"""A Ray cluster of this machine, of two processors, for all tests of a session.

It is started and ended by a process of its own, so that the drivers under test come and go.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.endpoints import Endpoint
from tests.support.project import Folder

HOLDER = """
import logging, sys
import ray

ray.init(
    address="local", num_cpus=2, object_store_memory=100 << 20, include_dashboard=False,
    log_to_driver=False, logging_level=logging.ERROR, _node_ip_address="127.0.0.2",
    _temp_dir=sys.argv[1],
)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
ray.shutdown()
"""
KEY = "sk-the-value-of-a-key-of-the-cluster"


@dataclass(frozen=True)
class RayCluster:
    """Where a cluster is, and where it writes."""

    address: str
    folder: Path


@pytest.fixture(scope="session")
def cluster() -> Iterator[RayCluster]:
    # As on a cluster of several machines, where each has the token.
    patch = pytest.MonkeyPatch()
    patch.setenv("RAY_AUTH_MODE", "token")
    patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # paths of sockets are short
    words = [sys.executable, "-c", HOLDER, str(folder)]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None and holder.stdout is not None
    try:
        yield RayCluster(holder.stdout.readline().strip(), folder)
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
        patch.undo()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(api_key=KEY) as endpoint:
        yield endpoint


@pytest.fixture
def project(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """A project whose model is the endpoint, and whose key is in the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Folder(tmp_path, endpoint)
