"""The body that submits a run: the config models' fields under the names of the wire.

The models of config files are the single definition; what a file may not say is refused here too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from copy import copy
from typing import Any

from pydantic import create_model

from osmosis_ai.platform.config_models import (
    CONFIGS,
    ENV_NAME,
    MAX_ENV_BYTES,
    SECRET_NAME,
    Secrets,
    Section,
    reserved,
)
from osmosis_ai.platform.run_kinds import RunKind


class Submission(Section):
    """What every kind of submission is: the fields come from a config model."""

    @property
    def section(self) -> dict[str, Any]:
        """Return what was sent, without what was left out."""
        return self.model_dump(exclude_unset=True, exclude_none=True)

    @property
    def required_secrets(self) -> list[str]:
        """Return the names of the secrets that the run needs."""
        found: list[str] = self.section.get("secrets", {}).get("required", [])
        return found

    @property
    def digest(self) -> str:
        """Return what tells two submissions apart."""
        text = json.dumps(self.section, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def submission_model(kind: RunKind) -> type[Submission]:
    """Return the model of the body that submits a run."""
    config = CONFIGS[kind]
    fields: dict[str, Any] = {}
    for name, field in config.model_fields.items():
        if name == "secrets":
            fields[name] = (Secrets | None, None)
        else:
            fields[f"{name}_config"] = (field.annotation, copy(field))
    return create_model(
        config.__name__.replace("Config", "Submission"), __base__=Submission, **fields
    )


def name_problems(submission: Submission) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with names in `env_config` and `secrets`, by field."""
    env: dict[str, str] = submission.section.get("env_config", {})
    for name, value in env.items():
        if not ENV_NAME.fullmatch(name):
            yield "env_config", "the name of a variable must be [A-Z_][A-Z0-9_]*"
        elif problem := reserved(name):
            yield f"env_config.{name}", problem
        if len(f"{name}={value}".encode()) > MAX_ENV_BYTES:
            yield "env_config", f"a value has more than {MAX_ENV_BYTES:,} bytes with its name"
    required = submission.required_secrets
    for number, name in enumerate(required):
        field = f"secrets.required.{number}"
        if not SECRET_NAME.fullmatch(name):
            yield field, "the name of a secret must be [A-Z][A-Z0-9_]*"
        elif problem := reserved(name):
            yield field, problem
        elif name in required[:number]:
            yield field, "is named twice"
        elif name in env:
            yield field, "is in env_config too; keep it in one of them"
