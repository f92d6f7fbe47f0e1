"""A key is written through every sink, in each of its spellings, and comes out of none."""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from urllib.parse import quote

import click
import pytest

from osmosis_ai.models.errors import CallFault
from osmosis_ai.models.faults import Wording
from osmosis_ai.models.transport.cassettes import Reply
from osmosis_ai.rollout import RolloutContext
from osmosis_ai.running.captured import Captured
from osmosis_ai.secret import MASK, Redactor, Secret, mask_everywhere
from osmosis_cli.errors import CommandError, run
from osmosis_cli.eval.lines import say, say_facts, say_table
from osmosis_cli.serve.server import LogFormatter
from osmosis_platform.execution.outcome import take_conversations
from osmosis_platform.execution.run_folder import RunFolder
from osmosis_platform.execution.tail import TailedFile
from pytest_osmosis.dataset.rows import Row
from pytest_osmosis.features.cassettes import folder as cassette_folder
from pytest_osmosis.features.cassettes.folder_cassette import FolderCassette
from pytest_osmosis.features.cassettes.options import CassetteSpec
from pytest_osmosis.items.redaction import LogFilter, MaskedWarnings, redact_report
from pytest_osmosis.reports.saved_conversations import beside
from pytest_osmosis.rollouts.failure_text import rollout_section
from pytest_osmosis.run_result import RolloutRecord, RunResult
from pytest_osmosis.session.environment import command_line
from pytest_osmosis.storage.run_lines import run_lines
from tests.support import report_page
from tests.support.modes import each_mode
from tests.support.project import Project

KEY = 'sk-A/b+c"d-e-0123456789'
SECRET = Secret(KEY, "OPENAI_API_KEY")
SPELLINGS = {
    "plain": KEY,
    "JSON": json.dumps(KEY)[1:-1],
    "URL": quote(KEY, safe=""),
    "base64": base64.b64encode(KEY.encode()).decode(),
}
PIECES = [text[-14:-4] for text in SPELLINGS.values()]
"""Characters of each spelling that no sink spells in another way."""
RECORD = RunResult("data", 0, 0, success=True)


def of_report(text: str, folder: Path) -> str:
    named = [("name", text)]
    made = pytest.TestReport(
        "a", ("a", 0, "a"), {}, "failed", text, "call", named, user_properties=named
    )
    redact_report(made)
    return str(vars(made))


def of_warning(text: str, folder: Path) -> str:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn(text, stacklevel=1)
    MaskedWarnings().pytest_warning_recorded(found[0])
    return str(found[0].message)


def logged(text: str, handler: logging.StreamHandler[io.StringIO]) -> str:
    logger = logging.Logger("any")
    logger.addHandler(handler)
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("it says %s", text)
    return handler.stream.getvalue()


def of_log(text: str, folder: Path) -> str:
    handler = logging.StreamHandler(io.StringIO())
    handler.addFilter(LogFilter())
    return logged(text, handler)


def of_log_of_servers(text: str, folder: Path) -> str:
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(LogFormatter(Redactor([SECRET])))
    return logged(text, handler)


def of_captured_output(text: str, folder: Path) -> str:
    captured = Captured()
    captured.write("stdout", text)
    return str(captured.sections())


def ended(text: str) -> RolloutRecord:
    return RolloutRecord(
        RECORD,
        text,
        [{"role": "user", "content": text}, {"role": "assistant", text: [text]}],
        text,
        calls=[{"id": text}],
        reasons={"exact": [text]},
    )


def of_journal_and_shard(text: str, folder: Path) -> str:
    return run_lines(ended(text)).decode()


def of_section_of_a_test(text: str, folder: Path) -> str:
    return rollout_section(RolloutRecord(RECORD, "", ended(text).messages[:1], text), 3)


def of_cassette(text: str, folder: Path) -> str:
    cassette = FolderCassette(CassetteSpec(folder, False, False))
    for body in (json.dumps({"said": text, text: 1}).encode(), text.encode()):
        cassette.keep("POST", f"/{text}", body, Reply(200, {"content-type": "a/b"}, body))
    cassette.close()
    cassette_folder.join(folder)
    return "".join(path.read_text("utf-8") for path in folder.iterdir())


def of_dataset(text: str, folder: Path) -> str:
    return str(Row(0, None, text, text, text, {text: text, "list": [text]}).describe())


def of_command_line(text: str, folder: Path) -> str:
    return command_line(["-k", text])


def of_debug_log(text: str, folder: Path) -> str:
    RolloutContext(rollout_id="r", debug_dir=folder).log_event("note", said=text)
    return next(folder.rglob("r.jsonl")).read_text("utf-8")


def of_error_of_a_call(text: str, folder: Path) -> str:
    wording = Wording(where="host", origin="host", model="m", key_name="KEY", timeout_s=1.0)
    faults = [
        CallFault("bad_request", text, status=400),
        CallFault("protocol", text, summary=text),
    ]
    return "".join(wording.of_fault(fault, Redactor([SECRET])) for fault in faults)


def of_lines_of_the_command(text: str, folder: Path) -> str:
    with redirect_stdout(io.StringIO()) as out:
        say(text, (text, "bad"))
        say_table([["name", "value"], ["a", text]])
        say_facts({"a": text})
    return out.getvalue()


def of_errors_of_the_command(text: str, folder: Path) -> str:
    @click.command()
    @click.option("--json", is_flag=True)
    def fail(json: bool) -> None:
        raise CommandError(text, details={"why": text})

    with redirect_stderr(io.StringIO()) as err:
        assert [run(fail, words) for words in ([], ["--json"])] == [1, 1]
    return err.getvalue()


def of_output_of_a_platforms_run(text: str, folder: Path) -> str:
    path = folder / "output"
    path.write_text(f"{text}\n{text}")
    TailedFile(path).mask(Redactor([SECRET]))
    return path.read_text()


def of_conversations_of_a_platforms_run(text: str, folder: Path) -> str:
    run_folder = RunFolder(folder / "runs" / "1")
    written = beside(run_folder.report)
    written.parent.mkdir(parents=True)
    written.write_text(json.dumps({"said": text}) + "\n")
    take_conversations(run_folder, Redactor([SECRET]))
    return run_folder.conversations.read_text()


SINKS: list[Callable[[str, Path], str]] = [
    of_report, of_warning, of_log, of_log_of_servers, of_captured_output, of_journal_and_shard,
    of_section_of_a_test, of_cassette, of_dataset, of_command_line, of_debug_log,
    of_error_of_a_call, of_lines_of_the_command, of_errors_of_the_command,
    of_output_of_a_platforms_run, of_conversations_of_a_platforms_run,
]  # fmt: skip


@pytest.mark.fault("a key finds its way into an answer, an error, a log or the output")
@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: sink.__name__)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_sink_lets_a_key_out(
    sink: Callable[[str, Path], str], spelling: str, tmp_path: Path
) -> None:
    mask_everywhere(SECRET)
    found = sink(f"before {SPELLINGS[spelling]} after", tmp_path)
    assert MASK in found and "before" in found and "after" in found
    assert not [piece for piece in PIECES if piece in found]


AGENT = f"""
import logging
import warnings

from agent import Agent

from osmosis_ai.rubric.reasons import add_reason

SPELLINGS = {list(SPELLINGS.values())!r}


class Talker(Agent):
    async def run(self, ctx):
        for text in SPELLINGS:
            print(text)
            logging.warning("it says %s", text)
            warnings.warn(f"mind {{text}}")
            ctx.log_event("note", said=text)
        wish = ctx.request.messages[-1]["content"]
        if wish == "raise":
            raise LookupError(" ".join(SPELLINGS))
        return await super().run(ctx)


def judge(solution_str, ground_truth, extra_info):
    if "fail" in ground_truth:
        raise ValueError(" ".join(SPELLINGS))
    add_reason(" ".join(SPELLINGS))
    return 0.0


agent_loop = Talker()
"""
REPORTS = (
    "--osmosis-markdown=out.md", "--osmosis-html=out.html", "--osmosis-runs-table=out.csv",
    "--junitxml=out.xml", "--osmosis-by=secret", "--osmosis-debug-dir=debug", "-rA", "-l",
    "-Wdefault", "--log-level=DEBUG",
)  # fmt: skip


@pytest.mark.fault(
    "an answer or an error quotes the key",
    "a traceback shows arguments and locals",
    "the provider echoes the key",
    "loggers run at DEBUG",
)
@each_mode
def test_nothing_that_a_session_prints_or_writes_has_a_key(
    project: Project, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    project.endpoint.answers = lambda ask: " ".join(SPELLINGS.values())
    project.write("talker.py", AGENT)
    project.write("test_other.py", f"def test_other():\n    assert {KEY!r} == 1\n")
    own = {*project.path.iterdir()}
    told = {"secret": KEY, "system_prompt": " ".join(SPELLINGS.values())}
    project.rows(
        *({"user_prompt": wish, "ground_truth": wish, **told} for wish in ("say", "fail", "raise"))
    )
    own.add(project.path / "data.jsonl")
    session = project.run(
        "data.jsonl", "test_other.py", *REPORTS, agent="talker:agent_loop",
        eval_fn="talker:judge", workers=workers,
    )  # fmt: skip
    assert session.outcomes["failed"] + session.outcomes["errors"] == 4
    texts = defaultdict(str, terminal=session.out + session.err)
    for folder, folders, names in os.walk(project.path):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for path in {Path(folder, name) for name in names} - own:
            texts["kept" if ".osmosis" in path.parts else path.name] += report_page.text_of(path)
    written = {"out.json", "out.md", "out.html", "out.csv", "out.xml", "kept"}
    assert written < texts.keys()
    assert all(MASK in texts[name] for name in ("terminal", *written - {"out.csv"}))
    assert {name for name, text in texts.items() for piece in PIECES if piece in text} == set()
