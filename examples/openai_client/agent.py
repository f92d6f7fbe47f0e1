"""An agent as it might exist already: OpenAI's client, two tools and a loop."""

from __future__ import annotations

import json
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowContext, get_rollout_context

MAX_TURNS = 10


def add(a: float, b: float) -> float:
    return a + b


def multiply(a: float, b: float) -> float:
    return a * b


FUNCTIONS = {"add": add, "multiply": multiply}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name} two numbers",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    }
    for name in FUNCTIONS
]


class Agent(AgentWorkflow):
    async def run(self, ctx: AgentWorkflowContext) -> list[Any]:
        messages: list[Any] = list(ctx.prompt)
        async with client() as openai:
            for _ in range(MAX_TURNS):
                reply = await openai.chat.completions.create(
                    model="whichever is evaluated", messages=messages, tools=TOOLS
                )
                message = reply.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    break
                messages.extend(result_of(call) for call in message.tool_calls)
        return messages


def client() -> AsyncOpenAI:
    """OpenAI's client, pointed at this rollout's URL with this rollout's key."""
    rollout = get_rollout_context()
    return AsyncOpenAI(
        base_url=rollout.chat_completions_url,
        api_key=rollout.api_key,
        # Plain HTTP on this machine: loading certificates for it would take longer than the call.
        http_client=DefaultAsyncHttpxClient(verify=False, trust_env=False),
    )


def result_of(call: Any) -> dict[str, Any]:
    try:
        result = str(FUNCTIONS[call.function.name](**json.loads(call.function.arguments)))
    except (KeyError, TypeError, ValueError) as error:
        result = f"Error: {error}"
    return {"role": "tool", "tool_call_id": call.id, "content": result}


def right(solution_str: str, ground_truth: str) -> float:
    """An eval function: this agent has no grader."""
    said = solution_str.rpartition("####")[2].strip()
    return float(said.removesuffix(".0") == ground_truth)
