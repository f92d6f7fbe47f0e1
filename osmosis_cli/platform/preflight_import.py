"""Runs in a child process: imports a rollout's entrypoint and prints what it found, as JSON.

    python -m osmosis_cli.platform.preflight_import rollouts/my-rollout/main.py

What the imported code prints goes to stderr. Knows no config file and judges nothing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from itertools import dropwhile
from pathlib import Path
from typing import Any

from pytest_osmosis.user_code.import_object import ImportingError, MissingModuleError, load_module
from pytest_osmosis.user_code.load_agent import AGENT, load_agent, load_grading
from pytest_osmosis.user_code.user_hooks import UserHooks
from pytest_osmosis.user_code.workflow import WorkflowAgent

DEADLINE_S = 30.0
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+)')
_PLACE = re.compile(r"\((.+):(\d+)\)")


def main(entrypoint: str) -> None:
    """Print one JSON document on what was stdout when the process began."""
    answers = os.dup(1)
    os.dup2(2, 1)  # what user code prints, in C too
    result = _import(entrypoint)
    with open(answers, "w", encoding="ascii") as stream:
        json.dump(result, stream)


def _import(entrypoint: str) -> dict[str, Any]:
    roots = (Path.cwd(),)
    code = "import"
    try:
        load_module(entrypoint, option=AGENT, roots=roots, deadline_s=DEADLINE_S)
        code = "no_agent"
        loaded = load_agent(entrypoint, roots=roots, hooks=UserHooks())
        grading = load_grading(None, loaded, agent=entrypoint, roots=roots)
    except MissingModuleError as error:
        package = error.name.partition(".")[0]
        place = _PLACE.search(str(error))
        return {
            "missing": error.name,
            "has_package": package in sys.modules or importlib.util.find_spec(package) is not None,
            "where": f"{os.path.relpath(place[1])}:{place[2]}" if place else entrypoint,
        }
    except ImportingError as error:
        return {"code": code, "error": _shorten(str(error), entrypoint)}
    is_workflow = isinstance(loaded.agent, WorkflowAgent)
    return {"is_workflow": is_workflow, "has_grader": grading is not None}


def _shorten(message: str, entrypoint: str) -> str:
    """The message without the option that it begins with; of a traceback, its end."""
    message = message.removeprefix(f"{AGENT} {entrypoint!r}: ").partition("; name ")[0]
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
