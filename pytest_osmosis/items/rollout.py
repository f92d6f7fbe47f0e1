"""`Rollout`: a finished rollout, as a test gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmosis_ai.agents.results import finite_number
from osmosis_ai.agents.tool_calls import ToolCall, tool_calls
from osmosis_ai.messages import last_assistant_text

from ..rollouts.scoring import TEST
from ..run_result import RolloutRecord


class Rollout:
    """A finished rollout, as a test gets it."""

    def __init__(self, finished: RolloutRecord) -> None:
        self.record = finished
        """What is kept of the run."""
        self.scores: dict[str, float] = {}
        """What `record_score` was given, by name; the thresholds and reasons below too."""
        self.thresholds: dict[str, float] = {}
        self.reasons: dict[str, str] = {}
        self.messages: list[dict[str, Any]] = finished.messages
        """The whole conversation."""
        self.text: str = last_assistant_text(finished.messages)
        """The text of the last assistant message."""
        self.solution_str = self.text
        self.ground_truth: Any = finished.ground_truth
        self.metadata: Mapping[str, Any] = finished.metadata
        """The row's columns, and the position of the run."""
        position = finished.result.run_id.position()
        self.row = {name: value for name, value in self.metadata.items() if name not in position}
        """The row's columns."""
        self.reward: float | None = finished.reward
        """The reward that the agent gave itself, if it did."""
        self._measured = finished.paid or finished.result

    @property
    def row_index(self) -> int:
        """Position of the row in its file, from 0."""
        return self.record.result.row_index

    @property
    def run_index(self) -> int:
        """Which of the row's runs this is, from 0."""
        return self.record.result.run_index

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls in their order: `name`, parsed `arguments`, `result`, `error`."""
        return tool_calls(self.messages)

    def called(self, name: str, **arguments: Any) -> bool:
        """Return whether a tool was called, with at least these arguments."""
        return any(call.matches(name, arguments) for call in self.tool_calls)

    @property
    def usage(self) -> dict[str, int | None]:
        """`prompt_tokens`, `completion_tokens`, `total_tokens`; None where not known."""
        return {
            "prompt_tokens": self._measured.prompt_tokens,
            "completion_tokens": self._measured.completion_tokens,
            "total_tokens": self._measured.tokens,
        }

    @property
    def cost_usd(self) -> float | None:
        """The cost of the model calls in dollars; None where a price is not known."""
        return self._measured.spent_usd

    @property
    def duration_s(self) -> float:
        """How long the rollout took."""
        return self._measured.duration_ms / 1000.0

    def record_score(
        self,
        name: str,
        value: float,
        reason: str | None = None,
        *,
        pass_threshold: float | None = None,
    ) -> None:
        """Put a score into the report, beside the outcome of the test, which it does not change.

        Its figures are over the runs that recorded it. With `pass_threshold`, which is the same in
        every run, it has pass@k too.

        Raises:
            ValueError: for a number that is not finite, or a name that is taken.
        """
        if name == TEST:
            raise ValueError(f"the score {name!r} is the outcome of the test itself")
        self.scores[name] = finite_number(value, f"the score {name!r}")
        if reason is not None:
            self.reasons[name] = reason
        if pass_threshold is not None:
            what = f"the pass threshold of {name!r}"
            self.thresholds[name] = finite_number(pass_threshold, what)

    def __repr__(self) -> str:
        return f"<rollout of row {self.row_index}, run {self.run_index}>"
