"""What is tried on this machine before a run is submitted: the rollout's code is imported.

A process in the environment of the rollout does so, without the login to the platform. A failure
is a warning: a rollout's packages may exist only on the platform. With `--strict` it forbids to
submit. Sends nothing to the platform. The process runs this module, and prints a problem as JSON:

    python -m osmosis_cli.platform.preflight rollouts/my-rollout/main.py
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from osmosis_ai.escaping import printable
from osmosis_ai.secret import Redactor, Secret
from osmosis_ai.secret_variables import SECRET_NAMES, secret_variables

from .findings import Finding, in_order, not_checked, strictly, warning

if TYPE_CHECKING:
    from osmosis_ai.platform.config_file import ConfigFile
    from osmosis_ai.platform.config_models import RunConfig

Command = TypeVar("Command", bound=Callable[..., Any])
IMPORT_LIMIT_S = 45.0
"""Longer than the import's own deadline: for code that cannot be interrupted."""
_DEADLINE_S = 30.0
_NOT_THEIRS = ("OSMOSIS_TOKEN", "PYTEST_ADDOPTS")
"""The login to the platform, and options for sessions of the user's own."""
_MOST = 600
"""Characters of an error that are shown: its beginning, and its end, which names the place."""
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+)')
_PLACE = re.compile(r"\((.+):(\d+)\)")


def preflight_options(command: Command) -> Command:
    """Add the options to a command; their values make a `Preflight`."""
    no_check = click.option(
        "--no-check", "is_off", is_flag=True, help="Do not even import the rollout's code."
    )
    strict = click.option(
        "--strict", is_flag=True, help="Do not submit where importing the code fails."
    )
    return strict(no_check(command))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What to try."""

    is_off: bool = False
    strict: bool = False
    """Whether what it finds forbids to submit."""

    def __post_init__(self) -> None:
        if self.is_off and self.strict:
            raise click.UsageError("--no-check leaves out what --strict asks for")


def try_rollout(
    file: ConfigFile[RunConfig],
    chosen: Preflight,
    *,
    root: Path,
    is_commit: bool = True,
    report: Callable[[str], None] = lambda line: None,
) -> list[Finding]:
    """Return what importing a config's rollout on this machine finds, most important first.

    `is_commit` is whether the files here are those of the commit that is going to run; `report`
    gets a line on what is going on.
    """
    from osmosis_ai.platform.workspace import ROLLOUTS

    if chosen.is_off:
        return []
    experiment = file.config.experiment
    entrypoint = f"{ROLLOUTS}/{experiment.rollout}/{experiment.entrypoint}"
    report(f"importing {printable(entrypoint)}")
    problem = _import(file.config, root, entrypoint)
    found = [] if problem is None else [problem]
    if not is_commit:
        what = "the files here were tried, which are not those of the commit that runs"
        found.append(not_checked("work_tree", what))
    return in_order(strictly(found) if chosen.strict else found)


def _import(config: RunConfig, root: Path, entrypoint: str) -> Finding | None:
    env = config.env or {}
    required = config.secrets.required if config.secrets else []
    variables = {**os.environ, **env, "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {name: variables[name] for name in variables if name not in _NOT_THEIRS}
    environment[SECRET_NAMES] = " ".join([environment.get(SECRET_NAMES, ""), *required])
    values = (Secret(value, name) for name, value in env.items() if value)
    redact = Redactor([*secret_variables(*required), *values])
    found = _run(root, environment, entrypoint)
    if found is None:
        return None
    line = printable(" ".join(redact(found["message"]).split()))
    line = line if len(line) <= _MOST else f"{line[: _MOST - 150]} ... {line[-150:]}"
    cure = found.get("cure", "")
    if named := [name for name in required if not environment.get(name) and name in line]:
        cure = f"{', '.join(named)} is not set on this machine; export it or add it to .env"
        return not_checked("needs_secret", line, cure)
    kind = not_checked if found["code"] == "not_installed" else warning
    return kind(found["code"], line, cure)


def _run(root: Path, environment: dict[str, str], entrypoint: str) -> dict[str, Any] | None:
    """Return the problem that a process finds; at the limit it is ended with its children."""
    from pytest_osmosis.user_code.child_process import Program, TooMuchOutput

    last_words: list[str] = []
    words = [sys.executable, "-m", __name__, entrypoint]
    program = Program(words, root, environment, b"", last_words.append)
    expired = threading.Event()

    def end() -> None:
        expired.set()
        program.kill()

    timer = threading.Timer(IMPORT_LIMIT_S, end)
    timer.daemon = True
    timer.start()
    try:
        result = program.run()
        if result.stdout and not result.status:
            found: dict[str, Any] | None = json.loads(result.stdout)
            return found
        how = f"signal {-result.status}" if result.status < 0 else f"status {result.status}"
        last = "".join(last_words).strip().splitlines()[-1:]
        why = ": ".join([f"it ended the process ({how})", *last])
    except TooMuchOutput as error:
        why = f"it {error}"
    finally:
        timer.cancel()
    if expired.is_set():
        why = f"it was not done after {IMPORT_LIMIT_S:g} s"
    return {"code": "import", "message": f"{entrypoint} cannot be imported: {why}"}


# ---- the process


def main(entrypoint: str) -> None:
    """Print the problem, or null, on what was stdout when the process began."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what user code prints, in C too
    problem = _problem(entrypoint)
    with open(answers, "w", encoding="ascii") as stream:
        json.dump(problem, stream)


def _problem(entrypoint: str) -> dict[str, str] | None:
    from pytest_osmosis.user_code.import_object import (
        ImportingError,
        MissingModuleError,
        load_module,
    )
    from pytest_osmosis.user_code.load_agent import AGENT, load_agent, load_grading
    from pytest_osmosis.user_code.user_hooks import UserHooks
    from pytest_osmosis.user_code.workflow import WorkflowAgent

    roots = (Path.cwd(),)
    code, cannot = "import", " cannot be imported"
    try:
        load_module(entrypoint, option=AGENT, roots=roots, deadline_s=_DEADLINE_S)
        code, cannot = "no_agent", ""
        loaded = load_agent(entrypoint, roots=roots, hooks=UserHooks())
        grading = load_grading(None, loaded, agent=entrypoint, roots=roots)
    except MissingModuleError as error:
        return _missing_module(error.name, str(error), entrypoint)
    except ImportingError as error:
        told = _shorten(str(error), entrypoint)
        return {"code": code, "message": f"{entrypoint}{cannot}: {told}"}
    if not isinstance(loaded.agent, WorkflowAgent):
        message = f"{entrypoint} defines no AgentWorkflow, which is what a platform runs"
        cure = "derive the agent from osmosis_ai.rollout.AgentWorkflow"
        return {"code": "no_workflow", "message": message, "cure": cure}
    if grading is None:
        message = f"{entrypoint} defines and imports no Grader, so that no run gets a score"
        cure = "derive a class from osmosis_ai.rollout.Grader in that file"
        return {"code": "no_grader", "message": message, "cure": cure}
    return None


def _missing_module(name: str, text: str, entrypoint: str) -> dict[str, str]:
    place = _PLACE.search(text)
    where = f"{os.path.relpath(place[1])}:{place[2]}" if place else entrypoint
    package = name.partition(".")[0]
    if package in sys.modules or importlib.util.find_spec(package):
        message = f"{where} imports {name}, which its package does not have"
        return {"code": "import", "message": message}
    message = f"{where} imports {name}, which is not installed here; the code was not checked"
    cure = "the platform installs what the rollout's pyproject.toml names"
    return {"code": "not_installed", "message": message, "cure": cure}


def _shorten(message: str, entrypoint: str) -> str:
    """The message without the option that it begins with; of a traceback, its end."""
    message = message.removeprefix(f"--osmosis-agent {entrypoint!r}: ").partition("; name ")[0]
    lines = message.splitlines()
    frames = [(at, match) for at, line in enumerate(lines) if (match := _FRAME.match(line))]
    if not frames:
        return " ".join(lines)
    at, frame = frames[-1]
    raised = list(dropwhile(lambda line: line.startswith("    "), lines[at + 1 :]))
    text = " ".join(raised) or lines[0].removesuffix("; it was at:")
    return f"{text} ({os.path.relpath(frame['file'])}:{frame['line']})"


if __name__ == "__main__":
    main(sys.argv[1])
