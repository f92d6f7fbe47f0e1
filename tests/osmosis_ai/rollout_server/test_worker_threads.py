from __future__ import annotations

import asyncio
import threading

from osmosis_ai.rollout_server.execution.worker_threads import Workers
from tests.osmosis_ai.rollout_server.trainer import PATIENCE_S


async def no_close(_: None) -> None:
    pass


def test_what_waits_behind_a_task_that_blocks_runs_in_another_thread():
    begun, ready, blocks, released = (threading.Event() for _ in range(4))
    threads: list[threading.Thread] = []

    async def waiting(_: None) -> None:
        begun.set()
        ready.wait(PATIENCE_S)

    async def blocking(_: None) -> None:
        threads.append(threading.current_thread())
        blocks.set()
        released.wait(PATIENCE_S)

    async def quick(_: None) -> None:
        threads.append(threading.current_thread())

    async def main() -> bool:
        workers = Workers(lambda: None, no_close, most=3)
        jobs = [workers.run(waiting)]
        assert begun.wait(PATIENCE_S)
        jobs.append(workers.run(blocking))
        behind = workers.run(quick)
        ready.set()  # the loop takes up both in one pass
        assert blocks.wait(PATIENCE_S)
        await asyncio.wait_for(behind.result, PATIENCE_S)
        blocked = not jobs[1].result.done()
        released.set()
        await asyncio.gather(*(job.result for job in jobs))
        await workers.close()
        return blocked

    assert asyncio.run(main())
    assert threads[0] is not threads[1]
