"""One rollout from its request to the body of its callback, whatever the agent does.

There always is an outcome: when the agent fails, hangs or ignores its cancellation, and when the
server shuts down. Admits nothing and keeps no record.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..agents.context import RolloutContext
from ..agents.errors import OsmosisRolloutError
from ..agents.request import RolloutMetrics, RolloutRequest
from ..agents.results import RolloutResult
from ..agents.runner import begin, measured
from ..agents.tools import dump_tools
from ..error_text import named_error
from ..models.errors import clip
from ..running.agent_thread import AgentThread
from ..running.guards import CodeEnded
from ..running.main_loop import Call, RunInMainLoop
from ..running.section import DeadlineExceeded, Section
from ..secret import Secret
from ..secret_variables import masking
from .settings import AppOptions
from .trainer.address_policy import Trainer
from .trainer.client import OsmosisLLMClient, TrainerChannel
from .trainer.wire import TrainerClient

T = TypeVar("T")

MESSAGE_LIMIT = 2000
"""Characters of an error message that is sent to the trainer."""
TOOLS_TIMEOUT_S = 30.0
SHUT_DOWN = "the server was shut down before the rollout had ended"

logger = logging.getLogger(__name__)

Redact = Callable[[str], str]
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """How a rollout ended, ready for the wire."""

    status: str
    """COMPLETED or ERROR."""
    body: bytes
    """A RolloutResponse; the same bytes however often it is sent."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """What an agent's `get_tools` gave."""

    given: list[Any]
    schemas: list[dict[str, Any]]
    """The same for the wire."""


class Runner:
    """The agent of one server."""

    def __init__(self, options: AppOptions) -> None:
        """To be made in the server's event loop."""
        self._agent = options.agent
        self._options = options
        self._settings = options.settings
        self._client = TrainerClient(options.settings.connections)
        self.thread = AgentThread(options.settings.max_concurrent)

    async def close(self) -> None:
        """End the thread and the connections."""
        await self.thread.close()
        await self._client.aclose()

    async def tools(self, request: RolloutRequest, key: Secret | None) -> Tools | RolloutOutcome:
        """Return the agent's tools for this request; an outcome when there will be no rollout."""

        async def ask(main_loop: RunInMainLoop) -> Tools:
            given: Any = self._agent.get_tools(request)
            owner = f"{type(self._agent).__name__}.get_tools"
            return Tools(given, dump_tools(given, owner=owner))

        section = Section(self._agent, "get_tools", TOOLS_TIMEOUT_S, job=request.rollout_id)
        return await self._ended(section, ask, masking(self._options.api_key, key), [])

    async def run(
        self, request: RolloutRequest, key: Secret | None, trainer: Trainer, tools: Tools
    ) -> RolloutOutcome:
        """Return how the rollout ended."""
        settings, redact = self._settings, masking(self._options.api_key, key)
        begun: list[RolloutContext] = []

        async def execute(main_loop: RunInMainLoop) -> RolloutOutcome:
            channel = TrainerChannel(
                self._client,
                trainer,
                key=key,
                request_timeout_s=settings.request_timeout_s,
                run_in_main_loop=main_loop,
            )
            llm = OsmosisLLMClient(
                request.server_url, request.rollout_id, settings=settings.client, channel=channel
            )
            folder = self._options.debug_dir
            ctx = RolloutContext(request, tools.given, llm, debug_dir=folder, redact=redact)
            begun.append(ctx)
            ctx.log_event("rollout_started", messages=request.messages, metadata=request.metadata)
            try:
                with ctx:
                    given = await begin(self._agent, ctx)
                return _outcome_of(request, measured(self._agent, given, ctx), redact)
            finally:
                llm.end()

        limit_s, grace_s = settings.rollout_timeout_s, settings.cancel_grace_s
        section = Section(
            self._agent, "the rollout", limit_s, job=request.rollout_id, clean_up_s=grace_s
        )
        outcome = await self._ended(section, execute, redact, begun)
        if begun and begun[0].debug_enabled:
            begun[0].log_event("rollout_ended", **json.loads(outcome.body))
        return outcome

    async def _ended(
        self, section: Section, call: Call[T], redact: Redact, begun: list[RolloutContext]
    ) -> T | RolloutOutcome:
        """Make a call of the agent's code; an error is an outcome, with what was measured."""
        try:
            if not self.thread.is_ending:
                return await self.thread.apart(section, call)
            why = SHUT_DOWN
        except DeadlineExceeded:
            why = f"{section.name} took more than {section.within_s:g} s"
            if self.thread.is_ending:
                why = SHUT_DOWN
        except Exception as error:  # noqa: BLE001  the agent's failure is reported to the trainer
            why = f"the agent {error}" if isinstance(error, CodeEnded) else named_error(error)
            why = redact(why)
            if not isinstance(error, OsmosisRolloutError):  # which says all
                trace = redact("".join(traceback.format_exception(error))).rstrip()
                logger.error("the agent failed in rollout %s\n%s", section.job, trace)
        return failed(section.job, why, metrics=begun[0].metrics() if begun else None)


def failed(
    rollout_id: str, message: str, *, metrics: RolloutMetrics | None = None
) -> RolloutOutcome:
    """Return the outcome of a failed rollout; `message` holds no secret."""
    result = RolloutResult("ERROR", [], "error", message, metrics)
    return _encoded(rollout_id, result, clip(message, MESSAGE_LIMIT))


def _outcome_of(request: RolloutRequest, result: RolloutResult, redact: Redact) -> RolloutOutcome:
    error = result.error_message
    message = None if error is None else clip(redact(str(error)), MESSAGE_LIMIT)
    try:
        return _encoded(request.rollout_id, result, message)
    except (TypeError, ValueError, RecursionError) as wrong:
        return failed(request.rollout_id, redact(f"the agent's result is not JSON: {wrong}"))


def _encoded(rollout_id: str, result: RolloutResult, error: str | None) -> RolloutOutcome:
    # Tokens that are not known are left out: trainers read their numbers as integers.
    metrics = None if result.metrics is None else result.metrics.model_dump(exclude_none=True)
    document = {
        "rollout_id": rollout_id,
        "status": result.status,
        "final_messages": result.final_messages,
        "finish_reason": result.finish_reason,
        "error_message": error,
        "reward": result.reward,
        "metrics": metrics,
        "extra_fields": {},
    }
    return RolloutOutcome(result.status, _encode(document).encode("ascii"), error)
