"""What cannot be evaluated is one sentence before any request, and leaves every file as it was."""

from __future__ import annotations

import json

import pytest

from tests.support.project import Project

KEY = "sk-a-key-that-nobody-may-see"
SECRET = "sk-search-48151623"
"""The value of a variable that the session does not use."""
RECORD, REPLAY, ASK = (
    "--osmosis-record=taped", "--osmosis-replay=taped", "--osmosis-replay-missing=ask",
)  # fmt: skip
TWO = ("--osmosis-model=a", "--osmosis-model=org/b:1")
CLAUDE = {"model": "anthropic/claude", "base_url": None, "api_key_env": "MY_KEY"}

Replaced = dict[str, str | None]
Given = Replaced | list[str] | tuple[Replaced, list[str]]
"""What is replaced on the usual command line, what stands behind it, or both."""
WRONG: list[tuple[Given, str]] = [
    # What belongs together.
    (
        {"agent": None, "model": None},
        "--osmosis-data needs --osmosis-agent too: module:attribute; or --osmosis-model",
    ),
    ({"agent": None, "eval_fn": None}, "--osmosis-eval-fn is needed: nothing scores the model's"),
    (({"agent": None}, ["--osmosis-max-turns=3"]), "--osmosis-max-turns cannot reach chat, which"),
    ({"model": None}, "--osmosis-model is needed: a name at --osmosis-base-url"),
    (
        {"data": None},
        "--osmosis-agent needs --osmosis-data too: a .jsonl, .json, .csv, .tsv or .parquet file",
    ),
    (
        ({"eval_fn": None}, ["--osmosis-strip-reasoning"]),
        "--osmosis-strip-reasoning needs --osmosis-eval-fn or --osmosis-rescore too",
    ),
    (["--osmosis-stop-when-decided"], "--osmosis-stop-when-decided needs --osmosis-gate too"),
    ([ASK], "--osmosis-replay-missing needs --osmosis-replay too"),
    # What does not go together, or is given twice.
    (["--eval-fn=rewards:exact"], "--osmosis-eval-fn 'rewards:exact' is given twice"),
    (["--osmosis-data=./data.jsonl"], "--osmosis-data './data.jsonl' is given twice"),
    (({"model": None}, [*TWO, "--osmosis-model=a"]), "--osmosis-model 'a' is given twice"),
    (["--dist=loadgroup"], "--dist loadgroup does not go with an evaluation: use --dist load"),
    (["--dist=each"], "--dist each does not go with an evaluation: use --dist load"),
    (["--pdb", "-n2"], "--pdb is incompatible with"),
    (["--trace", "-n2"], "--trace is incompatible with"),
    (["--osmosis-baseline=last", "--osmosis-baseline-model=other"], "give one of them"),
    (
        ["--osmosis-rows=1", "--osmosis-limit=1"],
        "--osmosis-limit has no effect beside --osmosis-rows: leave out one of them",
    ),
    *(
        ([one, other], f"{one} and {other} contradict each other: give one of them")
        for one, other in [
            ("--osmosis-fresh", "--osmosis-resume"),
            ("--osmosis-fresh", "--osmosis-retry-failed"),
            ("--osmosis-no-journal", "--osmosis-resume"),
        ]
    ),
    ([RECORD, REPLAY], "--osmosis-record and --osmosis-replay contradict each other"),
    (
        ["--osmosis-system-prompt=a", "--osmosis-system-prompt-file=agent.py"],
        "contradict each other",
    ),
    # Code.
    ({"agent": "x"}, "--osmosis-agent 'x': expected module:attribute"),
    ({"agent": ""}, "--osmosis-agent '': expected a value"),
    (
        {"agent": "agent:__name__"},
        "--osmosis-agent 'agent:__name__': is a str; expected a function",
    ),
    ({"eval_fn": "agent:explode"}, "--osmosis-eval-fn 'agent:explode'"),
    ({"eval_fn": "incudes"}, "--osmosis-eval-fn 'incudes': no scorer 'incudes'; there are"),
    ({"agent": "cmd:"}, "--osmosis-agent 'cmd:': expected a command line, as cmd:'node agent.js'"),
    ({"agent": "cmd:'open"}, "No closing quotation"),
    ({"agent": "cmd:no-such-program --x"}, "no program 'no-such-program' in PATH"),
    ({"agent": "cmd:./missing.sh"}, "no program './missing.sh' in "),
    # Rows.
    ({"data": "no.jsonl"}, "/no.jsonl: no such file"),
    ({"data": "."}, ": is a directory; give a .jsonl, .json, .csv, .tsv or .parquet file"),
    ({"data": "torn.jsonl"}, "torn.jsonl:3: not JSON"),
    ({"data": "keyed.jsonl"}, "keyed.jsonl: the id of row 0 holds the value of a key or token"),
    ({"data": "a [b].jsonl"}, "a [b].jsonl: pytest takes"),
    (["--osmosis-map=a=id"], "there is no column 'a' to serve as id (columns: system_prompt"),
    (
        ["--osmosis-prompt-template={{ x }}"],
        "template: no row has a column 'x' (columns",
    ),
    (["--osmosis-prompt-template={{ x"], "--osmosis-prompt-template: line 1: unexpected end of"),
    (["--osmosis-prompt-template=@x"], "--osmosis-prompt-template '@x': No such file or directory"),
    (
        ["--osmosis-prompt-template", "@data.jsonl"],
        "of its own; write --osmosis-prompt-template=@data.jsonl",
    ),
    (
        ["--osmosis-prompt-template={{ x }}", "--osmosis-map=x=messages"],
        "makes the user prompt: leave it out, or the map x=messages",
    ),
    (["--osmosis-where=level"], "--osmosis-where 'level': expected COLUMN=VALUE"),
    (["--osmosis-where=x=1"], "no row has the column 'x' of x=1 (columns: system_prompt"),
    (["--osmosis-where=ground_truth="], "no row is left where ground_truth=: ground_truth is a"),
    (["--osmosis-rows=3-1"], "--osmosis-rows '3-1': '3-1' is not a row; expected row indices"),
    (["--osmosis-rows=1,7"], "data.jsonl: has 2 rows; there is no row 7 (the first row is 0)"),
    (["--osmosis-rows=@"], "--osmosis-rows '@': expected a JSON report behind the @, such as"),
    (["--osmosis-rows=@no.json"], "no.json: cannot be read: No such file or directory"),
    (["--osmosis-rows=@data.jsonl"], "data.jsonl: not a JSON report: "),
    (
        ["--osmosis-by=levl"],
        "--osmosis-by 'levl': data.jsonl: the data have no column 'levl', "
        "only ground_truth, level, system_prompt, user_prompt; did you mean 'level'?",
    ),
    (
        ["--osmosis-cluster=levl"],
        "--osmosis-cluster 'levl': data.jsonl: no row has such a column (columns: system_prompt",
    ),
    ({"shard": "4/3"}, "expected I/K, such as 2/4 for the second of four shards"),
    ({"shard": "a/b"}, "expected I/K, such as 2/4 for the second of four shards"),
    (["--osmosis-system-prompt-file=no.txt"], "no.txt': No such file"),
    # The endpoint.
    ({"model": ""}, "--osmosis-model '': expected a value"),
    (
        {"model": "embedded/nobody", "base_url": None},
        "--osmosis-model: the embedded endpoint has no persona 'nobody': known are default,",
    ),
    ({"base_url": "localhost:8000"}, "has no scheme: write http://localhost:8000"),
    ({"base_url": f"http://u:{KEY}@h/v1"}, "--osmosis-base-url: the base URL holds a user name"),
    (
        {"api_key_env": "NOT_SET"},
        "NOT_SET is not set: export it, or name another variable with --osmosis-api-key-env",
    ),
    (
        {"baseline_model": "b", "baseline_api_key_env": "NOT_SET"},
        "NOT_SET is not set: export it, or name another variable with "
        "--osmosis-baseline-api-key-env",
    ),
    ({"model": "gpt-4o", "base_url": None}, "API key: OPENAI_API_KEY is not set: export it"),
    ({"model": "anthropic/x", "base_url": None}, "ANTHROPIC_API_KEY is not set: export it"),
    ({"model": "a b", "base_url": None}, "--osmosis-model: 'a b'"),
    ((CLAUDE, ["--osmosis-baseline-model=openai/gpt-5"]), "OPENAI_API_KEY is not set"),
    ((CLAUDE, ["--osmosis-model=openai/gpt-5"]), "OPENAI_API_KEY is not set"),
    ({"api_key_env": KEY}, "--osmosis-api-key-env must be the name of an environment variable"),
    ({"api_key_env": "PASTED"}, "PASTED holds a non-ASCII character at position 4: copy the key"),
    ({"api_key": ""}, "--osmosis-api-key '': expected a value"),
    ({"api_key": f"{KEY}\n{KEY}"}, "--osmosis-api-key"),
    # Numbers and words.
    ({"n": "0"}, "--osmosis-n '0': expected a whole number of at least 1"),
    ({"pass_threshold": "nan"}, "--osmosis-pass-threshold 'nan': expected a number"),
    (
        {"pass_threshold": "lenght=1"},
        "--osmosis-pass-threshold 'lenght=1': 'lenght' is not one eval function",
    ),
    ({"pass_threshold": "exact="}, "'exact=': expected a number, or EVAL_FN=NUMBER"),
    ({"pass_threshold": "=1"}, "'=1': expected a number, or EVAL_FN=NUMBER"),
    (["--pass-threshold=1", "--pass-threshold=0.5"], "1 and 0.5 contradict each other"),
    (
        ["--pass-threshold=exact=1", "--pass-threshold=exact=0.5"],
        "exact=1 and exact=0.5 contradict each other",
    ),
    ({"max_turns": "0"}, "--osmosis-max-turns '0': expected a whole number of at least 1"),
    ({"temperature": "-1"}, "--osmosis-temperature '-1': expected a number of at least 0"),
    ({"max_tokens": "0"}, "--osmosis-max-tokens '0': expected a whole number of at least 1"),
    ({"top_p": "0"}, "--osmosis-top-p '0': expected a number above 0 and at most 1"),
    ({"seed": "-1"}, "--osmosis-seed '-1': expected a whole number of at least 0"),
    ({"batch_size": "0"}, "--osmosis-batch-size '0': expected a whole number of at least 1"),
    ({"limit": "0"}, "--osmosis-limit '0': expected a whole number of at least 1"),
    ({"offset": "-1"}, "--osmosis-offset '-1': expected a whole number of at least 0"),
    ({"sample": "0%"}, "--osmosis-sample '0%': expected a share like 10% or a number of rows"),
    (
        {"sample_seed": "x", "sample": "1"},
        "--osmosis-sample-seed 'x': expected a whole number of at least 0",
    ),
    ({"agent_timeout": "0"}, "--osmosis-agent-timeout '0': expected a number of seconds above 0"),
    ({"grader_timeout": "inf"}, "--osmosis-grader-timeout 'inf': expected a number of seconds"),
    (["--osmosis-confidence=95"], "expected a number between 0 and 1, such as 0.95"),
    (["--osmosis-retry-failed=some"], "--osmosis-retry-failed 'some': expected 'errors' or 'all'"),
    ([REPLAY, "--osmosis-replay-missing=x"], "'x': expected 'error' or 'ask'"),
    (["-k", "row-0 and"], "wrong expression 'row-0 and': "),
    (["-m", "row-0 and"], "wrong expression 'row-0 and': "),
    # How it is spelled.
    (["--n=0"], "--n '0': expected a whole number"),
    (
        ({"eval_fn": None}, ["--eval-fn=rewards:exat"]),
        "--eval-fn 'rewards:exat': module 'rewards' has no 'exat'",
    ),
    *(([f"{name}=x"], name) for name in ("--base-url", "--model", "--api-key")),  # are others'
    (["--osmosis-modle=x"], "--osmosis-modle: no such option; did you mean --osmosis-model?"),
    # Gates and baselines.
    (["--osmosis-gate=mean > 0 where level = x"], "for a gate on some rows, give them a data file"),
    (["--osmosis-gate=mean - baseline > 0"], "there is no baseline: name one with --osmosis-"),
    (["--osmosis-baseline=no.json"], "no.json: cannot be read: No such file or directory"),
    (["--osmosis-baseline=torn.json"], "torn.json: not a JSON report"),
    (["--osmosis-baseline=other.json"], "other.json: not an evaluation's report"),
    (
        ({"model": None}, [*TWO, "--osmosis-gate=mean[model=c] > 0"]),
        "there is no such candidate, only model=a",
    ),
    (
        ({"model": None}, [*TWO, "--osmosis-gate=mean[model=a] - baseline > 0"]),
        "what others are compared with",
    ),
    (
        ({"model": None}, [*TWO, "--osmosis-baseline-model=c"]),
        "give --osmosis-model c before the others",
    ),
    # What is written.
    ({"output": "no/such/folder/out.json"}, "cannot be written: No such file or directory"),
    ({"output": "."}, "is a directory; name a file"),
    ({"output": "/"}, "'/': cannot be written"),
    ({"output": "data.jsonl"}, "data.jsonl': this is the data file, which would be"),
    ({"markdown": "agent.py"}, "agent.py': this is a Python file, which would be"),
    ({"markdown": "pytest.ini"}, "this is pytest's configuration"),
    ({"output": "r.json", "html": "r.json"}, "the file of --osmosis-output too"),
    (["--osmosis-html=r.xml", "--junitxml=./r.xml"], "the file of --osmosis-html too"),
    ({"debug_dir": "agent.py"}, "agent.py': cannot be made: File exists"),
    *(
        ({name: f"agent.py/{file}"}, f"--osmosis-{name.replace('_', '-')} ")
        for name, file in [
            ("output", "r.json"),
            ("markdown", "r.md"),
            ("html", "r.html"),
            ("runs_table", "r.csv"),
            ("trajectories", "below"),
        ]
    ),
    ({"runs_table": "runs.xlsx"}, "expected a file name that ends in .csv or .parquet"),
    ({"markdown": "-"}, "--osmosis-markdown '-': name a file, or /dev/stdout"),
    ({"run_dir": "agent.py/x"}, "the journal cannot be written: Not a directory"),
    (["--osmosis-record=data.jsonl"], "data.jsonl: calls cannot be recorded: File exists"),
    ([REPLAY], "--osmosis-replay 'taped': no call is recorded there: record them with"),
    (["--osmosis-resume"], "--osmosis-resume: nothing to resume: there is no agent.agent_loop-"),
]


@pytest.mark.fault(
    "the base URL lacks its scheme, or holds a query or a password",
    "the key is empty, missing, or holds what no header can carry",
    "a report cannot be written where it should be",
    "the key is in the base URL",
    "`--dist loadgroup`, `loadscope`, `loadfile`",
    "an option names rows or columns that are not there",
    "`--pdb`, `--trace`",
)
@pytest.mark.parametrize(("given", "sentence"), WRONG, ids=lambda each: str(each)[:60])
def test_a_mistake_is_one_sentence_before_any_request(
    project: Project, monkeypatch: pytest.MonkeyPatch, given: Given, sentence: str
):
    for name, value in {"PASTED": f"sk-\N{EN DASH}{KEY}", "MY_KEY": KEY, "A_TOKEN": SECRET}.items():
        monkeypatch.setenv(name, value)
    row = {"system_prompt": "s", "user_prompt": "a", "ground_truth": "a"}
    line = json.dumps(row) + "\n"
    keyed = line.replace('"s"', f'"s", "id": "of {SECRET}"')
    kind = json.dumps({**row, "level": 1}) + "\n"
    files = {
        "data.jsonl": kind * 2, "torn.jsonl": line * 2 + '{"user_', "keyed.jsonl": keyed,
        "a [b].jsonl": line, "torn.json": '{"summary": ', "other.json": '{"tests": []}',
        "pytest.ini": "[pytest]\n",
    }  # fmt: skip
    for name, text in files.items():
        project.write(name, text)
    before = {path.name: path.read_bytes() for path in project.path.iterdir()}
    if not isinstance(given, tuple):
        given = (given, []) if isinstance(given, dict) else ({}, given)
    session = project.run(*given[1], **given[0])
    assert sentence in session.mistake
    assert (session.ret, project.endpoint.requests, session.out) == (4, 0, "")
    for internal in ("Traceback", "pytest_osmosis/", KEY, SECRET):
        assert internal not in session.err
    after = {path.name: path.read_bytes() for path in project.path.iterdir() if path.is_file()}
    assert after == before
