from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_osmosis.dataset.dataset import Dataset, load_dataset
from pytest_osmosis.dataset.errors import DatasetError, EmptyDataset
from pytest_osmosis.dataset.jsonl import JsonlSource
from pytest_osmosis.dataset.rows import Row, safe_name
from pytest_osmosis.dataset.sampling import as_text, parse_rows


def record(**changes: Any) -> dict[str, Any]:
    return {"system_prompt": "Be brief.", "user_prompt": "2 + 3?", "ground_truth": "5", **changes}


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in records)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(content: bytes, name: str = "data.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        load_dataset(path, **options)
    return str(caught.value).replace(f"{path.parent}/", "")


def rows(dataset: Dataset) -> list[Row]:
    return [dataset.row(row_index) for row_index in dataset.row_indices]


def user_prompts(dataset: Dataset) -> list[str]:
    return [row.user_prompt for row in rows(dataset)]


GOOD = lines(record())


class TestGoodFiles:
    def test_a_row_has_its_named_columns_and_the_others_as_extra(self, write):
        row = load_dataset(write(lines(record(level=3, tags=["a"])))).row(0)
        assert row == Row(
            row_index=0,
            row_id=None,
            system_prompt="Be brief.",
            user_prompt="2 + 3?",
            ground_truth="5",
            extra={"level": 3, "tags": ["a"]},
            own_truth="5",
        )
        assert row.metadata() == record(level=3, tags=["a"])

    @pytest.mark.fault("column names differ in case or blanks")
    def test_column_names_match_without_case_and_outer_blanks(self, write):
        odd = {"System_Prompt": "s", " USER_PROMPT ": "u", "Ground_Truth": None, "Level": 1}
        row = load_dataset(write(lines(odd))).row(0)
        assert (row.system_prompt, row.user_prompt, row.ground_truth) == ("s", "u", None)
        assert row.metadata() == {
            "system_prompt": "s",
            "user_prompt": "u",
            "ground_truth": None,
            "Level": 1,
        }

    @pytest.mark.parametrize(
        "truth", [None, "", "1.10", True, ["a", 2, None], [], {"a": {"b": [0.5]}}]
    )
    def test_ground_truth_is_kept_as_it_is(self, write, truth):
        assert load_dataset(write(lines(record(ground_truth=truth)))).row(0).ground_truth == truth
        absent = write(lines({"system_prompt": "s", "user_prompt": "u"}))
        assert load_dataset(absent).row(0).ground_truth is None

    @pytest.mark.fault("it begins with a byte order mark", "its lines end in CR LF")
    @pytest.mark.parametrize(
        "content",
        [
            b"\xef\xbb\xbf" + GOOD,
            GOOD.replace(b"\n", b"\r\n"),
            b"\n  \n\r\n" + GOOD + b"\n\n",
            b"  " + GOOD.rstrip(),
        ],
        ids=["byte order mark", "CRLF", "blank lines", "no last line end"],
    )
    def test_harmless_forms_are_read_alike(self, write, content):
        dataset = load_dataset(write(content))
        assert [row.metadata() for row in rows(dataset)] == [record()]
        assert dataset.digest == load_dataset(write(GOOD, "plain.jsonl")).digest

    @pytest.mark.parametrize(
        ("written", "text"),
        [
            *((f'"one{each}two"', f"one{each}two") for each in "\u2028\u2029\u0085"),
            (r'"\r \u0000 \u001b[31m"', "\r \x00 \x1b[31m"),
            (r'"\ud83d\ude00 \\ud800"', "\U0001f600 \\ud800"),
        ],
    )
    def test_a_string_is_read_as_it_is_whatever_it_holds(self, write, written, text):
        content = GOOD.replace(b'"2 + 3?"', written.encode())
        assert user_prompts(load_dataset(write(content + GOOD))) == [text, "2 + 3?"]

    def test_the_digest_of_a_whole_plain_file_is_its_sha256(self, write):
        content = lines(record(), record(user_prompt="é"))
        assert load_dataset(write(content)).digest == hashlib.sha256(content).hexdigest()

    def test_rows_can_be_read_from_many_threads_in_any_order(self, write):
        path = write(lines(*(record(user_prompt=f"question {i}") for i in range(500))))
        dataset = load_dataset(path)
        with ThreadPoolExecutor(8) as pool:
            read = list(pool.map(dataset.row, reversed(range(500))))
        assert [row.row_index for row in read] == list(reversed(range(500)))
        assert all(row.user_prompt == f"question {row.row_index}" for row in read)

    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from("abcd"),
                st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()),
            ),
            min_size=1,
            max_size=8,
        )
    )
    def test_every_value_comes_back_as_it_was_written(self, tmp_path_factory, extras):
        records = [record(**extra) for extra in extras]
        folder = tmp_path_factory.mktemp("rows")
        jsonl, array = folder / "d.jsonl", folder / "d.json"
        jsonl.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in records))
        array.write_text(json.dumps(records, indent=2, ensure_ascii=False), encoding="utf-8")
        for path in (jsonl, array):
            assert [row.metadata() for row in rows(load_dataset(path))] == records


class TestWrongRows:
    @pytest.mark.fault(
        "a line is not JSON",
        "an object has one key twice",
        "a value is NaN, Infinity or 1e999",
        "a number has thousands of digits",
        "a value is nested very deeply",
        "a string holds half a surrogate pair",
        "a row is not an object",
    )
    @pytest.mark.parametrize(
        ("line", "sentence"),
        [
            (b'{"system_prompt": "s" "x"}', "not JSON: Expecting ',' delimiter (column 23)"),
            (b'{"a": 1, "b": 2, "a": 3}', "the key 'a' is there twice"),
            (b'{"x": {"k": 1, "k": 1}}', "the key 'k' is there twice"),
            (b'{"x": NaN}', "NaN is not JSON; use null or a string"),
            (b'{"x": [-Infinity]}', "-Infinity is not JSON; use null or a string"),
            (b'{"x": 1e999}', "1e999 is beyond the range of numbers; quote it"),
            (b'{"x": ' + b"9" * 5000 + b"}", "holds a number with too many digits; quote it"),
            (b"[" * 200_000, "nested too deeply (more than 200 levels)"),
            (b'{"x":' + b"[" * 300 + b"]" * 300 + b"}", "nested too deeply (more than 200 levels)"),
            (rb'{"x": "\ud800"}', r"holds half a character (\ud800, a lone surrogate)"),
            (rb'{"\uDFFF": 1}', r"holds half a character (\udfff, a lone surrogate)"),
            (b'{"x": "caf\xe9"}', "not UTF-8 (byte 0xe9 at column 11): save the file as UTF-8"),
            (b"[1, 2]", "is a list; expected an object with named columns"),
            (b'"text"', "is a string; expected an object"),
            (b"null", "is null; expected an object"),
            (b"true", "is a boolean; expected an object"),
            (b"1.5", "is a number; expected an object"),
            (b"{}", "'user_prompt' is missing (columns: none)"),
        ],
    )
    def test_a_line_that_is_no_row_is_reported_with_its_place(self, write, line, sentence):
        message = refusal(write(GOOD + b"\n" + line + b"\n" + GOOD))
        assert message.startswith(f"data.jsonl:3: {sentence}")
        assert "\n" not in message

    @pytest.mark.fault(
        "a prompt is null, a list or blank, or the user's is empty",
        "the ground truth is null, empty or a number",
    )
    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"user_prompt": None}, "'user_prompt' is null; expected a non-empty string"),
            ({"user_prompt": ["x"]}, "'user_prompt' is a list; expected a non-empty string"),
            ({"user_prompt": 3}, "'user_prompt' is a number; expected a non-empty string"),
            ({"user_prompt": ""}, "'user_prompt' is an empty string; expected a non-empty one"),
            ({"system_prompt": " \t"}, "'system_prompt' holds only blanks; expected text"),
            (
                {"User_Prompt": "x"},
                "the columns 'user_prompt' and 'User_Prompt' collide: case is ignored",
            ),
        ],
    )
    def test_a_wrong_value_is_reported_with_its_column(self, write, changes, sentence):
        assert refusal(write(lines(record(**changes)))) == f"data.jsonl:1: {sentence}"

    @pytest.mark.fault("a column is missing")
    def test_a_missing_column_is_reported_with_the_columns_there_are_and_a_guess(self, write):
        content = lines({"system_prompt": "s", "prompt": "u", "ground_truth": "5"})
        assert refusal(write(content)).splitlines() == [
            "data.jsonl: 'user_prompt' is missing",
            "  system_prompt  -             's'",
            "  prompt         user_prompt   'u'",
            "  ground_truth   ground_truth  '5'",
            "add --osmosis-map prompt=user_prompt --osmosis-eval-fn number",
        ]
        content += lines(record())
        assert refusal(write(content)) == (
            "data.jsonl:1: 'user_prompt' is missing "
            "(columns: system_prompt, prompt, ground_truth; did you mean 'prompt'?)"
        )

    def test_many_columns_are_not_all_listed(self, write):
        message = refusal(write(lines({f"column_{i}": i for i in range(30)})))
        assert "  column_23  -" in message and "  and 6 other columns\n" in message
        assert message.endswith("name the question: --osmosis-map COLUMN=user_prompt")

    def test_several_wrong_rows_are_listed_at_once(self, write):
        content = lines(record(), record(user_prompt=1), record(), {"system_prompt": "s"})
        with pytest.raises(DatasetError) as caught:
            load_dataset(write(content))
        assert caught.value.problems == [
            "line 2: 'user_prompt' is a number; expected a non-empty string",
            "line 4: 'user_prompt' is missing (columns: system_prompt)",
        ]
        assert str(caught.value).endswith(
            "data.jsonl: 2 rows cannot be used\n"
            "  line 2: 'user_prompt' is a number; expected a non-empty string\n"
            "  line 4: 'user_prompt' is missing (columns: system_prompt)"
        )

    def test_more_than_twenty_wrong_rows_are_counted(self, write):
        message = refusal(write(GOOD + lines(record(user_prompt=1)) * 45))
        first, one = message.splitlines()
        assert first == "data.jsonl: 45 rows cannot be used"
        assert one.startswith(
            "  line 2: 'user_prompt' is a number; expected a non-empty string; so "
        )
        listed = ", ".join(map(str, range(3, 22)))
        assert one.endswith(f"so 44 further rows (lines {listed}, ...)")

    @pytest.mark.parametrize(
        ("lines_of_file", "said"),
        [
            ('{"user_prompt": "u"},\n' * 3, "in JSON lines no comma stands behind a row"),
            ("{'user_prompt': 'u'}\n" * 3, "it is what Python prints: write rows with json.dumps"),
        ],
    )
    def test_lines_that_are_no_json_say_what_they_are(self, write, lines_of_file, said):
        message = refusal(write(lines_of_file.encode()))
        assert message.startswith("data.jsonl: all 3 rows: not JSON: ") and message.endswith(said)

    def test_columns_that_rows_lack_are_reported_once(self, write):
        rows = [{"level": "s", f"x{i}": i} for i in range(12)]
        with pytest.raises(DatasetError) as caught:
            load_dataset(write(lines(*rows)))
        said = "'user_prompt' is missing"
        assert [text.endswith(f"data.jsonl: {said}") for text in caught.value.problems] == [True]
        for other in (record(), record(user_prompt=1)):
            message = refusal(write(lines(*rows, other)))
            assert message.count(said) == 1
            assert "(columns: level, x0); so 11 further rows" in message

    @pytest.mark.fault("the last line is torn")
    def test_a_torn_last_line_may_be_an_incomplete_file(self, write):
        message = refusal(write(GOOD + GOOD[:40]))
        assert re.fullmatch(
            r"data.jsonl:2: not JSON: .* \(column \d+\); "
            "the line has no end, the file may be incomplete",
            message,
        )

    @pytest.mark.parametrize("indent", [None, 1])
    def test_json_that_is_no_lines_is_read_whatever_its_name_is(self, write, indent):
        array = load_dataset(write(json.dumps([record(), record()], indent=indent).encode()))
        assert user_prompts(array) == ["2 + 3?"] * 2
        assert array.notices == ["it is read as one JSON array"]
        objects = "\n".join(json.dumps(record(), indent=2) for _ in range(2))
        assert user_prompts(load_dataset(write(objects.encode()))) == ["2 + 3?"] * 2

    @pytest.mark.fault("two rows are equal, or have one id")
    def test_ids_that_repeat_name_no_rows(self, write):
        assert user_prompts(load_dataset(write(GOOD * 2))) == ["2 + 3?"] * 2
        content = lines(record(id="a"), record(id="b"), record(id="a"))
        dataset = load_dataset(write(content))
        assert [dataset.row_name(index) for index in range(3)] == ["row-0", "row-1", "row-2"]
        [notice] = dataset.notices
        assert notice.endswith("the id 'a' is in line 1 and in line 3")
        unchecked = load_dataset(write(content), validate=False)
        assert unchecked.row_name(2) == "row-2"

    @pytest.mark.fault("a line is very long")
    def test_a_line_over_the_limit_is_refused_by_number(self, write, monkeypatch):
        monkeypatch.setattr("pytest_osmosis.dataset.jsonl.LONGEST_LINE", 1000)
        message = refusal(write(GOOD + lines(record(x="y" * 1000))))
        assert message == "data.jsonl:2: the line is longer than 64 MiB"

    def test_user_data_in_a_message_cannot_disturb_a_terminal(self, write):
        message = refusal(write(lines({"a\x1b[31m\n": 1, "b" * 500: 2})))
        assert message.replace("\n", "").isprintable()
        assert len(message) < 250

    def test_a_row_outside_the_selection_is_not_checked(self, write):
        path = write(b"{}\n" + GOOD + b"{}\n")
        assert len(load_dataset(path, offset=1, limit=1)) == 1


class TestFilesThatCannotBeUsed:
    @pytest.mark.fault("the file is missing")
    def test_a_missing_file_is_reported_with_the_folder_it_was_looked_for_in(
        self, tmp_path, monkeypatch
    ):
        monkeypatch.chdir(tmp_path)
        message = refusal(Path("data.jsonl"))
        assert message == f"data.jsonl: no such file (looked in {tmp_path})"

    @pytest.mark.fault("it is a directory")
    def test_a_folder_is_refused(self, tmp_path):
        folder = tmp_path / "set.parquet"
        folder.mkdir()
        assert refusal(folder) == (
            "set.parquet: is a directory; give a .jsonl, .json, .csv, .tsv or .parquet file"
        )

    @pytest.mark.fault("it may not be read")
    def test_a_file_without_permission_is_refused(self, write):
        path = write(GOOD)
        path.chmod(0)
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            message = refusal(path)
        finally:
            if root:
                os.seteuid(0)
        assert message == "data.jsonl: permission denied"

    @pytest.mark.parametrize(
        ("name", "content"),
        [("d.jsonl", b""), ("d.json", b""), ("d.parquet", b""), ("d.jsonl", b"\n \r\n\n")],
    )
    def test_a_file_without_rows_is_empty(self, write, name, content):
        with pytest.raises(EmptyDataset, match="has no rows"):
            load_dataset(write(content, name))

    @pytest.mark.parametrize("content", [b" \n", b"[]", b" [ \n ] "])
    def test_an_array_without_rows_is_empty(self, write, content):
        with pytest.raises(EmptyDataset, match="has no rows"):
            load_dataset(write(content, "d.json"))

    @pytest.mark.fault(
        "its suffix is unknown or missing, or it is compressed", "it is UTF-16 or Latin-1"
    )
    @pytest.mark.parametrize(
        ("name", "content", "sentence"),
        [
            ("data.txt", GOOD, "the name ends in '.txt'; expected a .jsonl, .json, .csv, .tsv or"),
            (
                "data",
                GOOD,
                "the name has no suffix; expected a .jsonl, .json, .csv, .tsv or .parquet file",
            ),
            ("data", b"PAR1....", "; it looks like parquet: rename it to .parquet"),
            ("data.jsonl.gz", b"\x1f\x8b\x08", "data.jsonl.gz: is not whole gzip: "),
            ("data.jsonl.gz", GOOD, "data.jsonl.gz: is not whole gzip: "),
            ("data.jsonl", b"\x1f\x8b\x08", "looks like gzip; unpack it"),
            ("data.jsonl.zst", b"\x28\xb5\x2f\xfd", "looks like zstd; unpack it"),
            ("data.jsonl", b"PAR1....", "looks like parquet, not .jsonl: rename it to .parquet"),
            (
                "data.jsonl",
                GOOD.decode().encode("utf-16"),
                "is not UTF-8 (byte 0xff at line 1); looks like UTF-16; save it as UTF-8:",
            ),
            (
                "data.json",
                GOOD.decode().encode("utf-16-le"),
                "is not UTF-8 (NUL at line 1); looks like UTF-16; save it as UTF-8:",
            ),
        ],
    )
    def test_another_format_is_recognised(self, write, name, content, sentence):
        assert sentence in refusal(write(content, name))

    def test_suffixes_match_without_case(self, write):
        assert len(load_dataset(write(GOOD, "DATA.JSONL"))) == 1

    def test_a_pipe_is_refused_without_waiting_for_it(self, tmp_path):
        os.mkfifo(tmp_path / "data.jsonl")
        message = refusal(tmp_path / "data.jsonl")
        assert message == "data.jsonl: must be a regular file: it is read by every worker"

    @pytest.mark.fault("it is a pipe, or standard input")
    def test_standard_input_is_refused_even_when_it_is_a_file(self, write):
        code = (
            "from pathlib import Path; from pytest_osmosis.dataset.dataset import load_dataset;"
            "load_dataset(Path('/dev/stdin'))"
        )
        with write(GOOD).open() as file:
            done = subprocess.run(
                [sys.executable, "-c", code], stdin=file, capture_output=True, text=True
            )
        assert "/dev/stdin: must be a regular file" in done.stderr

    def test_a_loop_of_links_is_refused(self, tmp_path):
        (tmp_path / "a.jsonl").symlink_to(tmp_path / "b.jsonl")
        (tmp_path / "b.jsonl").symlink_to(tmp_path / "a.jsonl")
        assert refusal(tmp_path / "a.jsonl") == "a.jsonl: is a loop of symbolic links"

    @pytest.mark.fault("the path is a loop of links, or holds a line end")
    def test_a_path_with_a_line_end_is_quoted(self, tmp_path):
        assert r"da\nta.jsonl': no such file" in refusal(tmp_path / "da\nta.jsonl")

    def test_an_impossible_path_is_refused(self):
        assert "not a possible file name" in refusal(Path("a\0b.jsonl"))
        assert "file name too long" in refusal(Path("a" * 300 + ".jsonl"))


class TestJsonArray:
    def test_rows_are_the_elements(self, write):
        content = json.dumps([record(), record(user_prompt="é\u2028")], indent=2)
        dataset = load_dataset(write(content.encode(), "d.json"))
        assert dataset.rows_total == 2
        assert user_prompts(dataset) == ["2 + 3?", "é\u2028"]

    def test_non_ascii_text_is_found_in_its_place(self, write):
        records = [record(user_prompt=f"é\U0001f600{i}") for i in range(5)]
        content = b"\xef\xbb\xbf" + json.dumps(records, ensure_ascii=False).encode()
        dataset = load_dataset(write(content, "d.json"), offset=2, limit=2)
        assert user_prompts(dataset) == ["é\U0001f6002", "é\U0001f6003"]
        assert list(dataset.row_indices) == [2, 3]

    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            ("{}", "d.json: is an object; expected an array of objects"),
            ("3", "d.json: is a number; expected an array of objects"),
            ('{"a": [{}], "b": [{}]}', "has several lists of objects: 'a', 'b'"),
            (
                '{"a": [1], "b": {}}',
                "is an object; expected an array of objects, or an object with",
            ),
            ("hello", "d.json:1: not JSON: Expecting an array of objects (column 1)"),
            ('[{"a": 1},\n {"a": 2 3}]', "d.json:2: not JSON: Expecting ',' delimiter (column 10)"),
            ('[{"a": 1}\n {"a": 2}]', "d.json:2: not JSON: Expecting ',' delimiter (column 2)"),
            ("[{}, ", "d.json:1: not JSON: Expecting value (column 6); the file may be incomplete"),
            ("[{}", "Expecting ',' delimiter (column 4); the file may be incomplete"),
            ("[{}] x", "d.json:1: not JSON: Extra data (column 6)"),
            ("[" + "[" * 200_000, "d.json: row 0: nested too deeply"),
            ("[{}, " + "9" * 5000 + "]", "d.json: row 1: holds a number with too many digits"),
            (
                '[{"a": 1, "a": 2}]',
                "d.json: row 0 (the first is row 0): the key 'a' is there twice",
            ),
            (
                "[{}, []]",
                "2 rows cannot be used (the first is row 0)\n  row 0: 'user_prompt' is",
            ),
        ],
    )
    def test_what_is_wrong_is_reported_with_its_place(self, write, content, sentence):
        assert sentence in refusal(write(content.encode(), "d.json"))

    def test_bytes_that_are_not_utf_8_are_reported_with_their_line(self, write):
        message = refusal(write(b'[\n{"a": "\xe9"}]', "d.json"))
        assert message == "d.json: is not UTF-8 (byte 0xe9 at line 2): save as UTF-8"


class TestSelection:
    @pytest.fixture
    def path(self, write):
        return write(lines(*(record(user_prompt=str(i)) for i in range(20))))

    def test_offset_and_limit_make_a_window(self, path):
        dataset = load_dataset(path, offset=5, limit=3)
        assert user_prompts(dataset) == ["5", "6", "7"]
        assert [dataset.row_name(i) for i in dataset.row_indices] == ["row-5", "row-6", "row-7"]
        assert [row.row_index for row in rows(dataset)] == [5, 6, 7]
        assert dataset.rows_total is None

    @pytest.mark.parametrize("limit", [None, 15, 100])
    def test_the_total_is_known_when_the_end_was_reached(self, path, limit):
        dataset = load_dataset(path, offset=5, limit=limit)
        assert (len(dataset), dataset.rows_total) == (15, 20)

    def test_a_limit_reads_no_further(self, tmp_path, monkeypatch):
        path = tmp_path / "d.jsonl"
        path.write_bytes(GOOD * 10_000)
        seen = []
        original = JsonlSource._lines

        def counted(self):
            for line in original(self):
                seen.append(line[0])
                yield line

        monkeypatch.setattr(JsonlSource, "_lines", counted)
        load_dataset(path, offset=3, limit=4)
        assert len(seen) == 8  # the first is looked at before, for its columns

    @pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
    def test_an_offset_past_the_end_is_reported_with_the_number_of_rows(self, write, name):
        records = [record(), record()]
        content = lines(*records) if name == "d.jsonl" else json.dumps(records).encode()
        with pytest.raises(EmptyDataset, match="has 2 rows; an offset of 2 is past the last one"):
            load_dataset(write(content, name), offset=2)

    def test_a_limit_of_zero_selects_nothing(self, path):
        with pytest.raises(EmptyDataset, match="a limit of 0 selects no row"):
            load_dataset(path, limit=0)

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"offset": -1}, "the offset is -1; expected 0 or more"),
            ({"limit": -2}, "the limit is -2; expected 1 or more"),
            ({"sample": "0%"}, "the sample is '0%'; expected a share like 10% or a number of rows"),
            ({"sample": "101%"}, "the sample is '101%'"),
            ({"sample": "0"}, "the sample is '0'"),
            ({"sample": "2.5"}, "the sample is '2.5'"),
            ({"sample": "nan%"}, "the sample is 'nan%'"),
            ({"sample": "many"}, "the sample is 'many'"),
        ],
    )
    def test_an_impossible_selection_is_refused(self, path, options, sentence):
        assert sentence in refusal(path, **options)

    @pytest.mark.parametrize(
        ("sample", "size"),
        [("10%", 2), ("1%", 1), ("50", 20), ("7", 7), ("100%", 20), ("12.5%", 2)],
    )
    def test_a_sample_is_ascending_and_of_the_size_asked_for(self, path, sample, size):
        dataset = load_dataset(path, sample=sample, sample_seed=3)
        indices = list(dataset.row_indices)
        assert len(indices) == size
        assert indices == sorted(set(indices))
        assert user_prompts(dataset) == [str(index) for index in indices]
        assert dataset.rows_total == 20

    def test_the_seed_decides_what_is_drawn(self, path):
        def drawn(seed):
            dataset = load_dataset(path, sample="5", sample_seed=seed)
            return tuple(dataset.row_indices)

        assert drawn(1) == drawn(1)
        assert len({drawn(seed) for seed in range(10)}) > 5

    def test_a_sample_is_drawn_from_what_offset_and_limit_leave(self, path):
        dataset = load_dataset(path, offset=10, limit=4, sample="100%")
        assert user_prompts(dataset) == ["10", "11", "12", "13"]

    def test_every_format_draws_the_same_rows(self, write, tmp_path):
        records = [record(user_prompt=str(i)) for i in range(50)]
        jsonl = write(lines(*records))
        array = write(json.dumps(records).encode(), "d.json")
        pq.write_table(pa.Table.from_pylist(records), tmp_path / "d.parquet", row_group_size=7)
        drawn = [
            user_prompts(load_dataset(path, offset=3, sample="20%", sample_seed=7))
            for path in (jsonl, array, tmp_path / "d.parquet")
        ]
        assert drawn[0] == drawn[1] == drawn[2]
        assert len(drawn[0]) == 9


class TestIdentity:
    @pytest.mark.parametrize("options", [{}, {"offset": 2}, {"limit": 3}, {"sample": "40%"}])
    @pytest.mark.parametrize("ids", [True, False])
    @pytest.mark.parametrize("name", ["d.jsonl", "d.json", "d.parquet"])
    def test_a_process_that_checks_nothing_sees_the_same_dataset(
        self, tmp_path, options, ids, name
    ):
        records = [record(**({"id": f"q{i}"} if ids else {}), n=i) for i in range(10)]
        path = tmp_path / name
        if name == "d.parquet":
            pq.write_table(pa.Table.from_pylist(records), path)
        else:
            path.write_bytes(lines(*records) if name == "d.jsonl" else json.dumps(records).encode())
        checked = load_dataset(path, **options)
        trusted = load_dataset(path, **options, validate=False)
        assert trusted.digest == checked.digest
        assert checked.row_id(checked.row_indices[0]) == (
            f"q{checked.row_indices[0]}" if ids else None
        )
        assert rows(trusted) == rows(checked)
        assert [trusted.row_name(i) for i in trusted.row_indices] == [
            checked.row_name(i) for i in checked.row_indices
        ]

    @pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
    def test_a_changed_row_changes_the_digest(self, write, name):
        def digest(*prompts, **options):
            records = [record(user_prompt=prompt) for prompt in prompts]
            content = lines(*records) if name == "d.jsonl" else json.dumps(records).encode()
            return load_dataset(write(content, name), **options).digest

        assert digest("a", "b") == digest("a", "b")
        assert len({digest("a", "b"), digest("b", "a"), digest("a", "c"), digest("a")}) == 4
        assert digest("a", "a", offset=1) != digest("a", "a", limit=1)
        assert digest("a", "b", "c", rows="0,1") == digest("a", "b", "c", limit=2)
        assert digest("a", "b", "c", rows="1,2") == digest("a", "b", "c", offset=1)
        assert digest("a", "a", "a", rows="0,2") != digest("a", "a", "a", rows="0,1")

    def test_row_digests_tell_which_rows_differ(self, write):
        before = load_dataset(write(lines(record(), record(n=1))))
        after = load_dataset(write(lines(record(), record(n=2)), "after.jsonl"))
        assert before.row_digest(0) == after.row_digest(0)
        assert before.row_digest(1) != after.row_digest(1)

    def test_a_row_that_changes_under_the_session_is_noticed(self, write):
        path = write(lines(record(), record()))
        dataset = load_dataset(path)
        with path.open("r+b") as file:
            file.write(GOOD.replace(b"2 + 3?", b"2 + 4?"))
        with pytest.raises(DatasetError, match="row 0 has changed since the session began"):
            dataset.row(0)
        assert dataset.row(1).user_prompt == "2 + 3?"

    def test_a_file_that_is_replaced_keeps_its_rows_for_the_session(self, write, tmp_path):
        path = write(lines(record(user_prompt="old")))
        dataset = load_dataset(path)
        other = write(lines(record(user_prompt="new")), "other.jsonl")
        other.replace(path)
        assert user_prompts(dataset) == ["old"]

    def test_an_unchecked_file_that_is_broken_loads_with_another_digest(self, write):
        good = load_dataset(write(lines(record(id="a"), record(id="b"))))
        torn = write(lines(record(id="a")) + b'{"id": ', "torn.jsonl")
        broken = load_dataset(torn, validate=False)
        assert broken.digest != good.digest
        assert broken.row_id(0) is None
        with pytest.raises(DatasetError, match="row 1 has changed"):
            broken.row(1)


class TestNames:
    def test_the_id_column_names_the_rows(self, write):
        dataset = load_dataset(write(lines(record(ID="first"), record(ID=7))))
        assert dataset.row_id(1) == "7"
        assert [dataset.row_name(i) for i in range(2)] == ["first", "7"]
        assert [row.row_id for row in rows(dataset)] == ["first", "7"]
        assert dataset.row(1).extra == {"ID": 7}

    @pytest.mark.parametrize("other", [{}, {"id": None}, {"id": ""}, {"id": " "}, {"id": True}])
    def test_rows_are_numbered_when_one_has_no_id(self, write, other):
        dataset = load_dataset(write(lines(record(id="a"), record(**other), record(id="a"))))
        assert dataset.row_id(0) is None
        assert dataset.row_name(2) == "row-2"
        assert dataset.row(0).row_id is None

    def test_an_id_may_be_double_outside_the_selection(self, write):
        path = write(lines(record(id="a"), record(id="a")))
        assert load_dataset(path, limit=1).row_id(0) == "a"

    @pytest.mark.parametrize(
        ("row_id", "name"),
        [
            ("plain-1.x", "plain-1.x"),
            ("zwölf 十二", "zwölf 十二"),
            ("a[0]", "a(0)~"),
            ("a/b::c\\d", "a_b:.c_d~"),
            ("a\x1b\n\u2028b", "a(u001b)(u000a)(u2028)b~"),
            (" padded ", "padded~"),
        ],
    )
    def test_a_name_is_readable_and_safe(self, row_id, name):
        assert re.sub("~[0-9a-f]{8}$", "~", safe_name(row_id)) == name

    @pytest.mark.fault("it has a million rows")
    @given(st.lists(st.text(min_size=1, max_size=120), unique=True, min_size=2, max_size=20))
    def test_names_are_unique_short_and_without_what_node_ids_give_a_meaning(self, ids):
        names = [safe_name(row_id) for row_id in ids]
        assert len(set(names)) == len(ids)
        for name in names:
            assert 0 < len(name) <= 100
            assert name.isprintable()
            assert not re.search(r"::|[\[\]/\\]", name)
            assert not name.endswith(":")


class TestParquet:
    def load(self, tmp_path: Path, table: pa.Table, **options: Any) -> Dataset:
        path = tmp_path / "d.parquet"
        pq.write_table(table, path, row_group_size=4)
        return load_dataset(path, **options)

    def test_what_follows_the_selected_rows_is_not_decoded(self, tmp_path):
        path = tmp_path / "d.parquet"
        rows = [record(user_prompt=f"question {number:04}") for number in range(5000)]
        kept = {"use_dictionary": False, "compression": "none", "write_page_checksum": True}
        pages = {"data_page_size": 1, "write_batch_size": 100}
        pq.write_table(pa.Table.from_pylist(rows), path, **kept, **pages)
        path.write_bytes(path.read_bytes().replace(b"question 4550", b"question 455x"))
        assert len(load_dataset(path, limit=10)) == 10
        assert "CRC checksum verification failed" in refusal(path)

    def column(self, tmp_path: Path, values: list[Any], kind: pa.DataType) -> list[Any]:
        table = pa.table(
            {
                "system_prompt": ["s"] * len(values),
                "user_prompt": ["u"] * len(values),
                "x": pa.array(values, type=kind),
            }
        )
        return [row.extra["x"] for row in rows(self.load(tmp_path, table))]

    def test_rows_are_read_across_groups_and_batches(self, tmp_path, monkeypatch):
        monkeypatch.setattr("pytest_osmosis.dataset.parquet.BATCH_ROWS", 3)
        table = pa.Table.from_pylist([record(user_prompt=str(i), n=i) for i in range(11)])
        assert user_prompts(self.load(tmp_path, table)) == [str(i) for i in range(11)]
        window = self.load(tmp_path, table, offset=2, limit=7)
        assert [row.extra["n"] for row in rows(window)] == list(range(2, 9))
        assert (window.rows_total, window.row_name(2)) == (11, "row-2")

    @pytest.mark.fault("a Parquet column is of a type that JSON lacks")
    @pytest.mark.parametrize(
        ("kind", "given", "expected"),
        [
            (pa.int64(), 3, 3),
            (pa.float32(), 0.5, 0.5),
            (pa.bool_(), True, True),
            (pa.large_string(), "x", "x"),
            (pa.decimal128(10, 2), Decimal("1.10"), "1.10"),
            (pa.timestamp("s"), datetime(2024, 1, 2, 3, 4, 5), "2024-01-02T03:04:05"),
            (pa.timestamp("ns"), 1_704_164_645_000_001_001, "2024-01-02T03:04:05.000001"),
            (pa.timestamp("us", "UTC"), 1_500_000, "1970-01-01T00:00:01.500000+00:00"),
            (pa.timestamp("ms", "Europe/Berlin"), 1_500, "1970-01-01T01:00:01.500000+01:00"),
            (pa.timestamp("us"), -1, "1969-12-31T23:59:59.999999"),
            (pa.date32(), date(2024, 1, 2), "2024-01-02"),
            (pa.time64("ns"), 3_600_000_001_001, "01:00:00.000001"),
            (pa.time32("s"), 61, "00:01:01"),
            (pa.duration("ns"), timedelta(seconds=1.5), 1.5),
            (pa.map_(pa.string(), pa.decimal128(3, 1)), {"a": Decimal("1.5")}, {"a": "1.5"}),
            (pa.map_(pa.int8(), pa.int8()), [(1, 2)], [[1, 2]]),
            (pa.list_(pa.date32()), [date(2024, 1, 2), None], ["2024-01-02", None]),
            (pa.list_(pa.int8(), 2), [1, 2], [1, 2]),
            (
                pa.struct([("at", pa.timestamp("ns")), ("n", pa.int8())]),
                {"at": 1_001, "n": 2},
                {"at": "1970-01-01T00:00:00.000001", "n": 2},
            ),
            (pa.dictionary(pa.int8(), pa.string()), "word", "word"),
            (pa.null(), None, None),
        ],
        ids=str,
    )
    def test_every_type_becomes_json(self, tmp_path, kind, given, expected):
        assert self.column(tmp_path, [given], kind) == [expected]
        if not pa.types.is_fixed_size_list(kind):  # pyarrow before 26 cannot read its nulls back
            assert self.column(tmp_path, [given, None], kind) == [expected, None]

    @pytest.mark.parametrize(
        ("kind", "value", "sentence"),
        [
            (pa.float64(), float("inf"), "the column 'x' holds NaN or an infinite number"),
            (pa.list_(pa.float32()), [float("inf")], "the column 'x' holds NaN or an infinite"),
        ],
        ids=str,
    )
    def test_what_json_has_not_is_refused_by_row_and_column(self, tmp_path, kind, value, sentence):
        with pytest.raises(DatasetError) as caught:
            self.column(tmp_path, [None, value], kind)
        assert f"d.parquet: row 1 (the first is row 0): {sentence}" in str(caught.value)

    @pytest.mark.parametrize(
        ("kind", "value"),
        [
            (pa.binary(), b"\x00"),
            (pa.list_(pa.binary(2)), [b"ab"]),
            (pa.struct([("bytes", pa.binary()), ("path", pa.string())]), {"bytes": b"\xff"}),
        ],
        ids=str,
    )
    def test_columns_of_bytes_are_left_out(self, tmp_path, kind, value):
        x = pa.array([value, None], kind)
        table = pa.table({"user_prompt": ["u", "v"], "x": x, "level": [1, 2]})
        dataset = self.load(tmp_path, table)
        assert [row.extra for row in rows(dataset)] == [{"level": 1}, {"level": 2}]
        assert list(dataset.notices) == ["left out: the column 'x' of bytes"]

    @pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
    def test_floats_are_written_as_short_as_they_can_be(self, tmp_path, kind):
        truths = pa.array([0.1, float("nan"), None], kind)
        table = pa.table({"user_prompt": ["u", "v", "w"], "ground_truth": truths})
        dataset = self.load(tmp_path, table)
        assert [row.ground_truth for row in rows(dataset)] == ["0.1", None, None]
        assert list(dataset.notices) == ["NaN is read as null: 'ground_truth' (1)"]

    def test_wrong_rows_of_every_sort_are_listed_together(self, tmp_path):
        table = pa.table(
            {
                "system_prompt": ["s", " ", "s"],
                "user_prompt": ["u", "u", "u"],
                "x": [1.0, 1.0, float("inf")],
            }
        )
        with pytest.raises(DatasetError) as caught:
            self.load(tmp_path, table)
        assert [problem[:6] for problem in caught.value.problems] == ["row 1:", "row 2:"]

    @pytest.mark.fault("a Parquet file has one column twice")
    def test_double_column_names_are_refused(self, tmp_path):
        table = pa.table([["s"], ["u"], ["v"]], names=["system_prompt", "prompt", "prompt"])
        with pytest.raises(DatasetError, match="the column 'prompt' is there more than once"):
            self.load(tmp_path, table)

    def test_a_file_of_no_rows_is_empty(self, tmp_path):
        table = pa.table({"system_prompt": pa.array([], pa.string())})
        with pytest.raises(EmptyDataset, match="has no rows"):
            self.load(tmp_path, table)

    def test_an_offset_past_the_end_is_reported(self, tmp_path):
        with pytest.raises(EmptyDataset, match="has 1 row; an offset of 9 is past the last one"):
            self.load(tmp_path, pa.Table.from_pylist([record()]), offset=9)

    @pytest.mark.parametrize(
        "damage",
        [
            lambda raw: raw[: len(raw) // 2],
            lambda raw: raw[:-10] + b"\xff" * 10,
            lambda raw: b"PAR1" + b"\xff" * 60 + raw[64:],
            lambda raw: b"not parquet at all",
        ],
        ids=["truncated", "footer", "page", "text"],
    )
    def test_a_damaged_file_is_one_message(self, tmp_path, damage):
        path = tmp_path / "d.parquet"
        pq.write_table(pa.Table.from_pylist([record(n=i) for i in range(100)]), path)
        path.write_bytes(damage(path.read_bytes()))
        message = refusal(path)
        assert message.startswith("d.parquet: cannot be read as parquet, it may be damaged")
        assert "\n" not in message

    @pytest.mark.fault("a Parquet file is cut short, or bits of it flipped")
    def test_no_flipped_bit_ends_in_anything_but_a_dataset_or_one_message(self, tmp_path):
        path = tmp_path / "d.parquet"
        pq.write_table(pa.Table.from_pylist([record(n=i) for i in range(20)]), path)
        raw = path.read_bytes()
        for position in range(0, len(raw), 23):
            flipped = bytearray(raw)
            flipped[position] ^= 0x55
            path.write_bytes(flipped)
            try:
                load_dataset(path)
            except DatasetError as error:
                assert "d.parquet" in str(error)

    @pytest.mark.fault("pyarrow is not installed")
    def test_a_missing_pyarrow_is_reported_with_the_cure(self, tmp_path, monkeypatch):
        path = tmp_path / "d.parquet"
        path.write_bytes(b"PAR1")
        monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
        assert refusal(path) == "d.parquet: needs `pip install pyarrow`"


class TestCost:
    @pytest.mark.fault("it has a million rows")
    @pytest.mark.slow
    def test_memory_is_a_few_bytes_a_row_whatever_the_rows_hold(self, write):
        path = write(lines(record(x="y" * 200)) * 20_000)
        load_dataset(path, limit=1)
        tracemalloc.start()
        try:
            dataset = load_dataset(path)
            kept, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(dataset) == 20_000
        assert kept < 20 * 20_000 + 100_000
        assert peak < 2_000_000

    def test_files_are_closed_with_the_dataset(self, write, tmp_path):
        pq.write_table(pa.Table.from_pylist([record()]), tmp_path / "d.parquet")
        paths = [write(GOOD), write(b"[" + GOOD + b"]", "d.json"), tmp_path / "d.parquet"]
        for path in paths:
            load_dataset(path)
        before = len(os.listdir("/proc/self/fd"))
        for path in paths:
            load_dataset(path)
            refusal(path, offset=10)
        assert len(os.listdir("/proc/self/fd")) == before

    def test_nothing_heavy_is_imported_for_text_files(self, write):
        path = write(GOOD)
        code = (
            "import sys; from pathlib import Path;"
            "from pytest_osmosis.dataset.dataset import load_dataset;"
            f"load_dataset(Path({str(path)!r}));"
            "print({'pyarrow', 'numpy', 'pydantic', 'asyncio', 'random'} & set(sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout.strip() == "set()", done.stderr


def test_times_in_utc_are_read_back_as_they_were(tmp_path):
    moment = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc)
    table = pa.Table.from_pylist([record(at=moment)])
    pq.write_table(table, tmp_path / "d.parquet")
    stored = load_dataset(tmp_path / "d.parquet").row(0).extra["at"]
    assert datetime.fromisoformat(stored) == moment


@given(st.sets(st.integers(0, 60), min_size=1))
def test_the_text_of_rows_names_the_same_rows(rows):
    assert list(parse_rows(as_text(sorted(rows)))) == sorted(rows)
