"""The text of a new config file: required values, and every optional one commented out.

Made from the models, so that it names every key that there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic.fields import FieldInfo

from .config_file import section_fields
from .config_models import RunConfig

ENV_EXAMPLE = 'LOG_LEVEL = "INFO"'


def config_template(
    kind: type[RunConfig],
    values: Mapping[str, Mapping[str, Any]],
    *,
    secrets: Sequence[str],
    schema: str,
) -> str:
    """Return the text of a config file that can be used as it is.

    `values` are those of its tables, at least the required ones of [experiment]; `schema` is where
    an editor finds the JSON Schema, relative to the file.
    """
    blocks = [f"#:schema {schema}"]
    for name in kind.model_fields:
        if name not in ("advanced", "env", "secrets"):
            blocks += _section(name, kind, values.get(name, {}))
    blocks.append(f"# [env]\n# {ENV_EXAMPLE}  # Variables that are no secrets")
    comment = "Names of secrets, registered with `osmosis secret set`"
    off = "" if kind.needs_secrets else "# "
    blocks.append(f"{off}[secrets]\n{off}required = {_toml([*secrets])}  # {comment}")
    return "\n\n".join(blocks) + "\n"


def _section(name: str, kind: type[RunConfig], values: Mapping[str, Any]) -> Iterator[str]:
    lines = [
        _line(key, field, values.get(key)) for key, field in section_fields(kind, name).items()
    ]
    width = max(len(line) for line, _ in lines)
    yield "\n".join([f"[{name}]", *(f"{line:<{width}}  # {comment}" for line, comment in lines)])


def _line(key: str, field: FieldInfo, value: Any) -> tuple[str, str]:
    if value is not None:
        return f"{key} = {_toml(value)}", field.description or ""
    example = (field.examples or [""])[0]
    return f"# {key} = {_toml(example)}", field.description or ""


def _toml(value: Any) -> str:
    # JSON's strings, arrays of strings and numbers are TOML's too; 1e-06 is.
    return json.dumps(value, ensure_ascii=False)
