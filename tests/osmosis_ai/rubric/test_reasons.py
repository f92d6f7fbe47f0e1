"""What judges say beside their score reaches whoever listens, and nobody else."""

from __future__ import annotations

import asyncio
import contextvars
import threading

from osmosis_ai.rubric.reasons import LIMIT, add_reason, collect_reasons


def test_reasons_come_from_tasks_and_threads_of_the_same_context():
    async def judging() -> None:
        await asyncio.ensure_future(_said("from a task"))
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(add_reason, "from a thread"))
        thread.start()
        thread.join()

    with collect_reasons() as reasons:
        asyncio.run(judging())
    assert reasons == ["from a task", "from a thread"]


async def _said(reason: str) -> None:
    add_reason(reason)


def test_listeners_hear_their_own_and_nobody_need_listen():
    add_reason("into the void")
    with collect_reasons() as outer:
        add_reason("outer")
        with collect_reasons() as inner:
            add_reason("inner")
        add_reason("outer again")
    assert (outer, inner) == (["outer", "outer again"], ["inner"])


def test_a_talkative_judge_is_cut_short():
    with collect_reasons() as reasons:
        for number in range(2 * LIMIT):
            add_reason(str(number))
    assert len(reasons) == LIMIT
