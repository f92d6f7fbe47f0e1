"""A rubric file (YAML) to the rubrics in it, or one sentence naming file, place and cure.

A key given twice is an error, and no tag makes an object. Asks no judge and resolves no key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from osmosis_ai.providers import parse_model_name
from osmosis_ai.rubric.errors import MissingAPIKeyError
from osmosis_ai.rubric.settings import JudgeSettings, Overrides, judge_settings

from ..masking import mask_secrets

_TOP_KEYS = ("version", "default_score_min", "default_score_max", "default_model_info", "rubrics")
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
_LISTED = re.compile(r"rubrics\[\d+\]")
_MAX_BYTES = 1_000_000
_KINDS = {
    type(None): "nothing",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    dict: "a mapping",
    list: "a list",
}


class RubricFileError(Exception):
    """The rubric file cannot be used; `str()` is the whole message."""


class UnknownRubric(RubricFileError):
    """The file has no rubric with the id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricConfig:
    """One rubric of a file."""

    id: str
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

    def with_judge(self, model: str) -> RubricConfig:
        """The same rubric with another judge: `provider/model`, or a model of its provider."""
        info = dict(self.model_info)
        provider = str(info.get("provider", "")).lower()
        name = parse_model_name(model if "/" in model else f"{provider or 'openai'}/{model}")
        if name.provider != provider:
            for key in _OF_PROVIDER:  # of the provider before
                info.pop(key, None)
        info.update(provider=name.provider, model=name.model)
        return replace(self, model_info=info)

    def mask(self) -> dict[str, Any]:
        """Everything about it that may be printed: all but a key."""
        info = mask_secrets(self.model_info)
        return {"id": self.id, "title": self.title, "rubric": self.rubric, "model_info": info}


def load_rubrics(path: Path) -> list[RubricConfig]:
    """Return every rubric of the file, nested ones too; raise RubricFileError."""
    try:
        return _read_document(_load_yaml(path))
    except RecursionError:
        raise RubricFileError(f"{path}: nested too deeply") from None
    except _Unusable as error:
        raise RubricFileError(f"{path}:{error}") from None


def pick_rubric(path: Path, rubrics: list[RubricConfig], wanted: str) -> RubricConfig:
    """Return the rubric with this id; raise UnknownRubric with the ids that there are."""
    for rubric in rubrics:
        if rubric.id == wanted:
            return rubric
    ids = [rubric.id for rubric in rubrics]
    close = get_close_matches(wanted, ids, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(ids)}."
    raise UnknownRubric(f"{path}: has no rubric {wanted!r}.{hint}")


class _Unusable(Exception):
    """What is wrong with the file, as it follows the file's name and a colon."""


def _load_yaml(path: Path) -> Any:
    import yaml  # 25 ms: only for the two commands that read such files

    class Strict(yaml.SafeLoader):
        """Refuses a key that is given twice, where YAML lets the last one win."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = {"<<"}
            for key, _ in node.value:
                if key.value in seen and key.value != "<<":
                    problem = f"the key {key.value!r} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value if isinstance(key.value, str) else "<<")
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(_read_text(path), Loader=Strict)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise _Unusable(f"{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise _Unusable(f" not YAML: {' '.join(str(error).split())}") from None


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise _Unusable(f" {reason} (looked in {Path.cwd()})") from None
    if len(raw) > _MAX_BYTES:
        raise _Unusable(f" is larger than {_MAX_BYTES // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise _Unusable(
            f"{line}: is not UTF-8 (byte 0x{raw[error.start]:02x}): save it as UTF-8"
        ) from None


def _read_document(document: Any) -> list[RubricConfig]:
    if not isinstance(document, dict):
        raise _Unusable(f" expected a mapping with `rubrics`, found {_kind(document)}")
    if "default_extra_info" in document:
        raise _Unusable(" default_extra_info does not belong here; give it with each record")
    version = document.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise _Unusable(f" version {version!r} is not known; this reads version: 1")
    _refuse_misspelt("", document, _TOP_KEYS)
    _check_kind("rubrics", document.get("rubrics", []), list)
    configs: dict[str, RubricConfig] = {}
    for place, entry in _entries(document, ""):
        config = _config(place, entry, document)
        other = configs.setdefault(config.id, config)
        if other is not config:
            raise _Unusable(f" the id {config.id!r} is given twice, at {other.place} and {place}")
    if not configs:
        raise _Unusable(" holds no rubric; `rubrics` is a list of id, rubric, ...")
    return list(configs.values())


def _entries(value: Any, place: str) -> Iterator[tuple[str, dict[Any, Any]]]:
    """Yield each rubric with its place: those of the list, and what looks like one elsewhere."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if place == "rubrics":
                _check_kind(f"{place}[{index}]", item, dict)
            yield from _entries(item, f"{place}[{index}]")
    elif isinstance(value, dict):
        if "rubric" in value or _LISTED.fullmatch(place):
            yield place, value
        for key, item in value.items():
            if key not in _ENTRY_KEYS:
                yield from _entries(item, f"{place}.{key}".lstrip("."))


def _config(place: str, entry: dict[Any, Any], document: dict[Any, Any]) -> RubricConfig:
    _refuse_misspelt(f" {place}:", entry, _ENTRY_KEYS)
    info = _judge(place, entry, document)
    has_judge = info is not None
    info = _check_kind(f"{place}: model_info", info if has_judge else {}, dict)
    if "extra_info" in entry or "extra_info" in info:
        raise _Unusable(f" {place}: extra_info does not belong here; give it with each record")
    texts = {
        key: _text(place, entry, key)
        for key in ("id", "title", "rubric", "system_prompt", "original_input")
    }
    for key in ("id", "rubric"):
        if not (texts[key] or "").strip():
            raise _Unusable(f" {place}: {key} is missing or empty")
    whole = {str(key): value for key, value in info.items()}
    for key in ("score_min", "score_max"):  # of the rubric, else its judge, else the file
        values = (entry.get(key), info.get(key), document.get(f"default_{key}"))
        whole[key] = next((value for value in values if value is not None), None)
    whole |= {key: texts[key] for key in ("system_prompt", "original_input")}
    config = RubricConfig(
        id=(texts["id"] or "").strip(),
        title=texts["title"],
        rubric=texts["rubric"] or "",
        model_info={key: value for key, value in whole.items() if value is not None},
        place=place,
    )
    if has_judge:
        _text(f"{place}: model_info", config.model_info, "api_key")
        try:
            config.without_key()  # which only asking the judge requires
        except (TypeError, ValueError, MissingAPIKeyError) as error:
            raise _Unusable(f" {place}: {error}") from None
    return config


def _judge(place: str, entry: dict[Any, Any], document: dict[Any, Any]) -> Any:
    """Return the rubric's own judge over the file's default one."""
    default, own = document.get("default_model_info"), entry.get("model_info")
    if default is None:
        return own
    _check_kind(f"{place}: default_model_info", default, dict)
    if own is None:
        return default
    if not isinstance(own, dict):
        return own
    if own.get("provider", default.get("provider")) != default.get("provider"):
        default = {key: value for key, value in default.items() if key not in _OF_PROVIDER}
    return {**default, **own}


def _text(place: str, entry: Mapping[Any, Any], key: str) -> str | None:
    value = entry.get(key)
    if value is None or isinstance(value, str):
        return value
    raise _Unusable(f" {place}: {key} must be a string, not {_kind(value)}: quote it")


def _check_kind(what: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise _Unusable(f" {what} must be {_KINDS[kind]}, not {_kind(value)}")
    return value


def _refuse_misspelt(place: str, entry: dict[Any, Any], known: tuple[str, ...]) -> None:
    """Unknown keys are kept for others to read, unless they look like a slip."""
    for key in entry:
        close = get_close_matches(str(key), known, n=1, cutoff=0.8)
        if close and key not in known and close[0] not in entry:
            raise _Unusable(f"{place} {key!r} is not known; did you mean {close[0]!r}?")


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "a date")
