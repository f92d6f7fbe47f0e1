"""A rollout's file behind HTTP, as a program: `python -m osmosis_executors.serve_rollout FILE`.

It listens on a free port of loopback, says where on the first line of stdout as JSON, and serves
until SIGTERM. The key that it asks for and the origins of trainers that it calls back are in the
environment, by the variables of `osmosis serve`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from osmosis_ai.http_server import url_of
from pytest_osmosis.user_code.agent_loop import LoopAgent
from pytest_osmosis.user_code.import_object import ImportingError
from pytest_osmosis.user_code.load_agent import load_agent, load_grading
from pytest_osmosis.user_code.workflow import WorkflowAgent, workflow_config

LOOPBACK = "127.0.0.1"


def main(file: str) -> int:
    """Serve until a signal; return 1 where the file has nothing to serve."""
    from osmosis_ai.rollout_server.http.uvicorn import Server, configure, listen

    try:
        with redirect_stdout(sys.stderr):  # what the file prints when it is imported
            app = application(file)
    except ImportingError as error:
        print(error, file=sys.stderr)
        return 1
    with listen(LOOPBACK, 0) as bound:
        print(json.dumps({"url": url_of(bound)}), flush=True)
        Server(configure(app), owns_process=True).run(sockets=[bound])
    return 0


def application(file: str) -> Callable[..., Any]:
    """Return the one agent of a file, or its workflow with its grader, as an ASGI application."""
    roots = [Path.cwd()]
    loaded = load_agent(file, roots=roots)
    if isinstance(loaded.agent, LoopAgent):
        from osmosis_ai.rollout_server.app import create_app

        return create_app(loaded.agent.loop)
    grading = load_grading(None, loaded, agent=file, roots=roots)
    if not isinstance(loaded.agent, WorkflowAgent) or grading is None:
        raise ImportingError(f"{file}: defines no Grader, so that no rollout has a reward")
    from osmosis_ai.workflow_server.app import create_rollout_server
    from osmosis_ai.workflow_server.backend import LocalBackend

    workflow, grader = loaded.agent.workflow, grading.grader
    backend = LocalBackend(
        workflow=type(workflow),
        workflow_config=workflow_config(workflow),
        grader=type(grader),
        grader_config=grader.config,
    )
    return create_rollout_server(backend=backend)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
