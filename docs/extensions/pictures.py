"""The pictures of README and landing page, made from the example: run it where they have changed.

    python docs/extensions/pictures.py

needs rich (which LiteLLM brings) and Chromium; `CHROMIUM` names it where it is not in the path.
The terminal becomes an SVG with the colours of a session; the HTML report and one of its runs
become PNGs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "pictures"
WIDTH = 92
FAILED = "row-5/run-1"
"""The run that has a picture."""
CHROMIUM_WORDS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def main() -> None:
    """Make the pictures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "support")
        shutil.copytree(ROOT / "examples" / "support", folder)
        report = folder / "report.html"
        printed = session(folder, "--color=yes", "-n0")
        session(folder, "-n0", "--osmosis-fresh", f"--osmosis-html={report.name}")
        draw_terminal(printed)
        draw_page(report.as_uri(), "report.png", "1200,1150", Path(name, "profile"))
        one_run = f"{report.as_uri()}#{FAILED}"
        draw_page(one_run, "run.png", "1200,1520", Path(name, "another-profile"))


def session(folder: Path, *options: str) -> str:
    """Return what a session of the example prints."""
    shown = {**os.environ, "COLUMNS": str(WIDTH)}
    shown.pop("PYTEST_ADDOPTS", None)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=folder, env=shown, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stdout + done.stderr)
    return done.stdout


def draw_terminal(printed: str) -> None:
    """Write the end of a session as an SVG."""
    command = "$ cd examples/support && pytest -n 0\n"
    lines = printed.splitlines()
    kept = [line for line in lines if not re.search(r"rootdir|configfile|plugins:|HTML rep", line)]
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print(Text(command, style="bold"), end="")
        for line in kept:
            console.print(Text.from_ansi(line), soft_wrap=True)
        drawn = console.export_svg(title="pytest", unique_id="osmosis")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.S)  # nothing is fetched
    (PICTURES / "terminal.svg").write_text(drawn.replace("Fira Code, ", ""), "utf-8")


def draw_page(address: str, name: str, size: str, profile: Path) -> None:
    """Write what a browser shows of a page as a PNG."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium-browser"
    words = [f"--user-data-dir={profile}", f"--window-size={size}", "--virtual-time-budget=20000"]
    target = f"--screenshot={PICTURES / name}"
    command = [chromium, *CHROMIUM_WORDS, *words, target, address]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
