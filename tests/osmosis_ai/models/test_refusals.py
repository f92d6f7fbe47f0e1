"""What refusals concern, by the words that providers publish or were seen to send."""

from __future__ import annotations

import json
from typing import Any

import pytest

from osmosis_ai.models.failed_replies import fault_of_status
from osmosis_ai.models.faults import Wording, failure_in
from osmosis_ai.models.refusals import words_of
from osmosis_ai.models.retry import RetryPolicy
from osmosis_ai.models.transport.base_url import normalise_base_url
from osmosis_ai.secret import Redactor


def of_openai(message: str, code: Any = None, kind: Any = None, param: Any = None) -> Any:
    return {"error": {"message": message, "code": code, "type": kind, "param": param}}


AZURE_FILTER = {
    "error": {
        "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
        "management policy. Please modify your prompt and retry.",
        "type": None,
        "param": "prompt",
        "code": "content_filter",
        "status": 400,
        "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
    }
}
CLOUDFLARE = "<!DOCTYPE html><title>Attention Required! | Cloudflare</title>Sorry, you have been"
INVALID, REQUEST = "invalid_request_error", "bad_request"

REFUSALS: list[tuple[int, Any, str]] = [
    # Moderation and content filters, of any status.
    (403, {"error": {"code": 403, "message": "Your input was flagged",
                     "metadata": {"reasons": ["violence"]}}}, REQUEST),
    (403, of_openai("Input was flagged by moderation"), REQUEST),
    (403, of_openai("anthropic/claude-2 requires moderation on OpenRouter. Your input was flagged "
                    'for "harassment". No credits were charged.', 403), REQUEST),
    (400, AZURE_FILTER, REQUEST),
    (400, of_openai("Your request was rejected as a result of our safety system.",
                    "content_policy_violation", INVALID), REQUEST),
    (400, of_openai("Invalid prompt: your prompt was flagged as potentially violating our usage "
                    "policy.", "invalid_prompt", INVALID), REQUEST),
    (400, of_openai("Output blocked by content filtering policy", kind=INVALID), REQUEST),
    (400, of_openai("Content Exists Risk", INVALID, INVALID), REQUEST),
    (400, of_openai("Input data may contain inappropriate content.", "data_inspection_failed",
                    "data_inspection_failed"), REQUEST),
    (400, of_openai("系统检测到输入或生成内容可能包含不安全或敏感内容", "1301"), REQUEST),
    (400, of_openai("Moderation Block", "421", "content_filter"), REQUEST),
    (400, of_openai("The request was rejected because it was considered high risk"), REQUEST),
    (403, of_openai("Access denied for this prompt.", "cyber_policy"), REQUEST),
    (400, of_openai("The request was refused.", "bio_policy", INVALID), REQUEST),
    (421, of_openai("Moderation Block", "421", "content_filter"), REQUEST),
    (400, of_openai("The user input violates our content policy"), REQUEST),
    (400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw":
           json.dumps({"error": {"message": "Output blocked by content filtering policy"}})}}},
     REQUEST),
    (403, {"error": {"message": "Provider returned error", "code": 403, "metadata": {"raw":
           "Input was flagged"}}}, REQUEST),
    (451, of_openai("Blocked for legal reasons"), REQUEST),
    (403, of_openai("Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_CSAM"),
     REQUEST),
    (401, of_openai("The prompt was blocked by our content policy"), REQUEST),
    (404, of_openai("Content policy: this request was filtered"), REQUEST),
    (500, of_openai("litellm.ContentPolicyViolationError: AzureException - The response was "
                    "filtered due to the prompt triggering Azure OpenAI's content management "
                    "policy"), REQUEST),
    (400, {"message": "The request was blocked by guardrail: GUARDRAIL_INTERVENED"}, REQUEST),
    # Parts that the model does not take.
    (404, {"error": {"code": 404, "message": "No endpoints found that support image input"}},
     REQUEST),
    (404, of_openai('No endpoints found that support tool use. Try disabling "now". To learn more '
                    "about provider routing, visit: https://openrouter.ai/docs"), REQUEST),
    (404, of_openai("No endpoints found that can handle the requested parameters."), REQUEST),
    (404, of_openai("This model does not support image input"), REQUEST),
    (403, of_openai("Audio input is not supported by this model"), REQUEST),
    (400, of_openai("registry.ollama.ai/library/gemma:2b does not support tools", kind="api_error"),
     REQUEST),
    (400, of_openai("m is not a multimodal model", 400, "BadRequestError"), REQUEST),
    (400, of_openai("Developer instruction is not enabled for models/m", 400), REQUEST),
    (422, {"detail": [{"loc": ["body", "messages", 0, "content"], "msg": "str type expected"}]},
     REQUEST),
    (400, of_openai("Invalid schema for function 'add': None is not of type 'object'",
                    "invalid_function_parameters", INVALID, "tools[0].function.parameters"),
     REQUEST),
    (400, of_openai("An assistant message with 'tool_calls' must be followed by tool messages "
                    "responding to each 'tool_call_id'.", None, INVALID, "messages"), REQUEST),
    (400, of_openai("Tool choice is none, but model called a tool", "tool_use_failed", INVALID),
     REQUEST),
    (404, of_openai("No such File object: file-abc123", None, INVALID), REQUEST),
    (403, [{"error": {"code": 403, "status": "PERMISSION_DENIED", "message":
            "You do not have permission to access the File abc123 or it may not exist."}}],
     REQUEST),
    (400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT", "message":
            "Unable to process input image. Please retry"}}], REQUEST),
    # Too long.
    (400, of_openai("This model's maximum context length is 8192 tokens. However, your messages "
                    "resulted in 9001 tokens.", "context_length_exceeded", INVALID, "messages"),
     REQUEST),
    (400, {"type": "error", "error": {"type": INVALID, "message":
           "prompt is too long: 208310 tokens > 200000 maximum"}}, REQUEST),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens. "
           "However, you requested 5000 tokens", "type": "BadRequestError", "code": 400}, REQUEST),
    (400, of_openai("the request exceeds the available context size", 400,
                    "exceed_context_size_error"), REQUEST),
    (500, of_openai("the request exceeds the available context size. try increasing the context "
                    "size", 500, "server_error"), REQUEST),
    (400, {"message": "Input is too long for requested model."}, REQUEST),
    (413, {"type": "error", "error": {"type": "request_too_large", "message":
           "Request exceeds the maximum size"}}, REQUEST),
    (400, [{"error": {"code": 400, "message": "The input token count (1200000) exceeds the maximum "
            "number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}], REQUEST),
    (403, of_openai("Prompt is too long for the context window"), REQUEST),
    (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
           "error_type": "validation"}, REQUEST),
    (500, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 4545",
           "error_type": "validation"}, REQUEST),
    # The key.
    (401, of_openai("Incorrect API key provided: sk-x. You can find your API key at ...",
                    "invalid_api_key", INVALID), "auth"),
    (401, {"type": "error", "error": {"type": "authentication_error",
           "message": "invalid x-api-key"}}, "auth"),
    (401, of_openai("No auth credentials found", 401), "auth"),
    (401, of_openai("Authentication Fails, Your api key: ****abcd is invalid",
                    INVALID, "authentication_error"), "auth"),
    (401, of_openai("Invalid API Key", "invalid_api_key", INVALID), "auth"),
    (401, {"message": "Unauthorized", "request_id": "1"}, "auth"),
    (401, "", "auth"),
    (400, [{"error": {"code": 400, "message": "API key expired. Please renew the API key.",
            "details": [{"reason": "API_KEY_INVALID"}]}}], "auth"),
    (400, of_openai("Incorrect API key provided: xa***yz. You can obtain an API key from https://"
                    "console.x.ai.", "Client specified an invalid argument"), "auth"),
    (403, [{"error": {"code": 403, "status": "PERMISSION_DENIED", "message":
            "Method doesn't allow unregistered callers. Please use API Key"}}], "auth"),
    (403, {"message": "The security token included in the request is invalid.",
           "__type": "UnrecognizedClientException"}, "auth"),
    (400, of_openai("Authentication Error, LiteLLM Virtual Key expected", 400, "auth_error"),
     "auth"),
    (403, of_openai("Your account has been suspended for violating our content policy"), "auth"),
    (403, of_openai("Country, region, or territory not supported",
                    "unsupported_country_region_territory", "request_forbidden"), "auth"),
    (403, of_openai("You may not use this"), "auth"),
    (403, CLOUDFLARE, "auth"),
    (403, "", "auth"),
    (400, of_openai("This organization has been disabled.", kind=INVALID), "auth"),
    # The model.
    (404, of_openai("The model `m` does not exist or you do not have access to it.",
                    "model_not_found", INVALID), "model_not_found"),
    (403, of_openai("Project `proj_1` does not have access to model `m`", "model_not_found",
                    INVALID), "model_not_found"),
    (404, {"error": {"code": "DeploymentNotFound", "message":
           "The API deployment for this resource does not exist."}}, "model_not_found"),
    (404, {"type": "error", "error": {"type": "not_found_error", "message": "model: m"}},
     "model_not_found"),
    (404, {"error": 'model "m" not found, try pulling it first'}, "model_not_found"),
    (404, [{"error": {"code": 404, "status": "NOT_FOUND", "message": "models/m is not found for "
            "API version v1beta, or is not supported for generateContent."}}], "model_not_found"),
    (400, of_openai("m is not a valid model ID", 400), "model_not_found"),
    (404, of_openai("No endpoints found for m.", 404), "model_not_found"),
    (400, of_openai("Model Not Exist", INVALID, INVALID), "model_not_found"),
    (400, {"object": "error", "message": "Invalid model: m", "type": "invalid_model",
           "code": "1500"}, "model_not_found"),
    (400, of_openai("The model `m` has been decommissioned and is no longer supported.",
                    "model_decommissioned", INVALID), "model_not_found"),
    (400, of_openai("Unable to access non-serverless model m. Please visit ...",
                    "model_not_available", INVALID), "model_not_found"),
    (400, {"message": "The provided model identifier is invalid."}, "model_not_found"),
    (400, {"message": "Invocation of model ID m with on-demand throughput isn\u2019t supported."},
     "model_not_found"),
    (403, {"message": "You don't have access to the model with the specified model ID."},
     "model_not_found"),
    (400, of_openai("Invalid model name passed in model=m. Call `/v1/models` to view", "400"),
     "model_not_found"),
    (400, of_openai("The requested model 'm' is not supported by any provider you have enabled.",
                    "model_not_supported", INVALID, "model"), "model_not_found"),
    (404, {"detail": "Not Found"}, "model_not_found"),
    (404, "404 page not found", "model_not_found"),
    (404, "File not found.", "model_not_found"),
    (404, "", "model_not_found"),
    (404, of_openai("No endpoints found matching your data policy. Enable prompt training here",
                    404), "model_not_found"),
    (400, "Model 'm' is not supported for this environment. Supported models: ['a', 'b']",
     "model_not_found"),
    (400, of_openai("模型不存在，请检查模型代码", "1211"), "model_not_found"),
    (400, of_openai(json.dumps({"error": {"code": 404, "message": "models/m is not found for API "
                                          "version v1beta", "status": "NOT_FOUND"}}), 404),
     "model_not_found"),
    # The account.
    (403, of_openai("Key limit exceeded (total limit). Manage it in the settings", 403), "quota"),
    (402, of_openai("This request requires more credits, or fewer max_tokens.", 402), "quota"),
    (402, of_openai("Insufficient Balance", INVALID, "unknown_error"), "quota"),
    (429, of_openai("You exceeded your current quota, please check your plan",
                    "insufficient_quota"), "quota"),
    (400, {"type": "error", "error": {"type": INVALID, "message": "Your credit balance is too low "
           "to access the Anthropic API."}}, "quota"),
    (400, of_openai("Budget has been exceeded! Current cost: 1.2, Max budget: 1.0", "400",
                    "budget_exceeded"), "quota"),
    (403, of_openai("Your newly created team doesn't have any credits yet."), "quota"),
    # What passes.
    (429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message":
            "You exceeded your current quota, please check your plan and billing details."}}],
     "rate_limited"),
    (429, of_openai("Rate limit reached for m on tokens per min", "rate_limit_exceeded"),
     "rate_limited"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
     "overloaded"),
    (503, of_openai("The moderation service is unavailable, please try again"), "overloaded"),
    (500, of_openai("The server had an error while processing your request"), "overloaded"),
    (502, "<html>502 Bad Gateway</html>", "overloaded"),
]  # fmt: skip


def fault(status: int, body: Any) -> Any:
    text = body if isinstance(body, str) else json.dumps(body)
    return fault_of_status(status, {}, text.encode(), model="m", policy=RetryPolicy())


@pytest.mark.fault("it refuses one request: moderation, a picture, too long a context, a schema")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    REFUSALS,
    ids=[f"{status}-{words_of(json.dumps(body)).message[:50]}" for status, body, _ in REFUSALS],
)
def test_status_and_words_decide_what_a_refusal_concerns(status: int, body: Any, kind: str):
    found = fault(status, body)
    assert found.kind == kind
    if kind == REQUEST:
        assert not found.retried


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (of_openai("Unsupported parameter: 'temperature' is not supported with this model.",
                   "unsupported_parameter", INVALID, "temperature"), "temperature"),
        (of_openai("Unsupported value: 'temperature' does not support 0 with this model. Only the "
                   "default (1) value is supported."), "temperature"),
        ({"type": "error", "error": {"type": INVALID, "message":
          "`temperature` is deprecated for this model."}}, "temperature"),
        ({"message": "temperature: range: 0..1", "object": "error"}, "temperature"),
        ({"detail": [{"loc": ["body", "top_p"], "msg": "must be <= 1"}]}, "top_p"),
        (of_openai("property 'seed' is unsupported"), "seed"),
        (of_openai("gpt-5 models don't support temperature=0.2. Only temperature=1 is supported."),
         "temperature"),
        (of_openai("max_tokens must be at least 1"), "max_tokens"),
        (of_openai("This model's maximum context length is 4096 tokens; max_tokens is too large"),
         None),
        (of_openai("I sow a seed only in spring"), None),
        (of_openai("no"), None),
    ],
)  # fmt: skip
def test_a_refused_field_is_named(body: Any, param: str | None):
    assert fault(400, body).param == param


NEW = "max_completion_tokens"


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        (of_openai(f"Unsupported parameter: 'max_tokens' is not supported with this model. Use "
                   f"'{NEW}' instead.", "unsupported_parameter", INVALID, "max_tokens"),
         ("max_tokens", NEW)),
        (of_openai(f"max_tokens is not supported, please use {NEW}"), ("max_tokens", NEW)),
        ({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw":
          json.dumps(of_openai(f"Unsupported parameter: 'max_tokens'. Use '{NEW}' instead."))}}},
         ("max_tokens", NEW)),
        (of_openai(f"Please use the parameter `{NEW}` instead of max_tokens"), ("max_tokens", NEW)),
        (of_openai(f"unsupported: max_tokens; accepted: {NEW}", None, None, "max_tokens"),
         ("max_tokens", NEW)),
        (of_openai("max_completion_tokens is unknown: use max_tokens"), (NEW, "max_tokens")),
        (of_openai(f"'max_tokens' or '{NEW}' is too large: 5000"), None),
        (of_openai("stream must be true", None, INVALID, "stream"), ("", "stream")),
        (of_openai("This model only support stream mode, please enable the stream parameter to "
                   "access the model.", "invalid_parameter_error", INVALID), ("", "stream")),
        (of_openai("Non-streaming requests are not supported"), ("", "stream")),
        (of_openai("Streaming is required for this model"), ("", "stream")),
        (of_openai("This model does not support streaming tool calls"), None),
    ],
)  # fmt: skip
def test_what_the_endpoint_wants_in_place_of_a_field_is_read(body: Any, instead: Any):
    assert fault(400, body).instead == instead


CHOICE = {"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}
ERROR = {"code": 502, "message": "upstream failed"}


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"choices": [{**CHOICE, "error": ERROR}]}, "overloaded"),
        ({"choices": [{**CHOICE, "error": ERROR, "finish_reason": "error"}]}, "overloaded"),
        ({"choices": [{**CHOICE, "error": "upstream failed"}]}, "overloaded"),
        ({"choices": [{**CHOICE, "error": {"code": 429, "message": "slow"}}]}, "rate_limited"),
        ({"choices": [{**CHOICE, "error": {"code": 403, "message": "Your input was flagged"}}]},
         "bad_request"),
        ({"choices": [{**CHOICE, "finish_reason": "weird", "error": ERROR}]}, "overloaded"),
        ({"choices": [{**CHOICE, "finish_reason": "content_filter", "error": "withheld"}]},
         "bad_request"),
        ({"choices": [{**CHOICE, "finish_reason": "content_filter", "error": ERROR}]},
         "bad_request"),
        ({"choices": [{**CHOICE, "message": {**CHOICE["message"], "error": ERROR}}]},
         "overloaded"),
        *(({"choices": [{**CHOICE, "finish_reason": reason}]}, "overloaded") for reason in (
            "error", "ERROR", "abort", "aborted", "cancelled", "canceled",
            "insufficient_system_resource", "network_error",
            {"type": "abort", "message": "evicted"},
        )),
        ({"error": ERROR}, "overloaded"),
        ({"object": "error", "message": "overloaded", "code": 503}, "overloaded"),
        # Events of streams.
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         "overloaded"),
        ({"type": "response.failed", "response": {"status": "failed", "error": ERROR}},
         "overloaded"),
        ({"type": "error", "code": "server_error", "message": "oops"}, "overloaded"),
        ({"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]},
         "overloaded"),
        ({"choices": [], "error": {"code": 429, "message": "slow down"}}, "rate_limited"),
    ],
)  # fmt: skip
def test_a_failure_may_stand_anywhere_in_a_200(data: Any, kind: str):
    found = failure_in(data, model="m")
    assert found is not None
    assert found.kind == kind
    assert found.retried == (kind != "bad_request")


@pytest.mark.parametrize(
    "reason", ["stop", "length", "tool_calls", "function_call", "content_filter", "eos", "weird",
               "end_turn", "completed", "MALFORMED_FUNCTION_CALL", None, 7],
)  # fmt: skip
@pytest.mark.parametrize("error", [None, {}, "", {"code": None, "message": None}])
def test_an_unknown_finish_reason_without_an_error_is_an_answer(reason: Any, error: Any):
    data = {"choices": [{**CHOICE, "finish_reason": reason, "error": error}], "error": error}
    assert failure_in(data) is None


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (403, of_openai("You may not use this"),
         '403 from h: refused; the key in MY_KEY may lack access ("You may not use this")'),
        (403, of_openai("Invalid API key"),
         '403 from h: the key in MY_KEY was refused ("Invalid API key")'),
        (403, of_openai("Your input was flagged"), '403 from h ("Your input was flagged")'),
        (404, of_openai("No endpoints found matching your data policy"),
         '404 from h ("No endpoints found matching your data policy")'),
        (404, {"detail": "Not Found"},
         '404 from h: nothing is served at http://h/v1/chat/completions ("Not Found")'),
        (404, of_openai("The tool \'now\' that this conversation calls was not found anywhere"),
         '404 from h ("The tool \'now\' that this conversation calls was not found anywhere")'),
        (404, of_openai("The model `m` does not exist"),
         'model \'m\' is not known at http://h/v1 (404) ("The model `m` does not exist")'),
        (403, {"message": "You don\'t have access to the model with the specified model ID."},
         '403 from h: model \'m\' was refused ("You don\'t have access to the model with the '
         'specified model ID.")'),
    ],
)  # fmt: skip
def test_the_sentence_claims_no_more_than_the_endpoint_said(status: int, body: Any, sentence: str):
    address = normalise_base_url("http://h/v1")
    wording = Wording(where="h", origin="http://h", address=address, model="m", key_name="MY_KEY",
                      timeout_s=1.0)  # fmt: skip
    assert wording.of_fault(fault(status, body), Redactor()) == sentence
