"""One pytest session; what failed in it is run once more by itself, and both are told.

Many tests start processes, send signals and race real timers on whatever machine this is. A test
that fails twice, the second time without neighbours, has failed; one that passes then is named, so
that it can be mended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

FAILED = 1
FEW = 25


def main(args: list[str]) -> int:
    """Run pytest with `args`; the exit status is that of the last session."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *args]
        status = subprocess.run(command, check=False).returncode
        if status != FAILED or _failures(cache) > FEW:
            return status
        print("\nonce more, what failed:", flush=True)
        again = [*command, "--lf", "-n0"]  # after any -n of the first session's
        return subprocess.run(again, check=False).returncode


def _failures(cache: str) -> int:
    import json
    from pathlib import Path

    found = Path(cache) / "v" / "cache" / "lastfailed"
    return len(json.loads(found.read_text())) if found.exists() else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
