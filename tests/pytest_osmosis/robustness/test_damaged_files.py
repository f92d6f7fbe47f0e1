"""Files of an evaluation that are cut or overwritten anywhere: what reads them says so, or goes on.

A torn end is dropped, a lost head makes the session start anew beside what is left, and damage
before the end is refused with its line. No folder has to be deleted by hand.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from osmosis_cli.eval.viewer.library import Library
from osmosis_cli.eval.viewer.pages import entry_page, index_page
from osmosis_cli.main import cli
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.features.labels.run_labels import Labels, UnreadableLabels, change_labels
from pytest_osmosis.reports.json_reader import UnreadableReport
from pytest_osmosis.storage import journal
from pytest_osmosis.storage.replay import JournalError
from tests.support.project import KEPT, Project

RUNS = Path(".osmosis/runs")
SESSIONS = (
    "", "--osmosis-resume", "--osmosis-extend", "--osmosis-retry-failed=all",
    f"--osmosis-rescore={KEPT}", "--osmosis-baseline=last", "--osmosis-baseline=1.json",
    "--osmosis-replay=taped",
)  # fmt: skip
COMMANDS = (
    ("eval", "runs", "list"),
    ("eval", "runs", "show", KEPT),
    ("eval", "runs", "show", KEPT, "row-1"),
    ("eval", "runs", "prune", "--older-than", "0"),
    ("eval", "report", "out.json", "--html", "out.html"),
    ("eval", "merge", "1.json", "2.json", "-o", "merged.json"),
)


@pytest.fixture
def unfinished(project: Project) -> Project:
    """An evaluation that was cut short after its last run, with a cassette, labels and a report."""
    project.rows(*(f"row {number}" for number in range(4)))
    for shard in "12":
        project.run(f"--osmosis-shard={shard}/2", output=f"{shard}.json")
    project.run("--osmosis-record=taped", workers=2)
    folder = project.path / RUNS / KEPT
    path = folder / journal.FILE
    path.write_bytes(path.read_bytes().removesuffix(journal.end_line()))
    change_labels(folder, lambda _: Labels("a note", ("tag",)))
    return project


class Files(dict[Path, bytes]):
    """The files and what they hold, which is too much to be shown with a failure."""

    def __repr__(self) -> str:
        return f"<{len(self)} files>"


@pytest.fixture
def files(unfinished: Project) -> Iterator[Files]:
    top = unfinished.path
    paths = [*(top / RUNS).rglob("*"), *(top / "taped").iterdir(), *top.glob("*.json*")]
    paths.remove(top / "data.jsonl")
    yield Files({path: path.read_bytes() for path in paths if path.is_file()})


def restore(folder: Path, files: dict[Path, bytes]) -> None:
    shutil.rmtree(folder / RUNS)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Damage(NamedTuple):
    """Where a file is cut or overwritten, and with what; places are taken from its lines."""

    in_journal: bool
    file: int
    line: int
    offset: int
    odd: bytes
    is_cut: bool

    def do(self, files: dict[Path, bytes]) -> Path:
        """Damage a file, and return it."""
        main = [path for path in files if path.parts[-2:] == (KEPT, journal.FILE)]
        among = main if self.in_journal else sorted(files)
        path = among[self.file % len(among)]
        whole = files[path]
        ends = [0, *(at + 1 for at, byte in enumerate(whole) if byte == ord("\n"))]
        at = min(max(0, ends[self.line % len(ends)] + self.offset), len(whole))
        behind = b"" if self.is_cut else whole[at + len(self.odd) :]
        path.write_bytes(whole[:at] + self.odd + behind)
        return path


DAMAGE = st.builds(
    Damage,
    st.booleans(),
    st.integers(0, 99),
    st.integers(0, 99),
    st.integers(-9, 9) | st.integers(0, 2000),
    st.binary(max_size=12),
    st.booleans(),
)
ANY_FILE = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@pytest.mark.fault("the journal is torn, or damaged in the middle")
@ANY_FILE
@given(damage=DAMAGE, option=st.sampled_from(SESSIONS))
def test_a_session_goes_on_or_starts_anew_or_names_the_file(unfinished, files, damage, option):
    restore(unfinished.path, files)
    path = damage.do(files)
    kept = ("agent", "model", "base_url") if "rescore" in option else ()
    session = unfinished.run(*filter(None, [option]), **dict.fromkeys(kept))
    assert session.ret in (0, 1, 4), session.out + session.err
    assert "Traceback" not in session.out + session.err
    if session.ret == 1:
        assert "its conversation was not kept" in session.out
    if session.ret == 4:
        assert path.name in session.mistake or KEPT in session.mistake, session.mistake
        if path.is_relative_to(unfinished.path / RUNS):
            if "correct or delete it" in session.mistake:  # what people said is never made anew
                path.unlink()
            assert unfinished.run("--osmosis-fresh").ret == 0


@pytest.mark.slow
@ANY_FILE
@given(damage=DAMAGE, words=st.sampled_from(COMMANDS))
def test_a_command_shows_what_is_left_or_names_the_file(unfinished, files, damage, words):
    restore(unfinished.path, files)
    path = damage.do(files)
    os.chdir(unfinished.path)
    done = CliRunner().invoke(cli, words)
    assert done.exit_code in (0, 1), done.output
    if done.exit_code:
        assert isinstance(done.exception, SystemExit)
        assert path.name in done.output or "no run of row-1 has ended" in done.output


@pytest.mark.slow
@ANY_FILE
@given(damage=DAMAGE)
def test_a_page_shows_what_is_left_or_names_the_file(unfinished, files, damage):
    restore(unfinished.path, files)
    damage.do(files)
    library = Library(unfinished.path)
    refused = (UnreadableReport, UnreadableLabels, JournalError, ConfigurationError)
    try:
        index_page(library, unfinished.path, "", "")
        for entry in library.entries():
            entry_page(entry, library.view(entry), "")
            library.labels(entry)
    except refused as error:
        assert str(unfinished.path) in str(error)
