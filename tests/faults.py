"""The table of faults and the tests that hold them, as `tests/FAULTS.md` has it.

`python -m tests.faults` writes the file anew from the marks `@pytest.mark.fault("…")`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS / "FAULTS.md"
HEAD = """# What goes wrong, and which tests hold it

Written by `python -m tests.faults` from the marks `@pytest.mark.fault("what goes wrong")`.
"""

UNTESTED = {
    "the power fails": "it would take a machine to be switched off; the order of write, fsync and "
    "report is held by the tests of the journal",
    "the file system is NFS": "it would take an NFS server; a file system without locks is played "
    "by a failing call",
    "a process dumps core, or faulthandler its frames": "a dump is the system's; faulthandler "
    "prints names of functions alone",
}
"""Faults that no test can hold, and why."""


def marks(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each fault and the name of its test from a file's marks."""
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text if "mark.fault" in text else "")):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.fault":
                    yield from ((ast.literal_eval(fault), node.name) for fault in mark.args)


def page() -> str:
    """Return the table: a section a file of tests, a row a fault."""
    lines = [HEAD]
    for path in sorted(TESTS.rglob("test_*.py")):
        tests: dict[str, list[str]] = {}
        for fault, test in marks(path):
            tests.setdefault(fault, []).append(f"`{test}`")
        if tests:
            lines += [f"## {path.relative_to(TESTS).as_posix()}\n", "| fault | test |", "|---|---|"]
            rows = sorted(tests.items())
            lines += [*(f"| {fault} | {', '.join(sorted(names))} |" for fault, names in rows), ""]
    lines += ["## Without a test\n", "| fault | why |", "|---|---|"]
    return "\n".join([*lines, *(f"| {fault} | {why} |" for fault, why in UNTESTED.items()), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
