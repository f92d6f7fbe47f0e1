from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from osmosis_ai.escaping import printable
from osmosis_cli import __main__ as start
from osmosis_cli.errors import ENDS_BY_SIGNAL, CommandError, Terminated, check_terminated, run
from osmosis_cli.lazy_group import entry_points_of
from osmosis_cli.main import COMMANDS, cli, main


def osmosis(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "osmosis_cli", *words]
    environment = {**os.environ, **(env or {})}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def python(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **env},
    )


def ending(error: BaseException) -> click.Command:
    @click.command()
    @click.option("--json", is_flag=True)
    def command(json: bool) -> None:
        click.echo("half an answer")
        raise error

    return command


def every_command(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_failure(closed: str):
    command = f'"{sys.executable}" -m osmosis_cli --version {closed}'
    ended = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_help_lists_the_commands_and_imports_none_of_them():
    done = python(
        "import sys\nfrom osmosis_cli.errors import run\nfrom osmosis_cli.main import cli\n"
        "status = run(cli, ['--help']) or run(cli, ['platform', 'serve', '--help'])\n"
        "heavy = {'pytest', 'pydantic', 'litellm', 'sqlalchemy', 'starlette', 'alembic',"
        " 'osmosis_cli.eval.command', 'osmosis_cli.agent.validate'}\n"
        "sys.exit(status or sorted(heavy & set(sys.modules)) or 0)"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "eval " in done.stdout
    assert "validate " in done.stdout


@pytest.mark.slow
def test_a_command_about_submitted_runs_imports_neither_pytest_nor_an_event_loop(tmp_path: Path):
    done = python(
        "import sys\nfrom osmosis_cli.errors import run\nfrom osmosis_cli.main import cli\n"
        "status = run(cli, ['eval', 'list'])\n"
        "heavy = {'pytest', 'pydantic', 'litellm', 'asyncio', 'numpy'}\n"
        "print(status, sorted(heavy & set(sys.modules)))",
        OSMOSIS_CONFIG_DIR=str(tmp_path),
    )
    assert done.stdout == "1 []\n", done.stderr


def test_help_lists_what_is_on_a_platform_apart():
    for group, name in (((), "login"), (("eval",), "submit")):
        said = CliRunner().invoke(cli, [*group, "--help"]).output
        here, _, there = said.partition("\nOn a platform:\n")
        assert f"\n  {name} " not in here
        assert f"  {name} " in there


def test_every_group_of_commands_has_an_example_of_one_of_them():
    for block in CliRunner().invoke(cli, ["--help"]).output.split(":\n  ")[2:]:
        names = re.findall(r"^ *([a-z-]+)  ", block, re.MULTILINE)
        [example] = re.findall(r"^  \$ osmosis ([a-z-]+) ", block, re.MULTILINE)
        assert example in [*names, "eval"]


def test_the_module_is_the_same_command():
    done = osmosis("-V")
    assert done.returncode == 0
    assert done.stdout == f"osmosis {importlib.metadata.version('pytest-osmosis')}\n"


def test_no_words_at_all_is_wrong_use_and_shows_the_help(capsys: pytest.CaptureFixture[str]):
    assert run(cli, []) == 2
    assert "Evaluate an agent:" in capsys.readouterr().err


def test_json_may_stand_before_a_command_as_well():
    behind = CliRunner().invoke(cli, ["eval", "schema", "--config", "--json"])
    before = CliRunner().invoke(cli, ["--json", "eval", "schema", "--config"])
    assert (before.exit_code, before.output) == (0, behind.output)
    assert "No such option" in CliRunner().invoke(cli, ["--json"]).output


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("evla", "Did you mean 'eval'?"),
        ("view", "Did you mean 'osmosis eval view'?"),
        ("delete", "Did you mean 'osmosis secret delete'?"),
        ("eval runs shwo", "Did you mean 'show'?"),
        ("template 7", "There are list, apply."),
        ("platform tyr", "There are db, member, serve, token, try, user, workspace."),
    ],
)
def test_a_command_that_is_not_there_is_answered_with_what_is_meant(words: str, hint: str):
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 2
    assert f"No such command {words.rsplit(maxsplit=1)[-1]!r}. {hint}" in done.output


def test_a_mistyped_option_is_answered_with_the_nearest_one():
    done = CliRunner().invoke(cli, ["validate", "--modul", "a:b"])
    assert done.exit_code == 2
    assert "--module" in done.output


def test_every_command_has_an_example_and_a_summary():
    found = dict(every_command(cli))
    assert set(COMMANDS) & {path[0] for path in found} >= {"eval", "validate", "init"}
    for path, command in found.items():
        shown = CliRunner().invoke(cli, [*path, "--help"])
        assert shown.exit_code == 0, path
        assert command.help, path
        _, found_examples, examples = shown.output.partition("  Example")
        assert found_examples, path
        assert f"osmosis {' '.join(path)}" in examples, path


def test_every_help_fits_into_80_columns_and_names_the_commands_own_options():
    for path, _ in [((), cli), *every_command(cli)]:
        shown = CliRunner().invoke(cli, [*path, "--help"], env={"COLUMNS": "80"})
        lines = shown.output.splitlines()
        assert [line for line in lines if len(line) > 80] == [], path
        assert [line for line in lines if re.match(r"  \S.*\.\.\.$", line)] == [], path
        assert "--osmosis-" not in shown.output, path


def test_every_command_that_does_something_has_json():
    for path, command in every_command(cli):
        if isinstance(command, click.Group) and command.name != "eval":
            continue  # its commands do
        assert any("--json" in parameter.opts for parameter in command.params), path


def test_a_wrong_use_with_json_is_one_document_on_stderr(capsys: pytest.CaptureFixture[str]):
    assert run(cli, ["validate", "--json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    error = json.loads(err)["error"]
    assert error["code"] == "usage"
    assert error["exit_code"] == 2
    assert "--module" in error["message"]


def test_json_behind_two_dashes_is_not_the_commands(capsys: pytest.CaptureFixture[str]):
    assert run(cli, ["validate", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("Usage: ")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CommandError("no", code="refused", details={"row": 3}), 1, "refused"),
        (click.ClickException("no"), 1, "failed"),
        (click.UsageError("no"), 2, "usage"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 1, "aborted"),
        (click.exceptions.Exit(1), 1, "failed"),
        (ValueError("unforeseen"), 1, "internal"),
    ],
)
def test_a_failure_has_its_status_and_with_json_leaves_stdout_empty(
    error: BaseException, status: int, code: str, capsys: pytest.CaptureFixture[str]
):
    assert run(ending(error), ["--json"]) == status
    out, err = capsys.readouterr()
    assert out == ""
    document = json.loads(err)["error"]
    assert (document["code"], document["exit_code"]) == (code, status)
    assert document.get("details") == ({"row": 3} if code == "refused" else None)

    assert run(ending(error), []) == status
    out, err = capsys.readouterr()
    assert out == "half an answer\n"
    assert "Traceback" not in err


def test_an_unforeseen_error_shows_its_traceback_only_on_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OSMOSIS_TRACEBACK", "1")
    run(ending(ValueError("unforeseen")), [])
    assert "Traceback" in capsys.readouterr().err


def test_what_was_printed_on_the_way_is_shown_after_a_success(capsys: pytest.CaptureFixture[str]):
    @click.command()
    @click.option("--json", is_flag=True)
    def command(json: bool) -> None:
        click.echo("a note", err=True)
        click.echo("{}")

    assert run(command, ["--json"]) == 0
    assert capsys.readouterr() == ("{}\n", "a note\n")


def test_sigterm_ends_the_command_with_143_and_runs_its_cleanup():
    code = (
        "import click, signal, sys, os\nfrom osmosis_cli.errors import run\n"
        "@click.command()\ndef command():\n"
        "    try:\n        os.kill(os.getpid(), signal.SIGTERM)\n        signal.pause()\n"
        "    finally:\n        print('cleaned up')\n"
        "sys.exit(run(command, []))"
    )
    done = python(code)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == "cleaned up\n"
    assert "Traceback" not in done.stderr


def test_ctrl_c_while_the_command_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr("osmosis_cli.main.main", lambda args: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit, match="130"):
        start.main()
    assert capsys.readouterr().err == "Error: interrupted\n"


def test_a_sigterm_whose_exception_was_dropped_is_not_forgotten():
    @click.command()
    def drops() -> None:
        with contextlib.suppress(Terminated):  # as Python does in a finalizer
            signal.raise_signal(signal.SIGTERM)
        check_terminated()

    assert run(drops, []) == 128 + signal.SIGTERM
    assert run(click.Command("next", callback=check_terminated), []) == 0


@pytest.mark.parametrize(("stop", "status"), [(KeyboardInterrupt(), 130), (Terminated(), 143)])
def test_a_command_that_a_signal_is_meant_to_end_says_nothing_of_it_to_people(
    stop: BaseException, status: int, capsys: pytest.CaptureFixture[str]
):
    @click.command()
    @click.option("--json", is_flag=True)
    @click.pass_context
    def command(ctx: click.Context, json: bool) -> None:
        ctx.meta[ENDS_BY_SIGNAL] = True
        raise stop

    assert run(command, []) == status
    assert capsys.readouterr() == ("", "")
    assert run(command, ["--json"]) == status
    assert json.loads(capsys.readouterr().err)["error"]["exit_code"] == status


def test_a_reader_that_goes_away_is_no_traceback():
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "osmosis_cli", "--help"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(
    ("names", "is_coloured"),
    [("", False), ("FORCE_COLOR", True), ("FORCE_COLOR NO_COLOR", False), ("PY_COLORS", True)],
)
def test_the_help_is_coloured_where_pytest_would_colour(names: str, is_coloured: bool):
    env = dict.fromkeys(names.split(), "1")
    done = osmosis("--help", env={"COLUMNS": "20", **env})
    assert done.returncode == 0
    assert ("\x1b[1mOptions:\x1b[0m" in done.stdout) is is_coloured
    assert ("\x1b" in done.stdout) is is_coloured
    wrong = osmosis("evla", env=env)
    assert ("\x1b[31mError:\x1b[0m No such" in wrong.stderr) is is_coloured
    assert "validate" in done.stdout


def test_the_help_is_shown_where_the_terminal_has_ascii_alone():
    done = osmosis("--help", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "validate" in done.stdout


@pytest.mark.parametrize(
    ("does", "printed"),
    [
        ("print('caf\\xe9')", ("caf\\xe9\n", "")),
        ("raise click.ClickException('caf\\xe9')", ("", "Error: caf\\xe9\n")),
    ],
)
def test_a_character_that_the_terminal_lacks_is_escaped(does: str, printed: tuple[str, str]):
    code = (
        "import click, sys\nfrom osmosis_cli.errors import run\n"
        f"@click.command()\ndef command(): {does}\nsys.exit(run(command, []))"
    )
    done = python(code, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.stdout, done.stderr) == printed


def test_control_and_bidirectional_characters_are_escaped():
    assert printable("a\x1b[31m\u202eb\nc é") == "a\\x1b[31m\\u202eb\\nc é"


def test_the_second_distribution_over_osmosis_ai_is_reported(monkeypatch: pytest.MonkeyPatch):
    known = importlib.metadata.version

    def version(name: str) -> str:
        return "0.2.14" if name == "osmosis-ai" else known(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    done = CliRunner().invoke(cli, ["--version"])
    assert "one of the two must go: pip uninstall osmosis-ai" in done.output
    error = ImportError("cannot import name 'Secret' from 'osmosis_ai'")
    assert "one of the two must go" in CliRunner().invoke(_through_run(error)).output


def _through_run(error: BaseException) -> click.Command:
    @click.command()
    def outer() -> None:
        run(ending(error), [])

    return outer


def test_the_installed_command_prints_the_shells_script():
    done = osmosis(env={"_OSMOSIS_COMPLETE": "zsh_source"})
    assert done.returncode == 0
    assert "_OSMOSIS_COMPLETE=zsh_complete osmosis" in done.stdout


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("osmosis val", "validate"),
        ("osmosis eval --pass-t", "--pass-threshold"),
        ("osmosis eval -m server:agent_loop --batch", "--batch-size"),
    ],
)
def test_the_shell_gets_commands_and_options_to_complete_with(
    completed: Callable[[str], list[str]], line: str, expected: str
):
    assert f"plain,{expected}" in completed(line)


def test_the_installed_command_answers_the_shell():
    asked = {"_OSMOSIS_COMPLETE": "bash_complete", "COMP_WORDS": "osmosis val", "COMP_CWORD": "1"}
    done = osmosis(env=asked)
    assert (done.returncode, done.stdout) == (0, "plain,validate\n")


@pytest.fixture
def completed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], list[str]]:
    """The completions that bash gets for the last word of a line."""

    def complete(line: str) -> list[str]:
        monkeypatch.setenv("_OSMOSIS_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        return capsys.readouterr().out.splitlines()

    return complete


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("osmosis eval -d te", "file"),
        ("osmosis eval --run-dir .o", "dir"),
        ("osmosis test --dataset te", "file"),
        ("osmosis serve -m a:b --log tr", "dir"),
        ("osmosis preview --path te", "file"),
    ],
)
def test_the_shell_completes_files_and_folders_itself(
    completed: Callable[[str], list[str]], line: str, kind: str
):
    assert completed(line) == [f"{kind},{line.rpartition(' ')[2]}"]


def test_other_packages_add_commands_that_replace_none_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    points = [
        importlib.metadata.EntryPoint(name, value, "osmosis.commands")
        for name, value in {
            "added": "osmosis_cli.init:init_command",
            "eval": "not_to_be:imported",
            "broken": "not_there:command",
        }.items()
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points)
    entry_points_of.cache_clear()
    try:
        assert run(cli, ["--help"]) == 0
        assert run(cli, ["added", "--help"]) == 0
        out, _ = capsys.readouterr()
    finally:
        entry_points_of.cache_clear()
    assert "added " in out
    assert "broken  (cannot be loaded)" in out
    assert out.count("  eval  ") == 1


def test_a_command_of_the_table_is_found_without_asking_other_packages(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def asked(group: str) -> None:
        raise AssertionError("the entry points of all packages are read")

    monkeypatch.setattr(importlib.metadata, "entry_points", asked)
    entry_points_of.cache_clear()
    assert run(cli, ["init", "--help"]) == 0
    assert "osmosis init" in capsys.readouterr().out
