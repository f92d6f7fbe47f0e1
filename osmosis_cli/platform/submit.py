"""`osmosis eval submit` and `osmosis train submit`: a config file, checked, shown and sent.

What is found on the way is one list: refusals end the command before anything is sent, the rest
stands above the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import INTERRUPTED, CommandError
from ..shared_options import json_option, may_ask, print_json, yes_option
from .commit_facts import Finding, commit_facts, read_work_tree, refusal, warning

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient
    from osmosis_ai.platform.config_file import ConfigFile
    from osmosis_ai.platform.config_models import RunConfig

    from .commit_facts import CommitFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPlan:
    """What is about to be submitted, and what was found."""

    kind: RunKind
    file: ConfigFile[RunConfig]
    commit: CommitFacts
    scopes: Mapping[str, str]
    """Of the secrets that the run gets, by name."""
    warnings: Sequence[Finding]


def _submit_command(kind: RunKind) -> click.Command:
    group, folder = kind.group, kind.folder

    @click.command(
        "submit",
        help=f"Submit {kind.article} {kind.noun} to the platform.\n\n"
        "Checks the config file, what of the workspace is pushed, and that the platform has the "
        "secrets; shows what will run, and asks. What runs is a commit of the origin, never the "
        "files here.",
        epilog=f"\b\nExamples:\n  osmosis {group} submit {folder}/my-rollout.toml\n"
        f"  osmosis {group} submit {folder}/my-rollout.toml --yes --json",
    )
    @click.argument("path", metavar="CONFIG", type=click.Path(path_type=Path))
    @yes_option
    @json_option
    def command(path: Path, yes: bool, as_json: bool) -> None:
        from .connection import connect

        file = _load(kind, path)
        facts = read_work_tree(Path.cwd())
        with connect(facts.repository) as client:
            is_cloned_here = not facts.is_pushed and _clones(client, facts.root)
            commit = commit_facts(facts, file.config.experiment, is_cloned_here=is_cloned_here)
            plan = _plan(kind, file, commit, client)
            _check_asking(plan, yes=yes, as_json=as_json)
            if not as_json:
                _show(plan, client.origin)
            if not yes:
                click.confirm("submit it?", abort=True)
            answer = _send(plan, client)
        _report(plan, answer, as_json=as_json)

    return command


def _load(kind: RunKind, path: Path) -> ConfigFile[RunConfig]:
    from osmosis_ai.platform.config_file import ConfigError, load_config
    from osmosis_ai.platform.config_models import CONFIGS

    from .check import unusable

    try:
        return load_config(CONFIGS[kind], path)
    except ConfigError as error:
        raise unusable([error]) from None


def _clones(client: PlatformClient, root: Path) -> bool:
    """Return whether the platform says that it clones this work tree."""
    from osmosis_ai.platform.account import verify
    from osmosis_ai.platform.client import PlatformError

    try:
        folder = verify(client).clone_folder
    except PlatformError:  # what is sent next says what is wrong
        return False
    return bool(folder) and Path(folder).resolve() == root


def _plan(
    kind: RunKind, file: ConfigFile[RunConfig], commit: CommitFacts, client: PlatformClient
) -> SubmissionPlan:
    """Return what would be sent; CommandError with all that refuses it."""
    from osmosis_ai.platform.environment_secrets import resolve_secrets

    required = file.config.secrets.required if file.config.secrets else []
    scopes = resolve_secrets(client, required)
    found = [*_missing([name for name in required if name not in scopes])]
    found += [warning("config", str(problem)) for problem in file.warnings]
    found += commit.findings
    warnings = [finding for finding in found if finding.severity == "warning"]
    refused = [finding for finding in found if finding.severity == "refused"]
    if refused:
        raise CommandError(
            "\n".join(["nothing was submitted", *(f"  {finding}" for finding in refused)])
            if len(refused) > 1
            else f"{refused[0]}; nothing was submitted",
            code=refused[0].code,
            details={"findings": [asdict(finding) for finding in (*refused, *warnings)]},
        )
    return SubmissionPlan(kind=kind, file=file, commit=commit, scopes=scopes, warnings=warnings)


def _check_asking(plan: SubmissionPlan, *, yes: bool, as_json: bool) -> None:
    """Where no question can be asked, say what it would have been about."""
    try:
        may_ask(yes=yes, as_json=as_json)
    except click.UsageError as error:
        what = f"what would run is {plan.commit.described} ({plan.commit.repository})"
        warnings = (f"warning: {finding}" for finding in plan.warnings)
        raise click.UsageError("\n  ".join([error.message, what, *warnings])) from None


def _missing(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        commands = ", ".join(f"`osmosis secret set {name}`" for name in names)
        what = "secret" if len(names) == 1 else "secrets"
        yield refusal(
            "missing_secrets",
            f"the platform does not have the {what} {', '.join(names)}",
            f"run {commands}",
        )


def _show(plan: SubmissionPlan, origin: str) -> None:
    from pytest_osmosis.reports.text_table import columns, wrapped

    from ..eval.lines import say, say_facts

    experiment = plan.file.config.experiment
    say(f"{plan.kind.article} {plan.kind.noun} of {experiment.rollout}")
    say_facts(dict(_facts(plan, origin)))
    for finding in plan.warnings:
        first, *rest = wrapped(f"warning: {finding}", columns())
        say(("warning", "doubt"), first.removeprefix("warning"))
        for line in rest:
            say(line)


def _facts(plan: SubmissionPlan, origin: str) -> Iterator[tuple[str, str]]:
    config = plan.file.config
    experiment = config.experiment
    yield "code", f"{experiment.rollout}/{experiment.entrypoint}"
    yield "commit", f"{plan.commit.described} ({plan.commit.repository})"
    yield "model", experiment.model_path
    yield "dataset", experiment.dataset
    for section, values in config.given().items():
        if section not in ("experiment", "env", "secrets") and values:
            pairs = (f"{name} {value}" for name, value in values.items() if value is not None)
            yield section, ", ".join(pairs)
    if config.env:
        yield "env", ", ".join(config.env)
    if plan.scopes:
        yield "secrets", ", ".join(f"{name} ({scope})" for name, scope in plan.scopes.items())
    yield "platform", origin


def _send(plan: SubmissionPlan, client: PlatformClient) -> dict[str, Any]:
    from osmosis_ai.platform.client import PlatformError
    from osmosis_ai.platform.runs import Runs

    runs = Runs(client, plan.kind)
    perhaps = (
        f"whether it was submitted is not known: look at osmosis {plan.kind.group} list before "
        "you submit it again"
    )
    try:
        answer = runs.submit(plan.file.config.payload())
        if runs.record(answer).label == "?":
            raise client.bad_answer("names no run")
        return answer
    except PlatformError as error:
        if not error.is_ambiguous:
            raise
        text = f"{error}; {perhaps}"
        raise CommandError(text, code=error.code, details=error.document()) from None
    except KeyboardInterrupt:
        text = f"interrupted; {perhaps}"
        raise CommandError(text, code="interrupted", status=INTERRUPTED) from None


def _report(plan: SubmissionPlan, answer: Mapping[str, Any], *, as_json: bool) -> None:
    from osmosis_ai.platform.answers import run_record

    from ..eval.lines import say
    from .run_text import copyable, render

    if as_json:
        document = {
            plan.kind.key: answer,
            "repository": plan.commit.repository,
            "commit": plan.commit.described,
            "commit_sha": plan.commit.pinned,
            "secrets": dict(plan.scopes),
            "findings": [asdict(finding) for finding in plan.warnings],
        }
        print_json(document)
        return
    run = run_record(answer, plan.kind.key)
    say(f"submitted: {render(run.label)}, {render(run.status)}")
    if run.platform_url:
        say(f"  {run.platform_url}")
    say(f"wait for its end: osmosis {plan.kind.group} info {copyable(run)} --watch")


eval_submit_command, train_submit_command = map(_submit_command, (EVALUATION, TRAINING))
