from __future__ import annotations

import asyncio
import threading

from osmosis_ai.rollout_server.execution.worker_threads import Workers
from tests.osmosis_ai.rollout_server.trainer import PATIENCE_S


async def no_close(_: None) -> None:
    pass


def test_what_waits_behind_a_task_that_blocks_runs_in_another_thread():
    ready, released = threading.Event(), threading.Event()

    async def waiting(_: None) -> None:
        ready.wait(PATIENCE_S)

    async def blocking(_: None) -> None:
        released.wait(PATIENCE_S)

    async def quick(_: None) -> str:
        return threading.current_thread().name

    async def main() -> tuple[str, bool]:
        workers = Workers(lambda: None, no_close, most=3)
        jobs = [workers.run(waiting), workers.run(blocking)]
        behind = workers.run(quick)
        ready.set()  # the loop takes up both in one pass
        name = await asyncio.wait_for(behind.result, PATIENCE_S)
        blocked = not jobs[1].result.done()
        released.set()
        await asyncio.gather(*(job.result for job in jobs))
        await workers.close()
        return name, blocked

    assert asyncio.run(main()) == ("osmosis-agent-1", True)
