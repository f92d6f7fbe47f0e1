"""`osmosis eval rubric` from the command line to the result file, against judges on loopback."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Osmosis
from tests.support.endpoints import Ask, Endpoint

KEY = "sk-judge-0123456789abcdef"
FILE = """
version: 1
default_score_max: 10
rubrics:
  - id: support_followup
    title: Follow-up
    rubric: The answer must follow up.
    model_info:
      provider: openai
      model: judge-1
      api_base: {base}
      timeout: 5
"""
ROWS: list[dict[str, Any]] = [
    {"conversation_id": "ticket-001", "rubric_id": "support_followup", "solution_str": "Hello"},
    {"conversation_id": "ticket-047", "rubric_id": "policy", "solution_str": "No."},
    {"solution_str": "Bye", "original_input": "Hi?", "ground_truth": "Goodbye"},
]


def answer(ask: Ask) -> str:
    """7 for the greeting, 3 for the rest."""
    return json.dumps({"score": 7 if "\nHello\n" in ask.row else 3, "explanation": "so it is"})


@pytest.fixture
def judge() -> Iterator[Endpoint]:
    with Endpoint(answer) as endpoint:
        yield endpoint


class Rubrics(Osmosis):
    """`osmosis eval-rubric` in a folder with a rubric file and records, and their judge."""

    folder: Path
    judge: Endpoint

    def __call__(
        self, *words: str, data: str = "data.jsonl", name: str = "support_followup", **given: Any
    ) -> tuple[int, str, str]:
        return super().__call__("eval-rubric", "--rubric", name, "--data", data, *words, **given)

    def write(self, *rows: dict[str, Any]) -> None:
        """Write the records."""
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (self.folder / "data.jsonl").write_text(lines)

    def ask(self, judge: Endpoint, more: str = "") -> None:
        """Write the rubric file, with this judge."""
        text = FILE.format(base=judge.base_url) + more
        (self.folder / "rubric_configs.yaml").write_text(text)

    def result(self, *words: str, status: int = 0, **given: Any) -> dict[str, Any]:
        """Return the result file of a command that ends so."""
        assert self("-o", "mine.json", *words, **given)[0] == status
        return self.written("mine.json")

    def written(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / name).read_text())
        return found

    def refused(self, *words: str, **given: Any) -> str:
        """Return the message of a wrong use, before anything is sent."""
        message = self.error(*words, status=2, **given)
        assert self.judge.requests == 0
        return message


@pytest.fixture
def rubric(
    tmp_path: Path,
    judge: Endpoint,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Rubrics:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "own_rubrics", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rubric = Rubrics(monkeypatch, capsys)
    rubric.folder, rubric.judge, rubric.hidden = tmp_path, judge, (KEY,)
    rubric.ask(judge)
    rubric.write(*ROWS)
    return rubric


def test_each_run_and_the_statistics_are_printed(rubric: Rubrics):
    status, out, err = rubric("-n", "2")
    assert status == 0
    assert out.splitlines()[:7] == [
        "ticket-001",
        "  run 1   7        so it is",
        "  run 2   7        so it is",
        "record 2",
        "  run 1   3        so it is",
        "  run 2   3        so it is",
        "",
    ]
    assert "support_followup: openai/judge-1, 2 records x 2 runs" in out
    assert "average 5  variance 4  standard deviation 2  min 3  max 7" in out
    assert "60 tokens, price unknown" in out
    assert "1 of 3 records are for other rubrics: skipped" in err
    assert rubric.judge.requests == 4


def test_scores_that_are_the_same_have_that_average_and_no_variance(rubric: Rubrics):
    rubric.judge.answers = '{"score": 0.8, "explanation": "so it is"}'
    rubric.write(ROWS[0])
    found = rubric.result("-n", "3")["overall_statistics"]
    assert [found[name] for name in ("average", "variance", "stdev")] == [0.8, 0.0, 0.0]


def test_the_records_texts_are_put_before_the_judge(rubric: Rubrics):
    judges = {"model_info_overrides": {"api_key": KEY}, "tools": [{"api_key": KEY}]}
    extra = {"note": "from extra_info", "api_key": KEY, **judges}
    rubric.write({**ROWS[2], "metadata": {"lang": "en"}, "extra_info": extra})
    rubric.out()
    asked = rubric.judge.seen[0].row
    assert all(text in asked for text in ("Bye", "Hi?", "Goodbye", "en", "from extra_info"))
    assert "lowest score is 0, the highest 10" in asked
    assert KEY not in asked


def test_results_go_under_the_cache_directory_by_rubric_id(rubric: Rubrics):
    _, out, _ = rubric()
    (path,) = (rubric.folder / "cache/osmosis/eval_result/support_followup").iterdir()
    assert path.name.startswith("rubric_eval_result_") and path.suffix == ".json"
    assert f"results: {path}" in out
    found = rubric.written(str(path))
    assert found["complete"] is True
    assert found["counts"] == {"runs": 2, "scored": 2, "failed": 0, "not_run": 0, "clamped": 0}
    first = found["records"][0]
    assert (first["conversation_id"], first["runs"][0]["score"]) == ("ticket-001", 7.0)
    assert first["runs"][0]["raw"]["choices"]


@pytest.mark.parametrize("directory", ["results", "results.d/"])
def test_results_go_into_a_directory_that_is_made(rubric: Rubrics, directory: str):
    for _ in range(2):
        assert rubric("--output", directory)[0] == 0
    names = [path.name for path in (rubric.folder / directory).iterdir()]
    assert len(names) == 2
    assert all(name.startswith("rubric_eval_result_") for name in names)


def test_results_go_into_a_named_file(rubric: Rubrics):
    assert rubric("--output", "deep/mine.txt")[0] == 0
    assert rubric.written("deep/mine.txt")["rubric_id"] == "support_followup"
    assert (rubric.folder / "deep/mine.txt").stat().st_mode & 0o777 == 0o600  # it has the answers


def test_json_is_one_document_on_stdout(rubric: Rubrics):
    _, out, _ = rubric("--json", "--output", "mine.json")
    document = json.loads(out)
    assert document["output"] == "mine.json"
    assert document["overall_statistics"]["average"] == 5.0
    assert {**rubric.written("mine.json"), "output": "mine.json"} == document


def test_a_failing_judgement_is_kept_as_an_error_and_fails_the_command(rubric: Rubrics):
    high, four = ('{"score": "high", "explanation": "x"}', '{"score": 4, "explanation": "y"}')
    answers = iter([high, high, four])
    with Endpoint(lambda ask: next(answers)) as judge:
        rubric.ask(judge)
        status, out, err = rubric("--output", "mine.json", "--batch-size", "1")
    assert status == 1
    assert "run 1   error    twice no clear verdict: the score must be a number" in out
    assert "average 4" in out and "over 1 of 2 runs" in out
    assert "1 of 2 judgements have no score" in err
    found = rubric.written("mine.json")
    assert found["complete"] is False
    assert found["records"][0]["runs"][0]["error_kind"] == "verdict"
    assert found["records"][0]["runs"][0]["score"] is None


@pytest.mark.parametrize("by_function", [False, True])
def test_scores_out_of_bounds_are_clamped_marked_and_counted(rubric: Rubrics, by_function: bool):
    rubric.judge.answers = '{"score": 85, "explanation": "fine"}'
    (rubric.folder / "fns.py").write_text(
        "from osmosis_ai import evaluate_rubric\n"
        "def judged(solution_str, ground_truth, extra_info):\n"
        "    rubric = extra_info.pop('rubric')\n"
        "    return evaluate_rubric(rubric, solution_str, extra_info)\n"
    )
    more = ("--eval-fn", "fns:judged") if by_function else ()
    status, out, _ = rubric("--output", "mine.json", *more)
    assert status == 0
    assert "2 scores of the judge were clamped" in out and "(clamped)" in out
    found = rubric.written("mine.json")
    assert found["counts"]["clamped"] == 2
    assert all(record["runs"][0]["clamped"] for record in found["records"])


def test_a_refused_key_stops_the_asking_and_the_file_is_written(rubric: Rubrics):
    rubric.judge.api_key = "another"
    error = rubric.failure("-n", "5", "--batch-size", "2", "--output", "mine.json")
    assert (error["code"], error["details"]["output"]) == ("provider_error", "mine.json")
    assert "the key in OPENAI_API_KEY was refused" in error["message"]
    assert rubric.judge.requests == 2
    assert rubric.written("mine.json")["counts"]["not_run"] == 8


def test_judging_is_as_concurrent_as_was_asked_for(rubric: Rubrics):
    rubric.judge.full_at = 4
    assert rubric("-n", "6", "--batch-size", "4")[0] == 0
    assert (rubric.judge.requests, rubric.judge.max_in_flight) == (12, 4)


def test_it_is_a_subcommand_of_eval_as_well(rubric: Rubrics):
    words = ["--rubric", "support_followup", "-d", "data.jsonl", "-o", "mine.json"]
    assert Osmosis.__call__(rubric, "eval", "rubric", *words)[0] == 0
    assert rubric.judge.requests == 2


def test_another_judge_can_be_named(rubric: Rubrics):
    assert rubric("--model", "judge-2")[0] == 0
    assert {ask.model for ask in rubric.judge.seen} == {"judge-2"}


def test_an_interrupt_leaves_no_file(rubric: Rubrics, monkeypatch: pytest.MonkeyPatch):
    async def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("osmosis_cli.rubric.judging.judge_all", interrupted)
    assert rubric("--output", "mine.json")[0] == 130
    assert not (rubric.folder / "mine.json").exists()


# A rubric, records, a judge and a baseline in other forms.

CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Where is it?"}]},
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "look"}}]},
    {"role": "assistant", "content": "Hello"},
]


@pytest.mark.parametrize("name", ["Polite and short?", "@polite.txt"])
def test_a_rubric_may_be_given_as_a_text(
    rubric: Rubrics, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setenv("OPENAI_BASE_URL", rubric.judge.base_url)
    (rubric.folder / "polite.txt").write_text("Polite and short?\n")
    assert "give --model PROVIDER/MODEL" in rubric.refused(name=name)
    found = rubric.result("--model", "judge-1", name=name)
    assert rubric.judge.requests == 3  # records of every rubric
    assert "Polite and short?" in rubric.judge.seen[0].row
    assert found["rubric_id"] == ("polite" if name == "@polite.txt" else "inline")


def test_the_last_answer_of_a_conversation_is_judged(rubric: Rubrics):
    rubric.write({"messages": CONVERSATION})
    found = rubric.result()
    asked = rubric.judge.seen[0].row
    assert "  system     Be brief.\n  user       Where is it?\n  assistant  -> look(None)" in asked
    assert found["records"][0]["input_record"]["solution_str"] == "Hello"


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ("hello", "'messages' is a string; expected a list"),
        ([{"content": "x"}], "'messages' 0 has no role"),
        (CONVERSATION[:2], "holds no assistant message to judge"),
        (CONVERSATION[:3], "has no text to judge"),
    ],
)
def test_a_conversation_without_an_answer_is_named(rubric: Rubrics, messages: Any, said: str):
    rubric.write({"messages": messages})
    assert said in rubric.refused()


RUBRIC_FUNCTION = """
from osmosis_ai import evaluate_rubric, osmosis_rubric

@osmosis_rubric
def judged(solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
    return evaluate_rubric(extra_info["rubric"], solution_str, extra_info,
                           metadata=extra_info.get("metadata"))

@osmosis_rubric
def fields(solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
    assert ground_truth == "Goodbye" or "model" in extra_info
    seen = {name: extra_info[name] for name in sorted(extra_info)}
    if solution_str == "Bye":
        raise ValueError(str(seen))
    return 1.0
"""


def test_ones_own_function_may_judge(rubric: Rubrics):
    (rubric.folder / "own_rubrics.py").write_text(RUBRIC_FUNCTION)
    rubric.write({**ROWS[0], "metadata": {"lang": "en"}}, ROWS[2])
    found = rubric.result("--eval-fn", "own_rubrics:judged")
    assert rubric.judge.requests == 2
    assert any("en" in ask.row and "must follow up" in ask.row for ask in rubric.judge.seen)
    assert found["eval_fn"] == "own_rubrics:judged"
    first = found["records"][0]["runs"][0]
    assert (first["score"], first["explanation"]) == (7.0, "so it is")


def test_ones_own_function_is_given_what_a_judge_would_be(
    rubric: Rubrics, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY")  # it may need none
    (rubric.folder / "own_rubrics.py").write_text(RUBRIC_FUNCTION)
    rubric.write(ROWS[0], {**ROWS[2], "extra_info": {"mine": 5}})
    status, out, err = rubric("--eval-fn", "own_rubrics:fields")
    assert status == 1
    assert "  run 1   1        (no explanation)" in out
    assert "1 of 2 judgements have no score" in err
    for field in (
        "'api_key_env': 'OPENAI_API_KEY'",
        "'mine': 5",
        "'model': 'judge-1'",
        "'original_input': 'Hi?'",
        "'provider': 'openai'",
        "'rubric': 'The answer must follow up.'",
        "'score_max': 10.0",
        "'score_min': 0.0",
    ):
        assert field in err


def test_no_key_is_shown_when_ones_own_function_fails(rubric: Rubrics):
    (rubric.folder / "own_rubrics.py").write_text(RUBRIC_FUNCTION)
    rubric.ask(rubric.judge, f"      api_key: {KEY}\n")
    others = {"api_key": "sk-of-the-record-01", "model_info_overrides": {"api_base": "http://x"}}
    rubric.write({**ROWS[2], "extra_info": others})
    rubric.hidden += ("sk-of-the-record-01",)
    status, out, _ = rubric("--eval-fn", "own_rubrics:fields", "-o", "mine.json")
    text = (rubric.folder / "mine.json").read_text()
    assert (status, "'api_key': '***'" in out + text) == (1, True)
    assert not [key for key in rubric.hidden if key in text]
    error = rubric.written("mine.json")["records"][0]["runs"][0]["error"]
    assert f"'api_base': '{rubric.judge.base_url}'" in error


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("own_rubrics:judgd", "Did you mean 'judged'?"),
        ("own_rubrics", "expected module:attribute"),
        ("own_rubrics:FULL", "takes messages; expected a rubric function"),
    ],
)
def test_a_function_that_cannot_judge_is_reported(rubric: Rubrics, spec: str, said: str):
    text = RUBRIC_FUNCTION + "\ndef FULL(messages, ground_truth, metadata): return 1.0\n"
    (rubric.folder / "own_rubrics.py").write_text(text)
    assert said in rubric.refused("--eval-fn", spec)


def test_an_earlier_result_is_compared_with(rubric: Rubrics):
    assert rubric("-o", "first.json")[0] == 0
    rubric.write(ROWS[0])
    printed = rubric.out("-b", "first.json", "-o", "second.json")
    assert "compared with first.json\n  average             5 -> 7 (+2)\n" in printed
    compared = rubric.written("second.json")["baseline_comparison"]
    assert compared["source_path"] == "first.json"
    assert compared["baseline_statistics"]["average"] == 5.0
    assert compared["delta_statistics"]["average"] == 2.0


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "No such file"), ("{", "is not JSON"), ("{}", "has no 'overall_statistics'")],
)
def test_a_baseline_that_is_none_is_reported(rubric: Rubrics, text: str | None, said: str):
    if text is not None:
        (rubric.folder / "before.json").write_text(text)
    assert f"--baseline before.json: {said}" in rubric.refused("-b", "before.json")


# Wrong use: reported before anything is sent.


def test_one_word_is_an_id_and_the_refusal_says_how_to_give_a_text(rubric: Rubrics):
    message = rubric.refused(name="Polite?")
    assert "There are: support_followup. A text stands in a file" in message
    assert "--rubric @FILE, or has several words" in message
    message = rubric.refused("--config", "rubric_configs.yaml", name="Is it polite?")
    assert "or has several words, without --config" in message


def test_a_missing_key_is_reported_before_any_request(
    rubric: Rubrics, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "export OPENAI_API_KEY=" in rubric.refused()


def test_the_key_of_one_provider_is_not_sent_to_another(rubric: Rubrics):
    assert "XAI_API_KEY is not set" in rubric.refused("--model", "xai/grok")


def test_a_ready_scorer_of_a_module_refuses_ground_truths_before_any_request(rubric: Rubrics):
    text = "from osmosis_ai import scorers\nclose = scorers.number()\n"
    (rubric.folder / "ready.py").write_text(text)
    message = rubric.refused("--eval-fn", "ready:close")
    assert "record 0 (and 1 more records): 'ground_truth' is missing, and ready:close" in message


def test_a_scorer_of_rows_reads_extra_info_and_refuses_all_records_at_once(rubric: Rubrics):
    text = "from osmosis_ai import scorers\nchosen = scorers.choice()\n"
    (rubric.folder / "choosing.py").write_text(text)
    offered = {"choices": ["Rome", "Oslo"]}
    rubric.write(
        {"solution_str": "B", "ground_truth": 1, "extra_info": offered},
        {"solution_str": "Rome", "ground_truth": ["Rome", "B"], "extra_info": offered},
    )
    status, out, _ = rubric("--eval-fn", "choosing:chosen", "--json")
    assert status == 0 and json.loads(out)["overall_statistics"]["average"] == 1.0
    rubric.write({"solution_str": "B", "ground_truth": "Rome"}, {"solution_str": "B"})
    message = rubric.refused("--eval-fn", "choosing:chosen")
    assert "record 0 (and 1 more records): 'ground_truth' is 'Rome', which is no letter" in message


def test_an_unknown_rubric_suggests_a_known_one(rubric: Rubrics):
    message = rubric.refused(name="support_folowup")
    assert "Did you mean 'support_followup'?" in message


def test_a_missing_rubric_file_names_the_places_and_the_option(rubric: Rubrics):
    (rubric.folder / "rubric_configs.yaml").unlink()
    message = rubric.refused()
    assert "no rubric_configs.yaml beside data.jsonl" in message and "--config" in message
    (rubric.folder / "data.jsonl").unlink()
    assert "--data data.jsonl: no such file" in rubric.refused()


def test_the_rubric_file_beside_the_data_is_found(
    rubric: Rubrics, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert rubric("-o", "mine.json", data=str(rubric.folder / "data.jsonl"))[0] == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"text": "x"}, "data.jsonl:2: 'solution_str' or 'messages' is missing (columns: text)"),
        ({"solution_str": " "}, "'solution_str' is empty"),
        ({"solution_str": 5}, "'solution_str' is a number"),
        ({"solution_str": "x", "original_input": 1.1}, "'original_input' is a number"),
        ({"solution_str": "x", "metadata": []}, "'metadata' is a list; expected an object"),
    ],
)
def test_wrong_records_are_named_by_line(rubric: Rubrics, row: dict[str, Any], said: str):
    rubric.write(ROWS[0], row)
    assert said in rubric.refused()


def test_records_for_other_rubrics_only_are_nothing_to_do(rubric: Rubrics):
    rubric.write(ROWS[1])
    assert "none of its 1 records is for 'support_followup'" in rubric.refused()


def test_missing_data_and_an_unwritable_output_are_reported(rubric: Rubrics):
    assert "--data nope.jsonl: no such file" in rubric.refused(data="nope.jsonl")
    (rubric.folder / "taken").write_text("a file")
    assert "--output taken" in rubric.refused("--output", "taken/mine.json")
