"""The floor: one aiohttp session, `B` tasks that post and read, nothing else.

    python benchmarks/bare.py BASE_URL N B

Reads no dataset, scores nothing, keeps nothing: whatever evaluates over aiohttp takes longer.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator

import aiohttp


async def main(base_url: str, n: int, in_flight: int) -> int:
    """How many answers were right."""
    url = f"{base_url}/chat/completions"
    connector = aiohttp.TCPConnector(limit=in_flight)
    numbers = iter(range(n))
    async with aiohttp.ClientSession(connector=connector) as session:
        right = await asyncio.gather(*(ask(session, url, numbers) for _ in range(in_flight)))
    return sum(right)


async def ask(session: aiohttp.ClientSession, url: str, numbers: Iterator[int]) -> int:
    """One after the other, as long as there are any."""
    right = 0
    for number in numbers:
        messages = [
            {"role": "system", "content": "Answer with a number."},
            {"role": "user", "content": f"What is {number} x 7?"},
        ]
        async with session.post(url, json={"model": "bench", "messages": messages}) as answer:
            found = await answer.json()
        right += found["choices"][0]["message"]["content"] == "42"
    return right


if __name__ == "__main__":
    wanted = int(sys.argv[2])
    found = asyncio.run(main(sys.argv[1], wanted, int(sys.argv[3])))
    sys.exit(0 if found == wanted else 1)
