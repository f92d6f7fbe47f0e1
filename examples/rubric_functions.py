"""A judge of each of six providers, asked through `evaluate_rubric`.

    export OPENAI_API_KEY=...
    PYTHONPATH=. python examples/rubric_functions.py openai

Name the providers to ask; without one, those are asked whose key is set. OPENAI_BASE_URL sends
OpenAI's question to an endpoint of your own.
"""

from __future__ import annotations

import os
import sys

from osmosis_ai import MissingAPIKeyError, ProviderRequestError, evaluate_rubric, osmosis_rubric

RUBRIC = "Assistant must mention the verified capital city."
SOLUTION = "The capital of France is Paris."
JUDGES = {
    "openai": ("gpt-5-mini", "OPENAI_API_KEY"),
    "anthropic": ("claude-sonnet-4-5-20250929", "ANTHROPIC_API_KEY"),
    "gemini": ("gemini-2.5-flash", "GEMINI_API_KEY"),
    "xai": ("grok-4-fast-non-reasoning", "XAI_API_KEY"),
    "openrouter": ("meta-llama/llama-3.3-70b-instruct", "OPENROUTER_API_KEY"),
    "cerebras": ("llama3.1-8b", "CEREBRAS_API_KEY"),
}
"""Model and variable of the key, by provider. Names of models change: see the provider's list."""


@osmosis_rubric
def mentions_the_capital(solution_str: str, ground_truth: str | None, extra_info: dict) -> float:
    """Score by the judge and the rubric that `extra_info` names."""
    return evaluate_rubric(
        extra_info["rubric"],
        solution_str,
        extra_info,
        ground_truth=ground_truth,
        metadata=extra_info.get("metadata"),
    )


def ask(provider: str) -> float:
    """The score that a provider's judge gives to the solution."""
    model, variable = JUDGES[provider]
    judge = {"provider": provider, "model": model, "api_key_env": variable, "rubric": RUBRIC}
    return mentions_the_capital(SOLUTION, "Paris", judge)


def main(providers: list[str]) -> int:
    """Ask each provider; 1 when one gave no score."""
    asked = providers or [name for name, (_, key) in JUDGES.items() if os.environ.get(key)]
    if not asked or set(asked) - set(JUDGES):
        print(f"name one of {', '.join(JUDGES)}, or set its key", file=sys.stderr)
        return 2
    failed = 0
    for provider in asked:
        try:
            print(f"{provider:<11}{ask(provider):g}")
        except (MissingAPIKeyError, ProviderRequestError) as error:
            failed = 1
            print(f"{provider:<11}{error}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
