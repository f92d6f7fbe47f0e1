from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_osmosis.dataset.columns import mapping_of
from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "2 + 3?"},
    {"role": "assistant", "content": "5"},
    {"role": "user", "content": [{"type": "text", "text": "And 1 more?"}]},
]


def loaded(folder: Path, *records: dict[str, Any], **options: Any) -> Dataset:
    path = folder / "data.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return load_dataset(path, **options)


def refusal(folder: Path, *records: dict[str, Any], **options: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        loaded(folder, *records, **options)
    return str(caught.value).partition("data.jsonl")[2].lstrip(":0123456789 ")


class TestPrompts:
    def test_an_empty_system_prompt_sends_no_system_message(self, tmp_path):
        row = loaded(tmp_path, {"system_prompt": "", "user_prompt": "u"}).row(0)
        assert row.opening() == [{"role": "user", "content": "u"}]
        assert row.metadata()["system_prompt"] == ""

    def test_messages_stand_for_both_prompts(self, tmp_path):
        row = loaded(tmp_path, {"messages": CHAT, "ground_truth": "6", "level": 1}).row(0)
        assert row.opening() == CHAT
        assert (row.system_prompt, row.user_prompt) == ("Be brief.", "And 1 more?")
        assert row.metadata() == {
            "level": 1,
            "messages": CHAT,
            "system_prompt": "Be brief.",
            "user_prompt": "And 1 more?",
            "ground_truth": "6",
        }

    def test_an_agent_that_changes_its_messages_changes_no_row(self, tmp_path):
        row = loaded(tmp_path, {"messages": CHAT}).row(0)
        row.opening()[3]["content"].clear()
        assert row.opening() == CHAT

    def test_what_a_message_holds_as_null_is_not_sent(self, tmp_path):
        struct = {"role": "assistant", "content": None, "name": None}
        row = loaded(tmp_path, {"messages": [CHAT[1], struct]}).row(0)
        assert row.opening() == [CHAT[1], {"role": "assistant", "content": None}]

    @pytest.mark.fault(
        "a conversation in `messages` is no list of messages, or stands beside a prompt"
    )
    @pytest.mark.parametrize("column", ["user_prompt", "System_Prompt"])
    def test_messages_beside_a_prompt_are_refused(self, tmp_path, column):
        message = refusal(tmp_path, {"messages": CHAT, column: "u"})
        assert message == f"'messages' stands for both prompts: leave out '{column}', or it"

    @pytest.mark.fault(
        "a conversation in `messages` is no list of messages, or stands beside a prompt"
    )
    @pytest.mark.parametrize(
        ("messages", "sentence"),
        [
            ("hello", "'messages' is a string; expected a list of chat messages"),
            ([], "'messages' is an empty list; expected at least one message"),
            ([3], "'messages[0]' is a number; expected an object with role and content"),
            ([*CHAT, {"content": "x"}], "'messages[4]' has the role null; expected one of system"),
            ([{"role": "ai", "content": "x"}], "'messages[0]' has the role 'ai'; expected one of"),
            ([{"role": "user"}], "'messages[0].content' is null; expected a string"),
        ],
    )
    def test_a_wrong_chat_is_reported_with_its_place(self, tmp_path, messages, sentence):
        assert refusal(tmp_path, {"messages": messages}).startswith(sentence)


class TestLabel:
    @pytest.mark.parametrize(
        ("label", "truth"), [("5", "5"), (None, None), (5, "5"), (["5"], ["5"]), (False, False)]
    )
    def test_any_value_stands_for_the_ground_truth(self, tmp_path, label, truth):
        row = loaded(tmp_path, {"system_prompt": "", "user_prompt": "u", "label": label}).row(0)
        assert row.ground_truth == truth
        assert row.metadata() == {
            "system_prompt": "", "user_prompt": "u", "ground_truth": truth, "label": label,
        }  # fmt: skip

    def test_beside_a_ground_truth_it_is_data(self, tmp_path):
        record = {"system_prompt": "", "user_prompt": "u", "label": "x", "ground_truth": None}
        row = loaded(tmp_path, record).row(0)
        assert (row.ground_truth, row.extra) == (None, {"label": "x"})


RECORD = {"Question": "2 + 3?", "answer": "5", "steps": 2}


class TestMap:
    def test_columns_serve_under_other_names(self, tmp_path):
        mapping = mapping_of(["question=user_prompt", "answer=ground_truth", "none=system_prompt"])
        row = loaded(tmp_path, RECORD, mapping=mapping).row(0)
        assert (row.system_prompt, row.user_prompt, row.ground_truth) == ("", "2 + 3?", "5")
        assert row.extra == {"steps": 2}

    def test_what_is_named_wins_over_the_column_of_that_name(self, tmp_path):
        record = {**RECORD, "system_prompt": "s", "user_prompt": "no", "messages": CHAT}
        row = loaded(tmp_path, record, mapping={"user_prompt": "question"}).row(0)
        assert row.opening()[1]["content"] == row.metadata()["user_prompt"] == "2 + 3?"
        assert row.extra["messages"] == CHAT

    def test_a_column_that_is_not_there_is_reported(self, tmp_path):
        message = refusal(tmp_path, RECORD, mapping=mapping_of(["questoin=user_prompt"]))
        assert message.startswith(
            "there is no column 'questoin' to serve as user_prompt "
            "(columns: Question, answer, steps; did you mean 'Question'?)"
        )

    def test_a_dataset_with_other_names_is_refused_with_the_way_out(self, tmp_path):
        assert refusal(tmp_path, {**RECORD, "options": "a b"}).splitlines() == [
            "'user_prompt' is missing",
            "  Question  user_prompt   '2 + 3?'",
            "  answer    ground_truth  '5'",
            "  steps     -             2",
            "  options   -             'a b'",
            "add --osmosis-map Question=user_prompt --osmosis-map answer=ground_truth "
            "--osmosis-eval-fn number",
        ]

    @pytest.mark.parametrize(
        ("texts", "sentence"),
        [
            (["question"], "expected COLUMN=NAME, such as question=user_prompt; NAME is one of"),
            (["a=prompt"], "expected COLUMN=NAME"),
            (["question=user_promt"], "ground_truth, id; did you mean 'user_prompt'\\?"),
            (["none=user_prompt"], "system_prompt, ground_truth, id may have none"),
            (["a=id", "b=id"], "the columns 'a' and 'b' cannot both be id"),
        ],
    )
    def test_a_map_that_cannot_be_is_reported(self, texts, sentence):
        with pytest.raises(ValueError, match=sentence):
            mapping_of(texts)


def test_rows_without_a_system_prompt_have_the_one_that_is_given(tmp_path: Path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"user_prompt": "u"}\n{"user_prompt": "u", "system_prompt": "own"}\n')
    dataset = load_dataset(path, system_prompt="Be brief.")
    assert [dataset.row(index).system_prompt for index in (0, 1)] == ["Be brief.", "own"]
    assert load_dataset(path, limit=1).row(0).system_prompt == ""
    path.write_text('{"user_prompt": "u", "system_prompt": null}\n')
    assert load_dataset(path).row(0).opening() == [{"role": "user", "content": "u"}]


@pytest.mark.parametrize("column", ["system", "systemprompt", "System-Prompt"])
def test_a_column_that_is_probably_the_system_prompt_is_not_left_out(tmp_path: Path, column: str):
    record = {column: "Be brief.", "user_prompt": "u"}
    assert "'system_prompt' is missing" in refusal(tmp_path, record)
    mapped = loaded(tmp_path, record, mapping={"system_prompt": column})
    assert mapped.row(0).system_prompt == "Be brief."


TASK = {"left": 1, "right": [2, {"deep": None}]}
TASK_CSV = json.dumps(json.dumps(TASK)).replace('\\"', '""')


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("rows.jsonl", json.dumps({"metadata": TASK})),
        ("rows.jsonl", json.dumps({"metadata": json.dumps(TASK), "user_prompt": None})),
        ("rows.json", json.dumps([{"metadata": TASK, "system_prompt": "Be brief."}])),
        ("rows.csv", f"metadata,ground_truth\n{TASK_CSV},3\n"),
    ],
)
def test_a_row_may_be_a_task_alone(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    row = load_dataset(tmp_path / name).row(0)
    assert row.task == TASK
    system = [{"role": "system", "content": "Be brief."}] if "brief" in text else []
    assert row.opening() == system
    assert json.loads(row.describe().user_prompt) == TASK


@pytest.mark.parametrize("value", [{}, [], None, 3, "", "[1]", "{}", "{no json"])
def test_what_is_no_task_does_not_stand_for_a_question(tmp_path: Path, value: Any):
    assert "'metadata' is " in refusal(tmp_path, {"metadata": value})
    path = tmp_path / "asked.jsonl"
    path.write_text(json.dumps({"metadata": value, "user_prompt": "u"}))
    row = load_dataset(path).row(0)
    assert (row.task, row.extra["metadata"]) == (None, value)


@pytest.mark.parametrize("number", ["7.50", "-0.0", "1E5", "12345678901234567890", "0.1"])
def test_a_number_as_ground_truth_is_text_as_it_is_written(tmp_path: Path, number: str):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"system_prompt": "", "user_prompt": "u", "ground_truth": {number}}}\n')
    row = load_dataset(path).row(0)
    assert row.ground_truth == number and row.metadata()["ground_truth"] == number
