"""The import path that existing projects use; the code is in `osmosis_ai.agents`."""

from ..agents.message_fields import (
    count_messages_by_role,
    get_message_content,
    get_message_role,
    is_assistant_message,
    is_tool_message,
    is_user_message,
    parse_tool_calls,
)
from ..agents.schemas import normalize_stop

__all__ = [
    "count_messages_by_role",
    "get_message_content",
    "get_message_role",
    "is_assistant_message",
    "is_tool_message",
    "is_user_message",
    "normalize_stop",
    "parse_tool_calls",
]
