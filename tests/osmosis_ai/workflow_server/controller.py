"""A controller of rollouts, and what it asks for."""

from __future__ import annotations

from typing import Any

from tests.osmosis_ai.rollout_server.trainer import Reply, Trainer

CONTROLLER_KEY = "a-controllers-key-0123"


class Controller(Trainer):
    """A model, and the two places that a server of workflows calls back."""

    away: int = 0
    """How many calls back are answered with 503."""
    takes_results: bool = True
    """Else all are."""

    async def _reply(self, path: str, body: dict[str, Any]) -> Reply:
        if path.startswith(("/done/", "/graded/")):
            if not self.takes_results:
                return Reply(503)
            if self.away:
                self.away -= 1
                return Reply(503)
            with self._arrived:
                self.results[path].append(body)
                self._arrived.notify_all()
            return Reply(200)
        return await super()._reply(path, body)


def asked(
    controller: Controller, rollout_id: str, wish: str = "hi", **fields: Any
) -> dict[str, Any]:
    return {
        "rollout_id": rollout_id,
        "initial_messages": [{"role": "user", "content": wish}],
        "label": "hello",
        "chat_completions_url": f"{controller.url}/v1",
        "controller_api_key": CONTROLLER_KEY,
        "completion_callback_url": f"{controller.url}/done/{rollout_id}",
        "grader_callback_url": f"{controller.url}/graded/{rollout_id}",
        "of_a_newer_controller": 1,
        **fields,
    }
