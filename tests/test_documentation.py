"""README and docs agree with the code: options exist, samples are what they claim to be."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import click
import pytest

from docs.extensions.command_reference import reference
from osmosis_cli.agent.preview import preview_command
from osmosis_cli.main import cli
from osmosis_cli.rubric.command import rubric_command
from osmosis_cli.rubric.config import load_rubrics
from pytest_osmosis.features.table import OPTIONS
from tests import faults
from tests.osmosis_cli.test_main import every_command

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FLAGS = {option.flag_name for option in OPTIONS}
INI_NAMES = {option.ini_name for option in OPTIONS}

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.S | re.M)


@each_page
def test_an_option_that_a_page_names_exists(page: Path):
    named = set(re.findall(r"--osmosis-[a-z][a-z-]*[a-z]", page.read_text("utf-8")))
    assert named <= FLAGS | {"--osmosis-n"}


@each_page
def test_an_ini_line_that_a_page_shows_is_known(page: Path):
    for block in blocks(page, "toml"):
        assert set(re.findall(r"^(osmosis_\w+) *=", block, re.M)) <= INI_NAMES


@each_page
def test_python_and_json_samples_parse(page: Path):
    for block in blocks(page, "python"):
        ast.parse(block)
    for block in blocks(page, "json"):
        if page.name == "report.md":
            json.loads(block)
        else:
            [json.loads(line) for line in block.splitlines()]


def test_the_rubric_file_and_the_commands_of_the_guide_are_understood(tmp_path: Path):
    page = ROOT / "docs" / "guides" / "rubrics.md"
    [text] = blocks(page, "yaml")
    (path := tmp_path / "rubric_configs.yaml").write_text(text)
    assert [rubric.id for rubric in load_rubrics(path)] == ["support_followup"]
    commands = "".join(blocks(page, "sh"))
    named = set(re.findall(r"(?<= )--[a-z-]+", commands))
    known = [*rubric_command.params, *preview_command.params]
    assert named <= {flag for parameter in known for flag in parameter.opts}


@pytest.mark.parametrize(
    ("page", "apart"), [("CONTRIBUTING.md", "\n"), ("docs/how-it-works.md", "\n\n")]
)
def test_a_file_that_a_page_on_the_code_names_exists_where_it_says(page: str, apart: str):
    parts = ("osmosis_ai", "pytest_osmosis", "osmosis_cli", "osmosis_executors", "osmosis_platform")
    there = [
        path.relative_to(ROOT).as_posix() + "/" * path.is_dir()
        for name in (*parts, "tests", "docs", "benchmarks")
        for path in [ROOT / name, *(ROOT / name).rglob("*")]
    ]

    def found(name: str) -> set[str]:
        return {path for path in there if f"/{path}".endswith(f"/{name}")}

    count = 0
    for paragraph in (ROOT / page).read_text("utf-8").split(apart):
        named = re.findall(r"`([\w/]+(?:\.py|/))`", paragraph)
        count += len(named)
        folders = {path.rpartition("/")[0] for name in named if "/" in name for path in found(name)}
        for name in named:
            places = {path.rpartition("/")[0] for path in found(name)}
            if "/" not in name:  # at the top of a package, or beside what is named with its folder
                places &= {*parts, *folders}
            assert places, name
    assert count > 20


def test_every_page_is_linked_from_the_index():
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text("utf-8")
    pages = {str(page.relative_to(docs).with_suffix("")) for page in docs.rglob("*.md")}
    assert pages - {"index"} == set(re.findall(r"^([a-z][\w/-]*)$", index, re.M))


def test_the_page_of_commands_is_generated_and_has_every_command_and_option():
    page = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    assert "```{osmosis-commands}\n```" in page
    titles = r"^##+ `(osmosis[^`]*)`\n\n(.*?)(?=^\(command|\Z)"
    sections = dict(re.findall(titles, reference(cli), re.S | re.M))
    described = set()
    for path, command in [((), cli), *every_command(cli)]:
        section = sections.pop(" ".join(["osmosis", *path]))
        if section.startswith("The same as"):
            assert command in described
            continue
        described.add(command)
        for parameter in command.params:
            listed = re.findall(r"^`([^`]*)`\n: \S", section, re.M)
            spelt = [re.split(r"[ ,]+", entry) for entry in listed]
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert [one for one in spelt if set(parameter.opts) <= set(one)], parameter.opts
    assert not sections


def command_lines(text: str) -> list[str]:
    """The calls of `osmosis` in blocks of a shell, each as one line."""
    shells = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text.replace("\\\n", " "), re.S | re.M)
    lines = [line.strip().removeprefix("$ ") for block in shells for line in block.splitlines()]
    return [line for line in lines if line.startswith("osmosis ") and "[OPTIONS]" not in line]


def check_usage(words: list[str]) -> None:
    """Raise click.UsageError unless there is such a command with such options."""
    command: click.Command = cli
    context = click.Context(cli, info_name="osmosis")
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        if found is None:
            raise click.UsageError(f"no command {words[0]!r}", context)
        command, words = found, words[1:]
        context = click.Context(command, context, command.name)
    own = words[: words.index("--")] if "--" in words else words
    command.make_parser(context).parse_args(own)


@each_page
def test_a_command_line_that_a_page_shows_is_accepted(page: Path):
    for line in command_lines(page.read_text("utf-8")):
        check_usage(shlex.split(line, comments=True)[1:])


def test_every_example_in_a_help_is_accepted():
    lines = command_lines(reference(cli))
    assert len(lines) > 20
    for line in lines:
        if "COMMAND" not in line:
            check_usage(shlex.split(line, comments=True)[1:])


def test_the_table_of_faults_has_each_mark_and_its_test():
    assert faults.PAGE.read_text("utf-8") == faults.page(), "run python -m tests.faults"
