"""The fenced blocks of README and docs, and what a test does with each.

A page is a project: a block whose first line is a comment with a file's name is that file, and the
blocks of shell are run in order, in the folder of these files. A comment in the source of the page,
on the line above a fence, says what the block itself cannot:

    <!-- file: test_data.jsonl -->     the block is this file
    <!-- exit status: 1 -->            the last command of the block ends with this status
    <!-- output -->                    the text is printed by the commands above; `…` is any text
    <!-- not run: WHY -->              no test runs the block
    <!-- run by: tests/FILE.py -->     another test does
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
CODE = ("python", "sh", "console", "json", "toml", "yaml", "ini", "groovy", "csv")
"""Languages whose blocks must be run, parsed or excused; `text` is what is printed."""

EXCUSED = {"platform": "asks a platform: tests/osmosis_platform and tests/osmosis_cli do"}
"""Folders of docs whose commands no page's test runs, and why."""

OWN_TESTS = {
    "example command": "run by tests/readme_example.py",
    "test command": "is the one that runs this test",
}
"""Why the blocks below these comments are not run here."""

FENCE = re.compile(
    r"(?:^<!-- (?P<says>[^>]*) -->\n)?^```(?P<language>[a-z]+)\n(?P<text>.*?)^```$", re.S | re.M
)
NAMED = re.compile(r"\A(?:#|//) ([\w./-]+\.(?:py|js|toml|ini|yaml|yml|txt)|Jenkinsfile)\n")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    says: str
    """The comment above it, without its marks."""

    @property
    def place(self) -> str:
        """The page and the line, as an editor takes them."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str:
        """The file that the block is, or ""."""
        if self.says.startswith("file: "):
            return self.says.removeprefix("file: ")
        named = NAMED.match(self.text)
        return named[1] if named else ""

    @property
    def excuse(self) -> str:
        """Why nothing here runs the block, or ""."""
        found = re.fullmatch(r"(?:not run|run by): (.+)", self.says)
        if self.language in ("sh", "console") and not found:
            return OWN_TESTS.get(self.says) or EXCUSED.get(self.page.parent.name, "")
        return found[1] if found else ""

    @property
    def status(self) -> int:
        """The exit status of its last command."""
        return int(self.says.rpartition(" ")[2]) if self.says.startswith("exit status: ") else 0

    @property
    def commands(self) -> list[str]:
        """The commands of a block of shell, each in one line."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
        return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start("language")) + 1
        yield Block(page, line, found["language"], found["text"], (found["says"] or "").strip())
