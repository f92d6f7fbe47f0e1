"""Puts a case before the judge and brings its verdict within the bounds.

Knows neither LiteLLM nor files.
"""

from __future__ import annotations

import asyncio
import json
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ..models.errors import ProviderError, clip
from ..models.litellm.model import LiteLLMModel
from ..models.litellm.reading import ProviderAnswer
from ..models.rate_limiter import RateLimiter
from ..models.retry import RetryPolicy
from ..secret import Secret
from .errors import ModelNotFoundError, ProviderRequestError
from .prompt import ASK_AGAIN, Case, judge_messages
from .reply import BadVerdict, Verdict, is_quoted, printable, read_verdict
from .settings import JudgeSettings

TOTAL_TIMEOUT_FACTOR = 3.0
"""A judgement with its retries and waits may take so many times its request timeout."""

MAX_TRIES = 5
"""Fewer than for a rollout, which costs more to lose than one judgement."""

MAX_RAW_CHARS = 64_000
MAX_ASKED_AGAIN_CHARS = 20_000

VERDICT_FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"score": {"type": "number"}, "explanation": {"type": "string"}},
            "required": ["score", "explanation"],
            "additionalProperties": False,
        },
    },
}
_FORMAT_WORDS = ("response_format", "json_schema", "schema", "structured", "responseformat")
_WITHOUT_SCHEMA_MODE: set[tuple[str, str | None]] = set()
"""Models, by name and base URL, that have refused the schema: asked without it from then on."""
_rate_limits: defaultdict[tuple[str, str | None, Secret | None], RateLimiter]
_rate_limits = defaultdict(RateLimiter)
"""Of each judge, by the same and the key: a pause that one judgement is asked for holds for all."""


class Vote(TypedDict):
    """One verdict of the judge."""

    score: float
    """Within the bounds."""
    explanation: str
    raw: Any
    """The provider's reply as it came, the key removed and very long texts cut."""
    clamped: bool
    """The judge's own score lay outside the bounds."""
    given: float
    """The judge's own score."""


class RewardRubricRunResult(TypedDict):
    """What `return_details=True` returns."""

    score: float
    """The median of the votes."""
    explanation: str
    """Of the vote that is nearest to the score."""
    raw: Any
    """Of the same vote."""
    clamped: bool
    """Of any vote."""
    votes: list[Vote]
    provider: str
    model: str
    params: dict[str, Any]
    """Sampling parameters that the judge was asked with."""
    prompt_tokens: int | None
    """Over all votes; None where the provider does not say."""
    completion_tokens: int | None
    cost_usd: float | None
    """None where the price is unknown, never 0."""
    retries: int


_Asked = tuple[Vote, list[ProviderAnswer]]
"""A vote, and the answers that it took."""


async def judge(settings: JudgeSettings, case: Case, *, votes: int) -> RewardRubricRunResult:
    """Ask `votes` times concurrently; return the median and every vote."""
    asking = _Judge(settings, case)
    tasks = [asyncio.ensure_future(asking.vote()) for _ in range(votes)]
    try:
        return asking.result(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asking.model.aclose()


class _Judge:
    """A provider's model that scores one case."""

    def __init__(self, settings: JudgeSettings, case: Case) -> None:
        self._settings = settings
        self._case = case
        self._name = (str(settings.name), settings.api_base)
        self.model = LiteLLMModel(
            model=settings.name,
            api_key=settings.api_key,
            api_base=settings.api_base,
            request_timeout_s=settings.timeout_s,
            total_timeout_s=settings.timeout_s * TOTAL_TIMEOUT_FACTOR,
            retry=RetryPolicy(max_tries=MAX_TRIES),
            rate_limit=_rate_limits[(*self._name, settings.api_key)],
        )

    async def vote(self) -> _Asked:
        """Return one verdict; raise ProviderRequestError."""
        messages = judge_messages(self._case)
        answers = [await self._ask(messages)]
        verdict = self._verdict(answers[0])
        if isinstance(verdict, BadVerdict):
            text = _reply_text(answers[0])
            again = [{"role": "assistant", "content": text[:MAX_ASKED_AGAIN_CHARS] or "(nothing)"}]
            again.append({"role": "user", "content": ASK_AGAIN})
            answers.append(await self._ask([*messages, *again]))
            verdict = self._verdict(answers[1])
        if isinstance(verdict, BadVerdict):
            ended = answers[1].completion.finish_reason
            raise self._no_verdict(
                f"twice no clear verdict: {verdict} (finish_reason {ended})",
                _reply_text(answers[1]),
            )
        return self._clamped(verdict, answers[-1]), answers

    async def _ask(self, messages: Sequence[Mapping[str, Any]]) -> ProviderAnswer:
        """One answer, in the schema if the provider has such a mode; raises our own errors."""
        plain = self._settings.params
        has_schema_mode = self._name not in _WITHOUT_SCHEMA_MODE
        ways = [{**plain, "response_format": VERDICT_FORMAT}] if has_schema_mode else []
        for params in (*ways, plain):
            try:
                return await self.model.answer(messages, params=params)
            except ProviderError as error:
                failure = error
            if params is plain or not _is_about_format(failure):
                break
            _WITHOUT_SCHEMA_MODE.add(self._name)
        raise self._error(failure)  # outside of the handler: the cause may hold the key

    def _verdict(self, answer: ProviderAnswer) -> Verdict | BadVerdict:
        """Return the verdict, or why there is not one that is clear."""
        message = answer.completion.message
        refusal = message.get("refusal")
        if isinstance(refusal, str) and refusal:
            raise self._no_verdict("the judge refused", refusal)
        try:
            verdict = read_verdict(self.model.redacted(_reply_text(answer)))
        except BadVerdict as error:
            return error
        if is_quoted(verdict, self._case.candidate):
            return BadVerdict("its only verdict is quoted from the answer")
        return verdict

    def _no_verdict(self, detail: str, text: str = "") -> ProviderRequestError:
        name = self._settings.name
        quoted = f': "{clip(self.model.redacted(text), 200)}"' if text else ""
        return ProviderRequestError(name.provider, name.model, detail + quoted, kind="verdict")

    def _error(self, error: ProviderError) -> ProviderRequestError:
        name = self._settings.name
        kind = ModelNotFoundError if error.kind == "model_not_found" else ProviderRequestError
        return kind(
            name.provider,
            name.model,
            str(error),
            kind=error.kind,
            status=error.status,
            fatal=error.fatal,
        )

    def _clamped(self, verdict: Verdict, answer: ProviderAnswer) -> Vote:
        score = min(max(verdict.score, self._case.score_min), self._case.score_max)
        return {
            "score": score,
            "explanation": verdict.explanation,
            "raw": _shorten(json.loads(self.model.redacted(json.dumps(answer.raw, default=str)))),
            "clamped": score != verdict.score,
            "given": verdict.score,
        }

    def result(self, asked: Sequence[_Asked]) -> RewardRubricRunResult:
        """Return the median of the votes, with each of them."""
        votes = [vote for vote, _ in asked]
        score = float(statistics.median(vote["score"] for vote in votes))
        nearest = min(votes, key=lambda vote: abs(vote["score"] - score))
        answers = [answer for _, given in asked for answer in given]
        usages = [answer.completion.usage for answer in answers]
        return {
            "score": score,
            "explanation": nearest["explanation"],
            "raw": nearest["raw"],
            "clamped": any(vote["clamped"] for vote in votes),
            "votes": votes,
            "provider": self._settings.name.provider,
            "model": self._settings.name.model,
            "params": dict(self._settings.params),
            "prompt_tokens": _total([usage.prompt_tokens for usage in usages]),
            "completion_tokens": _total([usage.completion_tokens for usage in usages]),
            "cost_usd": _total([answer.completion.cost_usd for answer in answers]),
            "retries": sum(answer.completion.retries for answer in answers),
        }


def reason_of(details: RewardRubricRunResult) -> str:
    """Return the explanation, behind what was clamped."""
    clamped = dict.fromkeys(
        f"{vote['given']:g}, clamped to {vote['score']:g}"
        for vote in details["votes"]
        if vote["clamped"]
    )
    return f"{'; '.join(clamped)}: {details['explanation']}" if clamped else details["explanation"]


def _reply_text(answer: ProviderAnswer) -> str:
    """Return the reply's text, and the arguments of tool calls that it made of the schema."""
    message = answer.completion.message
    content, calls = message.get("content"), message.get("tool_calls")
    texts = [content] if isinstance(content, str) and content.strip() else []
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        arguments = function.get("arguments") if isinstance(function, dict) else None
        if isinstance(arguments, (dict, str)):
            texts.append(arguments if isinstance(arguments, str) else json.dumps(arguments))
    return "\n".join(texts)


def _is_about_format(error: ProviderError) -> bool:
    """Return whether the provider, or LiteLLM, refused the schema rather than the question."""
    if error.kind != "bad_request" and error.status != 422:
        return False
    text = error.detail.lower()
    return any(word in text for word in _FORMAT_WORDS)


def _shorten(value: Any) -> Any:
    """Return `value` with overlong texts cut and control characters escaped."""
    if isinstance(value, str):
        return printable(value, MAX_RAW_CHARS)
    if isinstance(value, list):
        return [_shorten(item) for item in value]
    if isinstance(value, dict):
        return {printable(key, 200): _shorten(item) for key, item in value.items()}
    return value


def _total(amounts: Sequence[Any]) -> Any:
    return None if None in amounts else sum(amounts)
