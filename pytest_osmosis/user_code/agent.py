"""What every kind of agent is to a run: something that turns an `AgentRun` into an `AgentResult`.

One strategy object a kind: `agent_loop`, `workflow`, `command`. What an agent raises propagates
untouched: the caller classifies it. Knows no scores and no deadlines.

    Exception
      AgentFailed      the agent failed without an exception of its own
        WrongTools     what it gives for tools are none
        WrongReturn    it returns what no agent can return
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from osmosis_ai.agents.client import ModelLLM
    from osmosis_ai.agents.schemas import RolloutSample
    from osmosis_ai.bridge import Account, Bridge
    from osmosis_ai.models.base import ChatModel, RateLimit

T = TypeVar("T")


PROGRAM = "cmd:"
"""What is written before an agent that is a program."""
CHAT = "chat"
"""The agent where none is named: the model, asked once with the row's messages."""
MCP = "mcp:"
"""What is written before the folder of an MCP server that is the agent."""


class AgentFailed(Exception):
    """The agent failed without an exception of its own; `str()` is the whole message."""


class WrongTools(AgentFailed):
    """What the agent gives for tools are none; `str()` says what is wrong."""


class WrongReturn(AgentFailed):
    """The agent returns a value of a type that no agent can return; `str()` names it."""


Reach = Literal["model", "endpoint", "turns", "system", "program"]
"""What an option changes: the model's name, how and where it is asked, the agent's request."""
EVERYTHING: frozenset[Reach] = frozenset({"model", "endpoint", "turns", "system"})
"""What reaches an agent that is given the whole request, and asks the model by it."""


class RunSync(Protocol):
    """Makes synchronous calls off the event loop."""

    def __call__(self, call: Callable[[], T], /, within_s: float = math.inf) -> Awaitable[T]:
        """Make a call and await its result.

        Raises:
            DeadlineExceeded: when there was none after `within_s` seconds; its result is dropped.
        """


Takes = Literal["question", "text", "row", "task"]
"""A prompt or messages; one prompt as text; nothing, since it has all columns; the object in the
column `metadata`, in all rows or in none."""


@dataclass(slots=True)
class AgentRun:
    """One run as an agent gets it; all of it is the run's own and may be changed."""

    rollout_id: str
    """`eval-<row_index>-run-<run_index>`."""
    messages: list[dict[str, Any]]
    """System then user."""
    metadata: dict[str, Any]
    """The row's extra columns, `row_index`, `run_index` and `execution_mode`."""
    ground_truth: Any
    task: dict[str, Any] | None
    """The row's object in the column `metadata`, if that is what it has there."""
    params: Mapping[str, Any]
    """The sampling options that were given."""
    sent: Mapping[str, Any]
    """What goes with every model call: those, and what tells the embedded endpoint its rollouts."""
    max_turns: int
    model: ChatModel | None
    """The model under test; None where a recorded run is scored, or the agent asks its own."""
    bridge: Callable[[], Bridge]
    """Returns the same model behind a URL on loopback."""
    run_sync: RunSync
    write: Callable[[str, str], None]
    """Appends text (of `stdout`, `stderr`) to the section of the run's item."""
    debug_dir: str | None = None
    rate_limit: RateLimit | None = None
    """The pause between requests that an endpoint has asked for."""
    price_per_mtok: tuple[float, ...] | None = None
    """What tokens cost, as the user says."""
    model_name: str = ""
    """The name of the model under test, where the agent takes one."""
    llm: ModelLLM | None = None
    """What the rollout takes; the agent leaves it here as soon as there is one."""
    account: Account | None = None
    """The rollout's account at the bridge, if it has one."""

    def open_account(self) -> Account:
        """An account at the bridge for this run; the run closes it."""
        self.account = self.bridge().open_account(params=self.sent, record=True)
        self.llm = self.account.llm
        return self.account

    def close(self) -> None:
        """The rollout has ended: its model takes no more calls."""
        if self.account is not None:
            self.account.close()
        elif self.llm is not None:
            self.llm.close()

    def recorded(self) -> list[dict[str, Any]]:
        """The conversation so far, as the model saw it: of a run that did not come to its end."""
        if self.account is not None:
            return self.account.trajectory.last()
        if self.llm is None:
            return []
        answer = self.llm.last_answer
        asked: list[Any] = self.llm.last_asked  # the agent's own list, whatever it put in there
        said = [message for message in asked if isinstance(message, dict)]
        return said if answer is None or answer in said else [*said, answer]

    def artifacts_dir(self) -> Path | None:
        """A directory for the run's own files, below the debug directory; None without that."""
        if self.debug_dir is None:
            return None
        path = Path(self.debug_dir, "artifacts", self.rollout_id)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path


@dataclass(slots=True)
class AgentResult:
    """How an agent's part of a run ended."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    """The whole conversation."""
    error: str | None = None
    """The agent's own word that it failed."""
    cause: BaseException | None = None
    """The exception that it reports, or was handling then."""
    reward: float | None = None
    """The reward that the agent gave itself."""
    tool_calls: int = 0
    sample: RolloutSample | None = None
    """What a grader judges; None where that is the messages, if there are any."""


class Agent(Protocol):
    """A kind of agent, with the one agent that it runs."""

    max_concurrent: int | None
    """How many of its rollouts may be in flight in one process; None for no limit of its own."""
    reward_hint: str
    """How it gives a reward of its own, for the message that there is none."""
    reach: frozenset[Reach]
    """What of it options can change: with "endpoint", it asks the model under test."""
    needs_model: bool
    """Whether it cannot run unless a model is named."""
    takes: Takes
    """What of a row it cannot do without."""
    imports: Sequence[str]
    """Modules of ours that its runs need, and nothing before them does."""

    def run(self, run: AgentRun) -> Awaitable[AgentResult]:
        """One rollout."""


def count_tool_results(messages: list[dict[str, Any]]) -> int:
    """How many tool calls a conversation shows the results of."""
    return sum(message.get("role") == "tool" for message in messages)
