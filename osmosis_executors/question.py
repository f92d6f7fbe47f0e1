"""One question to a model, as a program: `python -m osmosis_executors.question MODEL`.

Exit status 0 where the model answers; else 1, and why in one sentence on stdout. Its key is in the
environment, as that of an evaluation.
"""

from __future__ import annotations

import asyncio
import re
import sys

from osmosis_ai.models.base import ProviderError
from osmosis_ai.secret import Redactor
from osmosis_ai.secret_variables import secret_variables
from pytest_osmosis.api_keys import key_of
from pytest_osmosis.errors import ConfigurationError
from pytest_osmosis.rollouts.prepare import open_model
from pytest_osmosis.spec import ModelSpec

_INSTEAD = {
    "export it, or name another variable with --osmosis-api-key-env": (
        "set it with `osmosis secret set`, and name it in [secrets]"
    ),
    r"give --osmosis-api-key-env \w+ to send it": "give its address with https://",
}
"""What a submitted run does in place of what a command line can."""
_QUESTION = ({"role": "user", "content": "Answer with the word: yes"},)


def main(model: str) -> int:
    """Ask the model; return the exit status."""
    spec = ModelSpec(model)
    if spec.persona is not None:
        return 0  # it is in the process that evaluates
    try:
        key_of(spec)
        asyncio.run(_ask(spec))
    except ConfigurationError as error:
        told = str(error)
        for said, instead in _INSTEAD.items():
            told = re.sub(said, instead, told)
        return _refused(told)
    except ProviderError as error:
        return _refused(str(error))
    return 0


def _refused(text: str) -> int:
    print(Redactor(secret_variables())(text))
    return 1


async def _ask(spec: ModelSpec) -> None:
    opened = open_model(spec, base_urls={}, pool_size=1)
    try:
        await opened.complete(_QUESTION)
    finally:
        await opened.aclose()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
