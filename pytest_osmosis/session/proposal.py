"""The command line that would run an evaluation whose file was not understood.

Made of the one that was typed: what is proposed for the file takes the place of what was said of
it there. Knows what was typed and the shape of the file; reads no file.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from ..dataset.shapes.shape import Shape, with_judge
from ..options.reader import TYPED, OptionReader

_REPLACED = ("map", "prompt-template", "where")
"""What is said of a file's columns: given anew as a whole."""
_SECRET = ("--api-key", "--osmosis-api-key")


def propose(config: pytest.Config, sentence: str, shape: Shape, *, only: str | None = None) -> str:
    """Return a sentence, what the file has, and the line to type; in the plugin's words.

    `only`: the one option that is lacking, where what else is said of the file stays as it is.
    """
    given = OptionReader(config)
    is_said = any(given.raw(name) is not None for name in _REPLACED)
    names = {only} if only is not None and is_said else {*_REPLACED, only or "eval-fn"}
    if given.raw("eval-fn") is not None or given.raw("grader") is not None:
        names.discard("eval-fn")
    flags = [(name, _whole(value, given)) for name, value in shape.flags() if name in names]
    lines = [sentence, *(f"  {line}" for line in (*shape.table(), *shape.remarks))]
    if not shape.has_prompt:
        return "\n".join([*lines, "name the question: --osmosis-map COLUMN=user_prompt"])
    typed = _typed(config)
    line = _line(typed, flags, names)
    if shape.why and "eval-fn" in names:
        lines.append(f"  scored by {shape.scorer}: {shape.why}")
    if not shape.either:
        return "\n".join([*lines, "this runs:", f"  {line}"])
    lines.append("which is the truth? one of these:")
    for other in shape.either:
        chosen = [(name, other if value == shape.either[0] else value) for name, value in flags]
        lines.append(f"  {_line(typed, chosen, names)}")
    return "\n".join(lines)


def _whole(value: str, given: OptionReader) -> str:
    """Return the value of an option, with the model of a judge."""
    return with_judge(value, _judge(given)) if value.startswith("judge(") else value


def _judge(given: OptionReader) -> dict[str, str]:
    """Return the settings of a judge: the model that is evaluated, where it can be one."""
    model = next(iter(given.raw("model") or ()), "")
    base_url = given.raw("base-url")
    if not model or model.partition("/")[0] == "embedded":
        return {}
    if base_url is None:
        return {"model": model if "/" in model else f"openai/{model}"}
    key = given.raw("api-key-env")
    about = {"model": f"openai/{model}", "api_base": base_url}
    return about if key is None else {**about, "api_key_env": key}


def _typed(config: pytest.Config) -> list[str]:
    """Return the words that were typed, no key among them."""
    words = config.stash.get(TYPED, None)
    if words is None:
        is_module = Path(sys.argv[0]).name == "__main__.py"
        program = ["python", "-m", "pytest"] if is_module else ["pytest"]
        words = [*program, *map(str, config.invocation_params.args)]
    return [*_masked(words)]


def _masked(words: Sequence[str]) -> Iterator[str]:
    for at, word in enumerate(words):
        name, found, _ = word.partition("=")
        if name in _SECRET and found:
            yield f"{name}=***"
        else:
            yield "***" if at and words[at - 1] in _SECRET else word


def _line(typed: Sequence[str], flags: Iterable[tuple[str, str]], names: Collection[str]) -> str:
    """Return the typed command line with options in the place of those by these names."""
    end = typed.index("--") if "--" in typed else len(typed)
    own, rest = [*_kept(typed[:end], {*names} - {"where"})], typed[end:]
    added = (word for name, value in flags for word in (f"--osmosis-{name}", value))
    return " ".join(map(shlex.quote, [*own, *added, *rest]))


def _kept(words: Sequence[str], names: Collection[str]) -> Iterator[str]:
    replaced = {f"{dashes}{name}" for name in names for dashes in ("--", "--osmosis-")}
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word in replaced:
            is_value = True
        elif word.partition("=")[0] not in replaced:
            yield word
