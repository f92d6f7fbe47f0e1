"""What the truths of a file are: the ready scorer that fits them, and what the prompt must say.

By values alone; knows neither columns nor files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from osmosis_ai.number_reading import is_bare, read_truth

JUDGE = "correct"
"""The criterion of a judge who compares long texts."""
LETTER = re.compile(r"\(?([A-Za-z])\)?[.:)]?")
_SHORT = 60
"""Characters of a truth that an answer may be expected to include word by word."""
_WORDS = 6
"""Words of a truth that answers put in other words."""
_CHOSEN = re.compile(r"\(?[A-Ja-j]\)?[.:)]?")
_LATEX = re.compile(r"\\[a-zA-Z]+|\$[^$]+\$|[a-z0-9)]\^[0-9{(]")
_FORMULA = re.compile(r"[0-9=^]")
_SENTENCE = re.compile(rf"(?:\S+\s+){{2,}}\S*[.!?]|(?:\S+\s+){{{_WORDS - 1},}}\S+")
_ASSERTION = re.compile(
    r"(?:not-)?(?:i?contains(?:-all|-any|-json)?|equals|starts-with|regex|is-json|javascript|fn"
    r"|eval|python|similar|llm-rubric|grade|factuality|levenshtein|model-graded-\w+)(?:\(.*?\))?:"
)
"""The beginning of a cell of promptfoo that says more than a text to be equal to."""
_MOST_CLASSES = 10
_CLASS_WORDS = 3


def scorer_for(truths: Sequence[Any], *, is_math: bool = False) -> tuple[str, str]:
    """Return the ready scorer that fits these truths, and why; lists are any of their members."""
    texts = [text for value in truths for text in members(value)]
    if any(isinstance(text, dict) for text in texts):
        return "json_equal", "the truths are objects"
    if texts and all(_is_number(text) for text in texts):
        if any("####" in str(text) for text in texts):
            return "number", "the truths end in #### and a number"
        return "number", "the truths are numbers"
    texts = [str(text).strip() for text in texts]
    if texts and all(text[:1] in "[{" and is_json(text) for text in texts):
        return "json_equal", "the truths are JSON"
    if texts and all(LETTER.fullmatch(text) for text in texts):
        if all(map(_CHOSEN.fullmatch, texts)) and any(map(str.isupper, texts)):
            return "choice", "the truths are letters of options"
        return "exact", "the truths are letters"
    if any(map(_LATEX.search, texts)) or (is_math and all(map(_FORMULA.search, texts))):
        return "math", "the truths are mathematical expressions"
    if sum(map(_is_sentence, truths)) * 2 > len(truths):
        return f'judge("{JUDGE}")', "the truths are sentences"
    if all(len(text) <= _SHORT for text in texts):
        distinct = len({text.casefold() for text in texts})
        few = f"{distinct} different " if distinct * 3 <= len(texts) else ""
        return "includes", f"the truths are {few}short texts"
    return f'judge("{JUDGE}")', "the truths are long texts"


def instruction_for(truths: Sequence[Any], prompts: Sequence[Any], *, are_classes: bool) -> str:
    """Return what tells an agent which answers there are, where the prompts do not.

    `are_classes`: the column says by its name that its texts are classes.
    """
    if truths and all(isinstance(truth, bool) for truth in truths):
        return "Answer true or false."
    if not truths or not all(isinstance(truth, str) for truth in truths):
        return ""
    names = sorted({truth.strip() for truth in truths})
    plain = {name.casefold() for name in names}
    if all(plain <= _words(prompt) for prompt in prompts):
        return ""
    for pair in (("yes", "no"), ("true", "false")):
        if plain <= {*pair}:
            return f"Answer {' or '.join(pair)}."
    is_short = all(len(name.split()) <= _CLASS_WORDS for name in names)
    if are_classes and 1 < len(names) <= _MOST_CLASSES and is_short:
        return f"Answer with one of: {', '.join(names)}."
    return ""


def are_assertions(truths: Sequence[Any]) -> bool:
    """Return whether texts are assertions of promptfoo, such as `contains:Rome`."""
    texts = [truth for truth in truths if isinstance(truth, str)]
    return any(_ASSERTION.match(text) for text in texts)


def members(value: Any) -> list[Any]:
    """Return the members of a list; of anything else, itself."""
    return value if isinstance(value, list) else [value]


def is_json(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _words(prompt: Any) -> set[str]:
    return set(re.findall(r"\w+", prompt.casefold())) if isinstance(prompt, str) else set()


def _is_sentence(truth: Any) -> bool:
    """Return whether all ways to put a truth are sentences."""
    texts: Iterable[str] = map(str, members(truth))
    return all(_SENTENCE.fullmatch(text.strip()) for text in texts)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, (int, float)):
        return True
    if not isinstance(value, str) or read_truth(value) is None:
        return False
    return is_bare(value) or "####" in value or "\\" in value
