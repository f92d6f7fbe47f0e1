"""`osmosis test`: an agent on the rows of a dataset, without scoring it.

Prints a line for each row. The options are the plugin's, with their names and checks.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.models.errors import clip
from osmosis_ai.secret import Secret, mask_everywhere
from pytest_osmosis.escaping import counted
from pytest_osmosis.features.table import OPTIONS, Option
from pytest_osmosis.options.values import template_of
from pytest_osmosis.rollouts.failure_text import conversation

from ..errors import CommandError, command_errors, wrong_use
from ..eval.arguments import DEBUG_DIR, help_text, own_spellings
from ..eval.command import KEY_WARNING
from ..eval.lines import say
from ..shared_options import (
    COMPLETIONS,
    MCP_HELP,
    check_output,
    complete_folders,
    print_json,
    require_agent,
    write_json,
)
from .validate import import_agent

if TYPE_CHECKING:
    from pytest_osmosis.dataset.dataset import Dataset
    from pytest_osmosis.run_result import RolloutRecord, RunResult
    from pytest_osmosis.spec import ModelSpec
    from pytest_osmosis.user_code.agent import Agent

    from .rollouts import Trial

NEEDED = ("data",)
DEFAULT_MODEL = "gpt-5-mini"
"""Of OpenAI; at a base URL the model of that name."""
_MODEL_HELP = f" Default, where OPENAI_API_KEY is set: openai/{DEFAULT_MODEL}."
SAMPLING = ("temperature", "max_tokens", "top_p")
ACCEPTED = (
    *NEEDED, "model", "base-url", "api-key-env", "api-key", "max-turns", "temperature",
    "max-tokens", "top-p", "seed", "batch-size", "map", "prompt-template", "where",
    "limit", "offset", "rows", "sample", "sample-seed", "agent-timeout", "import-timeout",
    "debug-dir",
)  # fmt: skip
"""The plugin's options that apply without scores."""

EPILOG = """\b
Examples:
  osmosis test -m server:agent_loop -d test_data.jsonl --model embedded
  osmosis test -m server:agent_loop -d test_data.jsonl -o results.json
  osmosis test -m server:agent_loop -d test_data.jsonl --limit 5 \\
      --model my-model --base-url http://localhost:8000/v1
"""


def _parameters() -> list[click.Parameter]:
    by_name = {option.name: option for option in OPTIONS}
    return [
        _parameter(by_name["agent"]),
        click.Option(["--mcp"], metavar="DIR", shell_complete=complete_folders, help=MCP_HELP),
        *(_parameter(by_name[name]) for name in ACCEPTED),
        click.Option(
            ["--row"],
            metavar="N",
            callback=_checked(by_name["rows"]),
            help="Only this row, by its index, as --rows does.",
        ),
        click.Option(
            ["-o", "--output"],
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="Write the results to this file, as JSON.",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="Print rows in error, and the sum."),
        click.Option(
            ["--debug"],
            is_flag=True,
            help=f"Print each message of each row, and write the agent's events to {DEBUG_DIR} "
            "unless --debug-dir names another place.",
        ),
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
    ]


def _parameter(option: Option) -> click.Option:
    return click.Option(
        [option.name.replace("-", "_"), *own_spellings(option)],
        metavar=option.metavar,
        required=option.name in NEEDED,
        multiple=_is_repeatable(option),
        callback=_checked(option),
        shell_complete=COMPLETIONS.get(option.metavar or ""),
        help=help_text(option) + (_MODEL_HELP if option.name == "model" else ""),
    )


def _is_repeatable(option: Option) -> bool:
    return option.repeatable and option.name not in (*NEEDED, "agent", "model")  # one of each


def _checked(option: Option) -> Any:
    def parsed(value: str) -> Any:
        try:
            return option.parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{value!r}: {error}") from None

    def check(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value is None:
            return option.default
        return tuple(map(parsed, value)) if _is_repeatable(option) else parsed(value)

    return check


@click.pass_context
def _test(
    ctx: click.Context,
    /,
    output: Path | None,
    quiet: bool,
    debug: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run an agent on the rows of a dataset and show the result of each, without scoring it.

    Each row is one rollout and prints one line. The exit status is 1 when one ended in an error.
    """
    from .rollouts import run_rows

    row = given.pop("row")
    given["rows"] = given["rows"] or row
    given["agent"] = require_agent(given["agent"], given.pop("mcp"))
    if output is not None:
        check_output(output, "-o/--output")
    if debug:
        given["debug_dir"] = given["debug_dir"] or DEBUG_DIR
    trial = _trial(given)
    if given["model"] is None and "endpoint" in trial.agent.reach and not as_json:
        click.echo(f"model: {trial.spec.model.model}; --model names another", err=True)
    ended: list[RolloutRecord] = []

    def note(record: RolloutRecord) -> None:
        ended.append(record)
        if not as_json and not (quiet and record.result.success):
            say(result_line(trial.row_name(record), record.result))
        if debug and not as_json:
            say(conversation(record.messages, limit=None))

    run_rows(trial, trial.dataset.row_indices, note)
    ended.sort(key=lambda one: one.result.row_index)
    document = trial.document(ended)
    if output is not None:
        write_json(output, document)
    failed = [one for one in ended if not one.result.success]
    if as_json:
        if failed:
            raise CommandError(
                f"{len(failed)} of {len(ended)} rollouts ended in an error; the first: "
                f"{trial.row_name(failed[0])}: {failed[0].result.error}",
                details=document,
            )
        print_json(document)
        return
    say(_summary(trial, ended, failed))
    if output is not None:
        say(f"results: {output}")
    if failed:
        ctx.exit(1)


test_command = click.Command(
    "test", callback=_test, params=_parameters(), help=_test.__doc__, epilog=EPILOG
)


def _trial(given: dict[str, Any]) -> Trial:
    from pytest_osmosis.api_keys import key_of, key_variables, secrets_of
    from pytest_osmosis.dataset.errors import DatasetError
    from pytest_osmosis.errors import ConfigurationError
    from pytest_osmosis.spec import EvalSpec, SessionSpec
    from pytest_osmosis.user_code.import_object import ImportingError

    from .rollouts import Trial

    model = _model(given)
    dataset = _dataset(given)
    spec = EvalSpec(
        name=given["data"],
        agent=given["agent"],
        data=Path(given["data"]),
        model=model,
        max_turns=given["max_turns"],
        agent_timeout_s=given["agent_timeout"],
        scored_by_test=True,  # nothing is scored
    )
    session = SessionSpec(batch_size=given["batch_size"] or 1, debug_dir=given["debug_dir"])
    with command_errors(ImportingError, ConfigurationError, code="usage", status=2):
        kept = key_variables(replace(session, evals=(spec,)))
        withheld = replace(session, key_variables=kept).withheld
        with redirect_stdout(sys.stderr):  # what the module prints at import
            agent = import_agent(given["agent"], given["import_timeout"], withheld=withheld).agent
        _check_reach(given, agent)
        is_asked = "endpoint" in agent.reach
        if is_asked and not (given["model"] or os.environ.get("OPENAI_API_KEY")):
            raise wrong_use(
                "which model? name it with --model: embedded needs no key; "
                f"or set OPENAI_API_KEY for openai/{DEFAULT_MODEL}"
            )
        if is_asked:
            key_of(model)
        else:
            model = replace(model, model=given["model"] or "").for_agent(
                takes_name="model" in agent.reach, is_asked=False
            )
    with command_errors(DatasetError, code="usage", status=2):
        needs_task = agent.takes == "task"
        dataset.refuse_for(given["agent"], takes=agent.takes, needs_task=needs_task)
    mask_everywhere(*secrets_of(model))
    return Trial(agent=agent, dataset=dataset, spec=replace(spec, model=model), session=session)


def _check_reach(given: dict[str, Any], agent: Agent) -> None:
    """Refuse an option that changes nothing of what this agent is given."""
    from pytest_osmosis.options.effects import unreached

    for option in OPTIONS:
        value = given.get(option.name.replace("-", "_"), option.default)
        part = option.reaches
        if part is not None and part not in agent.reach and value != option.default:
            raise wrong_use(f"--{option.name} {unreached(given['agent'], part)}")


def _model(given: dict[str, Any]) -> ModelSpec:
    from osmosis_ai.models.transport.base_url import split_query
    from pytest_osmosis.spec import ModelSpec

    base_url, query, key = given["base_url"], None, given["api_key"]
    if base_url is not None:
        with command_errors(ValueError, code="usage", status=2, where="--base-url: "):
            base_url, query = split_query(base_url)
    if key is not None:
        click.echo(KEY_WARNING, err=True)
    return ModelSpec(
        model=given["model"] or (DEFAULT_MODEL if base_url else f"openai/{DEFAULT_MODEL}"),
        base_url=base_url,
        query=query,
        api_key_env=given["api_key_env"] or ("OPENAI_API_KEY" if base_url else None),
        api_key_env_named=given["api_key_env"] is not None,
        api_key=None if key is None else Secret(key, name="--api-key"),
        sampling={name: given[name] for name in SAMPLING if given[name] is not None},
        seed=given["seed"],
    )


def _dataset(given: dict[str, Any]) -> Dataset:
    from pytest_osmosis.dataset.columns import mapping_of
    from pytest_osmosis.dataset.dataset import load_dataset
    from pytest_osmosis.dataset.errors import DatasetError
    from pytest_osmosis.features.hub.files import local_file

    others = [name for name in ("limit", "offset", "sample") if given[name]]
    if given["rows"] and others:
        raise wrong_use(f"--rows and --{others[0]} both say which rows: give one of them")
    template = given["prompt_template"]
    if template is not None:
        with command_errors(ValueError, code="usage", status=2, where="--prompt-template: "):
            template = template_of(template, Path)
    try:
        return load_dataset(
            local_file(Path(given["data"]).expanduser()),
            offset=given["offset"],
            limit=given["limit"],
            rows=given["rows"],
            mapping=mapping_of(given["map"]),
            template=template,
            where=given["where"],
            sample=given["sample"],
            sample_seed=given["sample_seed"],
        )
    except DatasetError as error:
        raise wrong_use(f"-d/--data {error}") from None
    except ValueError as error:
        raise wrong_use(f"--map: {error}") from None


def result_line(row: str, run: RunResult) -> str:
    """Return a result on one line; on a terminal the answer, never an error, is cut to fit."""
    status = "COMPLETED" if run.success else "ERROR"
    calls = counted(run.llm_calls, "call")
    tokens = "? tokens" if run.tokens is None else f"{run.tokens:,} tokens"
    head = f"{row:<10}{status:<11}{calls:<9}{tokens:<14}{run.duration_ms / 1000:6.2f} s  "
    room = shutil.get_terminal_size().columns - len(head) if sys.stdout.isatty() else 100
    limit = max(20, min(100, room))
    error = clip(run.error or "no reason given")
    return f"{head}{clip(run.answer or '', limit) if run.success else error}".rstrip()


def _summary(trial: Trial, ended: list[RolloutRecord], failed: list[RolloutRecord]) -> str:
    tokens = [one.result.tokens for one in ended if one.result.tokens is not None]
    parts = [counted(len(ended), "rollout"), f"{len(ended) - len(failed)} completed"]
    if failed:
        parts.append(f"{len(failed)} in error")
    if left := len(trial.dataset) - len(ended):
        parts.append(f"{left} not run")
    parts.append(f"{sum(tokens):,} tokens" if len(tokens) == len(ended) else "tokens unknown")
    return "\n" + ", ".join(parts)
