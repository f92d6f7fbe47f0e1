"""What a run becomes: pytest's outcome, the message, the report's entry and the exit status."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from click.testing import CliRunner

from osmosis_cli.main import cli
from pytest_osmosis.user_code.returned_score import SCORES
from tests.support.endpoints import Ask, error_reply
from tests.support.modes import each_mode
from tests.support.project import AGENT, KEPT, Project, Session

KEY = "sk-a-key-that-nobody-may-see"


@dataclass(frozen=True)
class Fate:
    """A row, and what becomes of its run; the eval functions are `exact` and `judge`."""

    prompt: str
    outcome: str
    success: bool
    scores: dict[str, float] = field(default_factory=dict)
    error_type: str | None = None
    error: str | None = None
    """What the report and the short summary say; `{at}` is the endpoint."""
    message: tuple[str, ...] = ()
    """Lines of the item's section, in their order."""


RAISED = """\
Traceback (most recent call last):
  File "{folder}/agent.py", line 17, in run
    return explode({{"depth": 1}})
LookupError: no such drawer at {{'depth': 1}}"""

FATES = [
    Fate("right", "passed", True, {"exact": 1.0, "judge": 1.0}),
    Fate(
        "half",
        "below",
        True,
        {"exact": 1.0, "judge": 0.5},
        message=(
            "rewards:judge scored 0.5, below the threshold 1",
            "  user       half",
            "  assistant  half",
            "  ground truth  half",
        ),
    ),
    Fate(
        "raise",
        "raised",
        False,
        error_type="agent",
        error="LookupError: no such drawer at {{'depth': 1}}",
        message=tuple(RAISED.splitlines()),
    ),
    Fate(
        "give up",
        "raised",
        False,
        error_type="agent",
        error="there was no way to answer",
        message=("there was no way to answer", "  ground truth  give up"),
    ),
    Fate(
        "overloaded",
        "error",
        False,
        error_type="provider",
        error='503 from {at} ("come back later")',
        message=('provider: 503 from {at} ("come back later")',),
    ),
    Fate(
        "too long",
        "raised",
        False,
        error_type="agent",
        error='400 from {at} ("8192 tokens at most")',
        message=('400 from {at} ("8192 tokens at most")',),
    ),
    Fate(
        "boom",
        "error",
        True,
        {"exact": 1.0},
        error_type="eval_fn",
        error="`rewards:judge` raised KeyError: 'boom'",
        message=(
            "Traceback (most recent call last):",
            '  File "{folder}/rewards.py", line 17, in judge',
            "KeyError: 'boom'",
            "  assistant  boom",
        ),
    ),
    *(
        Fate(
            said,
            "error",
            True,
            {"exact": 1.0},
            error_type="eval_fn",
            error=f"`rewards:judge` returned {described}",
            message=(f"`rewards:judge` returned {described}", f"  assistant  {said}"),
        )
        for said, described in [
            ("nothing", f"None for row-7; expected {SCORES}"),
            ("text", f"'1.0' (a str) for row-8; expected {SCORES}"),
            ("nan", f"nan for row-9; expected {SCORES}"),
        ]
    ),
]


@pytest.fixture
def fated(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose endpoint wants a key, refuses some rows and quotes the key back."""

    def answers(ask: Ask) -> Any:
        no_retry = {"x-should-retry": "false"}
        if ask.row == "overloaded":
            return error_reply(503, "come back later", headers=no_retry)
        return error_reply(400, "8192 tokens at most") if ask.row == "too long" else ask.row

    project.endpoint.answers = answers
    project.endpoint.api_key = KEY
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return project


def entry(fate: Fate, at: str) -> dict[str, Any]:
    """What the report must say of a fate's run."""
    return {
        "outcome": fate.outcome,
        "passed": fate.outcome == "passed",
        "success": fate.success,
        "scores": {f"rewards:{name}": score for name, score in fate.scores.items()},
        "error_type": fate.error_type,
        "error": None if fate.error is None else fate.error.format(at=at),
    }


def sections(session: Session) -> dict[str, str]:
    """The section of each item that did not pass, by the item's name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in session.lines:
        if line.startswith("___"):
            lines = found.setdefault(line.strip("_ ").removeprefix("ERROR at setup of "), [])
        elif line.startswith("==="):
            lines = []
        else:
            lines.append(line)
    return {name: "\n".join(lines) for name, lines in found.items()}


def in_order(text: str, lines: tuple[str, ...]) -> bool:
    """Whether the lines are in the text, each whole, one below the other."""
    rest = iter(text.splitlines())
    return all(line in rest for line in lines)


@pytest.mark.fault("an eval function raises")
def test_each_run_becomes_what_happened_to_it(fated: Project):
    fated.rows(*(fate.prompt for fate in FATES))
    session = fated.run("--eval-fn=rewards:judge", "-rA", "--junitxml=out.xml", "-l")
    at = fated.endpoint.netloc

    entries = [{name: run[name] for name in entry(FATES[0], at)} for run in session.runs]
    assert entries == [entry(fate, at) for fate in FATES]

    counts = {"passed": 1, "failed": 4, "errors": 5}
    assert session.outcomes == counts
    labels = {"passed": "PASSED", "below": "FAILED", "raised": "FAILED", "error": "ERROR"}
    names = [f"data.jsonl::row-{index}[run-0]" for index in range(len(FATES))]
    for name, fate in zip(names, FATES, strict=True):
        assert any(line.startswith(f"{labels[fate.outcome]} {name}") for line in session.lines)
    assert session.ret == 1

    shown = sections(session)
    for index, fate in enumerate(FATES):
        wanted = tuple(line.format(at=at, folder=fated.path) for line in fate.message)
        section = shown.get(f"row-{index}[run-0]", "")
        assert in_order(section, wanted), f"{wanted} are not in:\n{section}"

    figures = session.report["summary"]["eval_fns"]["rewards:judge"]
    assert (figures["mean"], figures["scored"], figures["missing"]) == (1.5 / 9, 9, 1)
    said = "1 run without a score, left out of every figure"
    assert session.lines[session.lines.index(said) + 1 :][:4] == [
        "  provider overloaded 1",
        "7 runs that failed count as 0.0",
        "  eval_fn 3, eval_fn KeyError 1, raised 1, raised LookupError 1, raised",
        "  bad_request 1",
    ]

    written = [(fated.path / name).read_text() for name in ("out.json", "out.xml")]
    for text in (session.out, session.err, *written):
        for internal in ("pytest_osmosis/", "osmosis_ai/", KEY):
            assert internal not in text


def test_every_eval_function_that_gave_no_score_is_reported(project: Project):
    project.rows("boom")
    project.write("more.py", "def none(solution_str): pass\n")
    session = project.run("--eval-fn=rewards:judge", "--eval-fn=more:none")
    section = sections(session)["row-0[run-0]"]
    assert section.count("KeyError: 'boom'") == 1
    assert section.count("`more:none` returned None for row-0; expected a finite float") == 1


def test_without_an_eval_function_the_rollouts_own_reward_is_the_score(project: Project):
    project.write("agent.py", AGENT.replace("(messages)", "(messages, reward=0.25)"))
    project.rows("a")
    session = project.run("--pass-threshold=0.2", eval_fn=None)
    assert session.ret == 0
    assert session.runs[0]["scores"] == {"reward": 0.25}
    assert list(session.report["summary"]["eval_fns"]) == ["reward"]


def test_a_rollout_without_a_reward_is_an_error_when_nothing_else_scores_it(
    project: Project,
):
    reward = "(messages, reward=1.0 if wish == 'a' else None)"
    project.write("agent.py", AGENT.replace("(messages)", reward))
    project.rows("a", "b", "c")
    session = project.run(eval_fn=None)
    assert session.outcomes == {"passed": 1, "errors": 2}
    assert session.report["summary"]["halted"] is None
    run = session.runs[1]
    assert (run["outcome"], run["success"], run["scores"]) == ("error", True, {})
    assert session.out.count("the rollout has no reward to score it by") == 1
    assert "fill them in" not in session.out


def test_an_error_of_the_endpoint_that_the_agent_passes_on_is_the_endpoints(
    fated: Project,
):
    fated.write(
        "agent.py",
        """
from osmosis_ai.rollout import RolloutAgentLoop


class Agent(RolloutAgentLoop):
    name = "polite"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        try:
            await ctx.chat(ctx.request.messages)
        except Exception as error:
            if ctx.request.metadata["style"] == "wrapped":
                raise RuntimeError("the model did not answer") from error
            return ctx.error(f"the model did not answer: {error}")


agent_loop = Agent()
""",
    )
    row = {"user_prompt": "overloaded", "ground_truth": "x"}
    fated.rows(*({**row, "style": style} for style in ("wrapped", "returned")))
    session = fated.run()
    assert [run["error_type"] for run in session.runs] == ["provider", "provider"]
    assert session.outcomes == {"errors": 2}


OWN_JUDGE = """
class RateLimitError(Exception):
    status_code = 429

RateLimitError.__module__ = "openai"


def judged(solution_str):
    if solution_str == "busy":
        raise RateLimitError("Error code: 429")
    if solution_str == "broken":
        raise KeyError("verdict")
    return 1.0
"""


def test_an_eval_functions_own_client_that_is_refused_leaves_the_run_out_and_its_bug_does_not(
    project: Project,
):
    project.write("own.py", OWN_JUDGE)
    project.rows("a", "busy", "broken")
    session = project.run(eval_fn="own:judged")
    figures = session.report["summary"]["eval_fns"]["own:judged"]
    assert (figures["mean"], figures["scored"], figures["missing"]) == (0.5, 2, 1)
    assert [run["outcome"] for run in session.runs] == ["passed", "error", "error"]
    assert session.runs[1]["judge_errors"] == {"own:judged": "judge_failed"}


@each_mode
@pytest.mark.parametrize("gates", [(), ("errors <= 9",)], ids=["plain", "gated"])
def test_a_runs_outcome_is_the_same_everywhere_whatever_gates_there_are(
    fated: Project, workers: int, gates: tuple[str, ...]
):
    wanted = ["passed", "below", "raised", "timeout", "error", "error"]
    fated.rows("right", "half", "raise", "sleep", "overloaded", "boom")
    session = fated.run(
        "--eval-fn=rewards:judge", "--osmosis-agent-timeout=2", "--osmosis-runs-table=out.csv",
        "-v", *(f"--osmosis-gate={gate}" for gate in gates), workers=workers,
    )  # fmt: skip
    with (fated.path / "out.csv").open(newline="") as file:
        tabled = [row["outcome"] for row in csv.DictReader(file)]
    lines = (fated.path / "out.trajectories.jsonl").read_text().splitlines()
    outcomes = {(each := json.loads(line))["row_index"]: each["outcome"] for line in lines}
    shown = []
    for row in range(len(wanted)):
        show = ["show", "--json", KEPT, f"row-{row}"]
        done = CliRunner().invoke(
            cli, ["eval", "runs", "--run-dir", str(fated.path / ".osmosis/runs"), *show]
        )
        shown += [run["outcome"] for run in json.loads(done.stdout)["runs"]]
    assert [run["outcome"] for run in session.runs] == tabled == shown == wanted
    assert [outcomes[row] for row in sorted(outcomes)] == [wanted[row] for row in sorted(outcomes)]
    assert "runs: 1 passed, 1 below, 1 raised, 1 timeout, 2 errors" in session.lines
    if gates:
        assert session.outcomes == {
            "passed": 1, "below": 1, "raised": 1, "timeout": 1, "errored": 2, "gate": 1,
        }  # fmt: skip
        assert {"RAISED", "TIMEOUT", "ERRORS"} <= {line.strip("= ") for line in session.lines}
        assert not [line for line in session.lines if line.startswith(("ERROR ", "FAILED "))]
    else:
        assert session.outcomes == {"passed": 1, "failed": 3, "errors": 2}
    assert session.ret == (0 if gates else 1)
