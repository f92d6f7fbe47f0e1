"""The kinds of agents that a run can have, each behind `Agent.run(run) -> Outcome`.

loop        a `RolloutAgentLoop`, which is handed the model
workflow    an `AgentWorkflow`, which is handed a URL of the bridge
command     a program in any language, which finds that URL in its environment
grading     a `Grader`, which judges what any of them did
loading     from what an option names to one of these
"""

from __future__ import annotations

from .base import Agent, AgentRun, Outcome, Services
from .grading import Grading
from .loading import load_agent, load_grading

__all__ = ["Agent", "AgentRun", "Grading", "Outcome", "Services", "load_agent", "load_grading"]
