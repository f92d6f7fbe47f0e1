"""Conversations as rows: what reaches which agent, and the turn that is the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.dataset.columns import mapping_of
from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError

SYSTEM, USER = {"role": "system", "content": "s"}, {"role": "user", "content": "u"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SAID = {"role": "assistant", "content": "a"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aaaa"}}
HUMAN, GPT = {"from": "human", "value": "u"}, {"from": "gpt", "value": "a"}
Chat = list[dict[str, Any]]


def loaded(folder: Path, chats: list[Chat], *maps: str, column: str = "messages") -> Dataset:
    path = folder / "data.jsonl"
    path.write_text("".join(f"{json.dumps({column: chat, 'n': 1})}\n" for chat in chats))
    return load_dataset(path, mapping=mapping_of(maps))


def parts(*contents: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(contents)}


@pytest.mark.parametrize(
    ("chat", "lost"),
    [
        ([SYSTEM, USER], ""),
        ([parts({"type": "text", "text": "u"})], ""),
        ([USER, SAID, USER], "more than one turn of the user"),
        ([USER, USER], "more than one turn of the user"),
        ([SAID, USER], "turns of an assistant"),
        (
            [USER, {**SAID, "tool_calls": [CALL]}, {"role": "tool", "content": "3"}],
            "results of tools",
        ),
        ([parts({"type": "text", "text": "u"}, IMAGE)], "parts that are not text"),
    ],
)
def test_what_a_question_as_text_would_lose_is_refused_for_such_an_agent(
    tmp_path: Path, chat: Chat, lost: str
):
    dataset = loaded(tmp_path, [[USER], chat, [USER], chat])
    dataset.refuse_for("a:b", takes="question", needs_task=False)
    assert dataset.row(1).opening() == chat
    if not lost:
        dataset.refuse_for("a:b", takes="text", needs_task=False)
        return
    with pytest.raises(DatasetError) as caught:
        dataset.refuse_for("a:b", takes="text", needs_task=False)
    assert f"a:b takes one question as text, and 'messages' hold {lost} in lines 2, 4" in str(
        caught.value
    )
    assert "let its parameter be `messages`" in str(caught.value)


@pytest.mark.parametrize(
    ("chats", "column", "line"),
    [
        ([[USER], [USER, SAID]], "messages", "'messages[-1].content=ground_truth'"),
        ([[HUMAN, GPT]], "messages", "'messages[-1].value=ground_truth'"),
    ],
)
def test_an_answer_at_the_end_is_refused_with_the_map_that_makes_it_the_truth(
    tmp_path: Path, chats: list[Chat], column: str, line: str
):
    with pytest.raises(DatasetError) as caught:
        loaded(tmp_path, chats).refuse_for("a:b", takes="row", needs_task=False)
    assert f"in line {len(chats)}: that turn can be the truth" in str(caught.value)
    assert str(caught.value).endswith(f"add --osmosis-map {line}")


@pytest.mark.parametrize(
    ("chat", "column", "maps"),
    [
        ([SYSTEM, USER, SAID], "messages", ["messages[-1].content=ground_truth"]),
        (
            [SYSTEM, USER, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}],
            "messages",
            ["messages[-1].content=ground_truth"],
        ),
        (
            [{"from": "system", "value": "s"}, HUMAN, GPT],
            "conversations",
            ["conversations=messages", "conversations[-1].value=ground_truth"],
        ),
    ],
)
def test_the_last_turn_as_the_truth_is_no_part_of_the_prompt(
    tmp_path: Path, chat: Chat, column: str, maps: list[str]
):
    dataset = loaded(tmp_path, [chat], *maps, column=column)
    dataset.refuse_for("a:b", takes="text", needs_task=False)
    row = dataset.row(0)
    assert (row.opening(), row.ground_truth) == ([SYSTEM, USER], "a")
    assert row.metadata()["messages"] == [SYSTEM, USER]


@pytest.mark.parametrize("chat", [[USER], [SAID], [USER, SAID, USER]])
def test_a_last_turn_that_is_no_answer_cannot_be_the_truth(tmp_path: Path, chat: Chat):
    with pytest.raises(DatasetError, match=r"data.jsonl:1: the last of 'messages' is the truth"):
        loaded(tmp_path, [chat], "messages[-1].content=ground_truth")
