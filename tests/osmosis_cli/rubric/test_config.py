"""Rubric files: what is read, and what is refused with file, place and cure."""

from __future__ import annotations

from pathlib import Path

import pytest

from osmosis_cli.rubric.config import RubricConfig, RubricFileError, load_rubrics, pick_rubric

JUDGE = "model_info: {provider: openai, model: gpt-5}"
ENTRY = f"  - id: one\n    rubric: be brief\n    {JUDGE}\n"


def load(tmp_path: Path, text: str | bytes) -> list[RubricConfig]:
    path = tmp_path / "rubrics.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_rubrics(path)


def refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(RubricFileError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'rubrics.yaml'}:")
    return str(caught.value).partition("rubrics.yaml")[2]


def test_bounds_come_from_the_rubric_then_its_judge_then_the_file(tmp_path: Path):
    text = (
        "version: 1\ndefault_score_min: 1\ndefault_score_max: 5\nrubrics:\n"
        "  - {id: a, rubric: r, model_info: {provider: p, model: m}}\n"
        "  - {id: b, rubric: r, model_info: {provider: p, model: m, score_max: 7}}\n"
        "  - {id: c, rubric: r, score_max: 9, model_info: {provider: p, model: m, score_max: 7}}\n"
    )
    found = load(tmp_path, text)
    assert [rubric.model_info["score_max"] for rubric in found] == [5, 7, 9]
    assert [rubric.model_info["score_min"] for rubric in found] == [1, 1, 1]


def test_nested_rubrics_are_found_too(tmp_path: Path):
    text = f"rubrics:\n{ENTRY}drafts:\n  later:\n    - id: two\n      rubric: r\n      {JUDGE}\n"
    found = load(tmp_path, text)
    assert [(rubric.id, rubric.place) for rubric in found] == [
        ("one", "rubrics[0]"),
        ("two", "drafts.later[0]"),
    ]


def test_a_byte_order_mark_is_no_problem(tmp_path: Path):
    assert load(tmp_path, b"\xef\xbb\xbf" + f"rubrics:\n{ENTRY}".encode())[0].id == "one"


def test_what_is_shown_of_a_rubric_has_no_key(tmp_path: Path):
    text = f"rubrics:\n{ENTRY}".replace("gpt-5", "gpt-5, api_key: sk-secret-123")
    assert "sk-secret-123" not in str(load(tmp_path, text)[0].mask())


def test_another_model_keeps_the_provider_or_changes_it(tmp_path: Path):
    text = f"rubrics:\n{ENTRY}".replace("gpt-5", "gpt-5, api_key_env: A, api_base: 'http://x'")
    (rubric,) = load(tmp_path, text)
    same, other = rubric.with_judge("gpt-6"), rubric.with_judge("xai/grok")
    assert (same.model_info["provider"], same.model_info["model"]) == ("openai", "gpt-6")
    assert same.model_info["api_key_env"] == "A"
    assert (other.model_info["provider"], other.model_info["model"]) == ("xai", "grok")
    assert "api_key_env" not in other.model_info and "api_base" not in other.model_info


def test_a_default_judge_shares_no_key_with_another_provider(tmp_path: Path):
    text = (
        "default_model_info: {provider: openai, model: gpt-5, api_key_env: A, timeout: 9}\n"
        "rubrics:\n"
        "  - {id: a, rubric: r, model_info: {model: gpt-6}}\n"
        "  - {id: b, rubric: r, model_info: {provider: xai, model: grok}}\n"
    )
    same, other = (dict(rubric.model_info) for rubric in load(tmp_path, text))
    assert same == {"provider": "openai", "model": "gpt-6", "api_key_env": "A", "timeout": 9}
    assert other == {"provider": "xai", "model": "grok", "timeout": 9}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty: expected a mapping with `rubrics`"),
        ("42", "expected a mapping with `rubrics`, not int"),
        ("- a", "it holds no rubric; `rubrics` is a list"),
        ("version: 2", "version 2 is not known"),
        ("version: true", "version True is not known"),
        ("version: 1", "holds no rubric"),
        ("rubrics: 5", "rubrics must be a list, not int"),
        ("rubrics: [text]", "rubrics[0]: must be a mapping, not str"),
        ("rubric:\n" + ENTRY, "'rubric' is not known; did you mean 'rubrics'?"),
        (f"rubrics:\n{ENTRY}{ENTRY}", "the id 'one' is given twice, at rubrics[0] and rubrics[1]"),
        (f"rubrics:\n  - id: one\n    {JUDGE}\n", "rubrics[0]: rubric is missing or empty"),
        (f"rubrics:\n  - rubric: r\n    {JUDGE}\n", "rubrics[0]: id is missing or empty"),
        (f"rubrics:\n  - id: 5\n    rubric: r\n    {JUDGE}\n", "id must be a string, not int"),
        (
            "rubrics:\n  - {id: a, rubric: r, model_info: m}\n",
            "model_info must be a mapping, not str",
        ),
        ("rubrics:\n  - {id: a, rubric: r, model_info: {model: m}}\n", "no 'provider'"),
        (f"default_extra_info: {{a: 1}}\nrubrics:\n{ENTRY}", "default_extra_info does not belong"),
        (f"default_model_info: gpt\nrubrics:\n{ENTRY}", "default_model_info must be a mapping"),
        (f"rubrics:\n{ENTRY}    extra_info: {{a: 1}}\n", "extra_info does not belong here"),
        (f"rubrics:\n{ENTRY}    score_mx: 5\n", "did you mean 'score_max'?"),
        (f"rubrics:\n{ENTRY}    score_max: -1\n", "score_min (0) must be below score_max (-1)"),
        (f"rubrics:\n{ENTRY}    score_max: .nan\n", "score_max must be finite"),
        (f"rubrics:\n{ENTRY}    score_max: '5'\n", "score_max must be a number, not str"),
        (f"rubrics:\n{ENTRY}    title: [x]\n", "title must be a string, not list"),
        ("rubrics:\n  - id: a\n   rubric: b\n", ":3: not YAML:"),
        ("? [a, b]\n: 3\n", ":1: not YAML: found unhashable key"),
        ("a: 1\nb: 2\na: 3\n", ":3: not YAML: the key 'a' is given twice"),
        ("rubrics: !!python/object/apply:os.system [id]", "not YAML: could not determine"),
        ("a: \x00", "not YAML"),
        ("[" * 1_000, "nested too deeply"),
        (b"\xff\xfer\x00", ":1: is not UTF-8 (byte 0xff)"),
        (b"a: 1\nb: \xe9\n", ":2: is not UTF-8 (byte 0xe9)"),
        (b"#" * 1_000_001, "larger than 1 MB"),
        ("a: &a [x]\nb: &b {c: *b}\n", "nested too deeply"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str | bytes, said: str):
    assert said in refused(tmp_path, text)


def test_a_missing_file_and_a_directory_are_reported(tmp_path: Path):
    with pytest.raises(RubricFileError, match="no such file"):
        load_rubrics(tmp_path / "nope.yaml")
    with pytest.raises(RubricFileError, match="is a directory"):
        load_rubrics(tmp_path)


def test_an_unknown_id_lists_what_there_is(tmp_path: Path):
    found = load(tmp_path, f"rubrics:\n{ENTRY}")
    with pytest.raises(RubricFileError, match="There are: one"):
        pick_rubric(tmp_path, found, "zzzz")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("- {id: a, rubric: good}\n- {id: b, rubric: bad}\n", ["a", "b"]),
        ("{id: a, rubric: good}\n", ["a"]),
        ("{rubric: good}\n", ["rubric"]),
        (
            "team:\n  polite: {rubric: good}\n  deep:\n  - right: {rubric: bad}\n",
            ["polite", "right"],
        ),
    ],
)
def test_rubrics_stand_anywhere_in_a_file(tmp_path: Path, text: str, ids: list[str]):
    path = tmp_path / "any.yaml"
    path.write_text(text)
    assert [rubric.id for rubric in load_rubrics(path)] == ids
