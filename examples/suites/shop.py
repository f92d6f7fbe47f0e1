"""A shop's assistant, as its team has it: plain functions, which know nothing of tests."""

from __future__ import annotations

import json
import re
from typing import Any

ORDERS = {"A1": "shipped", "B2": "packed", "C3": "cancelled"}


def answer(question: str) -> str:
    """Answer a customer's question about an order."""
    number = re.search(r"[A-Z]\d", question)
    if number is None:
        return "Which order do you mean?"
    return f"Order {number[0]} is {ORDERS.get(number[0], 'not known')}."


async def triage(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what a customer wants, as JSON."""
    text = str(messages[-1]["content"])
    return {"topic": "refund" if "money" in text else "status", "urgent": "!" in text}


def agent(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Look the order up with a tool, and answer; the whole conversation."""
    number = row["order"]
    function = {"name": "get_order", "arguments": json.dumps({"order_id": number})}
    call = {"id": "1", "type": "function", "function": function}
    found = ORDERS.get(number)
    result = {"status": found} if found else {"error": f"no order {number}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps(result)},
        {"role": "assistant", "content": f"It is {found}." if found else "There is no such order."},
    ]


class Support:
    """An assistant with settings, as an object that is called."""

    def __init__(self, tone: str = "plain") -> None:
        self.tone = tone

    def __call__(self, question: str) -> str:
        """Answer in the assistant's tone."""
        return f"{'Dear customer, o' if self.tone == 'formal' else 'O'}{answer(question)[1:]}"
