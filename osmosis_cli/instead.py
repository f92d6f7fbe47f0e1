"""Commands and options that only osmosis-ai has, and what takes their place here.

One table for the whole command, by the words before the one that is not there.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

_ASKS_NOTHING = "nothing is asked there, leave it out"
_SECRETS = "`osmosis secret set NAME` stores a value, and the config file names it in [secrets]"
_IN_THE_FILE = "it stands in the rubric file, beside the rubric"
_NO_TUNNEL = "a rollout runs in a process of this machine, and nothing else has to reach it"
_ONE_PREVIEW = "`osmosis preview FILE` shows a dataset, and checks it"
_JUDGE = dict.fromkeys(("--score-min", "--score-max", "--timeout"), _IN_THE_FILE) | {
    "--api-key": "the key stands in a variable of the environment, which the rubric file names"
}
INSTEAD: Mapping[str, Mapping[str, str]] = {
    "osmosis": {
        "auth": "`osmosis login`, `osmosis logout` and `osmosis whoami` are there, also behind "
        "`auth`",
        "quickstart": "`osmosis init` writes an evaluation that passes at once; `osmosis workspace "
        "init` and `osmosis rollout init NAME` make a workspace",
        "model": "a model is named where it is used: --model NAME, with --base-url for your own "
        "server",
        "benchmark": "`osmosis eval -d FILE` evaluates on any dataset",
        "dev": "`osmosis test -m FILE:AGENT -d FILE` tries an agent out",
        "upgrade": "`pip install --upgrade pytest-osmosis` installs the newest version",
        "deployment": "`osmosis serve` serves an agent",
        "version": "`osmosis --version` shows it",
    },
    "osmosis dataset": {
        "preview": _ONE_PREVIEW,
        "validate": _ONE_PREVIEW,
        "info": "`osmosis dataset list` shows the state of each",
        "logs": "`osmosis dataset list` shows the state of each",
        "download": "a platform gives no file back: it is the one that you uploaded",
        "delete": "the platform's page of a dataset deletes it",
    },
    "osmosis dataset upload": {
        "--overwrite": "a dataset stays as it was uploaded: give the file another name",
        "--yes": _ASKS_NOTHING,
        "-y": _ASKS_NOTHING,
    },
    "osmosis doctor": {"--fix": "`osmosis workspace init` makes the folders that are missing"},
    "osmosis eval download": {"--yes": _ASKS_NOTHING, "-y": _ASKS_NOTHING},
    "osmosis eval info": dict.fromkeys(
        ("-o", "--output"), "`osmosis eval download NAME` writes metrics.json"
    ),
    "osmosis eval logs": {"--cursor": "--lines N prints the last ones, and --follow goes on"},
    "osmosis eval rubric": _JUDGE,
    "osmosis eval-rubric": _JUDGE,
    "osmosis eval run": {
        "--tunnel": _NO_TUNNEL,
        "--advertise-url": _NO_TUNNEL,
        "--listener-port": _NO_TUNNEL,
        "--rollout-port": _NO_TUNNEL,
        "--verbose": "--debug prints more",
    },
    "osmosis eval submit": {"--secrets-file": _SECRETS},
    "osmosis rollout": {"list": "each folder in rollouts/ is one; `osmosis doctor` checks configs"},
    "osmosis rollout init": {"--force": "files that are there stay: remove the folder first"},
    "osmosis test": dict.fromkeys(
        ("-i", "--interactive"), "--row N --debug runs one row and prints each message"
    ),
    "osmosis train": {"download": "`osmosis train info NAME` shows the figures"},
    "osmosis train info": dict.fromkeys(("-o", "--output"), "--json prints the figures"),
    "osmosis train logs": {"--cursor": "--lines N prints the last ones, and --follow goes on"},
    "osmosis train submit": {"--secrets-file": _SECRETS},
}


def instead_of(context: click.Context | None, word: str) -> str | None:
    """Return what takes the place of a word of osmosis-ai behind this command, else None."""
    path = "" if context is None else context.command_path
    return INSTEAD.get(path, {}).get(word)
