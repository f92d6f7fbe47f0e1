"""A program as an agent, with nothing but Python's own library."""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.request import Request, urlopen


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    call = Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        data=json.dumps({"model": "any", "messages": messages}).encode(),
        headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urlopen(call) as reply:
        return json.load(reply)["choices"][0]["message"]


request = json.load(sys.stdin)
messages = request["messages"]
messages.append(ask(messages))
print("asked once", file=sys.stderr)  # shown with the item when it fails
print(json.dumps({"messages": messages}))
