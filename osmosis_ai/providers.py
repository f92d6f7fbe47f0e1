"""Names of providers and of the variables that hold their keys and addresses.

Facts only, cheap to import: LiteLLM, which speaks to the providers, is behind
`osmosis_ai.models.litellm.library`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .secret import Secret

_KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "datarobot": ("DATAROBOT_API_TOKEN",),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY"),
    "ai21_chat": ("AI21_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "custom_openai": ("OPENAI_API_KEY",),
    "text-completion-openai": ("OPENAI_API_KEY",),
}
"""Where the usual variable is not `<PROVIDER>_API_KEY`; the first one set counts."""

_OWN_CREDENTIALS = frozenset(
    {
        "bedrock",
        "bedrock_mantle",
        "docker_model_runner",
        "github_copilot",
        "hosted_vllm",
        "lemonade",
        "litellm_proxy",
        "llamafile",
        "lm_studio",
        "ollama",
        "ollama_chat",
        "oobabooga",
        "oci",
        "petals",
        "sagemaker",
        "sagemaker_chat",
        "sagemaker_nova",
        "sap",
        "triton",
        "vertex_ai",
        "vertex_ai_beta",
        "vllm",
        "watsonx",
        "xinference",
    }
)
"""Local servers, which ask for no key, and clouds, whose credentials are more than one key."""

_HOSTED = frozenset(
    {
        "anthropic",
        "azure",
        "azure_ai",
        "cerebras",
        "cloudflare",
        "databricks",
        "deepinfra",
        "deepseek",
        "github",
        "groq",
        "hyperbolic",
        "lambda_ai",
        "meta_llama",
        "mistral",
        "moonshot",
        "nebius",
        "novita",
        "nscale",
        "nvidia_nim",
        "openai",
        "openrouter",
        "replicate",
        "sambanova",
        "vercel_ai_gateway",
        "volcengine",
        "xai",
        "zai",
    }
)
"""Providers besides those above."""
_OPEN_WEIGHTS = ("openai/gpt-oss",)
"""Beginnings of names that read like a provider's and are those of weights: anyone serves them."""

_ADDRESS_VARIABLES: Mapping[str, str] = {
    "hosted_vllm": "HOSTED_VLLM_API_BASE",
    "litellm_proxy": "LITELLM_PROXY_API_BASE",
    "lm_studio": "LM_STUDIO_API_BASE",
}
"""Servers of one's own: without their address LiteLLM takes OpenAI's, key and prompts with it."""

_OPENAI_ADDRESS = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_MOVED_BY: Mapping[str, tuple[str, ...]] = {
    "openai": _OPENAI_ADDRESS,
    "custom_openai": _OPENAI_ADDRESS,
    "text-completion-openai": _OPENAI_ADDRESS,
    "anthropic": ("ANTHROPIC_API_BASE", "ANTHROPIC_BASE_URL"),
    "ai21_chat": ("AI21_API_BASE",),
    "bedrock": ("AWS_BEDROCK_RUNTIME_ENDPOINT",),
    "cohere_chat": ("COHERE_API_BASE",),
    "datarobot": ("DATAROBOT_ENDPOINT",),
    "fireworks_ai": ("FIREWORKS_API_BASE",),
    "huggingface": ("HF_API_BASE", "HUGGINGFACE_API_BASE"),
    "mistral": ("MISTRAL_AZURE_API_BASE", "MISTRAL_API_BASE"),
    "ollama_chat": ("OLLAMA_API_BASE",),
    "vertex_ai": ("VERTEXAI_API_BASE",),
    "vertex_ai_beta": ("VERTEXAI_API_BASE",),
    "watsonx": ("WATSONX_API_BASE", "WATSONX_URL", "WX_URL", "WML_URL"),
}
"""Where the variable that LiteLLM takes an address from is not `<PROVIDER>_API_BASE`; the first one
set counts."""


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model as LiteLLM names it."""

    provider: str
    model: str
    """The provider's own name of the model; may hold slashes."""

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"


def parse_model_name(name: str) -> ModelName:
    """`provider/model`; a bare name is a model of OpenAI. Raises ValueError."""
    text = name.strip()
    provider, slash, model = text.partition("/")
    if not slash:
        provider, model = "openai", text
    if not provider or not model or any(c.isspace() for c in text):
        raise ValueError(f"{name!r} is no model name: expected provider/model, e.g. openai/gpt-5")
    return ModelName(provider.lower(), model)


_BEGINNINGS = {
    "chatgpt": "openai",
    "claude": "anthropic",
    "ft:": "openai",
    "gemini": "gemini",
    "gpt-": "openai",
    "grok": "xai",
    **dict.fromkeys(("o1", "o3", "o4"), "openai"),
}


def judge_name(name: str) -> ModelName:
    """`provider/model`; a bare name is of the provider whose models begin so. Raises ValueError."""
    parsed = parse_model_name(name)
    if "/" in name:
        return parsed
    known = parsed.model.lower()
    for beginning, provider in _BEGINNINGS.items():
        if known.startswith(beginning):
            return ModelName(provider, parsed.model)
    raise ValueError(
        f"{name!r} names no provider, and begins as no model that is known: write provider/model, "
        f"such as openai/{parsed.model}"
    )


def names_provider(name: str) -> bool:
    """Return whether a name is `provider/model`, not one of an endpoint such as `Qwen/Qwen3-8B`.

    Providers are spelled as LiteLLM spells them.
    """
    provider, _, model = name.partition("/")
    if not model or name.startswith(_OPEN_WEIGHTS):
        return False
    return provider in _HOSTED or provider in _OWN_CREDENTIALS or provider in _KEY_VARIABLES


def key_variables(provider: str) -> tuple[str, ...]:
    """The variables that usually hold this provider's key; empty where none is needed."""
    if provider in _OWN_CREDENTIALS:
        return ()
    return _KEY_VARIABLES.get(provider, (_variable(provider, "API_KEY"),))


def missing_address(provider: str) -> str | None:
    """Return the variable that has to hold the address of this provider, where it does not."""
    variable = _ADDRESS_VARIABLES.get(provider)
    return None if variable is None or os.environ.get(variable, "").strip() else variable


def key_from_environment(provider: str) -> Secret | None:
    """The key in the first of the provider's variables that is set and not blank."""
    for variable in key_variables(provider):
        value = os.environ.get(variable, "")
        if value.strip():
            return Secret(value, variable)
    return None


def keys_sent_to(address_variable: str) -> set[str]:
    """Return the variables whose keys may be sent to the address that this one holds."""
    beginning = address_variable.partition("_")[0] + "_"
    return {
        name
        for provider, names in _KEY_VARIABLES.items()
        if address_variable.startswith(_variable(provider, ""))
        or any(each.startswith(beginning) for each in names)
        for name in names
    }


def address_from_environment(provider: str) -> str:
    """Return the address that a variable gives this provider; empty without one."""
    names = _MOVED_BY.get(provider, (_variable(provider, "API_BASE"),))
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def host_of(provider: str, api_base: str | None = None) -> str:
    """Return where the provider's models are asked, printable; its name where that is its own host.

    Without `api_base` a variable of the environment may hold an address.
    """
    address = api_base or address_from_environment(provider)
    netloc = (address.partition("://")[2] or address).partition("/")[0].partition("?")[0]
    return netloc.rpartition("@")[2] or provider


def _variable(provider: str, ending: str) -> str:
    return f"{provider.upper().replace('-', '_').replace('.', '_')}_{ending}"
