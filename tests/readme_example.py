"""Runs the README's example command as it is written, where the project is installed already.

Some runs of the example are wrong on purpose, and its gate allows for that. What has to hold: the
gate passed, every run ended with a score, and the model was right often, but not always.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL = "python -m pip install . && "


def command() -> str:
    """The README's first command without its first step, the installation."""
    text = (ROOT / "README.md").read_text("utf-8")
    found = re.search(r"<!-- example command -->\n```sh\n(.*?)\n```", text, re.S)
    if found is None or not found[1].startswith(INSTALL):
        raise SystemExit("README.md: no example command that starts with the installation")
    return found[1].removeprefix(INSTALL)


def main() -> None:
    """Run it and check its report."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "results.json")
        asked = f"{command()} --osmosis-output={report}"
        print("+", asked, flush=True)
        shell = ["bash", "-c", asked]
        status = subprocess.run(shell, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
        if status != 0 or not report.exists():
            sys.exit(f"the example ended with status {status}; expected 0 and a report")
        summary = json.loads(report.read_text("utf-8"))["summary"]
    (scores,) = summary["eval_fns"].values()
    if (summary["total_rows"], summary["total_runs"]) != (20, 100):
        sys.exit(f"expected 20 rows and 100 runs: {summary}")
    if not 0.5 < scores["pass_at_1"] < scores["pass_at_5"] <= 1.0:
        sys.exit(f"expected a model that is often right, and more so in five runs: {scores}")


if __name__ == "__main__":
    main()
