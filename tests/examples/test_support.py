"""The order-support example, as README's first command runs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "support"


def test_a_model_that_is_never_wrong_answers_every_question_with_the_tool(
    pytester: pytest.Pytester,
):
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True)
    result = pytester.runpytest_inprocess(
        "-n0", "--osmosis-model=embedded/perfect", "--eval-fn=includes", "--n=1",
        "--eval-fn=tool_called('get_order')", "--osmosis-gate=pass@1[includes] >= 1",
    )  # fmt: skip
    assert (result.ret, result.parseoutcomes()["passed"]) == (0, 20)
