"""What is given to another user whose programs may be at work already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import RunAs


def test_a_folder_is_given_after_what_is_in_it_and_not_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    given: list[Path] = []
    monkeypatch.setattr(os, "chown", lambda path, *ids, **how: given.append(Path(path)))
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "file").touch()
    (folder / "a" / "link").symlink_to("/etc")
    Confinement(user=RunAs("somebody", os.getuid() + 1, os.getgid())).give(folder)
    assert {*given} == {folder, *folder.rglob("*")}
    for number, path in enumerate(given):
        assert not {*path.parents} & {*given[:number]}
    given.clear()
    Confinement(user=RunAs("the owner", os.getuid(), os.getgid())).give(folder)
    assert given == []
