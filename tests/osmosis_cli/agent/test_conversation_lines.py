from __future__ import annotations

from osmosis_cli.agent.conversation_lines import message_lines


def test_a_message_of_the_agents_own_making_is_shown_as_far_as_it_can_be():
    assert message_lines({"role": "assistant", "tool_calls": 1}) == "  assistant"
    calls = ["add", {"function": {"name": "add", "arguments": "{}"}}]
    assert message_lines({"content": ["4"], "tool_calls": calls}).splitlines() == [
        '  ?          ["4"]',
        "             -> None(None)",
        "             -> add({})",
    ]
