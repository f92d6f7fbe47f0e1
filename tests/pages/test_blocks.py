"""Every block of code of the pages runs, is parsed, or says why not."""

from __future__ import annotations

import configparser
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from pytest_osmosis.features.table import OPTIONS

from .blocks import CODE, PAGES, ROOT, Block, blocks
from .shell import Shell

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WITH_COMMANDS = [
    page
    for page in PAGES
    if any(block.language in ("sh", "console") and not block.excuse for block in blocks(page))
]
QUICK = ("README.md", "index.md", "first-evaluation.md")
"""Names of pages whose commands run in the default suite; those of the others are slow."""
OTHERS = [page for page in PAGES if page not in WITH_COMMANDS and [*blocks(page)]]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_is_in_a_language_that_a_test_knows(page: Path):
    for block in blocks(page):
        assert block.language in (*CODE, "text"), block.place
        if block.says.startswith("run by: "):
            assert (ROOT / block.excuse).is_file(), block.place
        if block.says.startswith("not run") or block.language in (
            "sh",
            "console",
            "groovy",
            "text",
            "csv",
        ):
            continue
        check_syntax(block)


def check_syntax(block: Block) -> None:
    try:
        if block.language == "json" and (block.file or not block.text.startswith("{\n")):
            [json.loads(line) for line in block.text.splitlines()]
        elif block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            check_ini_names(tomllib.loads(block.text))
        elif block.language == "ini":
            (read := configparser.ConfigParser(interpolation=None)).read_string(block.text)
            check_ini_names({"tool": {"pytest": dict(read["pytest"])}})
        elif block.language == "yaml":
            yaml.safe_load(block.text)
        else:
            compile(block.text, block.place, "exec")
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        raise AssertionError(f"{block.place}: {error}") from error


def check_ini_names(read: dict[str, dict[str, dict[str, object]]]) -> None:
    table = read.get("tool", {}).get("pytest", {})
    options: dict[str, object] = {**table, **table.get("ini_options", {})}  # type: ignore[dict-item]
    known = {name for option in OPTIONS for name in (option.ini_name, option.ini_twin)}
    assert {name for name in options if name.startswith("osmosis_")} <= known


@pytest.mark.parametrize("page", OTHERS, ids=name_of)
def test_the_python_of_a_page_runs(page: Path, pytester: pytest.Pytester):
    for block in blocks(page):
        run_python(block)


@pytest.mark.filterwarnings("ignore:Using `httpx` with `starlette.testclient`")
@pytest.mark.filterwarnings("ignore:The anyio.abc.BlockingPortal alias")
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page.name in QUICK else [pytest.mark.slow])
        for page in WITH_COMMANDS
    ],
    ids=name_of,
)
def test_the_commands_of_a_page_run(page: Path, pytester: pytest.Pytester, shell: Shell):
    for block in blocks(page):
        if block.excuse:
            continue
        if block.file:
            (path := pytester.path / block.file).parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, "utf-8")
        if block.says == "output":
            check_output(block, shell.printed)
        elif block.language in ("sh", "console"):
            run_commands(block, shell)
        else:
            run_python(block)


def run_python(block: Block) -> None:
    """Execute what is defined there, as a module that has no file."""
    if block.language == "python" and not block.excuse:
        module = ModuleType("page")
        exec(compile(block.text, block.place, "exec"), module.__dict__)


def run_commands(block: Block, shell: Shell) -> None:
    statuses = []
    for line in block.commands:
        statuses.append(shell(line))
        said = f"{block.place}: {line}\n{shell.printed}"
        assert statuses[-1] == (block.status if line == block.commands[-1] else 0), said


def check_output(block: Block, printed: str) -> None:
    """Find each line of the page in what was printed, in order; `…` stands for anything."""
    rest = [line.rstrip() for line in printed.splitlines()]
    for wanted in filter(None, map(str.rstrip, block.text.splitlines())):
        pattern = ".*".join(re.escape(part) for part in re.split(r"\s*…\s*", wanted))
        while rest and not re.fullmatch(pattern, rest[0]):
            rest.pop(0)
        assert rest, f"{block.place}: nothing like this line was printed: {wanted}\n{printed}"


def test_the_links_of_the_readme_are_absolute_and_lead_to_files_of_the_repository():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    repository = project["urls"]["Repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    text = (ROOT / "README.md").read_text("utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    for link in links:
        path = link.removeprefix(f"{repository}/blob/main/").removeprefix(f"{raw}/main/")
        assert (ROOT / path.partition("#")[0]).is_file(), link
