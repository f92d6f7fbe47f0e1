"""A project's own `@osmosis_rubric` function in the place of the judge.

It gets what a judge would be asked with, in `extra_info`. Knows neither files nor terminals.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.error_text import named_error
from osmosis_ai.providers import key_variables
from osmosis_ai.rubric.errors import MissingAPIKeyError, ProviderRequestError
from osmosis_ai.rubric.judge import RewardRubricRunResult
from osmosis_ai.rubric.reasons import heard
from osmosis_ai.running.thread_calls import CallThreads
from pytest_osmosis.user_code.eval_function import EvalFn, eval_fn
from pytest_osmosis.user_code.import_object import ImportingError, load_object

from ..errors import command_errors, wrong_use
from .config import RubricConfig
from .records import KEY_FIELDS, Record

OPTION = "--eval-fn"
_OWN_FIELDS = ("provider", "model", "api_key", "api_key_env", "system_prompt", "original_input")


def load_function(spec: str) -> EvalFn:
    """Return the function `module:name`; what cannot be one is a usage error."""
    with command_errors(ImportingError, code="usage", status=2):
        with redirect_stdout(sys.stderr):  # what the module prints at import
            found = load_object(spec, option=OPTION, roots=[Path.cwd()])
        function = eval_fn(found, name=spec, option=OPTION)
    if function.mode != "simple":
        raise wrong_use(
            f"{OPTION} {spec!r}: takes messages; expected a rubric function "
            "(solution_str, ground_truth, extra_info)"
        )
    return function


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFunction:
    """The function, with the rubric that it judges by."""

    function: EvalFn
    config: RubricConfig
    score_min: float
    score_max: float
    redact: Callable[[str], str]
    threads: CallThreads

    async def score(self, record: Record) -> RewardRubricRunResult:
        """Return what the function says of a record; raise ProviderRequestError."""
        with heard() as reasons:
            try:
                value = await self.function.call(
                    messages=(),
                    solution_str=record.solution_str,
                    ground_truth=record.ground_truth,
                    metadata=self.extra_info(record),
                    run_sync=self.threads.run,
                    row=lambda: record.name,
                )
            except ProviderRequestError:
                raise
            except MissingAPIKeyError as error:
                raise self._failure(str(error), fatal=True) from error
            except Exception as error:  # the user's code: data
                raise self._failure(named_error(error)) from error
        return self._result(value, "\n".join(map(self.redact, reasons)))

    def extra_info(self, record: Record) -> dict[str, Any]:
        """Return the record's own fields, and over them what a judge is asked with.

        A record cannot say which key is used, nor where it is sent.
        """
        info = dict(self.config.model_info)
        asked = {key: info.pop(key) for key in _OWN_FIELDS if info.get(key) is not None}
        if not {"api_key", "api_key_env"} & set(asked):
            asked["api_key_env"] = _usual_variable(str(asked["provider"]))
        for bound in ("score_min", "score_max"):
            info.pop(bound, None)
        if record.original_input is not None:
            asked["original_input"] = record.original_input
        if record.metadata is not None:
            asked["metadata"] = dict(record.metadata)
        if info:
            asked["model_info_overrides"] = info
        own = {k: v for k, v in (record.extra_info or {}).items() if k not in KEY_FIELDS}
        return {
            **own,
            **asked,
            "rubric": self.config.rubric,
            "score_min": self.score_min,
            "score_max": self.score_max,
        }

    def _failure(self, detail: str, *, fatal: bool = False) -> ProviderRequestError:
        info = self.config.model_info
        said = self.redact(detail)
        return ProviderRequestError(
            str(info["provider"]), str(info["model"]), said, kind="eval_fn", fatal=fatal
        )

    def _result(self, score: float, explanation: str) -> RewardRubricRunResult:
        return {
            "score": score,
            "explanation": explanation,
            "raw": None,
            "clamped": False,
            "votes": [],
            "provider": str(self.config.model_info["provider"]),
            "model": str(self.config.model_info["model"]),
            "params": {},
            "prompt_tokens": None,
            "completion_tokens": None,
            "cost_usd": None,
            "retries": 0,
        }


def _usual_variable(provider: str) -> str:
    usual = key_variables(provider.lower())
    return usual[0] if usual else f"{provider.upper()}_API_KEY"
