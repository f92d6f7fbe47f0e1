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
from osmosis_ai.rubric.settings import judge_settings

_TOP_KEYS: Mapping[str, type] = {
    "version": object,
    "default_score_min": object,
    "default_score_max": object,
    "default_model_info": dict,
    "rubrics": list,
}
_ENTRY_KEYS: Mapping[str, type] = {
    "id": str,
    "title": str,
    "rubric": str,
    "model_info": dict,
    "score_min": object,
    "score_max": object,
    "system_prompt": str,
    "original_input": str,
}
"""Keys of a file and of a rubric; object: what the judge's settings check."""
_KINDS: Mapping[type, str] = {str: "a string", dict: "a mapping", list: "a list"}
_OF_PROVIDER = ("api_key", "api_key_env", "api_base")
"""Of a judge: what another provider must not get."""
_LISTED = re.compile(r"rubrics\[\d+\]")
_MAX_BYTES = 1_000_000


MASK = "***"
_HOLDS_KEY = re.compile(r"(?:api[_-]?key|authorization)$", re.IGNORECASE)
_NAMES_VARIABLE = "api_key_env"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_USERINFO = re.compile(r"(?<=://)[^/?#@\s]*@")
_QUERY = re.compile(r"(?<=\?).*", re.DOTALL)


class RubricFileError(Exception):
    """The rubric file cannot be used; `str()` is the whole message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricConfig:
    """One rubric of a file."""

    id: str
    title: str | None = None
    rubric: str
    model_info: Mapping[str, Any]
    """With the rubric's own bounds, system prompt and original input put in."""
    place: str
    """Where in the file it stands, as `rubrics[0]`."""
    source: str = ""
    """The file that it came from."""
    is_inline: bool = False
    """It was given as a text: every record is for it."""

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
    """Return the rubric with this id; raise RubricFileError with the ids that there are."""
    for rubric in rubrics:
        if rubric.id == wanted:
            return replace(rubric, source=str(path))
    ids = [rubric.id for rubric in rubrics]
    close = get_close_matches(wanted, ids, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(ids)}."
    raise RubricFileError(
        f"{path}: has no rubric {wanted!r}.{hint} A text stands in a file, as --rubric @FILE, or "
        "has several words, without --config."
    )


class _Unusable(Exception):
    """What is wrong with the file, as it follows the file's name and a colon."""


def _load_yaml(path: Path) -> Any:
    import yaml  # 25 ms: only for the two commands that read such files

    class Strict(yaml.SafeLoader):
        """Refuses a key that is given twice, where YAML lets the last one win."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen = {"<<"}
            for key, _ in node.value:
                if not isinstance(key.value, str):
                    continue  # a list or a mapping: refused below
                if key.value in seen and key.value != "<<":
                    problem = f"the key {key.value!r} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
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
    """Return the rubrics of a file: a mapping with `rubrics`, one rubric, or a list of them."""
    if document is None:
        raise _Unusable(" is empty: expected a mapping with `rubrics`")
    if not isinstance(document, dict | list):
        raise _Unusable(
            f" is no rubric file: expected a mapping with `rubrics`, not {type(document).__name__}"
        )
    is_one = isinstance(document, dict) and isinstance(document.get("rubric"), str)
    defaults = document if isinstance(document, dict) and not is_one else {}
    _check("", defaults, _TOP_KEYS)
    version = defaults.get("version", 1)
    if version != 1 or isinstance(version, bool):
        raise _Unusable(f" version {version!r} is not known; this reads version: 1")
    configs: dict[str, RubricConfig] = {}
    for place, entry in _entries(document, ""):
        _check(f" {place}:", entry, _ENTRY_KEYS)
        config = _config(place, entry, defaults)
        other = configs.setdefault(config.id, config)
        if other is not config:
            raise _Unusable(f" the id {config.id!r} is given twice, at {other.place} and {place}")
    if not configs:
        raise _Unusable(
            " is no rubric file: it holds no rubric; `rubrics` is a list of id, rubric, ..."
        )
    return list(configs.values())


def _entries(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield each rubric with its place: those of the list, and what looks like one elsewhere."""
    if _LISTED.fullmatch(place) or (isinstance(value, dict) and "rubric" in value):
        yield place, value
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _entries(item, f"{place}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            if key not in _ENTRY_KEYS:
                yield from _entries(item, f"{place}.{key}".lstrip("."))


def _check(place: str, entry: Any, known: Mapping[str, type]) -> None:
    """Refuse values of another type, and keys that look like a slip; others are kept."""
    if not isinstance(entry, dict):
        raise _Unusable(f"{place} must be a mapping, not {type(entry).__name__}")
    for key, value in entry.items():
        kind = known.get(key, object)
        if value is not None and not isinstance(value, kind):
            found = type(value).__name__
            raise _Unusable(f"{place} {key} must be {_KINDS[kind]}, not {found}")
        if key in ("extra_info", "default_extra_info"):
            raise _Unusable(f"{place} {key} does not belong here; give it with each record")
        close = get_close_matches(str(key), known, n=1, cutoff=0.8)
        if close and key not in known and close[0] not in entry:
            raise _Unusable(f"{place} {key!r} is not known; did you mean {close[0]!r}?")


def _config(place: str, entry: dict[str, Any], document: dict[str, Any]) -> RubricConfig:
    # Outside of `rubrics` the place names a rubric; one alone is called after what it is.
    named = place.rpartition(".")[2] or "rubric"
    name = (entry.get("id") or ("" if place.startswith("rubrics[") else named)).strip()
    for key, text in (("id", name), ("rubric", entry.get("rubric") or "")):
        if not text.strip():
            raise _Unusable(f" {place}: {key} is missing or empty")
    default, own = document.get("default_model_info") or {}, entry.get("model_info")
    if own and own.get("provider", default.get("provider")) != default.get("provider"):
        default = {key: value for key, value in default.items() if key not in _OF_PROVIDER}
    has_judge = own is not None or bool(default)
    info = {**default, **(own or {})}
    _check(f" {place}: model_info:", info, {"api_key": str})
    for key in ("score_min", "score_max"):  # of the rubric, else its judge, else the file
        values = (entry.get(key), info.get(key), document.get(f"default_{key}"))
        info[key] = next((value for value in values if value is not None), None)
    info |= {key: entry.get(key) for key in ("system_prompt", "original_input")}
    config = RubricConfig(
        id=name,
        title=entry.get("title"),
        rubric=entry["rubric"],
        model_info={key: value for key, value in info.items() if value is not None},
        place=place,
    )
    if has_judge:
        try:
            judge_settings(config.model_info, needs_key=False)
        except (TypeError, ValueError) as error:
            raise _Unusable(f" {place}: {error}") from None
    return config


def mask_secrets(value: Any, name: str = "") -> Any:
    """Return `value`, called `name`, with `***` for each key anywhere in it."""
    if isinstance(value, Mapping):
        return {key: mask_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [mask_secrets(item, name) for item in value]
    if value is None or value == "":
        return value
    if _HOLDS_KEY.search(name) or _is_misplaced(name, value):
        return MASK
    if name in ("api_base", "base_url") and isinstance(value, str):
        return _QUERY.sub(MASK, _USERINFO.sub(f"{MASK}@", value))
    return value


def _is_misplaced(name: str, value: Any) -> bool:
    """Return whether a key seems to stand where the name of its variable belongs."""
    if name != _NAMES_VARIABLE:
        return False
    return not (isinstance(value, str) and _VARIABLE.fullmatch(value))
