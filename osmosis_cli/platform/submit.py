"""`osmosis eval submit` and `osmosis train submit`: a config file, checked, shown and sent.

What is found on the way is one list: refusals end the command before anything is sent, the rest
stands above the question.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from osmosis_ai.platform.run_kinds import EVALUATION, TRAINING, RunKind

from ..errors import INTERRUPTED, CommandError
from ..shared_options import complete_files
from .commit_facts import commit_facts, read_work_tree
from .findings import Finding, Severity, in_order, refusal, warning
from .preflight import Preflight, preflight_options, try_rollout
from .run_commands import json_option, may_ask, yes_option

if TYPE_CHECKING:
    from osmosis_ai.platform.client import PlatformClient
    from osmosis_ai.platform.config_file import ConfigFile
    from osmosis_ai.platform.config_models import RunConfig
    from osmosis_ai.platform.git import GitFacts
    from pytest_osmosis.reports.line_markup import Style

    from .commit_facts import CommitFacts

_NO_DATASET = "dataset"
"""The code of a warning: a platform may have datasets that it does not list."""
_LABELS: Mapping[Severity, tuple[str, Style]] = {
    Severity.WARNING: ("warning", "doubt"),
    Severity.NOT_CHECKED: ("not checked", "plain"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionPlan:
    """What is about to be submitted, and what was found."""

    kind: RunKind
    file: ConfigFile[RunConfig]
    commit: CommitFacts
    scopes: Mapping[str, str]
    """Of the secrets that the run gets, by name."""
    findings: Sequence[Finding]


def _submit_command(kind: RunKind) -> click.Command:
    group, folder = kind.group, f"configs/{kind.folder}"

    @click.command(
        "submit",
        help=f"Submit {kind.article} {kind.noun} to the platform.\n\n"
        "Checks the config file, what of the workspace is pushed, and that the platform has the "
        "secrets, and imports the rollout's code in a process of its own; shows what will run, "
        "and asks. What runs is a commit of the origin, never the files here.",
        epilog=f"\b\nExamples:\n  osmosis {group} submit {folder}/my-rollout.toml\n"
        f"  osmosis {group} submit {folder}/my-rollout.toml --strict\n"
        f"  osmosis {group} submit {folder}/my-rollout.toml --yes --json",
    )
    @click.argument(
        "path", metavar="CONFIG", type=click.Path(path_type=Path), shell_complete=complete_files
    )
    @yes_option
    @preflight_options
    @json_option
    def command(path: Path, yes: bool, as_json: bool, **tried: Any) -> None:
        preflight = Preflight(**tried)
        file = _load(kind, path)
        facts = read_work_tree(Path.cwd())
        with _describing(facts, file):
            may_ask(yes=yes, as_json=as_json)
        with _plan(kind, file, facts, preflight, is_silent=as_json, asks=not yes) as planned:
            plan, client = planned
            if not as_json:
                _show(plan, client.origin)
            if not yes:
                click.confirm("submit it?", abort=True)
            answer = _send(plan, client)
        _report(plan, answer, as_json=as_json)

    return command


def _load(kind: RunKind, path: Path) -> ConfigFile[RunConfig]:
    from osmosis_ai.platform.config_file import ConfigError, load_config

    from .check import model_of, unusable

    try:
        return load_config(model_of(kind), path)
    except ConfigError as error:
        raise unusable([error]) from None


@contextmanager
def _describing(facts: GitFacts, file: ConfigFile[RunConfig]) -> Iterator[None]:
    """Have a wrong use of the command say what would run, as the question would."""
    from .connection import connect

    try:
        yield
    except click.UsageError as error:
        is_cloned_here = False
        with suppress(CommandError):
            if not facts.is_pushed:
                with connect(facts.repository) as client:
                    is_cloned_here = _clones(client, facts.root)
        commit = commit_facts(facts, file.config.experiment, is_cloned_here=is_cloned_here)
        _refuse(commit.findings)
        what = f"what would run is {commit.described} ({commit.repository})"
        found = [f"{_LABELS[each.severity][0]}: {each}" for each in in_order(commit.findings)]
        raise click.UsageError("\n  ".join([error.message, what, *found])) from None


def _clones(client: PlatformClient, root: Path) -> bool:
    """Return whether the platform says that it clones this work tree."""
    from osmosis_ai.platform.account import verify
    from osmosis_ai.platform.client import PlatformError

    try:
        folder = verify(client).clone_folder
    except PlatformError:  # what is sent next says what is wrong
        return False
    return bool(folder) and Path(folder).resolve() == root


@contextmanager
def _plan(
    kind: RunKind,
    file: ConfigFile[RunConfig],
    facts: GitFacts,
    preflight: Preflight,
    *,
    is_silent: bool,
    asks: bool,
) -> Iterator[tuple[SubmissionPlan, PlatformClient]]:
    """The plan, and the connection by which it is sent; CommandError for what refuses it."""
    from osmosis_ai.platform.environment_secrets import resolve_secrets

    from .connection import connect

    with connect(facts.repository) as client:
        is_cloned_here = not facts.is_pushed and _clones(client, facts.root)
        commit = commit_facts(facts, file.config.experiment, is_cloned_here=is_cloned_here)
        required = file.config.secrets.required if file.config.secrets else []
        scopes = resolve_secrets(client, required)
        missing = [name for name in required if name not in scopes]
        config = [warning("config", str(problem)) for problem in file.warnings]
        found = [*_missing(missing), *config, *commit.findings]
        if asks or _refused(found):  # else the answer to the submission says it as early
            found += _dataset_findings(client, file.config.experiment.dataset)
        _refuse(found)
        found = in_order([*_try(file, commit, preflight, is_silent=is_silent), *found])
        _refuse(found)
        plan = SubmissionPlan(kind=kind, file=file, commit=commit, scopes=scopes, findings=found)
        yield plan, client


def _try(
    file: ConfigFile[RunConfig], commit: CommitFacts, preflight: Preflight, *, is_silent: bool
) -> list[Finding]:
    """Return what trying the rollout on this machine finds."""
    from ..eval.lines import LiveLine

    with LiveLine(is_silent=is_silent) as live:
        return try_rollout(
            file,
            preflight,
            root=commit.root,
            is_commit=commit.is_here,
            report=lambda line: live.show(f"{line} ...", line),
        )


def _missing(names: Sequence[str]) -> Iterator[Finding]:
    if names:
        commands = ", ".join(f"`osmosis secret set {name}`" for name in names)
        what = "secret" if len(names) == 1 else "secrets"
        yield refusal(
            "missing_secrets",
            f"the platform does not have the {what} {', '.join(names)}",
            f"run {commands}",
        )


def _dataset_findings(client: PlatformClient, name: str) -> Iterator[Finding]:
    from .dataset import is_missing

    if is_missing(client, name):
        yield warning(
            _NO_DATASET,
            f"the platform lists no dataset {name!r}",
            "upload it with `osmosis dataset upload FILE`",
        )


def _refused(findings: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity is Severity.REFUSED]


def _refuse(findings: Sequence[Finding]) -> None:
    """Raise CommandError with every finding that forbids to send, and what else is missing."""
    refused = _refused(findings)
    if not refused:
        return
    findings = in_order(findings)
    missing = [*refused, *(finding for finding in findings if finding.code == _NO_DATASET)]
    raise CommandError(
        "\n".join(["nothing was submitted", *(f"  {finding}" for finding in missing)])
        if len(missing) > 1
        else f"{refused[0]}; nothing was submitted",
        code=refused[0].code,
        details={"findings": [finding.document() for finding in findings]},
    )


def _show(plan: SubmissionPlan, origin: str) -> None:
    from pytest_osmosis.reports.text_table import columns, wrapped

    from ..eval.lines import say, say_facts

    experiment = plan.file.config.experiment
    say(f"{plan.kind.article} {plan.kind.noun} of {experiment.rollout}")
    say_facts(dict(_facts(plan, origin)))
    for finding in plan.findings:
        label, style = _LABELS[finding.severity]
        first, *rest = wrapped(f"{label}: {finding}", columns())
        say((label, style), first.removeprefix(label))
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
            "findings": [finding.document() for finding in plan.findings],
        }
        click.echo(json.dumps(document))
        return
    run = run_record(answer, plan.kind.key)
    say(f"submitted: {render(run.label)}, {render(run.status)}")
    if run.platform_url:
        say(f"  {run.platform_url}")
    say(f"wait for its end: osmosis {plan.kind.group} info {copyable(run)} --watch")


eval_submit_command, train_submit_command = map(_submit_command, (EVALUATION, TRAINING))
