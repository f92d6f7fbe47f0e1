"""How many tokens of code each package has at most: `python .ci/budget.py`, run by `tox -e lint`.

Python's tokens, without comments, docstrings and line ends; of scripts, styles and templates the
words and signs. Lines cost nothing: break them where they read well.

A number here may only become smaller. A change that needs more tokens names, in its description,
what it takes away in the same package.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST = {
    "osmosis_ai": 148_345,
    "osmosis_cli": 68_715,
    "osmosis_executors": 11_420,
    "osmosis_platform": 101_210,
    "pytest_osmosis": 284_910,
    "tests": 516_915,
}
PAGES = (".css", ".html", ".js")
NO_CODE = frozenset(
    (
        tokenize.COMMENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
        tokenize.INDENT,
        tokenize.NEWLINE,
        tokenize.NL,
    )
)
PAGE_COMMENT = re.compile(r"/\*.*?\*/|<!--.*?-->|{#.*?#}|^\s*//.*?$", re.DOTALL | re.MULTILINE)
WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")


def python_tokens(text: str) -> list[tuple[int, int]]:
    """Return where each token of code of a module begins: its line and column."""
    docstrings = set(_docstrings(ast.parse(text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [
        token.start
        for token in tokens
        if token.type not in NO_CODE and token.start not in docstrings
    ]


def _docstrings(module: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield where each string stands that is a statement: also those that explain an attribute."""
    for node in ast.walk(module):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.lineno, value.col_offset


def page_tokens(text: str) -> int:
    """Return how many words and signs a script, a style or a template has."""
    return len(WORD_OR_SIGN.findall(PAGE_COMMENT.sub("", text)))


def tokens_of(package: str) -> int:
    """Return the tokens of all files of code below a folder of the repository."""
    count = 0
    for file in sorted((ROOT / package).rglob("*")):
        if file.suffix == ".py":
            count += len(python_tokens(file.read_text(encoding="utf-8")))
        elif file.suffix in PAGES:
            count += page_tokens(file.read_text(encoding="utf-8"))
    return count


def main() -> int:
    """Print what is above its number, and what could have a lower one; return the exit status."""
    status = 0
    for package, most in MOST.items():
        tokens = tokens_of(package)
        if tokens > most:
            status = 1
            print(
                f"{package}: {tokens:,} tokens of code, {tokens - most:,} more than the {most:,} "
                "of .ci/budget.py: take away as many there, or answer the case that needs them "
                "with a line in docs/limitations.md"
            )
        elif tokens < most - most // 200:
            print(f"{package}: {tokens:,} tokens of code: lower its {most:,} in .ci/budget.py")
    return status


if __name__ == "__main__":
    sys.exit(main())
