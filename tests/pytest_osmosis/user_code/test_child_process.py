"""Programs that use their pipes in unusual ways, run one by one."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_osmosis.user_code.child_process import ProcessResult, Program


def test_a_program_that_closes_its_outputs_first_gets_its_whole_input(tmp_path: Path) -> None:
    program = Program(
        argv=["sh", "-c", "exec >counted 2>counted; wc -c"],
        cwd=tmp_path,
        env=os.environ,
        stdin=b"x" * 1_000_000,
        on_stderr=lambda text: None,
    )
    assert program.run() == ProcessResult(0, "")
    assert int((tmp_path / "counted").read_text()) == 1_000_000
