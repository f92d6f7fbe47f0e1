"""`osmosis test --interactive`: the model calls of a row, one at a time.

The agent runs in the thread of a rollout pool and waits before each model call for a command from
the keyboard. Lines are read from stdin, with line editing on a terminal.
"""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any

from osmosis_ai.error_text import named_error
from osmosis_ai.models.base import NO_PARAMS, WrappedModel
from osmosis_ai.secret import redact
from pytest_osmosis.escaping import counted
from pytest_osmosis.run_result import RunId
from pytest_osmosis.storage.excerpt import masked, plain

from ..eval.lines import say
from .conversation_lines import cut, message_lines, tool_line
from .rollouts import Trial, TrialResult, opened

if TYPE_CHECKING:
    from osmosis_ai.models.base import ChatCompletion, ChatModel

COMMANDS = {
    "next": "let the next model call go, and show its answer",
    "continue": "run on to the end of the row",
    "messages": "show the conversation so far",
    "tools": "show the tools that the agent offers",
    "row": "row N: leave this row, begin the one with index N",
    "quit": "end",
    "help": "show these commands",
}
_FOREVER_S = 1e8


@dataclass(frozen=True, slots=True)
class CallPending:
    """The agent is about to ask the model."""

    messages: list[dict[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    go: Callable[[], object]


Event = CallPending | str | TrialResult
"""A string is the shown answer of a call, or why there is none."""


class _SteppingModel(WrappedModel):
    """A model that waits before each call until `CallPending.go` is called."""

    def __init__(self, model: ChatModel, put: Callable[[Event], None]) -> None:
        super().__init__(model)
        self._put = put

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        params: Mapping[str, Any] = NO_PARAMS,
    ) -> ChatCompletion:
        loop, go = asyncio.get_running_loop(), asyncio.Event()
        copied = json.loads(json.dumps(messages, default=str))
        self._put(CallPending(copied, tools or (), partial(loop.call_soon_threadsafe, go.set)))
        await go.wait()
        try:
            completion = await self._model.complete(messages, tools=tools, params=params)
        except Exception as error:
            said = redact(named_error(error))
            self._put(f"  no answer: {cut(said)}")
            raise
        self._put(message_lines(masked(plain(completion.message))))
        return completion


class Stepper:
    """The dialogue: one row after the other until the user quits."""

    def __init__(self, trial: Trial) -> None:
        spec = replace(trial.spec, agent_timeout_s=_FOREVER_S)
        self._trial = replace(trial, spec=spec)
        self._is_terminal = sys.stdin.isatty()
        if self._is_terminal:
            _edit_lines()
        self._rows = trial.dataset.row_indices
        self.ended: list[TrialResult] = []

    def run(self, row_index: int) -> None:
        """Step through rows, from this one on."""
        say("next, continue, messages, tools, row N, quit; ? explains them")
        at: int | None = row_index
        while at is not None:
            at = self._row(at)

    def _row(self, row_index: int) -> int | None:
        """Step through one row; return the next one, or None to end."""
        name = self._trial.dataset.row_name(row_index)
        row = self._trial.dataset.row(row_index)
        say(f"\n{name}: {cut(redact(row.user_prompt))}")
        events: queue.SimpleQueue[Event] = queue.SimpleQueue()

        def wrap(model: ChatModel) -> ChatModel:
            return _SteppingModel(model, events.put)

        with opened(self._trial, events.put, wrap=wrap) as pool:
            pool.coming([RunId(self._trial.spec.name, row_index, 0)])
            return self._steps(events, row_index, name)

    def _steps(self, events: queue.SimpleQueue[Event], row_index: int, name: str) -> int | None:
        calls, running = 0, False
        while True:
            event = events.get()
            if isinstance(event, TrialResult):
                self.ended.append(event)
                say(result_line(event))
                return next((later for later in self._rows if later > row_index), None)
            if isinstance(event, str):
                say(event)
                continue
            calls += 1
            if not running:
                word, argument = self._command(f"{name} call {calls}> ", event)
                if word == "quit":
                    return None
                if word == "row":
                    return int(argument)
                running = word == "continue"
            event.go()

    def _command(self, prompt: str, pending: CallPending) -> tuple[str, str]:
        """Return the next command that moves on; answer those that only show something."""
        while True:
            word, argument = _parsed(_read(prompt if self._is_terminal else ""))
            if word == "messages":
                shown = masked(pending.messages)
                say("\n".join(map(message_lines, shown)))
            elif word == "tools":
                say("\n".join(map(tool_line, pending.tools)) or "no tools")
            elif word == "help":
                say("\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items()))
            elif word == "row" and not self._has_row(argument):
                first, last = self._rows[0], self._rows[-1]
                say(f"row {argument or '?'}: the rows are {first} to {last}")
            elif word in COMMANDS:
                return word, argument
            else:
                say(_unknown(word))

    def _has_row(self, text: str) -> bool:
        return text.isascii() and text.isdigit() and int(text) in self._rows


def _edit_lines() -> None:
    try:
        import readline
    except ImportError:  # Windows: its own console edits lines
        return
    readline.set_completer(
        lambda text, state: [*(word for word in COMMANDS if word.startswith(text)), None][state]
    )
    readline.parse_and_bind("tab: complete")


def _read(prompt: str) -> str:
    """Return a line; the end of the input is `quit`."""
    try:
        return input(prompt)
    except EOFError:
        say("")
        return "quit"
    except KeyboardInterrupt:
        say("")
        raise


def _parsed(line: str) -> tuple[str, str]:
    """Return command and argument; "" is `next`, `?` is `help`, a prefix its command."""
    word, _, argument = line.strip().lower().partition(" ")
    if word == "?":
        return "help", ""
    return next((name for name in COMMANDS if name.startswith(word)), word), argument.strip()


def _unknown(word: str) -> str:
    close = get_close_matches(word, COMMANDS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no such command: {word}{hint} (? lists them)"


def result_line(result: TrialResult) -> str:
    """Return a result on one line; on a terminal the answer, never an error, is cut to fit."""
    calls = counted(result.model_calls, "call")
    tokens = "? tokens" if result.tokens is None else f"{result.tokens:,} tokens"
    head = f"{result.row:<10}{result.status:<11}{calls:<9}{tokens:<14}"
    head += f"{result.duration_s:6.2f} s  "
    room = shutil.get_terminal_size().columns - len(head) if sys.stdout.isatty() else 100
    what = result.error or cut(result.answer, max(20, min(100, room)))
    return f"{head}{cut(what)}".rstrip()
