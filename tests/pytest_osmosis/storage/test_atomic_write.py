"""Files are written whole; what is no regular file is written into."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from pytest_osmosis.storage.atomic_write import check_writable, write_whole


class Reader(Thread):
    """Makes a FIFO and reads what is written into it."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        os.mkfifo(path)
        self.path = path
        self._data = b""
        self.start()

    def run(self) -> None:
        self._data = self.path.read_bytes()

    def data(self) -> bytes:
        """All that was written; the FIFO is still one."""
        self.join(60)
        assert not self.is_alive() and stat.S_ISFIFO(self.path.stat().st_mode)
        return self._data


def test_other_threads_keep_their_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def asked(mask: int) -> int:
        raise AssertionError("the umask is the whole process's")

    before = os.umask(0o027)
    try:
        monkeypatch.setattr(os, "umask", asked)
        write_whole(tmp_path / "new", b"whole")
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        assert os.listdir(tmp_path) == ["new"]
    finally:
        monkeypatch.undo()
        os.umask(before)


def test_a_fifo_is_written_into_and_stays(tmp_path: Path):
    reader = Reader(tmp_path / "fifo")
    check_writable(reader.path)
    write_whole(reader.path, iter([b"one ", b"two"]), mode=0o600)
    assert reader.data() == b"one two"
    assert os.listdir(tmp_path) == ["fifo"]


def test_a_fifo_that_may_not_be_written_is_refused_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    os.mkfifo(tmp_path / "fifo")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="Permission denied"):
        check_writable(tmp_path / "fifo")
