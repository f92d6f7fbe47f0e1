"""What uv prints, as one sentence."""

from __future__ import annotations

import pytest

from osmosis_platform.environments.build import reason

UV = """\
Using Python 3.11.7 environment at: env
error: No solution found when resolving dependencies
  cause: Because nothere was not found in the provided package locations and roll depends on
      nothere>=1, we can conclude that your requirements are unsatisfiable.
"""
PRINTED = [
    (UV, "No solution found when resolving dependencies cause: Because nothere was not "
     "found in the provided package locations and roll depends on nothere>=1, we can conclude "
     "that your requirements are unsatisfiable."),
    ("one\n\ntwo\n", "two"),
    ("", "it printed nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "told"), PRINTED)
def test_the_reason_is_what_follows_the_first_error(printed: str, told: str) -> None:
    assert reason(printed) == told
