"""What a process imports while it waits for models."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_osmosis.rollouts.pool import import_apart

INTERRUPTED = """
import os, signal
from pathlib import Path

with Path(__file__).with_name("begun").open("a") as file:
    file.write("once ")
os.kill(os.getpid(), signal.SIGINT)
value = 1
"""


@pytest.mark.fault("Ctrl-C")
def test_a_signal_leaves_an_import_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "interrupted_import.py").write_text(INTERRUPTED)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        import_apart("interrupted_import")
    import interrupted_import  # type: ignore[import-not-found]

    assert interrupted_import.value == 1
    assert (tmp_path / "begun").read_text() == "once "
    del sys.modules["interrupted_import"]


def test_a_module_that_cannot_be_imported_says_why():
    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        import_apart("no_such_module_at_all")
