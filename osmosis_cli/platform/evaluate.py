"""`osmosis eval CONFIG.toml`: the evaluation of a config file, on this machine.

Checks the config as `osmosis eval check` does, turns it into options of `osmosis eval`, and becomes
that command: its environment has the config's [env] and secrets, which this process never had.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.secret_variables import SECRET_NAMES
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.features.shards import SHARD_KINDS
from pytest_osmosis.features.table import OPTIONS
from pytest_osmosis.spec import CONFIG_ENV

from ..env_file import NO_OPTION, values_read
from ..errors import CommandDone, CommandError, command_errors
from ..eval.arguments import click_options, own_spellings, translate
from ..eval.command import EVAL, TYPED_VARIABLE, check_key, refuse_unknown, split_at_dashes
from ..option_words import KEY_VARIABLE

if TYPE_CHECKING:
    from pytest_osmosis.features.config_files.config_options import ConfigRun

_TYPED = "osmosis_cli.platform.evaluate.typed"
_EXTRA = "osmosis_cli.platform.evaluate.extra"
REFUSED = 4
"""pytest's status of what cannot be evaluated, as of the other ways to start an evaluation."""

EPILOG = """\b
Examples:
  osmosis eval configs/eval/my-rollout.toml --secrets-file ~/my.secrets
  osmosis eval configs/eval/my-rollout.toml --model embedded --limit 5
"""


RUN_EPILOG = """\b
Example:
  osmosis eval run configs/eval/my-rollout.toml --rows 3,7 --max-in-flight 8
"""
EVALS = ".osmosis/evals"


class ConfigCommand(click.Command):
    """A config file, options of the evaluation, and what goes to pytest behind `--`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Set aside what follows `--`, which click would take for arguments."""
        own, extra = split_at_dashes(args)
        ctx.meta[_EXTRA] = extra
        ctx.meta[_TYPED] = [*EVAL, *(["run"] if self.name == "run" else []), *args]
        try:
            return super().parse_args(ctx, own)
        except click.NoSuchOption as error:
            refuse_unknown(ctx, error, self)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As it is typed."""
        command = "osmosis eval run" if self.name == "run" else "osmosis eval"
        formatter.write_usage(command, "CONFIG.toml [OPTIONS] [-- PYTEST_ARGS]...")


@click.pass_context
def _evaluate(ctx: click.Context, /, **values: Any) -> None:
    """Evaluate what a config file describes, on this machine.

    The rollout, the dataset of the workspace, the model and the values of [evaluation] are taken
    from the file; options beat them. All rows are evaluated unless the file or an option limits
    them. The rollout has the variables of [env]; each name in [secrets] must be set in the
    environment, in --secrets-file or in .env.
    """
    _become(*_prepared(ctx, **values))


def _prepared(
    ctx: click.Context,
    *,
    path: Path,
    dataset_file: str | None,
    secrets_file: Path | None,
    isolated: bool,
    **values: Any,
) -> tuple[list[str], dict[str, str]]:
    """Return the command of the evaluation, and its environment."""
    from pytest_osmosis.features.config_files.config_options import read_config_run

    check_key(values)
    another_model = bool(values["model"])
    with command_errors(ConfigurationError, code="invalid_config", status=REFUSED):
        run = read_config_run(path)
    if not values["data"]:
        with command_errors(ConfigurationError, code="dataset", status=REFUSED):
            values["data"] = (dataset_file or run.dataset_file(option="--dataset-file"),)
    given = [name.replace("_", "-") for name, value in values.items() if value not in (None, ())]
    for name, value in run.options_beside(given).items():
        values[name.replace("-", "_")] = (value,) if name in ("agent", "model") else value
    for kind in SHARD_KINDS:
        if values[kind]:
            values[f"{kind}_env"] = (*values[f"{kind}_env"], *run.env)
    needed = run.needed_secrets(another_model=another_model)
    environment = _environment(run, needed, path, secrets_file, values_read(ctx))
    if values["api_key"]:
        environment[KEY_VARIABLE] = values["api_key"]
        values |= {"api_key": None, "api_key_env": KEY_VARIABLE}
    environment[TYPED_VARIABLE] = json.dumps(ctx.meta[_TYPED])
    words = [*_words(values), *(["--", *ctx.meta[_EXTRA]] if ctx.meta[_EXTRA] else [])]
    python = sys.executable
    if isolated:
        from .isolated import environment_of

        home = environment_of(run)
        python = str(home / "bin" / "python")
        # What is kept of another environment is another evaluation's.
        environment |= {
            "VIRTUAL_ENV": str(home),
            CONFIG_ENV: f"{environment[CONFIG_ENV]} VIRTUAL_ENV".strip(),
        }
    return [python, "-m", "osmosis_cli", "eval", NO_OPTION, *words], environment


@click.pass_context
def _run(
    ctx: click.Context,
    /,
    path: Path,
    name: str | None,
    folder: Path | None,
    max_in_flight: str | None,
    yes: bool,
    upload: bool,
    **values: Any,
) -> None:
    """Evaluate what a config file describes, as `osmosis eval CONFIG.toml` does.

    The results also go into a folder as osmosis-ai lays them out: metrics.json, index.jsonl,
    summary.jsonl, logs.txt and trajectories/, and there are the report and the config file, which
    `osmosis eval upload` takes. It asks nothing, and needs a login for --upload alone.
    """
    from .upload import CONFIG, REPORT, check_login, upload_after

    if name is not None and (name == ".." or Path(name).name != name):
        raise CommandError(
            f"--name {name!r}: expected the name of a folder in {EVALS}; -o DIR is any other",
            code="usage",
            status=REFUSED,
        )
    if max_in_flight is not None and values["batch_size"] is not None:
        raise CommandError(
            "--max-in-flight and --batch-size are the same: give one of them",
            code="usage",
            status=REFUSED,
        )
    if upload:
        check_login()
    if folder is None or name is not None:
        folder = Path(folder or EVALS, name or path.stem)
    values["metrics"] = values["metrics"] or str(folder / "metrics.json")
    values["batch_size"] = values["batch_size"] or max_in_flight
    words, environment = _prepared(ctx, path=path, output=str(folder / REPORT), **values)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / CONFIG)
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}", code="usage", status=REFUSED) from None
    if not upload:
        _become(words, environment)
        return
    status = _wait(words, environment)
    upload_after(folder, status, [environment.get(each, "") for each in _secret_names(environment)])
    raise CommandDone(status)


def _secret_names(environment: Mapping[str, str]) -> list[str]:
    return environment.get(SECRET_NAMES, "").split()


def _wait(words: list[str], environment: Mapping[str, str]) -> int:
    """Run the evaluation beside this process, which passes signals on; return its status."""
    import signal
    import subprocess

    sys.stdout.flush()
    sys.stderr.flush()
    child = subprocess.Popen(words, env=environment)
    before = {
        # A terminal sends the first one to both.
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda *_: child.terminate()),
    }
    try:
        status = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _become(words: list[str], environment: Mapping[str, str]) -> None:
    """Replace this process: signals, terminal and exit status are the evaluation's."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(words[0], words, environment)


config_command = ConfigCommand(
    "CONFIG",
    callback=_evaluate,
    help=_evaluate.__doc__,
    epilog=EPILOG,
    params=[
        click.Argument(["path"], metavar="CONFIG", type=click.Path(path_type=Path)),
        click.Option(
            ["--dataset-file"],
            metavar="FILE",
            help="The rows, instead of datasets/NAME.* in the workspace.",
        ),
        click.Option(
            ["--secrets-file"],
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Values of secrets, as NAME=value lines (.env).",
        ),
        click.Option(
            ["--isolated"],
            is_flag=True,
            help="In an environment of its own, by the rollout's pyproject.toml; needs uv.",
        ),
        *click_options(),
    ],
)


_OUTPUT = "output"
run_command = ConfigCommand(
    "run",
    callback=_run,
    help=_run.__doc__,
    epilog=RUN_EPILOG,
    params=[
        *(each for each in config_command.params if each.name != _OUTPUT),
        click.Option(
            ["--name"],
            metavar="NAME",
            help=f"The folder's name in {EVALS}, or in -o DIR; the config file's unless given.",
        ),
        click.Option(
            ["-o", "--output", "folder"],
            metavar="DIR",
            type=click.Path(path_type=Path, file_okay=False),
            help=f"The folder of the results, not {EVALS}/NAME; with --name the one around it.",
        ),
        click.Option(["--max-in-flight"], metavar="N", help="The same as --batch-size."),
        click.Option(
            ["--upload"],
            is_flag=True,
            help="Upload the results to the platform once all runs have ended.",
        ),
        click.Option(["-y", "--yes"], is_flag=True, help="Nothing is asked anyway."),
    ],
)
"""`osmosis eval run`, as workspaces of osmosis-ai 0.3 have it."""


def _environment(
    run: ConfigRun,
    needed: Sequence[str],
    path: Path,
    secrets_file: Path | None,
    from_env_file: Mapping[str, str],
) -> dict[str, str]:
    """The child's variables: [env] over the environment over the file of secrets over `.env`."""
    from ..credentials.store import TOKEN

    secrets = {} if secrets_file is None else _secrets(secrets_file)
    own = {name: value for name, value in os.environ.items() if name not in from_env_file}
    environment = {**from_env_file, **secrets, **own, **run.env}
    environment[SECRET_NAMES] = " ".join([*environment.get(SECRET_NAMES, "").split(), *run.secrets])
    environment[CONFIG_ENV] = " ".join(run.env)
    missing = [name for name in needed if not environment.get(name)]
    if missing:
        where = f" and not in {secrets_file}" if secrets_file else ""
        instead = "" if secrets_file else ", or give --secrets-file FILE"
        raise CommandError(
            f"{path} names secrets that are not set in the environment{where}: "
            f"{', '.join(missing)}; export them{instead}",
            code="missing_secrets",
            status=REFUSED,
            details={"missing": missing},
        )
    environment.pop(TOKEN, None)  # the rollout's code needs no login to the platform
    return environment


def _secrets(file: Path) -> Mapping[str, str]:
    from osmosis_ai.platform import env_file

    from ..eval.lines import tell

    where = "--secrets-file: "
    with command_errors(env_file.EnvFileError, code="failed", status=REFUSED, where=where):
        found = env_file.read(file, interpolate=False)
    for line in found.wrong_lines:
        where = f"--secrets-file {file}: line {line}"
        tell(f"warning: {where} is no NAME=value, and is left out")
    return found.values


def _words(values: Mapping[str, Any]) -> Iterator[str]:
    """The options of `osmosis eval` that have these values."""
    for option in OPTIONS:
        value = values.get(option.name.replace("-", "_"))
        yield from translate(option, value, own_spellings(option)[-1])
    for switch in ("quiet", "debug", "as_json"):
        if values.get(switch):
            yield f"--{switch.removeprefix('as_')}"
