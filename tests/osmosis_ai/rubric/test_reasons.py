"""What judges say beside their score reaches whoever listens, and nobody else."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from osmosis_ai.rubric.reasons import LIMIT, heard, tell


def test_reasons_come_from_tasks_and_threads_of_the_same_context():
    async def judging() -> None:
        await asyncio.ensure_future(_said("from a task"))
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(tell, "from a thread"))
        thread.start()
        thread.join()

    with heard() as reasons:
        asyncio.run(judging())
    assert reasons == ["from a task", "from a thread"]


async def _said(reason: str) -> None:
    tell(reason)


def test_listeners_hear_their_own_and_nobody_need_listen():
    tell("into the void")
    with heard() as outer:
        tell("outer")
        with heard() as inner:
            tell("inner")
        tell("outer again")
    assert (outer, inner) == (["outer", "outer again"], ["inner"])


def test_a_talkative_judge_is_cut_short():
    with heard() as reasons:
        for number in range(2 * LIMIT):
            tell(str(number))
    assert len(reasons) == LIMIT
