"""Which rubric is meant: one of a file, by its id, or a text that is given as it is.

Asks no judge; what cannot be used is a usage error.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from osmosis_ai.providers import parse_model_name

from ..errors import command_errors, wrong_use
from .config import (
    DEFAULT_NAMES,
    RubricConfig,
    RubricFileError,
    UnknownRubric,
    load_rubrics,
    pick_rubric,
)

INLINE = "inline"
"""The id of a rubric that is given as a text."""
_LONGEST = 1_000_000


def choose_rubric(
    given: str, *, config: Path | None, data: Path, model: str | None
) -> RubricConfig:
    """Return the rubric that is named by its id, is in `@FILE`, or is the text itself.

    One word is an id; so is everything beside a `config`. Several words are a text.
    """
    if given.startswith("@"):
        path = Path(given[1:])
        return _of_text(_read(path), model, name=path.stem or INLINE, place=str(path))
    if config is None and any(character.isspace() for character in given.strip()):
        return _of_text(given, model, name=INLINE, place="--rubric")
    chosen = _of_file(given, config, data)
    with command_errors(ValueError, code="usage", status=2, where="--model: "):
        return chosen.asking(model) if model else chosen


def _of_file(rubric_id: str, config: Path | None, data: Path) -> RubricConfig:
    path = config or _config_beside(data)
    try:
        chosen = pick_rubric(path, load_rubrics(path), rubric_id)
    except UnknownRubric as error:
        rule = "With --config it is" if config else "One word is"
        raise wrong_use(
            f"{'--config ' if config else ''}{error} {rule} taken for an id: a text stands in a "
            f"file, as --rubric @FILE{'' if config else ', or has several words'}."
        ) from None
    except RubricFileError as error:
        raise wrong_use(f"{'--config ' if config else ''}{error}") from None
    return replace(chosen, source=str(path))


def _of_text(text: str, model: str | None, *, name: str, place: str) -> RubricConfig:
    if not text.strip():
        raise wrong_use(f"{place}: the rubric is empty: say what the judge is to look for")
    if model is None:
        raise wrong_use(
            "a rubric that is given as a text names no judge: give --model PROVIDER/MODEL, "
            "such as openai/gpt-5-mini"
        )
    with command_errors(ValueError, code="usage", status=2, where="--model: "):
        judge = parse_model_name(model if "/" in model else f"openai/{model}")
    info = {"provider": judge.provider, "model": judge.model}
    return RubricConfig(
        id=name, title=None, rubric=text, model_info=info, place=place, source=place, is_inline=True
    )


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_LONGEST + 1)
    except UnicodeDecodeError:
        raise wrong_use(f"--rubric @{path}: is not UTF-8: save it as UTF-8") from None
    except OSError as error:
        raise wrong_use(f"--rubric @{path}: {error.strerror or error}") from None
    if len(text) > _LONGEST:
        raise wrong_use(f"--rubric @{path}: has more than {_LONGEST:,} characters")
    return text


def _config_beside(data: Path) -> Path:
    if not data.exists():
        raise wrong_use(f"--data {data}: no such file")
    places = [where / name for where in (data.parent, Path()) for name in DEFAULT_NAMES]
    for place in places:
        if place.is_file():
            return place
    raise wrong_use(
        f"there is no {DEFAULT_NAMES[0]} beside {data} nor in {Path.cwd()}; name the rubric file "
        "with --config, or give the rubric itself: --rubric 'its text' or --rubric @FILE"
    )
