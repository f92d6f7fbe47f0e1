"""Datasets of the hub: fetched once, named by their commit, else from the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from pytest_osmosis.dataset.errors import DatasetError
from pytest_osmosis.features.hub.files import fetch
from tests.support.command import Osmosis
from tests.support.hub import BRANCH, COMMIT, Hub, ask_here, serving
from tests.support.modes import each_mode
from tests.support.project import Project

TOKEN = "hf_a-token-that-nobody-may-see"
SUMS = "hf://datasets/shop/sums"


def lines(*questions: str) -> bytes:
    rows = ({"question": question, "answer": question} for question in questions)
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    files = {
        "README.md": b"Sums.",
        "data/test-10.jsonl": lines("c"),
        "data/test-2.csv": b"question,answer\na,a\nb,b\n",
        "train.jsonl": lines("t"),
    }
    hub = Hub(
        {
            "shop/sums": {"main": files, "v2": {"train.jsonl": lines("newer")}},
            "shop/secret": {"main": {"test.jsonl": lines("s")}},
            "shop/gated": {"main": {"test.jsonl": lines("s")}},
            "shop/text": {"main": {"README.md": b"Nothing."}},
        },
        private={"shop/secret": TOKEN},
        gated=frozenset({"shop/gated"}),
    )
    with serving(hub):
        ask_here(hub, monkeypatch, tmp_path_factory.mktemp("hub"))
        yield hub


@each_mode
def test_files_are_fetched_once_and_evaluated_in_order_then_read_from_the_cache(
    project: Project, hub: Hub, workers: int, monkeypatch: pytest.MonkeyPatch
):
    given = f"{SUMS}/data/test-*"
    session = project.run(data=given, workers=workers)
    assert session.ret == 0, session.out
    assert len(hub.downloads) == 2
    assert f"{given}: revision {COMMIT[:12]}, 2 files: data/test-2.csv, data/test-10" in session.out
    rows = [(row["row_index"], row["runs"][0]["answer"]) for row in session.report["rows"]]
    assert rows == [(0, "a"), (1, "b"), (2, "c")]
    assert session.report["config"]["settings"]["source"] == (
        f"hf://datasets/shop/sums@{COMMIT}/data/test-*"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    hub.requests.clear()
    offline = project.run("--osmosis-fresh", data=given, workers=workers)
    assert offline.ret == 0 and not hub.requests
    assert "the hub is not asked, this is what the cache has" in offline.out
    assert len(offline.runs) == 3


@pytest.mark.parametrize(
    ("path", "commit", "question"),
    [
        ("/train.jsonl", COMMIT, "t"),
        ("@v2/train.jsonl", BRANCH, "newer"),
        (f"@{BRANCH}/train.jsonl", BRANCH, "newer"),
        ("/**/tr?in*", COMMIT, "t"),
    ],
)
def test_a_path_names_a_file_at_a_revision(
    hub: Hub, tmp_path: Path, path: str, commit: str, question: str
):
    found = fetch(f"{SUMS}{path}", tmp_path)
    assert Path(found.path).read_bytes() == lines(question)
    assert Path(found.path) == tmp_path / "shop/sums" / commit[:12] / "train.jsonl"
    assert found.source == f"hf://datasets/shop/sums@{commit}/{path.partition('/')[2]}"


@pytest.mark.fault(
    "a file of the Hugging Face Hub is not there, private or gated, or the hub is not reached"
)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hf://datasets/shop", "expected hf://datasets/OWNER/NAME[@REVISION]/PATH"),
        ("hf://models/shop/sums/x.jsonl", "expected hf://datasets/OWNER/NAME"),
        ("hf://datasets/a b/sums/x.jsonl", "'a b/sums' cannot be a dataset"),
        (f"{SUMS}@v9/train.jsonl", "shop/sums has no revision 'v9'"),
        (f"{SUMS}/test.jsonl", "file is named 'test.jsonl' there; files: data/test-10.jsonl, "),
        (f"{SUMS}/*.parquet", "file is named '*.parquet' there; files: "),
        ("hf://datasets/shop/text/*", "no .jsonl, .json, .csv, .tsv or .parquet there; files: RE"),
        ("hf://datasets/shop/none/x.jsonl", "there is no dataset shop/none, or it is private"),
        ("hf://datasets/shop/secret/test.jsonl", "there is no dataset shop/secret, or it is priv"),
        ("hf://datasets/shop/gated/test.jsonl", "shop/gated is gated: accept its terms on its p"),
    ],
)
def test_what_is_not_there_is_one_sentence(hub: Hub, tmp_path: Path, text: str, message: str):
    with pytest.raises(DatasetError) as caught:
        fetch(text, tmp_path)
    assert str(caught.value).startswith(f"{text}: ") and message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_private_dataset_is_read_with_a_token_which_is_never_shown(
    project: Project, hub: Hub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    session = project.run("-vv", data="hf://datasets/shop/secret/test.jsonl")
    assert session.ret == 0 and session.leaks(TOKEN) == []
    hub.status = 503
    refused = project.run(data="hf://datasets/shop/secret/test.jsonl")
    assert refused.ret == 4
    assert refused.mistake == (
        f"--osmosis-data hf://datasets/shop/secret/test.jsonl: {hub.url} answered 503; "
        "try again later"
    )


def test_without_the_hub_and_the_file_in_the_cache_it_is_said(hub: Hub, tmp_path: Path):
    constants.ENDPOINT = "http://127.0.0.1:9"  # undone by the fixture
    with pytest.raises(DatasetError) as caught:
        fetch(f"{SUMS}/train.jsonl", tmp_path)
    # Of the revision or of the file, by what the version of huggingface_hub asks first.
    assert str(caught.value) in [
        f"{SUMS}/train.jsonl: {constants.ENDPOINT} {reason}"
        for reason in (
            "is not reached, and the cache has no 'main' of shop/sums",
            "cannot be reached, and the cache does not have it",
        )
    ]


def test_a_preview_shows_a_file_of_the_hub(
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    preview = Osmosis(monkeypatch, capsys, "preview")
    assert preview.document(f"{SUMS}/data/test-2.csv")["total"] == 2


def test_a_project_and_a_marked_test_take_a_file_of_the_hub(
    hub: Hub,
    project: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(constants, "HF_HOME", str(tmp_path))
    data = f"{SUMS}/data/test-2.csv"
    init = Osmosis(monkeypatch, capsys, "init")
    files = init.document("made", "--data", data, "--model", "m", "--yes")["files"]
    settings = (project.path / "made" / "pyproject.toml").read_text()
    assert f'osmosis_data = ["{data}"]' in settings and "test-2.csv" not in files
    project.write(
        "test_marked.py",
        "import pytest\nfrom agent import agent_loop\n"
        f"@pytest.mark.osmosis(agent=agent_loop, data={data!r}, model='m')\n"
        "def test_it(rollout):\n    assert rollout.text == rollout.ground_truth\n",
    )
    words = ("-n0", "test_marked.py", f"--osmosis-base-url={project.endpoint.base_url}")
    session = project.plain(*words)
    assert session.outcomes == {"passed": 2}, session.out + session.err
    project.write(
        "test_marked.py", (project.path / "test_marked.py").read_text().replace("-2", "-9")
    )
    assert "file is named 'data/test-9.csv' there" in project.plain(*words).out
