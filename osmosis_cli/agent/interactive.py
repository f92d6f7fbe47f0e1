"""`osmosis test --interactive`: the model calls of a row, one at a time.

The agent runs in a thread of its own and waits before each model call until the person at the
keyboard lets it go on. Lines are read from stdin, with line editing where that is a terminal.
"""

from __future__ import annotations

import asyncio
import json
import queue
import shutil
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from ..buffered_output import printable
from .rollouts import Ended, Trial, opened, run_row

if TYPE_CHECKING:
    from osmosis_ai.agents.client import ModelLLM
    from osmosis_ai.rollout import CompletionsResult, RolloutMetrics

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
_LEAVE_S = 1.0
_SHOWN = 2000


@dataclass(frozen=True, slots=True)
class Asking:
    """The agent is about to ask the model."""

    messages: list[dict[str, Any]]
    tools: list[Any]
    go: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Answered:
    """The model has answered, or not."""

    message: dict[str, Any] | None
    error: str | None = None


Event = Asking | Answered | Ended


class _SteppingLLM:
    """Waits before each call until it is let go."""

    def __init__(self, llm: ModelLLM, tell: Callable[[Event], None]) -> None:
        self._llm = llm
        self._tell = tell

    async def chat_completions(
        self, messages: list[dict[str, Any]], **params: Any
    ) -> CompletionsResult:
        from osmosis_ai.agents.context import get_rollout_context
        from osmosis_ai.agents.tools import dump_tools

        loop = asyncio.get_running_loop()
        go = asyncio.Event()

        def let_go() -> None:
            loop.call_soon_threadsafe(go.set)

        ctx = get_rollout_context()
        tools = [] if ctx is None else dump_tools(ctx.tools, owner="get_tools")
        self._tell(Asking(json.loads(json.dumps(messages, default=str)), tools, let_go))
        await go.wait()
        try:
            answer = await self._llm.chat_completions(messages, **params)
        except Exception as error:
            self._tell(Answered(None, f"{type(error).__name__}: {error}"))
            raise
        self._tell(Answered(answer.message))
        return answer

    def get_metrics(self) -> RolloutMetrics:
        return self._llm.get_metrics()


class _RowThread:
    """One row on its way, seen from the keyboard's thread."""

    def __init__(self, trial: Trial, position: int) -> None:
        self.events: queue.SimpleQueue[Event | Exception] = queue.SimpleQueue()
        self._trial, self._position = trial, position
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._serve, name="osmosis-test", daemon=True)
        self._thread.start()

    def next_event(self) -> Event:
        """What happens next; raises what ended the thread."""
        event = self.events.get()
        if isinstance(event, Exception):
            raise event
        return event

    def leave(self) -> None:
        """End the row where it is."""
        try:
            self._loop.call_soon_threadsafe(self._cancel)
        except RuntimeError:  # its loop is closed: the row has just ended by itself
            return
        self._thread.join(timeout=2.0)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _serve(self) -> None:
        try:
            self._task = self._loop.create_task(self._run())
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            return
        except Exception as error:  # noqa: BLE001  told in the keyboard's thread
            self.events.put(error)
        finally:
            self._end_tasks()
            self._loop.close()

    def _end_tasks(self) -> None:
        """End what the agent has left behind."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=_LEAVE_S))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())

    async def _run(self) -> None:
        async with opened(self._trial) as model:
            ended = await run_row(
                self._trial,
                self._position,
                model,
                wrap=lambda llm: _SteppingLLM(llm, self.events.put),
                timeout_s=_FOREVER_S,
            )
            self.events.put(ended)


class Stepper:
    """The dialogue: one row after the other until the person has had enough."""

    def __init__(self, trial: Trial, read: Callable[[str], str | None] | None = None) -> None:
        self._trial = trial
        self._read = read or line_reader()
        self._positions = {
            trial.dataset.index_of(position): position for position in range(len(trial.dataset))
        }
        self.ended: list[Ended] = []

    def run(self, position: int = 0) -> None:
        """Step through rows, beginning with the one at `position` of the selection."""
        click.echo("next, continue, messages, tools, row N, quit; help explains them")
        at: int | None = position
        while at is not None and at < len(self._trial.dataset):
            at = self._row(at)

    def _row(self, position: int) -> int | None:
        """Step through one row; the position of the next one, None to end."""
        name = self._trial.dataset.row_name(position)
        row = self._trial.dataset.row(position)
        click.echo(f"\n{name}: {_cut(row.user_prompt)}")
        thread = _RowThread(self._trial, position)
        try:
            return self._steps(thread, position, name)
        finally:
            thread.leave()

    def _steps(self, thread: _RowThread, position: int, name: str) -> int | None:
        calls, running = 0, False
        while True:
            event = thread.next_event()
            if isinstance(event, Ended):
                self.ended.append(event)
                click.echo(told(event))
                return position + 1
            if isinstance(event, Answered):
                click.echo(_answer(event))
                continue
            calls += 1
            if not running:
                word, argument = self._command(f"{name} call {calls}> ", event)
                if word == "quit":
                    return None
                if word == "row":
                    return self._positions[int(argument)]
                running = word == "continue"
            event.go()

    def _command(self, prompt: str, asking: Asking) -> tuple[str, str]:
        """The next command that moves on; those that only show something are answered here."""
        while True:
            line = self._read(prompt)
            word, argument = _understood(line)
            if word == "messages":
                click.echo("\n".join(_message(message) for message in asking.messages))
            elif word == "tools":
                click.echo("\n".join(map(_tool, asking.tools)) or "no tools")
            elif word == "help":
                click.echo("\n".join(f"  {name:<10}{what}" for name, what in COMMANDS.items()))
            elif word == "row" and not self._has_row(argument):
                known = sorted(self._positions)
                click.echo(f"row {argument or '?'}: the rows are {known[0]} to {known[-1]}")
            elif word in COMMANDS:
                return word, argument
            else:
                click.echo(_unknown(word))

    def _has_row(self, text: str) -> bool:
        return text.isascii() and text.isdigit() and int(text) in self._positions


def line_reader() -> Callable[[str], str | None]:
    """Reads a line after a prompt, None at the end of the input; no prompt without a terminal."""
    if not sys.stdin.isatty():
        return lambda prompt: sys.stdin.readline() or None
    try:
        import readline
    except ImportError:  # Windows: its own console edits lines
        return _asked
    readline.set_completer(_completed)
    readline.parse_and_bind("tab: complete")
    return _asked


def _asked(prompt: str) -> str | None:
    try:
        return input(prompt)
    except EOFError:
        click.echo()
        return None
    except KeyboardInterrupt:
        click.echo()
        raise


def _completed(text: str, state: int) -> str | None:
    found = [word for word in COMMANDS if word.startswith(text)]
    return found[state] if state < len(found) else None


def _understood(line: str | None) -> tuple[str, str]:
    """Command and argument: nothing is `next`, the end of the input `quit`, a letter its word."""
    if line is None:
        return "quit", ""
    word, _, argument = line.strip().lower().partition(" ")
    if not word:
        return "next", ""
    matches = [name for name in COMMANDS if name.startswith(word)]
    return (matches[0] if matches else word), argument.strip()


def _unknown(word: str) -> str:
    close = get_close_matches(word, COMMANDS, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"no such command: {printable(word)}{hint} (help lists them)"


def told(ended: Ended) -> str:
    """A row's end on one line; in a terminal as much of the answer as fits, errors whole."""
    turns = f"{ended.model_calls} call{'' if ended.model_calls == 1 else 's'}"
    tokens = "? tokens" if ended.tokens is None else f"{ended.tokens:,} tokens"
    head = f"{printable(ended.row):<10}{ended.status:<11}{turns:<9}{tokens:<14}"
    head += f"{ended.duration_s:6.2f} s  "
    room = shutil.get_terminal_size().columns - len(head) if sys.stdout.isatty() else 100
    what = ended.error or _cut(ended.answer, max(20, min(100, room)))
    return f"{head}{printable(_cut(what))}".rstrip()


def _answer(event: Answered) -> str:
    if event.message is None:
        return f"  no answer: {printable(_cut(event.error or ''))}"
    return _message(event.message)


def _message(message: dict[str, Any]) -> str:
    role = str(message.get("role", "?"))
    lines = [f"  {role:<10} {printable(_cut(message.get('content')))}".rstrip()]
    for call in message.get("tool_calls") or ():
        function = call.get("function", {}) if isinstance(call, dict) else {}
        told = f"{function.get('name')}({function.get('arguments')})"
        lines.append(f"  {'':<10} -> {printable(_cut(told))}")
    return "\n".join(lines)


def _tool(tool: dict[str, Any]) -> str:
    function = tool["function"]
    parameters = (function.get("parameters") or {}).get("properties") or {}
    told = f"{function['name']}({', '.join(parameters)})"
    return f"  {printable(told)}  {printable(_cut(function.get('description'), 80))}".rstrip()


def _cut(value: Any, limit: int = _SHOWN) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
