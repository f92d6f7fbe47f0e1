"""How many lines of Python each package has at most: `python .ci/budget.py`, run by `tox -e lint`.

A number here may only become smaller. A change that needs more lines names, in its description,
what it takes away in the same package.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = {
    "osmosis_ai": 22_010,
    "osmosis_cli": 9_105,
    "osmosis_executors": 2_071,
    "osmosis_platform": 11_840,
    "pytest_osmosis": 28_760,
    "tests": 64_400,
}


def lines_of(package: str) -> int:
    """Return the lines of all Python files below a folder of the repository."""
    files = (ROOT / package).rglob("*.py")
    return sum(file.read_bytes().count(b"\n") for file in files)


def main() -> int:
    """Print what is above its number, and what could have a lower one; return the exit status."""
    status = 0
    for package, most in MOST.items():
        lines = lines_of(package)
        if lines > most:
            status = 1
            print(
                f"{package}: {lines:,} lines of Python, {lines - most:,} more than the {most:,} of "
                ".ci/budget.py: take away as many there, or answer the case that needs them with a "
                "line in docs/limitations.md"
            )
        elif lines < most - most // 100:
            print(f"{package}: {lines:,} lines of Python: lower its {most:,} in .ci/budget.py")
    return status


if __name__ == "__main__":
    sys.exit(main())
