"""The code in an answer, run against the tests of its row in processes of their own."""

from __future__ import annotations

import ast
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PROCESS = Path(__file__).with_name("process.py")
START_S = 10.0
"""For the start of the processes and their end, besides the limit."""
_FENCE = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([^\n`]*)\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.M | re.S)
_PYTHON = ("", "py", "python", "python3", "pycon", "ipython")
_DEFINED = re.compile(
    r"^(?:(?:async +)?def +|class +|(?=\w+ *(?::[^=\n]*)?=[^=]))([^\W\d]\w*)", re.MULTILINE
)
"""What a block of code defines at its top, also one that is no Python."""
_BEFORE = ("test_imports", "test_setup_code")
"""Columns with what stands before the tests, as MBPP has it."""
_running = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Limits of time are of the clock: no more processes at once than there are processors."""


class TestsError(ValueError):
    """What is wrong with the tests of a row; a sentence."""

    __test__ = False


def tests_of(row: Mapping[str, Any], column: str) -> tuple[str, str | None]:
    """Return the tests in a column of a row, and which function `check` is called with.

    Raises:
        TestsError: where there are none, they are no Python, or assert nothing.
    """
    if (value := row.get(column)) is None:
        likely = [name for name in row if name.lower().startswith("test")]
        hint = f"; try code({likely[0]!r})" if likely else ""
        raise TestsError(f"the row has no {column!r}{hint}")
    lines = [value] if isinstance(value, str) else value
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise TestsError(f"{column!r} holds neither text nor a list of asserts")
    before = [row.get(name) or [] for name in _BEFORE]
    texts = [one for part in before for one in ([part] if isinstance(part, str) else part)]
    text = "\n".join([*texts, *lines])
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise TestsError(f"the tests in {column!r} are no Python: {error}") from None
    has_check = any(
        isinstance(node, ast.FunctionDef) and node.name == "check" for node in tree.body
    )
    if not any(map(_asserts, _run(tree))):
        raise TestsError(f"the tests in {column!r} assert nothing")
    if not has_check or _is_called("check", tree):
        return text, None
    entry = row.get("entry_point")
    if not isinstance(entry, str) or not entry.isidentifier():
        raise TestsError(
            f"the tests in {column!r} define check, and 'entry_point' names no function"
        )
    return text, entry


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes that are run: not those of functions that nothing calls."""
    known = {node.name: node for node in tree.body if isinstance(node, _DEFINITIONS)}
    waiting: list[ast.AST] = [node for node in tree.body if not isinstance(node, _DEFINITIONS)]
    waiting += [known.pop(name) for name in [*known] if _is_started(known[name])]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Name) and node.id in known:
            waiting.append(known.pop(node.id))


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_started(node: ast.AST) -> bool:
    """Return whether it is run without a call in the tests: `check`, `test_…`, a TestCase."""
    if isinstance(node, ast.ClassDef):
        return any("TestCase" in ast.dump(base) for base in node.bases)
    if not isinstance(node, ast.FunctionDef):
        return False
    is_test = node.name.startswith("test") and len(node.args.args) == len(node.args.defaults)
    return is_test or node.name == "check"


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        has_name = any(isinstance(part, ast.Name) for part in ast.walk(node.test))
        return has_name or (isinstance(node.test, ast.Constant) and not node.test.value)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name.startswith(("assert", "fail")) or name == "raises"
    return isinstance(node, ast.Raise)


def _is_called(name: str, tree: ast.Module) -> bool:
    called = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    return any(isinstance(function, ast.Name) and function.id == name for function in called)


def code_in(answer: str, prompt: str, tests: str, entry_point: str | None) -> str | None:
    """Return the Python of an answer: its last block of code, or all of it; None for none.

    Blocks behind it that define nothing which the tests use are examples and output. The body alone
    of the function that a prompt begins is put behind that prompt.
    """
    blocks = [
        textwrap.dedent(one[3]) if one[0][0] in " \t" else one[3]
        for one in _FENCE.finditer(answer)
        if _language(one[2]) in _PYTHON
    ]
    if not blocks and _FENCE.search(answer):
        return None
    names = [node for node in ast.walk(ast.parse(tests)) if isinstance(node, ast.Name)]
    used = {one.id for one in names} - {one.id for one in names if isinstance(one.ctx, ast.Store)}
    used |= {entry_point or ""}
    solutions = [block for block in blocks if used.intersection(_DEFINED.findall(block))]
    code = [*blocks, *solutions][-1] if blocks else answer
    whole = f"{prompt.rstrip()}\n{code}"
    if entry_point and f"def {entry_point}" not in code and _is_python(whole):
        return whole
    return code if blocks or _is_python(code) else None


def _language(info: str) -> str:
    return re.split(r"[\s:,{]", info.strip().lower(), maxsplit=1)[0]


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(text.strip())


def failure(code: str, tests: str, entry_point: str | None, timeout: float) -> str | None:
    """Return why the code does not pass the tests; None where it does.

    Raises:
        RuntimeError: where the process of the tests could not be set up.
    """
    job = json.dumps({"code": code, "tests": tests, "entry_point": entry_point}).encode()
    marker = secrets.token_hex(32).encode()
    with _running, tempfile.TemporaryDirectory(prefix="osmosis-code-") as folder:
        env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "TMPDIR": folder}
        env |= {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(PROCESS), folder, repr(timeout)],
                input=b"%d\n%s%s" % (len(job), job, marker),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=env,
                timeout=timeout + START_S,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"did not end within {timeout:g} s"
    if done.stdout == marker:
        return None
    if done.returncode > 0 and not done.stdout:
        raise RuntimeError(f"code: the tests cannot be run here (exit status {done.returncode})")
    try:
        return str(json.loads(done.stdout)["reason"])
    except (ValueError, KeyError, TypeError):
        return "the tests ended before the last of them"
