"""What one rollout prints and logs stays apart from what another does."""

import asyncio

from osmosis_ai.running.captured import (
    MAX_STREAM_CHARS,
    Captured,
    capture,
    current_rollout,
)
from osmosis_ai.secret import Secret, mask_everywhere


def sections(captured: Captured) -> dict[str, str]:
    return dict(captured.sections())


def test_tasks_and_threads_write_to_the_rollout_that_started_them():
    def write(text: str) -> None:
        captured = current_rollout()
        assert captured is not None
        captured.write("stdout", text)

    async def rollout(name: str) -> Captured:
        captured = capture()
        await asyncio.create_task(asyncio.sleep(0))
        await asyncio.create_task(asyncio.to_thread(write, f"{name} in a thread"))
        return captured

    async def main() -> list[Captured]:
        return await asyncio.gather(rollout("a"), rollout("b"))

    first, second = asyncio.run(main())
    assert sections(first) == {"Captured stdout rollout": "a in a thread"}
    assert sections(second) == {"Captured stdout rollout": "b in a thread"}
    assert current_rollout() is None


def test_a_short_text_is_kept_whole_and_by_kind():
    captured = Captured()
    for text in ("one ", "two"):
        captured.write("stdout", text)
    captured.write("log", "three")
    assert captured.sections() == [
        ("Captured stdout rollout", "one two"),
        ("Captured log rollout", "three"),
    ]


def test_half_a_character_is_escaped():
    captured = Captured()
    captured.write("stdout", "caf\udce9 \N{GRINNING FACE}")
    assert sections(captured) == {"Captured stdout rollout": "caf\\udce9 \N{GRINNING FACE}"}


def test_of_a_long_text_head_and_tail_are_kept_and_the_gap_is_named():
    captured = Captured()
    for number in range(100_000):
        captured.write("stdout", f"{number}\n")
    (text,) = sections(captured).values()
    assert text.startswith("0\n1\n")
    assert text.endswith("99998\n99999\n")
    written = sum(len(f"{number}\n") for number in range(100_000))
    assert f"[... {written - MAX_STREAM_CHARS} characters left out ...]" in text
    assert len(text) < MAX_STREAM_CHARS + 100


def test_a_key_that_the_gap_cuts_in_two_shows_no_piece():
    key, half = "sk-0123456789abcdefghijklmnop", MAX_STREAM_CHARS // 2
    captured = Captured()
    captured.write("stdout", "p" * (half - 20) + key + "q" * MAX_STREAM_CHARS)
    captured.write("stderr", "p" * MAX_STREAM_CHARS + key + "q" * (half - 20))
    mask_everywhere(Secret(key))
    texts = sections(captured)
    assert key[:20] + "\n" not in texts["Captured stdout rollout"]
    for text in texts.values():
        assert "characters left out" in text
        assert not any(key[at : at + 6] in text for at in range(len(key) - 6))
