"""What a refusal concerns: the account, the key, the model, or this one request.

Status and words decide together, since providers share neither: a moderated prompt is a 400, a 403
or a 451, an unknown model a 400, a 403 or a 404. Words are those that OpenAI, Azure, Anthropic,
Gemini, Bedrock, OpenRouter, vLLM, SGLang, Ollama, llama.cpp, Mistral, Groq, DeepSeek, Together,
DashScope and LiteLLM's proxy publish or were seen to send. Knows no HTTP and no sentences.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from .errors import ErrorKind

_QUOTA = (
    r"insufficient_quota|billing_hard_limit_reached|billing_not_active|insufficient_balance"
    r"|insufficient_credits|credit_balance_too_low|budget_exceeded|quota_exceeded_error|arrearage"
    r"|credit balance is too low|insufficient (?:account )?(?:balance|credits?|funds)"
    r"|budget has been exceeded|(?:run|ran) out of (?:credits|funds)|have any credits"
    r"|key limit exceeded|余额不足"
    r"|(?:overdue|arrears)[^.]{0,40}(?:payment|account)|account is in good standing"
)
_OF_ACCOUNT = (
    r"\b(?:account|organi[sz]ation|project|workspace|subscription|team|consumer)\b[^.\n]{0,40}"
    r"\b(?:been|is|was|are) (?:suspended|disabled|deactivated|flagged|blocked|banned|restricted"
    r"|terminated)"
)
"""An account that was closed, perhaps for what it asked before: no request of it succeeds."""
_CONTENT = (
    r"moderat|\bflagged\b|content[ _-]?(?:filter|polic|management|safety|exists)"
    r"|responsible[ _]?ai|safety (?:system|filter|polic|setting|reason|check|guideline|guardrail)"
    r"|(?:prompt|input|request|content|message|query)\b[^.\n]{0,60}"
    r"\b(?:was|were|is|been|be) (?:blocked|rejected|filtered)[^.\n]{0,60}"
    r"(?:safety|polic|filter|content|harm|risk|reason|guardrail|inappropriate)"
    r"|data_?inspection_?failed|inappropriate content|sensitive (?:content|information|words?)"
    r"|usage (?:polic|guideline)|acceptable use|prohibited[ _]content|content[ _]blocked"
    r"|considered high[ -]risk|content exists risk|invalid_prompt|potentially violat"
    r"|(?:bio|cyber)_policy"
    r"|violat\w*[^.\n]{0,60}(?:content|usage|safety|polic|guideline|terms)|guardrail_?interven"
    r"|guardrail[^.\n]{0,40}(?:intervened|blocked|violat)|jailbreak|recitation"
    r"|\bharm(?:ful)? (?:content|categor)|敏感|不安全|违规"
)
"""Moderation and content filters."""
_TOO_LONG = (
    r"context[_ -]?(?:length|window|size)|maximum (?:context|prompt|input|sequence) length"
    r"|(?:prompt|input|request|conversation|messages?)\b[^.\n]{0,20}\b(?:is|are|was) too "
    r"(?:long|large)"
    r"|too many (?:input )?tokens|(?:input|prompt) tokens?\b[^.\n]{0,60}\b(?:exceed|limit|maximum)"
    r"|exceeds? the (?:maximum|max|available|limit)[^.\n]{0,60}\b(?:token|context|length)"
    r"|string_above_max_length|reduce the length|must have (?:less|fewer) than \d+ tokens"
)
_NOUNS = (
    r"(?:images?|image_url|pictures?|vision|audio|videos?|multi-?modal|modalit\w*|documents?|pdf"
    r"|files?|attachments?|tools?|tool_?(?:use|calls?|choice)|functions?|function[ -]call\w*"
    r"|parameters?|response_format|json(?: mode|_schema)?|schemas?|structured outputs?"
    r"|(?:system|developer) (?:prompts?|messages?|instructions?|roles?)|prefill|logprobs|reasoning"
    r"|thinking|stream\w*|input)"
)
_UNSUPPORTED_PART = (
    r"no endpoints found that (?:support|can handle)"
    rf"|(?:not?|n't|un|n’t)[ -]?(?:currently |yet )?support\w*[^.\n]{{0,50}}\b{_NOUNS}\b"
    rf"|\b{_NOUNS}\b[^.\n]{{0,50}}(?:unsupported|(?:not|n't|n’t) (?:currently |yet |be )?"
    r"(?:supported|allowed|enabled|permitted|available))"
    r"|unsupported (?:content|image|media|file|message|tool|mime|parameter|value)"
)
_SCHEMA = (
    r"invalid (?:json )?schema|schema[^.\n]{0,40}(?:invalid|not valid)|invalid tool|invalid image"
    r"|invalid[_ ](?:content|message|type|value|function)\b|must be followed by tool messages"
    r"|tool_call_id|failed to (?:decode|parse|process|download|fetch)\b[^.\n]{0,40}"
    r"(?:image|file|url|json)"
    r"|could not (?:process|decode|parse|download)[^.\n]{0,20}(?:image|file|document)"
)
_PASSING = r"unavailable|timed? ?out|overloaded|try again|service error|connection"
"""A 5xx whose cause may be gone at the next try."""
_NO_SUCH_PART = (
    r"no such (?:file object|image|object|item|response|container|thread|conversation)"
    r"|\b(?:item|image|(?:previous[ _])?response|conversation|container|thread|attachment"
    r"|cached[ _]?content|file(?: with id|:|[ _]*['\"`]|[ -]+\w*[-_/\d]\w*))s?[^.\n]{0,80}"
    r"(?:not (?:be )?found|(?:not|n't) exist|may not exist|expired)"
)
"""Something else than the model that a request names, and that is not there."""
_WRONG_KEY = (
    r"invalid_api_key|api_key_invalid|authentication_?error|authenticationerror|api key not valid"
    r"|no_db_connection"  # LiteLLM's proxy without a database, of every key but its master key
    r"|unrecognizedclient|security token[^.\n]{0,40}(?:invalid|expired)|expiredtoken"
    r"|invalid (?:bearer|access|auth\w*|api) token|(?:bearer|access|auth\w*|api) token[^.\n]{0,40}"
    r"(?:invalid|expired|missing)|incorrectly formatted api key|authentication (?:fails|failed)"
    r"|no auth credentials|token_not_found_in_db|invalid_iam_token"
    r"|api[ _-]?key[^.\n]{0,30}(?:expired|revoked|malformed|leaked|disabled)"
)
_ABOUT_KEY = (
    r"authentication error|auth_error|unauthori[sz]ed|not authenticated"
    r"|(?:no|missing|invalid|incorrect|wrong|bad) (?:x-)?(?:\w+ )?api[ _-]?key"
    r"|api[ _-]?key (?:\w+ ){0,3}(?:missing|required|invalid|incorrect|wrong)"
    r"|api[ _-]?key (?:\w+ ){0,3}not (?:set|valid|found|exist|authori[sz]ed|allowed)"
)
_UNEXPLAINED = "internal server error"
"""All that some servers say of a request without a key: LiteLLM's proxy without its database's
client, for one."""
_NO_MODEL_CODE = (
    r"model_?not_?found|deploymentnotfound|invalid_model|model_not_available|model_not_supported"
    r"|unknown_model|model_decommissioned|model_terms_required|unsupported_model|model_permission"
)
_NO_MODEL = (
    r"model not exist|no models? loaded|unknown model|no such model|invalid model(?: name| id)?\b"
    r"|not a valid model|模型不存在|\bmodel ['\"`]\S+['\"`] is not supported"
    r"|\b(?:models?|deployment)\b[^.\n]{0,160}"
    r"(?:not found|not exist|n't exist|not be found|not available|decommissioned|deprecated"
    r"|no longer|not loaded|not deployed|retired)"
    r"|model id(?:entifier)? is invalid|invocation of model id"
    r"|(?:not? (?:have )?|n't have )access to (?:the )?(?:requested )?model"
    r"|unable to access (?:\S+ )?model"
    r"|model access is denied|requested model is not supported|blocked at the project level"
    r"|no endpoints found for|no deployments available for"
)
_NEAR = 60
"""Characters before words about a model, which may else be part of what is quoted."""
_NAMES_MODEL = r"\b(?:models?|deployment)\b"
_PARAM = (
    r"(?<![\w.])(temperature|top_p|top_k|seed|max_tokens|max_completion_tokens|presence_penalty"
    r"|frequency_penalty|stop|n|logprobs|reasoning_effort)(?![\w.])"
)
_QUOTED = r"['\"`]([a-z][a-z_.]{0,40})['\"`]"
_NOT_TAKEN = (
    r"support|deprecat|not (?:allowed|permitted)|unknown|unexpected|unrecogni[sz]ed|extra|only|must"
    r"|should|cannot|invalid|range|less|greater|too (?:large|small|high|low)|at (?:most|least)"
)
_STREAM_ONLY = (
    r"only supports? stream|stream(?:ing)?[^.\n]{0,40}(?:must be (?:true|set|enabled)|is required"
    r"|only)|(?:must|please|have to|needs? to) (?:set|use|enable)[^.\n]{0,30}stream"
    r"|non[- ]stream\w*[^.\n]{0,40}(?:not|n't|un)[ -]?\w* ?(?:supported|allowed)"
    r"|(?:not|n't) support non[- ]stream"
)
_WANTED_NAME = r"\buse\W+(?:the )?(?:parameter )?\W*(max_(?:completion_)?tokens)\b"
_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


_READ_CHARS = 8000
"""Beginning of a message that is looked through."""


@dataclass(frozen=True, slots=True)
class ErrorWords:
    """What an error says: its message, and its codes and types joined."""

    message: str
    codes: str = ""
    param: str | None = None
    """The request's field that it names, as it names it."""

    @property
    def lower(self) -> str:
        """Codes and message in lower case."""
        text = f"{self.codes} {self.message[:_READ_CHARS]}"
        return text.lower().replace("’", "'").strip()

    def match(self, *patterns: str) -> bool:
        """Return whether one of the patterns is in codes or message."""
        words = self.lower
        return any(re.search(pattern, words) for pattern in patterns)


def words_of(text: str) -> ErrorWords:
    """Return what the body of an error says, in any of the usual shapes."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return ErrorWords(text)
    if isinstance(data, list) and data:
        data = data[0]  # Gemini wraps its errors in a list
    if not isinstance(data, dict):
        return ErrorWords(text)
    error: Any = data.get("error", data)
    if isinstance(error, str):
        error = {**data, "message": data.get("message", error)}
    elif not isinstance(error, dict):
        error = data
    message = next((error[key] for key in ("message", "detail", "msg") if error.get(key)), None)
    inner = error.get("innererror") or error.get("inner_error")
    codes = [error.get(key) for key in ("code", "type", "status", "reason", "__type")]
    codes += [part.get("reason") for part in _dicts(error.get("details"))]
    codes += [inner.get("code")] if isinstance(inner, dict) else []
    named = " ".join(str(code) for code in codes if isinstance(code, (str, int)))
    param = error.get("param")
    if not isinstance(param, str) or not param:
        param = _location(message)
    if not isinstance(message, str):
        message = json.dumps(message) if message is not None else text
    elif message.lstrip().startswith("{"):  # the provider's whole body, within a gateway's
        within = words_of(message)
        message, named = within.message, f"{named} {within.codes}"
        param = param or within.param
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    if not isinstance(raw, str) or not raw:
        return ErrorWords(message, named, param)
    inner = words_of(raw[: len(text)])  # OpenRouter quotes the provider
    return ErrorWords(f"{message}: {inner.message}", f"{named} {inner.codes}", param or inner.param)


def _location(detail: object) -> str | None:
    """Return the field that FastAPI's list of faults names, if it names one."""
    for part in _dicts(detail):
        place = part.get("loc")
        if isinstance(place, list) and place and isinstance(place[-1], str):
            return place[-1]
    return None


def _dicts(value: object) -> list[dict[str, Any]]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def kind_of(status: int, error: ErrorWords, model: str) -> tuple[ErrorKind, bool]:
    """Return the kind of a refusal, and whether it may concern its request alone.

    `bad_request`: this request as such, whatever the status. `status` 0 is unknown.
    """
    if status == 402 or error.match(_QUOTA):
        return "quota", False
    if status == 429:
        return "rate_limited", False
    of_request = _is_of_request(status, error)
    if status in (408, 409, 425) or status >= 500:
        return ("bad_request" if of_request else "overloaded"), False
    if of_request:
        return "bad_request", False
    if status == 401 or error.match(_WRONG_KEY, _ABOUT_KEY, _OF_ACCOUNT):
        return "auth", False
    if names_no_model(error, model):
        return "model_not_found", False
    if status == 403:
        return "auth", True
    if status == 404:
        return "model_not_found", not error.match(_NAMES_MODEL)
    return "bad_request", False


def _is_of_request(status: int, error: ErrorWords) -> bool:
    """Return whether the words speak of what this one request holds."""
    if error.match(_OF_ACCOUNT) or (status >= 500 and error.match(_PASSING)):
        return False
    if error.match(_CONTENT, _TOO_LONG):
        return status != 401 or not error.match(_ABOUT_KEY)
    if status in (401, 408, 409, 425) or status >= 500:
        return False
    return error.match(_UNSUPPORTED_PART, _SCHEMA, _NO_SUCH_PART)


def names_no_model(error: ErrorWords, model: str) -> bool:
    """Return whether the error says that the model is not there, or not for this account."""
    if re.search(_NO_MODEL_CODE, error.codes.lower()) or error.param == "model":
        return True
    message = error.message[:_READ_CHARS].lower()
    place = re.search(_NO_MODEL, message)
    return place is not None and (model.lower() in message or place.start() < _NEAR)


def leaves_key_in_doubt(error: ErrorWords, *, keyless: bool) -> bool:
    """Return whether a 500 may be about the key."""
    return (keyless and error.lower == _UNEXPLAINED) or is_about_key(error)


def is_about_key(error: ErrorWords) -> bool:
    """Return whether the words name the key."""
    return error.match(_WRONG_KEY, _ABOUT_KEY)


def status_named(codes: str) -> int:
    """Return the status that a provider would have sent with these codes."""
    codes = codes.lower()
    if re.search("rate_limit|too_many_requests|resource_exhausted", codes):
        return 429
    if re.search(_WRONG_KEY, codes):
        return 401
    if re.search(_NO_MODEL_CODE, codes):
        return 404
    return 400 if re.search("invalid_request|content_filter", codes) else 500


def refused_param(error: ErrorWords) -> str | None:
    """Return the field of the request that a refusal names as one that the model does not take.

    None where it names none, or where the refusal is of a request that is too long.
    """
    message = error.message[:_READ_CHARS]
    if "context" in error.lower and error.match(_TOO_LONG):
        return None
    if error.param is not None:
        return error.param.rpartition(".")[2] or error.param
    if not error.match(_NOT_TAKEN):
        return None
    quoted = [name for name in re.findall(_QUOTED, message) if re.fullmatch(_PARAM, name)]
    plain = [name for name in re.findall(_PARAM, message) if len(name) > 4 or f"{name}:" in message]
    return next(iter([*quoted, *plain]), None)


def other_name(error: ErrorWords) -> tuple[str, str] | None:
    """Return the name that an endpoint refuses and the one that it wants in its place.

    That is `max_tokens` and `max_completion_tokens`, either way.
    """
    wanted = re.search(_WANTED_NAME, error.lower)
    if wanted is not None:
        return _OTHER_NAME[wanted[1]], wanted[1]
    other = _OTHER_NAME.get(error.param or "")
    if other is None or not error.match(rf"(?<!\w){other}(?!\w)") or not error.match("unsupported"):
        return None
    return _OTHER_NAME[other], other


def wants_stream(error: ErrorWords) -> bool:
    """Return whether an endpoint answers only in streams."""
    return error.param == "stream" or error.match(_STREAM_ONLY)
