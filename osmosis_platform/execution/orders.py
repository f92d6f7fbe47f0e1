"""What the child processes of a run are: their words and their environment. Pure."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmosis_ai.platform.workspace import ROLLOUTS
from osmosis_ai.secret import Secret
from osmosis_ai.secret_variables import SECRET_NAMES
from osmosis_executors.job import PYTEST
from pytest_osmosis.features.config_files.config_options import EVALUATION

from .run_folder import RunFolder

SAMPLE = "10%"
"""What is drawn of the rows where a run sets no limit; at least one."""
QUESTION = ("-p", "osmosis_executors.question")
_SEED_DIGITS = 8
_PASSED_ON = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    *(name for each in ("http_proxy", "https_proxy", "no_proxy") for name in (each, each.upper())),
)
"""Of the platform's own environment: what a program needs to reach other machines."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows a run evaluates."""

    limit: int | None
    """The first so many; None: a random sample."""
    seed: int
    """Of the sample."""

    @classmethod
    def of_run(cls, run_id: str, submission: Mapping[str, Any]) -> Rows:
        """Return the rows of a run; its id is the seed, so that each attempt has the same."""
        limit = submission.get("evaluation_config", {}).get("limit")
        return cls(limit, int(run_id[:_SEED_DIGITS], 16))

    @property
    def words(self) -> list[str]:
        """The options of pytest that pick them."""
        if self.limit is not None:
            return [f"--osmosis-limit={self.limit}"]
        return [f"--osmosis-sample={SAMPLE}", f"--osmosis-sample-seed={self.seed}"]

    @property
    def facts(self) -> dict[str, Any]:
        """What is recorded of them."""
        if self.limit is not None:
            return {"limit": self.limit}
        return {"sample": SAMPLE, "sample_seed": self.seed}


def evaluation_words(
    submission: Mapping[str, Any],
    rows: Rows,
    run_folder: RunFolder,
    dataset: Path,
    *,
    resumes: bool,
    asks: bool = False,
    python: Path = Path(sys.executable),
) -> list[str]:
    """Return the command that evaluates a submission in its folder, with this interpreter.

    With `asks`, the model is asked one question first.
    """
    experiment = submission["experiment_config"]
    given = submission.get("evaluation_config", {})
    return [
        *(str(python), *PYTEST, "-p", "no:cacheprovider", "--color=no"),
        *(QUESTION if asks else ()),
        "--osmosis-only",
        f"--osmosis-agent={ROLLOUTS}/{experiment['rollout']}/{experiment['entrypoint']}",
        f"--osmosis-model={experiment['model_path']}",
        f"--osmosis-data={dataset}",
        *rows.words,
        *(
            f"--osmosis-{name}={value}"
            for key, name in EVALUATION.items()
            if key in given and key != "limit"
            for value in (given[key] if isinstance(given[key], list) else [given[key]])
        ),
        f"--osmosis-output={run_folder.report}",
        f"--osmosis-run-dir={run_folder.journal_dir}",
        *(["--osmosis-extend"] if resumes else []),
    ]


def child_environment(
    run_folder: RunFolder,
    env: Mapping[str, str],
    secrets: Sequence[Secret],
    own: Mapping[str, str] = os.environ,
    python: Path = Path(sys.executable),
) -> dict[str, str]:
    """Return the whole environment of a child: nothing of the platform's but how to get out."""
    programs = [str(python.parent), own.get("PATH", os.defpath)]
    return {
        **{name: own[name] for name in _PASSED_ON if name in own},
        "PATH": os.pathsep.join(programs),
        "HOME": str(run_folder.home),
        "TMPDIR": str(run_folder.temporary),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",  # environments are read-only, for root too
        **env,
        **dict(_values(secrets)),
        SECRET_NAMES: " ".join(secret.name for secret in secrets),
    }


def _values(secrets: Sequence[Secret]) -> Iterator[tuple[str, str]]:
    for secret in secrets:
        yield secret.name, secret.reveal()
