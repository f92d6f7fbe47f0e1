"""What uv and pip print, as one sentence."""

from __future__ import annotations

import pytest

from osmosis_platform.environments.failure import reason

UV = """\
Using Python 3.11.7 environment at: env
error: No solution found when resolving dependencies
  cause: Because nothere was not found in the provided package locations and roll depends on
      nothere>=1, we can conclude that your requirements are unsatisfiable.
"""
OLDER_UV = """\
  × No solution found when resolving dependencies:
  ╰─▶ Because nothere was not found in the package registry and you require
      nothere, we can conclude that your requirements are unsatisfiable.
"""
PIP_NOTHING = """\
Looking in links: wheels
ERROR: Could not find a version that satisfies the requirement nothere>=1 (from versions: none)
ERROR: No matching distribution found for nothere>=1
"""
PIP_CONFLICT = """\
ERROR: Cannot install pydantic<2 because these package versions have conflicting dependencies.

The conflict is caused by:
    The user requested pydantic<2
    The user requested (constraint) pydantic>=2.10

To fix this you could try to:
1. loosen the range of package versions you've specified

ERROR: ResolutionImpossible: for help visit https://pip.pypa.io
"""
PRINTED = [
    (UV, "No solution found when resolving dependencies: Because nothere was not found in the "
     "provided package locations and roll depends on nothere>=1, we can conclude that your "
     "requirements are unsatisfiable"),
    (OLDER_UV, "No solution found when resolving dependencies: Because nothere was not found in "
     "the package registry and you require nothere, we can conclude that your requirements are "
     "unsatisfiable"),
    (PIP_NOTHING, "No matching distribution found for nothere>=1"),
    (PIP_CONFLICT, "Cannot install pydantic<2 because these package versions have conflicting "
     "dependencies: The user requested pydantic<2; The user requested (constraint) pydantic>=2.10"),
    ("one\n\ntwo\nthree\nfour\n", "two / three / four"),
    ("", "it printed nothing"),
    ("x" * 900, "x" * 800 + "…"),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "told"), PRINTED)
def test_the_reason_is_what_was_said_last_of_it(printed: str, told: str) -> None:
    assert reason(printed) == told
