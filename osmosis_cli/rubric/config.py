"""A rubric file (YAML) to the rubrics in it, or one sentence naming file, place and cure.

Asks no judge and resolves no key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from osmosis_ai.providers import parse_model_name
from osmosis_ai.rubric.errors import MissingAPIKeyError
from osmosis_ai.rubric.settings import JudgeSettings, Overrides, judge_settings

from ..masking import mask_secrets
from .yaml import YAMLFileError, load_yaml

DEFAULT_NAMES = ("rubric_configs.yaml", "rubric_configs.yml")
_TOP_KEYS = (
    "version",
    "default_score_min",
    "default_score_max",
    "default_model_info",
    "rubrics",
)
_OF_PROVIDER = ("api_key", "api_key_env", "api_base")
"""Of a judge: what another provider must not get."""
_ENTRY_KEYS = (
    "id",
    "title",
    "rubric",
    "model_info",
    "score_min",
    "score_max",
    "system_prompt",
    "original_input",
)


_NEEDED = frozenset({"id", "rubric", "model_info"})
"""Keys of a rubric that a judge can be asked with."""


class RubricFileError(Exception):
    """The rubric file cannot be used; `str()` is the whole message."""


class UnknownRubric(RubricFileError):
    """The file has no rubric with the id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricConfig:
    """One rubric of a file."""

    id: str
    """Empty in a preview of a rubric that has none."""
    title: str | None
    rubric: str
    model_info: Mapping[str, Any]
    """With the rubric's own bounds, system prompt and original input put in."""
    place: str
    """Where in the file it stands, as `rubrics[0]`."""
    source: str = ""
    """The file that it came from."""
    is_inline: bool = False
    """It was given as a text: every record is for it."""

    def settings(self, *, needs_key: bool = True) -> JudgeSettings:
        """Return whom to ask; raise MissingAPIKeyError, TypeError or ValueError."""
        try:
            return judge_settings(self.model_info, Overrides())
        except MissingAPIKeyError:
            if needs_key:
                raise
        return replace(self.without_key(), api_key=None)

    def without_key(self) -> JudgeSettings:
        """As `settings`, but for the key."""
        return judge_settings({**self.model_info, "api_key": "checked-without-it"}, Overrides())

    def asking(self, model: str) -> RubricConfig:
        """The same rubric with another judge: `provider/model`, or a model of its provider."""
        info = dict(self.model_info)
        provider = str(info.get("provider", "")).lower()
        name = parse_model_name(model if "/" in model else f"{provider or 'openai'}/{model}")
        if name.provider != provider:
            for key in _OF_PROVIDER:  # of the provider before
                info.pop(key, None)
        info.update(provider=name.provider, model=name.model)
        return replace(self, model_info=info)

    def shown(self) -> dict[str, Any]:
        """Everything about it that may be printed: all but a key."""
        info = mask_secrets(self.model_info)
        name = self.id or None
        return {"id": name, "title": self.title, "rubric": self.rubric, "model_info": info}


def load_rubrics(path: Path, *, is_for_judging: bool = True) -> list[RubricConfig]:
    """Return every rubric of the file, nested ones too; raise RubricFileError.

    Judging needs an `id` and a `model_info` of each; a preview takes what has a `rubric`.
    """
    try:
        document = load_yaml(path)
    except YAMLFileError as error:
        raise RubricFileError(str(error)) from None
    document = _with_rubrics(document)
    if not isinstance(document, dict):
        raise RubricFileError(f"{path}: expected a mapping with `rubrics`, found {_kind(document)}")
    if "default_extra_info" in document:
        raise RubricFileError(
            f"{path}: default_extra_info does not belong here; give it with each record of the data"
        )
    version = document.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise RubricFileError(f"{path}: version {version!r} is not known; this reads version: 1")
    _refuse_misspelt(path, "", document, _TOP_KEYS)
    needed = _NEEDED if is_for_judging else _NEEDED - {"id", "model_info"}
    entries = _entries(path, document, needed)
    found = [_config(path, place, entry, document, needed) for place, entry in entries]
    if not found:
        raise RubricFileError(f"{path}: holds no rubric; `rubrics` is a list of id, rubric, ...")
    _refuse_doubles(path, found)
    return found


def pick_rubric(path: Path, rubrics: list[RubricConfig], wanted: str) -> RubricConfig:
    """Return the rubric with this id; raise UnknownRubric with the ids that there are."""
    for rubric in rubrics:
        if rubric.id == wanted:
            return rubric
    ids = [rubric.id for rubric in rubrics]
    close = get_close_matches(wanted, ids, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(ids)}."
    raise UnknownRubric(f"{path}: has no rubric {wanted!r}.{hint}")


# Finding and checking entries.


def _with_rubrics(document: Any) -> Any:
    """Return the document in its usual form: a list is of rubrics, a single one stands alone."""
    if isinstance(document, list) and document:
        return {"rubrics": document}
    if not isinstance(document, dict) or "rubrics" in document:
        return document
    if isinstance(document.get("rubric"), str) or {"id", "rubric"} <= {*document}:
        defaults = {key: document[key] for key in _TOP_KEYS if key in document}
        entry = {key: value for key, value in document.items() if key not in _TOP_KEYS}
        return {**defaults, "rubrics": [entry]}
    return document


def _entries(
    path: Path, document: dict[Any, Any], needed: frozenset[str]
) -> Iterator[tuple[str, dict[Any, Any]]]:
    listed = document.get("rubrics", [])
    if not isinstance(listed, list):
        raise RubricFileError(f"{path}: rubrics must be a list, not {_kind(listed)}")
    for index, entry in enumerate(listed):
        place = f"rubrics[{index}]"
        if not isinstance(entry, dict):
            raise RubricFileError(f"{path}: {place} must be a mapping, not {_kind(entry)}")
        nested = list(_nested(place, entry, needed))
        if "rubric" in entry or "id" in entry or not nested:
            yield place, entry
        yield from nested
    for key, value in document.items():
        if key not in _TOP_KEYS:
            yield from _found(str(key), value, needed)


def _nested(
    place: str, entry: dict[Any, Any], needed: frozenset[str]
) -> Iterator[tuple[str, dict[Any, Any]]]:
    for key, value in entry.items():
        if key not in _ENTRY_KEYS:
            yield from _found(f"{place}.{key}", value, needed)


def _found(place: str, value: Any, needed: frozenset[str]) -> Iterator[tuple[str, dict[Any, Any]]]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _found(f"{place}[{index}]", item, needed)
    elif isinstance(value, dict):
        if needed & {"id", "rubric"} <= {*value}:
            yield place, value
        yield from _nested(place, value, needed)


def _config(
    path: Path,
    place: str,
    entry: dict[Any, Any],
    document: dict[Any, Any],
    needed: frozenset[str],
) -> RubricConfig:
    where = f"{path}: {place}"
    if "extra_info" in entry:
        raise RubricFileError(
            f"{where}: extra_info does not belong here; give it with each record of the data"
        )
    _refuse_misspelt(path, place, entry, _ENTRY_KEYS)
    info = _judge(where, entry, document)
    has_judge = "model_info" in needed or info is not None
    info = info if has_judge else {}
    if not isinstance(info, dict):
        raise RubricFileError(f"{where}: model_info must be a mapping, not {_kind(info)}")
    if "extra_info" in info:
        raise RubricFileError(f"{where}: extra_info does not belong into model_info")
    config = RubricConfig(
        id=_required(where, entry, "id") if {"id"} & {*needed, *entry} else "",
        title=_optional(where, entry, "title"),
        rubric=_required(where, entry, "rubric"),
        model_info=_model_info(where, entry, info, document),
        place=place,
    )
    if has_judge:
        _check_settings(where, config)
    return config


def _judge(where: str, entry: dict[Any, Any], document: dict[Any, Any]) -> Any:
    """Return the rubric's own judge over the file's default one."""
    default, own = document.get("default_model_info"), entry.get("model_info")
    if default is None:
        return own
    if not isinstance(default, dict):
        raise RubricFileError(
            f"{where}: default_model_info must be a mapping, not {_kind(default)}"
        )
    if own is None:
        return default
    if not isinstance(own, dict):
        return own
    if own.get("provider", default.get("provider")) != default.get("provider"):
        default = {key: value for key, value in default.items() if key not in _OF_PROVIDER}
    return {**default, **own}


def _model_info(
    where: str, entry: dict[Any, Any], info: dict[Any, Any], document: dict[Any, Any]
) -> dict[str, Any]:
    whole = {str(key): value for key, value in info.items()}
    for key in ("score_min", "score_max"):
        for given in (entry.get(key), info.get(key), document.get(f"default_{key}")):
            if given is not None:
                whole[key] = given
                break
    for key in ("system_prompt", "original_input"):
        if (text := _optional(where, entry, key)) is not None:
            whole[key] = text
    return whole


def _check_settings(where: str, config: RubricConfig) -> None:
    """Check everything but the key, which only asking the judge requires."""
    given = config.model_info.get("api_key")
    if given is not None and not isinstance(given, str):
        raise RubricFileError(f"{where}: model_info.api_key must be a string, not {_kind(given)}")
    try:
        config.without_key()
    except (TypeError, ValueError, MissingAPIKeyError) as error:
        raise RubricFileError(f"{where}: {error}") from None


def _required(where: str, entry: dict[Any, Any], key: str) -> str:
    text = _optional(where, entry, key)
    if text is None or not text.strip():
        raise RubricFileError(f"{where}: {key} is missing or empty")
    return text.strip() if key == "id" else text


def _optional(where: str, entry: dict[Any, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value
    raise RubricFileError(f"{where}: {key} must be a string, not {_kind(value)}: quote it")


def _refuse_misspelt(path: Path, place: str, entry: dict[Any, Any], known: tuple[str, ...]) -> None:
    """Unknown keys are kept for others to read, unless they look like a slip."""
    for key in entry:
        close = get_close_matches(str(key), known, n=1, cutoff=0.8)
        if close and key not in known and close[0] not in entry:
            where = f"{path}: {place}: " if place else f"{path}: "
            raise RubricFileError(f"{where}{key!r} is not known; did you mean {close[0]!r}?")


def _refuse_doubles(path: Path, found: list[RubricConfig]) -> None:
    first: dict[str, str] = {}
    for config in found:
        other = first.setdefault(config.id, config.place)
        if config.id and other != config.place:
            raise RubricFileError(
                f"{path}: the id {config.id!r} is given twice, at {other} and {config.place}"
            )


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (bool, str)):
        return "a string" if isinstance(value, str) else "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    return {"dict": "a mapping", "list": "a list"}.get(type(value).__name__, "a date")
