"""What is wrong with a dataset, as the session tells it: one sentence, before any request.

The sentence itself is held where the dataset is loaded, for every fault.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pytest_osmosis.dataset.dataset import load_dataset
from pytest_osmosis.dataset.errors import DatasetError, EmptyDataset
from tests.endpoints import Ask
from tests.modes import each_mode
from tests.project import Project, Session

GOOD = {"system_prompt": "Be brief.", "user_prompt": "2 + 3?", "ground_truth": "5"}
LINE = json.dumps(GOOD).encode() + b"\n"
Make = Callable[[Path], Path]


def holding(content: bytes, name: str = "data.jsonl") -> Make:
    """A file of these bytes."""

    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return make


def row(**changes: Any) -> Make:
    """A file whose only row has these columns besides or instead."""
    return holding(json.dumps({**GOOD, **changes}).encode() + b"\n")


def second(line: bytes) -> Make:
    """A file whose second line is this one."""
    return holding(LINE + line + b"\n" + LINE)


def table(columns: dict[str, Any] | None = None, **more: Any) -> Make:
    """A parquet file of two good rows and further columns."""

    def make(folder: Path) -> Path:
        whole = {**{name: [value] * 2 for name, value in GOOD.items()}, **(columns or {}), **more}
        pq.write_table(pa.table(whole), folder / "data.parquet")
        return folder / "data.parquet"

    return make


def damaged(change: Callable[[bytes], bytes]) -> Make:
    """A parquet file that something has happened to."""

    def make(folder: Path) -> Path:
        path = table()(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make


def missing(folder: Path) -> Path:
    return folder / "nowhere.jsonl"


def a_folder(folder: Path) -> Path:
    (folder / "set.parquet").mkdir()
    return folder / "set.parquet"


def a_pipe(folder: Path) -> Path:
    os.mkfifo(folder / "data.jsonl")
    return folder / "data.jsonl"


def a_loop(folder: Path) -> Path:
    (folder / "data.jsonl").symlink_to(folder / "data.jsonl")
    return folder / "data.jsonl"


def two_names(folder: Path) -> Path:
    arrays = [pa.array(["s"]), pa.array(["u"]), pa.array(["v"])]
    names = ["system_prompt", "user_prompt", "user_prompt"]
    pq.write_table(pa.Table.from_arrays(arrays, names=names), folder / "data.parquet")
    return folder / "data.parquet"


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root may read whatever it likes, unless it gives that up: see capabilities(7)."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    version = (ctypes.c_uint32 * 2)(0x20080522, 0)
    before = (ctypes.c_uint32 * 6)()
    assert libc.capget(version, before) == 0
    without = type(before)(*before)
    without[0] &= ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(version, without) == 0
    try:
        yield
    finally:
        assert libc.capset(version, before) == 0


REFUSED: dict[str, tuple[Make, str]] = {
    "missing": (missing, "nowhere.jsonl: no such file"),
    "folder": (a_folder, "is a directory; give a .jsonl, .json, .csv or .parquet file"),
    "suffix": (holding(LINE, "data.tsv"), "expected a .jsonl, .json, .csv or .parquet file"),
    "no-suffix": (holding(b"PAR1....", "data"), "it looks like parquet: rename it to .parquet"),
    "gzip": (holding(b"\x1f\x8b\x08", "data.jsonl.gz"), "looks like gzip; unpack it"),
    "zstd": (holding(b"\x28\xb5\x2f\xfd", "data.jsonl.zst"), "looks like zstd; unpack it"),
    "bad-json": (
        holding(LINE + b"\n" + b'{"a" 1}\n'),
        "data.jsonl:3: not JSON: Expecting ':' delimiter (column 6)",
    ),
    "torn": (holding(LINE + LINE[:40]), "the line has no end, the file may be incomplete"),
    "double-key": (second(b'{"a": 1, "a": 2}'), "data.jsonl:2: the key 'a' is there twice"),
    "utf-16": (
        holding(LINE.decode().encode("utf-16")),
        "is not UTF-8 (byte 0xff at line 1); looks like UTF-16: save as UTF-8",
    ),
    "latin-1": (
        second(b'{"x": "caf\xe9"}'),
        "data.jsonl:2: not UTF-8 (byte 0xe9 at column 11): save the file as UTF-8",
    ),
    "row-list": (second(b"[1]"), "data.jsonl:2: is a list; expected an object"),
    "row-string": (second(b'"x"'), "data.jsonl:2: is a string; expected an object"),
    "row-null": (second(b"null"), "data.jsonl:2: is null; expected an object"),
    "column": (
        second(b'{"system_prompt": "s", "prompt": "u"}'),
        "data.jsonl:2: 'user_prompt' is missing (columns: system_prompt, prompt; "
        "did you mean 'prompt'?)",
    ),
    "colliding-columns": (row(User_Prompt="x"), "'user_prompt' and 'User_Prompt' collide"),
    "truth-number": (row(ground_truth=1.1), "'ground_truth' is the number 1.1; quote it"),
    "prompt-null": (row(user_prompt=None), "data.jsonl:1: 'user_prompt' is null; expected"),
    "prompt-list": (row(user_prompt=["x"]), "data.jsonl:1: 'user_prompt' is a list; expected"),
    "prompt-empty": (row(user_prompt=""), "data.jsonl:1: 'user_prompt' is an empty string"),
    "prompt-blank": (row(user_prompt=" "), "data.jsonl:1: 'user_prompt' holds only blanks"),
    "nan": (second(b'{"x": NaN}'), "data.jsonl:2: NaN is not JSON; use null or a string"),
    "infinity": (second(b'{"x": -Infinity}'), "data.jsonl:2: -Infinity is not JSON"),
    "1e999": (second(b'{"x": 1e999}'), "data.jsonl:2: 1e999 is beyond the range of numbers"),
    "digits": (second(b'{"x": ' + b"9" * 5000 + b"}"), "a number with too many digits; quote it"),
    "nested": (second(b"[" * 200_000), "data.jsonl:2: nested too deeply"),
    "surrogate": (second(rb'{"x": "\ud800"}'), "data.jsonl:2: holds half a character"),
    "double-id": (
        holding(b"".join(json.dumps({**GOOD, "id": "a"}).encode() + b"\n" for _ in range(2))),
        "data.jsonl:2: the id 'a' was given before, at line 1",
    ),
    "parquet-cut": (damaged(lambda data: data[:-20]), "data.parquet: "),
    "parquet-flipped": (damaged(lambda data: b"PAR1" + b"\xff" * len(data) + b"PAR1"), "parquet: "),
    "parquet-bytes": (
        table(x=[None, b"b"]),
        "the column 'x' holds bytes, which JSON has not; store it as text",
    ),
    "parquet-nan": (table(x=[1.0, float("nan")]), "the column 'x' holds NaN or an infinite number"),
    "parquet-double-column": (two_names, "'user_prompt'"),
    "pipe": (a_pipe, "must be a regular file: it is read by every worker"),
    "link-loop": (a_loop, "is a loop of symbolic links"),
    "line-end-in-path": (lambda folder: folder / "da\nta.jsonl", r"da\nta.jsonl': no such file"),
}

TOLD_BY_SESSIONS = (
    "missing", "bad-json", "nested", "surrogate", "parquet-cut", "pipe", "line-end-in-path",
)  # fmt: skip
EMPTY: dict[str, Make] = {
    "no-bytes": holding(b""),
    "blank-lines": holding(b"\n  \r\n"),
    "no-bytes-json": holding(b"", "data.json"),
    "empty-array": holding(b"[]", "data.json"),
    "no-bytes-parquet": holding(b"", "data.parquet"),
    "no-rows": table({name: pa.array([], pa.string()) for name in GOOD}),
}
HARMLESS: dict[str, Make] = {
    "bom": holding(b"\xef\xbb\xbf" + LINE),
    "crlf": holding(LINE.replace(b"\n", b"\r\n")),
    "no-end": holding(LINE.rstrip()),
    "no-truth": row(ground_truth=None),
    "empty-truth": row(ground_truth=""),
    "case-and-blanks": holding(b'{"System_Prompt": "Be brief.", " USER_PROMPT ": "2 + 3?"}\n'),
    "parquet": table(x=[1] * 2),
}


def evaluated(project: Project, make: Make, *args: str, workers: int = 0) -> Session:
    folder = project.path / "rows"
    folder.mkdir(exist_ok=True)
    return project.run(*args, workers=workers, data=str(make(folder)))


@pytest.mark.fault(
    "the file is missing",
    "it is a directory",
    "its suffix is unknown or missing, or it is compressed",
    "a line is not JSON",
    "the last line is torn",
    "an object has one key twice",
    "it is UTF-16 or Latin-1",
    "a row is no object",
    "a column is missing",
    "column names differ in case or blanks",
    "the ground truth is null, empty or a number",
    "a prompt is null, a list or blank, or the user's is empty",
    "a value is NaN, Infinity or 1e999",
    "a number has thousands of digits",
    "a value is nested very deeply",
    "a string holds half a surrogate pair",
    "two rows are equal, or have one id",
    "a Parquet file is cut short, or bits of it flipped",
    "a Parquet column is of a type that JSON lacks",
    "a Parquet file has one column twice",
    "it is a pipe, or standard input",
    "the path is a loop of links, or holds a line end",
)
@pytest.mark.parametrize("wrong", REFUSED)
def test_what_is_wrong_with_a_dataset_is_one_sentence(tmp_path: Path, wrong: str) -> None:
    make, sentence = REFUSED[wrong]
    with pytest.raises(DatasetError) as caught:
        load_dataset(make(tmp_path))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("wrong", TOLD_BY_SESSIONS)
def test_a_dataset_that_cannot_be_used_is_one_sentence_before_any_request(
    project: Project, wrong: str
) -> None:
    make, sentence = REFUSED[wrong]
    session = evaluated(project, make)
    assert sentence in session.mistake
    assert "\n" not in session.mistake
    assert session.ret == 4
    assert project.endpoint.connections == 0
    assert session.out == ""
    assert "Traceback" not in session.err
    assert not (project.path / "out.json").exists()


@pytest.mark.parametrize("form", EMPTY)
def test_a_dataset_without_rows_is_told_from_a_wrong_one(tmp_path: Path, form: str) -> None:
    with pytest.raises(EmptyDataset, match="has no rows"):
        load_dataset(EMPTY[form](tmp_path))


@pytest.mark.fault("it has no bytes, only blank lines, or no rows")
@pytest.mark.parametrize("form", ["no-bytes", "no-rows"])
def test_a_dataset_without_rows_is_nothing_to_run(project: Project, form: str) -> None:
    session = evaluated(project, EMPTY[form])
    assert session.ret == 5
    assert session.out.count("has no rows") == 1
    assert project.endpoint.connections == 0


@pytest.mark.fault("it may not be read")
def test_a_dataset_that_may_not_be_read_is_told_without_a_traceback(project: Project) -> None:
    project.rows("a")
    (project.path / "data.jsonl").chmod(0)
    with as_an_ordinary_user():
        session = project.run()
    assert session.ret == 4
    assert "data.jsonl: permission denied" in session.mistake
    assert "Traceback" not in session.err


@pytest.mark.fault(
    "the last line is torn",
    "it begins with a byte order mark",
    "its lines end in CR LF",
    "column names differ in case or blanks",
    "the ground truth is null, empty or a number",
)
@pytest.mark.parametrize("form", HARMLESS)
def test_harmless_forms_are_read(tmp_path: Path, form: str) -> None:
    dataset = load_dataset(HARMLESS[form](tmp_path))
    found = [dataset.row(index) for index in dataset.row_indices]
    assert [(each.system_prompt, each.user_prompt) for each in found] == [
        ("Be brief.", "2 + 3?")
    ] * (2 if form == "parquet" else 1)
    truth = {"no-truth": None, "empty-truth": "", "case-and-blanks": None}.get(form, "5")
    assert {each.ground_truth for each in found} == {truth}


@pytest.mark.parametrize("form", ["bom", "no-truth", "empty-truth", "parquet"])
def test_harmless_forms_are_evaluated(project: Project, form: str) -> None:
    session = evaluated(project, HARMLESS[form])
    assert set(session.outcomes) <= {"passed", "failed"}
    assert [run["error"] for run in session.runs] == [None] * len(session.runs)
    assert project.endpoint.seen[0].messages[-1]["content"] == "2 + 3?"
    assert len(session.runs) == (2 if "parquet" in str(session.report["config"]) else 1)


@pytest.mark.fault(
    "a string holds U+2028, U+2029, U+0085 or a lone CR", "a prompt holds NUL or escape characters"
)
@each_mode
def test_odd_characters_in_a_prompt_are_data_and_never_reach_terminal_or_names(
    project: Project, workers: int
) -> None:
    texts = [f"one{c}two" for c in ("\u2028", "\u2029", "\u0085", "\r", "\x00", "\x1b[31m")]
    project.rows(*texts)
    lines = [{"system_prompt": "s", "user_prompt": t, "ground_truth": "x", "id": t} for t in texts]
    project.rows(*lines)
    session = project.run("-v", "--junitxml=out.xml", workers=workers)
    assert session.outcomes == {"failed": len(texts)}
    assert {ask.messages[-1]["content"] for ask in project.endpoint.seen} == set(texts)
    printed = session.out + session.err
    assert not any(c in printed for c in ("\x00", "\x1b[31m", "\u2028", "\u0085"))
    assert len(session.junit.findall(".//testcase")) == len(texts)
    assert [row["row_index"] for row in session.report["rows"]] == list(range(len(texts)))


@pytest.mark.fault("a line is very long")
@pytest.mark.slow
def test_a_long_line_is_one_row(project: Project) -> None:
    text = "x" * 5_000_000
    project.rows({"user_prompt": "long", "ground_truth": "long", "notes": text})
    assert project.run(workers=2).outcomes == {"passed": 1}


@pytest.mark.fault("two rows are equal, or have one id")
def test_two_equal_rows_are_two_rows(project: Project) -> None:
    project.rows("same", "same")
    session = project.run("-v")
    assert session.outcomes == {"passed": 2}
    assert [row["row_index"] for row in session.report["rows"]] == [0, 1]


@pytest.mark.fault("it has a million rows")
@pytest.mark.slow
def test_a_million_rows_cost_what_is_asked_for(project: Project) -> None:
    with (project.path / "data.jsonl").open("wb") as file:
        for _ in range(100):
            file.write(LINE * 10_000)
    session = project.run("--osmosis-offset=999998", "--osmosis-limit=10", "-v")
    assert [row["row_index"] for row in session.report["rows"]] == [999_998, 999_999]
    past = project.run("--osmosis-offset=1000000")
    assert past.ret == 5
    assert "has 1000000 rows; an offset of 1000000 is past the last one" in past.out


@pytest.mark.fault("a Parquet column is of a type that JSON lacks")
def test_parquet_values_become_json_by_one_table(project: Project) -> None:
    from datetime import date, datetime, timezone
    from decimal import Decimal

    stamp = pa.array([1_500_000_001] * 2, pa.timestamp("ns", "UTC"))
    make = table(
        price=[Decimal("1.10")] * 2,
        day=[date(2026, 11, 21)] * 2,
        at=[datetime(2026, 11, 21, 3, tzinfo=timezone.utc)] * 2,
        fine=stamp,
    )
    project.write(
        "rewards.py",
        """
def exact(solution_str, ground_truth, extra_info):
    assert extra_info["price"] == "1.10", extra_info
    assert extra_info["day"] == "2026-11-21", extra_info
    assert extra_info["at"].startswith("2026-11-21T03:00:00"), extra_info
    assert extra_info["fine"].startswith("1970-01-01T00:00:01.500000001"), extra_info
    return 1.0
""",
    )
    session = evaluated(project, make)
    assert session.outcomes == {"passed": 2}, session.out


@pytest.mark.fault("pyarrow is not installed")
def test_without_pyarrow_parquet_is_refused_with_the_cure(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    path = table()(project.path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    session = project.run(data=str(path))
    assert session.ret == 4
    assert "pip install" in session.mistake


@pytest.mark.fault("it changes between a session and the next, or under one")
def test_rows_that_change_under_a_session_are_errored_and_the_report_is_written(
    project: Project,
) -> None:
    def answer(ask: Ask) -> str:
        changed = {"system_prompt": "Answer.", "user_prompt": "x", "ground_truth": "x", "id": "c"}
        path = project.path / "data.jsonl"
        first, second, _ = path.read_text().splitlines()
        path.write_text("\n".join([first, second, json.dumps(changed)]) + "\n")
        return ask.row

    project.endpoint.answers = answer
    long = "x" * 2**16  # so that no row is read together with the one before it
    names = ("aaa", "bbb", "ccc")
    project.rows(*({"user_prompt": t, "ground_truth": t, "id": t, "long": long} for t in names))
    session = project.run("--batch-size=1")
    assert session.ret == 1
    assert [run["outcome"] for run in session.runs][:2] == ["passed", "passed"]
    assert "row 2 has changed since the session began" in session.runs[2]["error"]
    assert "INTERNALERROR" not in session.out


def test_an_id_that_holds_a_key_is_refused_unshown(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_TOKEN", "sk-search-48151623")
    rows = [{**GOOD, "id": name} for name in ("first", "of sk-search-48151623")]
    project.write("data.jsonl", "".join(json.dumps(each) + "\n" for each in rows))
    session = project.run()
    assert session.ret == 4
    assert "data.jsonl: the id of row 1 holds the value of a key or token" in session.mistake
    assert "48151623" not in session.out + session.err
    assert project.endpoint.connections == 0
