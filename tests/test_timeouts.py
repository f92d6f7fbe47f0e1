"""The tests' own clients wait until a busy machine has answered."""

from __future__ import annotations

import ast
from pathlib import Path

CALLS = {"AsyncClient", "Client", "delete", "get", "patch", "post", "put", "request", "stream"}


def test_no_client_gives_up_after_the_five_seconds_of_httpx():
    """Three environments share two cores in CI: pages that another process renders take longer."""
    tests = Path(__file__).parent
    found = []
    for path in sorted(tests.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Attribute(ast.Name("httpx"), attr)) if attr in CALLS:
                    given = {keyword.arg for keyword in node.keywords}
                    if not given & {"timeout", "transport", None}:
                        found.append(f"{path.relative_to(tests)}:{node.lineno}")
    assert found == []
