"""The calculator's tools: their schemas for the model, and what each of them does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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

OPERATIONS: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "add": ("Add b to a.", lambda a, b: a + b),
    "subtract": ("Subtract b from a.", lambda a, b: a - b),
    "multiply": ("Multiply a by b.", lambda a, b: a * b),
    "divide": ("Divide a by b.", lambda a, b: a / b),
}


def _schema(name: str, description: str) -> OpenAIFunctionToolSchema:
    number = {
        key: OpenAIFunctionPropertySchema(type="number", description=f"The {nth} number.")
        for key, nth in (("a", "first"), ("b", "second"))
    }
    return OpenAIFunctionToolSchema(
        type="function",
        function=OpenAIFunctionSchema(
            name=name,
            description=description,
            parameters=OpenAIFunctionParametersSchema(
                type="object", properties=number, required=["a", "b"]
            ),
        ),
    )


CALCULATOR_TOOLS = [_schema(name, description) for name, (description, _) in OPERATIONS.items()]


async def execute_tool_call(tool_call: dict[str, Any]) -> dict[str, Any]:
    """Run one tool call; what is wrong with it becomes a result that the model can read."""
    try:
        call_id, name, arguments = get_tool_call_info(tool_call)
    except ToolArgumentError as error:
        return create_tool_error_result(error.tool_call_id, str(error))
    if name not in OPERATIONS:
        return create_tool_error_result(call_id, f"there is no tool {name!r}")
    try:
        result = OPERATIONS[name][1](float(arguments["a"]), float(arguments["b"]))
    except (KeyError, TypeError, ValueError) as error:
        return create_tool_error_result(call_id, f"{name} takes two numbers, a and b: {error!r}")
    except ZeroDivisionError:
        return create_tool_error_result(call_id, "division by zero")
    whole = int(result) if result.is_integer() else result
    return create_tool_result(call_id, serialize_tool_result(whole))
