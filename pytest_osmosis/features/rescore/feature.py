"""Scores recorded conversations once more: the suite of a kept evaluation, without its agent.

What the agent and the endpoint did stays as it was recorded; eval functions, a grader and the
threshold may be others. Nothing is sent to the evaluated model. Knows no pytest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from osmosis_ai.secret import mask_everywhere

from ...api_keys import secrets_of
from ...dataset.sampling import as_text
from ...errors import ConfigurationError
from ...rollouts.prepare import own_thresholds, read_rows
from ...rollouts.scoring import REWARD
from ...rollouts.suite import OneRun, Suite
from ...run_result import RolloutRecord, RunResult
from ...session.seams import Feature
from ...spec import EvalSpec, ModelSpec, SessionSpec
from ...storage import run_directory
from ...storage.fingerprint import EvalFingerprint, RunPlan
from ...storage.journal import FILE
from ...storage.replay import JournalError, Replay, replay
from ...storage.run_lines import read_record
from ...user_code.agent import AgentResult, AgentRun, Reach, Takes
from ...user_code.eval_function import load_eval_fns
from ...user_code.import_object import ImportingError, imports_within
from ...user_code.load_agent import LoadedAgent, load_agent, load_grading

if TYPE_CHECKING:
    import pytest

    from ...dataset.dataset import Dataset
    from . import RescoreSpec

OPTION = "--osmosis-rescore"
_NO_MODEL = ModelSpec(model="", needs_key=False, is_asked=False)


class RescoreFeature(Feature):
    """Has a kept evaluation scored again, as the only one of the session."""

    name = "rescore"

    def __init__(self, config: pytest.Config, asked: RescoreSpec) -> None:
        self._asked = asked
        self._folder = self._root = config.rootpath
        """Where the kept evaluation lies, once the session is planned."""

    def plan(self, spec: SessionSpec) -> SessionSpec:
        """Return the session with the evaluation that is to be scored again as its only one.

        Raises:
            ConfigurationError: when there is none, or none that can be.
        """
        asked = self._asked
        runs = run_directory.runs_folder(self._root, spec.keeping.run_dir)
        self._folder = _find_run(asked.run, runs)
        kept, identity = _read_kept(self._folder)
        info = identity.info
        if info.scored_by_test:
            raise ConfigurationError(
                f"{OPTION} {asked.run!r}: it holds the runs of a test function, whose own asserts "
                "decide: run the test itself"
            )
        indices = RunPlan.from_json(kept.plan).indices
        evaluation = EvalSpec(
            name=info.name,
            agent=info.agent,
            data=asked.data or Path(info.data),
            model=_NO_MODEL,
            eval_fns=asked.eval_fns or tuple(name for name in info.eval_fns if name != REWARD),
            grader=asked.grader or (None if asked.eval_fns else identity.asked.get("grader")),
            strip_reasoning=asked.strip_reasoning or identity.asked.get("strip reasoning"),
            n=kept.plan["n"],
            pass_threshold=info.pass_threshold if asked.thresholds is None else asked.thresholds[0],
            thresholds=() if asked.thresholds is None else asked.thresholds[1],
            map=tuple(identity.asked.get("map") or ()),
            prompt_template=identity.asked.get("prompt template"),
            **_selection_of(indices),
        )
        return replace(
            spec.with_models(lambda model: _NO_MODEL),
            evals=(evaluation,),
            keeping=replace(spec.keeping, journal=False),
        )

    def prepare(self, spec: EvalSpec, session: SessionSpec, *, validate: bool) -> Suite:
        """Return the suite that scores what was recorded."""
        kept, identity = _read_kept(self._folder)
        roots = session.roots
        try:
            with imports_within(session.import_timeout_s):
                eval_fns = load_eval_fns(spec.eval_fns, option="--osmosis-eval-fn", roots=roots)
                agent = _NoAgent()
                loaded = LoadedAgent(agent)
                asks_others = self._asked.eval_fns or spec.grader
                if REWARD in identity.info.eval_fns and not asks_others:
                    # Its grader may stand in its module; what gives itself a reward has none.
                    loaded = load_agent(spec.agent, roots=roots)
                grading = load_grading(spec.grader, loaded, agent=spec.agent, roots=roots)
        except ImportingError as error:
            raise ConfigurationError(str(error)) from None
        dataset = read_rows(spec, validate=validate, compared_by=eval_fns)
        _refuse_changed(dataset, identity, self._folder.name)
        names = (REWARD, *spec.eval_fns) if grading is not None else spec.eval_fns or (REWARD,)
        own = own_thresholds(spec.thresholds, names)
        if self._asked.thresholds is None:
            own = {name: at for name, at in identity.info.thresholds.items() if name in names}
        info = replace(
            identity.info,
            eval_fns=names,
            n=spec.n,
            pass_threshold=spec.pass_threshold,
            thresholds=own,
            rows=len(identity.plan.indices),
            settings={**identity.info.settings, "rescored": self._folder.name},
        )
        mask_everywhere(*secrets_of(spec.model), *session.key_variables)
        suite = _Rescored(
            spec,
            session,
            info=info,
            dataset=dataset,
            agent=agent,
            eval_fns=eval_fns,
            grading=grading,
        )
        suite.recorded = kept
        suite.recorded_in = self._folder
        return suite


def _selection_of(indices: Sequence[int]) -> dict[str, Any]:
    """Return the fields of a spec that select rows: a window where they are one."""
    first, count = min(indices), max(indices) - min(indices) + 1
    if count == len(indices):
        return {"offset": first, "limit": count}
    return {"rows": as_text(indices)}


def _find_run(run: str, runs: Path) -> Path:
    for folder in (runs / run, Path(run)):
        if (folder / FILE).is_file():
            return folder.resolve()
    raise ConfigurationError(
        f"{OPTION} {run!r}: no such evaluation in {runs}; osmosis eval runs list names them"
    )


def _read_kept(folder: Path) -> tuple[Replay, EvalFingerprint]:
    try:
        kept = replay(folder)
    except (JournalError, OSError) as error:
        raise ConfigurationError(f"{OPTION}: {error}") from None
    return kept, EvalFingerprint.from_json({**kept.header, "plan": kept.plan})


def _refuse_changed(dataset: Dataset, identity: EvalFingerprint, name: str) -> None:
    now, before = RunPlan.of(dataset, identity.plan.n), identity.plan
    changed = now.changed_rows(before) + now.lost_rows(before)
    if changed:
        raise ConfigurationError(
            f"{OPTION} {name!r}: dataset changed since ({changed} of {len(before.indices)} rows "
            f"differ in {str(dataset.path)!r}): eval functions need the rows as they were"
        )


class _NoAgent:
    """Stands where a suite has its agent: nothing asks for it."""

    max_concurrent: int | None = None
    reach: frozenset[Reach] = frozenset(get_args(Reach))
    """No option reaches an agent: none is refused for that here."""
    needs_model = False
    takes: Takes = "row"
    reward_hint = "no reward was recorded: give --osmosis-eval-fn"
    imports: Sequence[str] = ()

    async def run(self, run: AgentRun) -> AgentResult:
        raise AssertionError("recorded conversations are not run")


class _Rescored(Suite):
    """Its runs have been recorded."""

    recorded: Replay
    """The evaluation whose conversations these are."""

    def runs_of(self, row_index: int) -> Iterable[int]:
        """The recorded runs of a row."""
        return (run for run in super().runs_of(row_index) if (row_index, run) in self.recorded.runs)

    async def run(self, rollout: OneRun) -> RolloutRecord:
        """The scores of one recorded run."""
        kept = self.recorded.runs[rollout.row.row_index, rollout.run_id.run_index]
        before, recorded = replace(kept.result, suite=self.spec.name), read_record(kept.place)
        if before.error_type not in (None, "eval_fn"):
            return RolloutRecord(before) if recorded is None else replace(recorded, result=before)
        if recorded is None or not kept.whole:
            return _not_recorded(before)
        return await rollout.score_again(replace(recorded, result=before))


def _not_recorded(before: RunResult) -> RolloutRecord:
    error = "its conversation was not kept: it was too long, or was lost when the machine stopped"
    result = replace(
        before,
        success=False,
        passed=False,
        scores={},
        eval_errors={},
        judge_errors={},
        error=error,
        error_type="internal",
    )
    return RolloutRecord(result)
