# ruff: noqa: UP006, UP035, UP045
"""Calculator tools, as an existing project has them."""

import asyncio
import random
from typing import Any, Dict, List, Optional

from osmosis_ai.rollout.core.exceptions import ToolArgumentError
from osmosis_ai.rollout.core.schemas import (
    OpenAIFunctionParametersSchema,
    OpenAIFunctionPropertySchema,
    OpenAIFunctionSchema,
    OpenAIFunctionToolSchema,
)
from osmosis_ai.rollout.tools import (
    create_tool_error_result,
    create_tool_result,
    get_tool_call_info,
    serialize_tool_result,
)


async def add(a: float, b: float) -> float:
    await asyncio.sleep(random.uniform(0, 0.002))
    return a + b


async def subtract(a: float, b: float) -> float:
    return a - b


async def multiply(a: float, b: float) -> float:
    await asyncio.sleep(random.uniform(0, 0.002))
    return a * b


async def divide(a: float, b: float) -> Optional[float]:
    if b == 0:
        raise ZeroDivisionError("cannot divide by zero")
    return a / b


FUNCTIONS = {"add": add, "subtract": subtract, "multiply": multiply, "divide": divide}


def _tool(name: str, description: str) -> OpenAIFunctionToolSchema:
    return OpenAIFunctionToolSchema(
        type="function",
        function=OpenAIFunctionSchema(
            name=name,
            description=description,
            parameters=OpenAIFunctionParametersSchema(
                type="object",
                properties={
                    "a": OpenAIFunctionPropertySchema(type="number", description="First number"),
                    "b": OpenAIFunctionPropertySchema(type="number", description="Second number"),
                },
                required=["a", "b"],
            ),
            strict=False,
        ),
    )


CALCULATOR_TOOLS: List[OpenAIFunctionToolSchema] = [
    _tool("add", "Add two numbers."),
    _tool("subtract", "Subtract b from a."),
    _tool("multiply", "Multiply two numbers."),
    _tool("divide", "Divide a by b."),
]


async def execute_tool(tool_call: Dict[str, Any]) -> Dict[str, Any]:
    tool_call_id = tool_call.get("id", "unknown")
    try:
        tool_call_id, name, args = get_tool_call_info(tool_call)
    except ToolArgumentError as e:
        return create_tool_error_result(e.tool_call_id or tool_call_id, str(e))
    function = FUNCTIONS.get(name)
    if function is None:
        return create_tool_error_result(tool_call_id, f"Unknown tool: {name}")
    try:
        value = await function(**args)
        return create_tool_result(tool_call_id, serialize_tool_result(value))
    except Exception as e:
        return create_tool_error_result(tool_call_id, f"{name} failed: {e}")
