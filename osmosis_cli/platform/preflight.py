"""What is tried on this machine before a run is submitted: its code is imported, and a row is run.

Each is one process in the environment of the rollout, without the login to the platform. A failure
is a warning: a rollout's packages may exist only on the platform. With `--strict` it forbids to
submit. Sends nothing to the platform.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from osmosis_ai.escaping import printable
from osmosis_ai.secret import Redactor, Secret
from osmosis_ai.secret_variables import SECRET_NAMES, secret_variables

from ..env_file import NO_OPTION
from .findings import Finding, checked, in_order, not_checked, strictly, warning

if TYPE_CHECKING:
    from osmosis_ai.platform.config_file import ConfigFile
    from osmosis_ai.platform.config_models import RunConfig

Command = TypeVar("Command", bound=Callable[..., Any])
ROW_TIMEOUT_S = 30.0
"""Of the agent and of the grader each."""
IMPORT_LIMIT_S = 45.0
"""Longer than the import's own deadline: for code that cannot be interrupted."""
ROW_LIMIT_S = 60.0 + 2 * ROW_TIMEOUT_S
"""Of the process that runs a row."""
_STOPS = ("import", "not_installed", "no_agent", "no_grader", "needs_secret")
"""Codes of findings with which no row can run."""
_NOT_THEIRS = ("OSMOSIS_TOKEN", "PYTEST_ADDOPTS")
"""The login to the platform, and options for sessions of the user's own."""
_MOST = 600
"""Characters of an error that are shown: its beginning, and its end, which names the place."""
_LAST_WORDS = 20_000
_FAILURE = re.compile(r"^(?:FAILED|ERROR) \S+ - (.+)|^ERROR: (.+)", re.MULTILINE)
"""What pytest says of an item that failed, and of an evaluation that cannot be run."""

_CHILD = {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": str(_MOST)}
"""Variables of such a process, which leaves no file behind and cuts no line."""

_OPTIONS = (
    click.option("--strict", is_flag=True, help="Do not submit where trying the code fails."),
    click.option(
        "--preflight",
        "run_row",
        is_flag=True,
        help="First run one row of datasets/ against the embedded endpoint: no model is paid, "
        "unless the grader asks one.",
    ),
    click.option(
        "--no-check", "is_off", is_flag=True, help="Do not even import the rollout's code."
    ),
)


def preflight_options(command: Command) -> Command:
    """Add the options to a command; their values make a `Preflight`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What to try."""

    is_off: bool = False
    strict: bool = False
    """Whether what it finds forbids to submit."""
    run_row: bool = False
    """Whether to run a row against the embedded endpoint."""

    def __post_init__(self) -> None:
        if self.is_off and (self.strict or self.run_row):
            raise click.UsageError("--no-check leaves out what the other options ask for")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    status: int
    out: str
    last_words: str
    """The end of what it wrote on stderr."""
    in_time: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRollout:
    """What is tried."""

    config: RunConfig
    path: Path
    """Of the config file."""
    entrypoint: str
    """From the workspace's root."""
    root: Path
    """The workspace, where its processes run."""
    environment: Mapping[str, str] = field(repr=False)
    redact: Redactor
    missing: Sequence[str]
    """Names of secrets that are not set on this machine."""

    @classmethod
    def of(cls, file: ConfigFile[RunConfig], root: Path) -> TriedRollout:
        """Return the rollout of a config file in a workspace."""
        from osmosis_ai.platform.workspace import ROLLOUTS

        config = file.config
        env = config.env or {}
        required = config.secrets.required if config.secrets else []
        all_names = {**os.environ, **env, **_CHILD}
        environment = {name: all_names[name] for name in all_names if name not in _NOT_THEIRS}
        environment[SECRET_NAMES] = " ".join([environment.get(SECRET_NAMES, ""), *required])
        values = (Secret(value, name) for name, value in env.items() if value)
        return cls(
            config=config,
            path=file.path,
            entrypoint=f"{ROLLOUTS}/{config.experiment.rollout}/{config.experiment.entrypoint}",
            root=root,
            environment=environment,
            redact=Redactor([*secret_variables(*required), *values]),
            missing=[name for name in required if not environment.get(name)],
        )

    def run(self, words: Sequence[str], *, limit_s: float) -> Ended:
        """Run Python with these words; at the limit the process and its children are ended."""
        from pytest_osmosis.user_code.child_process import Program, TooMuchOutput

        last_words: list[str] = []
        argv = [sys.executable, *words]
        program = Program(argv, self.root, self.environment, b"", last_words.append)
        expired = threading.Event()

        def end() -> None:
            expired.set()
            program.kill()

        timer = threading.Timer(limit_s, end)
        timer.daemon = True
        timer.start()
        try:
            result = program.run()
        except TooMuchOutput as error:
            return Ended(1, "", f"it {error}")
        finally:
            timer.cancel()
        text = "".join(last_words)[-_LAST_WORDS:]
        return Ended(result.status, result.stdout, text, not expired.is_set())

    def mask(self, text: str) -> str:
        """Return text from such a process in one printable line, without secrets."""
        line = printable(" ".join(self.redact(text).split()))
        return line if len(line) <= _MOST else f"{line[: _MOST - 150]} ... {line[-150:]}"

    def failed(self, code: str, message: str, cure: str = "") -> Finding:
        """Return the finding of a failure, whose cause may be a secret that is not set here."""
        named = [name for name in self.missing if name in message]
        if not named:
            return warning(code, message, cure)
        return not_checked(
            "needs_secret",
            message,
            f"{', '.join(named)} is not set on this machine; export it or add it to .env",
        )


def try_rollout(
    file: ConfigFile[RunConfig],
    chosen: Preflight,
    *,
    root: Path,
    is_commit: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Return what trying a config's rollout on this machine finds, most important first.

    `is_commit` is whether the files here are those of the commit that is going to run; `report`
    gets a line on what is going on.
    """
    if chosen.is_off:
        return []
    found = list(_findings(TriedRollout.of(file, root), chosen, report))
    if not is_commit:
        found.append(
            not_checked(
                "work_tree",
                "the files here were tried, which are not those of the commit that runs",
            )
        )
    return in_order(strictly(found) if chosen.strict else found)


def _findings(
    rollout: TriedRollout, chosen: Preflight, report: Callable[[str], None]
) -> Iterator[Finding]:
    report(f"importing {printable(rollout.entrypoint)}")
    found = list(_import(rollout))
    yield from found
    if any(finding.code in _STOPS for finding in found):
        return
    if chosen.run_row:
        report("running a row against the embedded endpoint")
        yield run_row(rollout)


def _import(rollout: TriedRollout) -> Iterator[Finding]:
    """Yield what importing the entrypoint finds."""
    words = ["-m", "osmosis_cli.platform.preflight_import", rollout.entrypoint]
    ended = rollout.run(words, limit_s=IMPORT_LIMIT_S)
    entrypoint = printable(rollout.entrypoint)
    found = json.loads(ended.out) if ended.in_time and not ended.status and ended.out else {}
    if not found:
        yield rollout.failed(
            "import", f"{entrypoint} cannot be imported: {rollout.mask(_end(ended))}"
        )
    elif "missing" in found:
        yield _missing_module(rollout, found)
    elif "error" in found:
        what = ": " if found["code"] == "no_agent" else " cannot be imported: "
        yield rollout.failed(found["code"], entrypoint + what + rollout.mask(found["error"]))
    elif not found["is_workflow"]:
        yield rollout.failed(
            "no_workflow",
            f"{entrypoint} defines no AgentWorkflow, which is what a platform runs",
            "derive the agent from osmosis_ai.rollout.AgentWorkflow",
        )
    elif not found["has_grader"]:
        yield rollout.failed(
            "no_grader",
            f"{entrypoint} defines and imports no Grader, so that no run gets a score",
            "derive a class from osmosis_ai.rollout.Grader in that file",
        )


def _missing_module(rollout: TriedRollout, found: Mapping[str, Any]) -> Finding:
    name, where = printable(found["missing"]), printable(found["where"])
    if found["has_package"]:
        return rollout.failed("import", f"{where} imports {name}, which its package does not have")
    project = printable(f"rollouts/{rollout.config.experiment.rollout}/pyproject.toml")
    return not_checked(
        "not_installed",
        f"{where} imports {name}, which is not installed here; the code was not checked",
        f"the platform installs what {project} names",
    )


def _end(ended: Ended) -> str:
    """How a process ended that gave no answer."""
    if not ended.in_time:
        return f"it was not done after {IMPORT_LIMIT_S:g} s"
    how = f"signal {-ended.status}" if ended.status < 0 else f"status {ended.status}"
    words = ended.last_words.strip().splitlines()
    return f"it ended the process ({how}){': ' + words[-1] if words else ''}"


def run_row(rollout: TriedRollout) -> Finding:
    """Return what evaluating the first row of the local dataset finds; no model is paid.

    Neither the project's ini file nor kept runs have a part in it, and nothing is left behind.
    """
    from pytest_osmosis.dataset.formats import SUFFIXES_SHOWN
    from pytest_osmosis.options.config_run import dataset_files

    name = rollout.config.experiment.dataset
    files = dataset_files(rollout.root, name)
    if len(files) != 1:
        what = "more than one file" if files else "no file"
        return warning(
            "rows_not_run",
            f"no row was run: there is {what} of the dataset {printable(name)!r} in datasets/ or "
            "data/",
            f"add one with a few of its rows ({SUFFIXES_SHOWN})",
        )
    ended = _evaluate(rollout, files[0])
    if ended.in_time and ended.status == 0:
        return checked("rows_ran", "1 row ran against the embedded endpoint")
    reason = rollout.mask(_reason(ended))
    if ended.status == 1 and ended.in_time:
        message = f"a row fails against the embedded endpoint ({reason})"
        return rollout.failed("row_failed", message, _cure(rollout))
    return rollout.failed("rows_not_run", f"no row could be run: {reason}")


def _evaluate(rollout: TriedRollout, data: Path) -> Ended:
    """Evaluate one row; the exit status is 0 where it has a score, whatever that is."""
    with tempfile.TemporaryDirectory(prefix="osmosis-preflight-") as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="ascii")
        words = [
            *("-m", "osmosis_cli", "eval", NO_OPTION, "--quiet", "--no-journal", "--no-answers"),
            *(f"--agent={rollout.entrypoint}", f"--data={data.relative_to(rollout.root)}"),
            *("--model=embedded", "--limit=1", "--n=1", "--pass-threshold=-1e300"),
            *(f"--agent-timeout={ROW_TIMEOUT_S}", f"--grader-timeout={ROW_TIMEOUT_S}"),
            *("--", "-c", str(folder / "pytest.ini"), f"--rootdir={rollout.root}"),
            *("-p", "no:cacheprovider", "--tb=no"),
        ]
        return rollout.run(words, limit_s=ROW_LIMIT_S)


def _cure(rollout: TriedRollout) -> str:
    what = printable(str(rollout.path))
    if rollout.config.kind != "evaluation":
        what = f"-m {printable(rollout.entrypoint)} -d datasets/..."
    return f"`osmosis eval {what} --model embedded --limit 1` shows where"


def _reason(ended: Ended) -> str:
    """Return why no row has a score: what pytest said last."""
    if not ended.in_time:
        return "it took too long"
    printed = f"{ended.out}\n{ended.last_words}"
    if found := _FAILURE.findall(printed):
        return "".join(found[-1])
    return (printed.strip().splitlines() or [f"status {ended.status}"])[-1]
