"""Programs in any language: the request on standard input, the model at a URL in the environment.

The program prints the final messages; what it writes to standard error belongs to its item.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from osmosis_ai.agents.results import finite_number
from osmosis_ai.messages import last_assistant_text
from osmosis_ai.secret import redact

from .agent import (
    EVERYTHING,
    PROGRAM,
    AgentFailed,
    AgentResult,
    AgentRun,
    Reach,
    Takes,
    count_tool_results,
)
from .child_process import ProcessResult, Program, TooMuchOutput
from .import_object import ImportingError

STDERR_QUOTED = 400
"""Characters of the last of standard error that an error quotes."""
_STDERR_KEPT = 40 * STDERR_QUOTED
_NOT_INHERITED = ("PYTEST_CURRENT_TEST", "PYTEST_XDIST_")


class CommandAgent:
    """Runs a program, once a rollout."""

    max_concurrent: int | None = None
    reach: frozenset[Reach] = EVERYTHING | {"program"}
    needs_model = True
    takes: Takes = "question"
    reward_hint = 'print {"messages": [...], "reward": ...}'
    imports: Sequence[str] = ("osmosis_ai.bridge",)

    def __init__(self, argv: Sequence[str], *, cwd: Path, withheld: Iterable[str] = ()) -> None:
        self._argv = argv
        self._cwd = cwd
        self._withheld = frozenset(withheld)

    async def run(self, run: AgentRun) -> AgentResult:
        """One rollout; whatever ends it, the program and its children end with it."""
        account = run.open_account()
        last_words = _Tail()
        program = Program(
            argv=self._argv,
            cwd=self._cwd,
            env=self._environment(run, url=account.url, key=account.key.reveal()),
            stdin=_request(run),
            on_stderr=lambda text: _keep(run, last_words, text),
        )
        try:
            ended = await run.run_sync(program.run)
        except (OSError, TooMuchOutput) as error:
            raise AgentFailed(f"{self._named}: {error}") from None
        finally:
            program.kill()
        if ended.status:
            raise AgentFailed(f"{self._named} {_ending(ended)}{last_words.quoted()}")
        return read_printed(ended.stdout, prompt=run.messages, recorded=run.recorded())

    @property
    def _named(self) -> str:
        return f"`{shlex.join(self._argv)}`"

    def _environment(self, run: AgentRun, *, url: str, key: str) -> dict[str, str]:
        """Return this process's environment without keys of models, but with the bridge's."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if name not in self._withheld and not name.startswith(_NOT_INHERITED)
        }
        artifacts = run.artifacts_dir()
        if artifacts is not None:
            inherited["OSMOSIS_ARTIFACTS_DIR"] = str(artifacts)
        return {
            **inherited,
            "OPENAI_BASE_URL": url,
            "OPENAI_API_BASE": url,
            "OPENAI_API_KEY": key,
            "OSMOSIS_ROLLOUT_ID": run.rollout_id,
        }


def parse_command(spec: str, *, option: str, cwd: Path) -> list[str]:
    """The words of `cmd:…`, its program found; ImportingError says what is wrong with it."""
    line = spec.removeprefix(PROGRAM)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ImportingError(f"{option} {spec!r}: {error}") from None
    if not words:
        raise ImportingError(f"{option} {spec!r}: expected a command line, as cmd:'node agent.js'")
    name = words[0]
    program = shutil.which(str(cwd / name) if os.sep in name else name)
    if program is None:
        where = f"in {cwd}" if os.sep in name else "in PATH"
        raise ImportingError(f"{option} {spec!r}: no program {name!r} {where}")
    return [program, *words[1:]]


def _request(run: AgentRun) -> bytes:
    request = {
        "rollout_id": run.rollout_id,
        "messages": run.messages,
        "metadata": {**run.metadata, "ground_truth": run.ground_truth},
        "completion_params": dict(run.params),
        "max_turns": run.max_turns,
    }
    return json.dumps(request, ensure_ascii=True).encode("ascii") + b"\n"


class _Tail:
    """The end of a text that comes in pieces."""

    def __init__(self) -> None:
        self._text = ""
        self._is_cut = False

    def add(self, text: str) -> None:
        self._text += text
        self._is_cut = self._is_cut or len(self._text) > _STDERR_KEPT
        self._text = self._text[-_STDERR_KEPT:]

    def quoted(self) -> str:
        """Return the end, redacted before it is cut to what an error quotes."""
        text = redact.end(self._text) if self._is_cut else redact(self._text)
        text = text.strip()[-STDERR_QUOTED:]
        return f":\n{text}" if text else ""


def _keep(run: AgentRun, last_words: _Tail, text: str) -> None:
    last_words.add(text)
    run.write("stderr", text)


def _ending(ended: ProcessResult) -> str:
    if ended.status > 0:
        return f"ended with status {ended.status}"
    try:
        return f"was ended by {signal.Signals(-ended.status).name}"
    except ValueError:
        return f"was ended by signal {-ended.status}"


REWARD_QUOTED = 40
"""Characters of a reward that an error quotes."""

Messages = list[dict[str, Any]]


def read_printed(text: str, *, prompt: Messages, recorded: Messages) -> AgentResult:
    """The outcome that `text` tells; AgentFailed when it is an object that is none.

    `recorded` is the conversation as the bridge saw it: what plain text stands at the end of.
    """
    text = text.strip()
    found = _json(text)
    if isinstance(found, dict) and "messages" in found:
        return _from_object(found)
    if _are_messages(found):
        return _outcome(found)
    if not text:
        if not recorded:
            raise AgentFailed("the program printed nothing and asked the model nothing")
        return _outcome(recorded)
    if last_assistant_text(recorded).strip() == text:
        return _outcome(recorded)
    return _outcome([*(recorded or prompt), {"role": "assistant", "content": text}])


def _from_object(found: dict[str, Any]) -> AgentResult:
    if not _are_messages(found["messages"]) and found["messages"] != []:
        raise AgentFailed("the program printed 'messages' that are not a list of messages")
    outcome = _outcome(found["messages"])
    reward = found.get("reward")
    if reward is not None:
        outcome.reward = _finite(reward)
    error = found.get("error")
    if error:
        outcome.error = str(error)
    return outcome


def _finite(reward: Any) -> float:
    try:
        return finite_number(reward, "reward")
    except ValueError:
        raise AgentFailed(
            f"the program printed the reward {repr(reward)[:REWARD_QUOTED]}; expected a number"
        ) from None


def _outcome(messages: Messages) -> AgentResult:
    return AgentResult(messages, tool_calls=count_tool_results(messages))


def _json(text: str) -> Any:
    if not text.startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _are_messages(found: object) -> bool:
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in found)
    )
