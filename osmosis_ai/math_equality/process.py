"""The script of the process that compares mathematics; its main thread keeps math-verify's limits.

A line of JSON in, `{"truth": …}` or with `"answer"` besides; a line of JSON out: whether the truth
can be read, or whether both are equal; null where the time was over.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any

SECONDS = 5
MEMORY_BYTES = 4 << 30


def main() -> None:
    """Answer until there are no more lines."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints
    if sys.platform == "linux":
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    from math_verify import LatexExtractionConfig, parse, verify
    from math_verify.errors import TimeoutException

    def read(latex: str) -> list[Any]:
        found = parse(
            f"${latex}$",
            extraction_config=[LatexExtractionConfig()],
            fallback_mode="no_fallback",
            parsing_timeout=SECONDS,
            raise_on_error=True,
        )
        return [one for one in found if not isinstance(one, str)]

    print("ready", file=out, flush=True)
    for line in sys.stdin:
        question = json.loads(line)
        result: bool | None
        try:
            truth = read(question["truth"])
            if "answer" in question:
                answer = read(question["answer"])
                result = bool(truth and answer) and bool(
                    verify(truth, answer, timeout_seconds=SECONDS, raise_on_error=True)
                )
            else:
                result = bool(truth)
        except TimeoutException:
            result = None
        except Exception:  # noqa: BLE001  of a parser that meets what is no mathematics
            result = False
        print(json.dumps(result), file=out, flush=True)


if __name__ == "__main__":
    main()
