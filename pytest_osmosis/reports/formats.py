"""The table of reports: the option that asks for each, and the module that writes it.

A further format is a feature: a folder of `features/` with the report in its `__init__.py`, and a
module with `write(result, path, sections)`. Its checks and the option of `osmosis eval report` come
from the entry. Every pytest session imports this: it imports no other module of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from ..run_result import RolloutRecord, RunId
    from ..spec import SessionSpec
    from ..suite_results import EvalResult
    from .tables import Overview

Sections: TypeAlias = "Callable[[RunId], str | None]"
"""Returns what the item of a run printed; None where that is not known."""
Conversations: TypeAlias = "Callable[[RunId], RolloutRecord | None]"
"""Reads what was said in a run; None where that was not kept."""


def no_sections(run: RunId) -> None:
    """Know of no run what its item printed."""


Writer: TypeAlias = "Callable[[EvalResult, Path, Sections], None]"
"""Writes one file; OSError when it cannot be written."""


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A kind of file that a session can be asked for."""

    option: str
    """Without the prefix: `--osmosis-<option>`."""
    help: str
    module: str
    """The module of the plugin that writes it; imported when it writes."""
    title: str
    """What it is called where the file is named."""
    suffixes: tuple[str, ...] = ()
    """Endings that the file's name may have; empty: any."""
    needs_rows: bool = False
    """Whether it shows what the dataset holds of each row."""
    needs_conversations: bool = False
    """Whether it shows what was said in every run; its writer takes that as a fourth argument."""

    is_page: bool = False
    """Whether people read all runs in it: what the terminal leaves out is said to be there."""

    @property
    def flag(self) -> str:
        """The option as people write it."""
        return f"--osmosis-{self.option}"

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of its forms: the endings that its files may have, else its option."""
        return tuple(suffix.removeprefix(".") for suffix in self.suffixes) or (self.option,)

    def writer(self, conversations: Conversations | None) -> Writer:
        """Return what writes the file; `conversations`: None where they are not to be shown."""
        write = import_module(f"..{self.module}", __package__).write
        if self.needs_conversations:
            write = partial(write, conversations=conversations)
        return cast("Writer", write)


@dataclass(frozen=True, slots=True)
class SectionFormat:
    """A section of suites that a feature brings, in the JSON report and beside the others."""

    name: str
    """Of its field in the JSON report."""
    model: str
    """The module of the plugin with its pydantic model `Model`, and `read(saved, suite)`."""
    overview: str | None = None
    """The module with `overviews(result)`, which yields tables about several suites."""
    is_list: bool = False
    """Whether the field holds a list of the models: empty without the section, not null."""
    companions: tuple[str, str] | None = None
    """The field of the suites that accompany others, and in each that of the one's name."""

    @property
    def empty(self) -> Any:
        """The value of its field where a suite lacks the section."""
        return [] if self.is_list else None

    def load_model(self) -> Any:
        """Return the module of the model."""
        return import_module(f"..{self.model}", __package__)

    def load_overview(self) -> Callable[[EvalResult], Iterator[Overview]]:
        """Return what yields the tables about several suites."""
        module = import_module(f"..{self.overview}", __package__)
        return cast("Callable[[EvalResult], Iterator[Overview]]", module.overviews)


SECTIONS: list[SectionFormat] = []
"""The sections of suites; features add theirs by `features/table.py`."""


@dataclass(frozen=True, slots=True)
class ConfigField:
    """A field that a feature adds to what the JSON report says was asked."""

    name: str
    attribute: str
    """Of `SuiteInfo`, where its value is from and is read back to."""
    kind: Any
    default: Any
    """Of a report that lacks it."""
    description: str


CONFIG_FIELDS: list[ConfigField] = []
"""Those of all features, as the sections."""


def overviews(result: EvalResult) -> Iterator[Overview]:
    """Yield the tables about several suites, which features bring with their sections."""
    if len(result.with_companions) > 1:
        for each in SECTIONS:
            if each.overview is not None:
                yield from each.load_overview()(result)


def companion_fields() -> tuple[str, str]:
    """Return the field of the suites that accompany others, and in each that of the one's name."""
    found = (each.companions for each in SECTIONS)
    return next(filter(None, found), ("companions", "companion_of"))


REPORTS = [
    ReportFormat("output", "write the JSON report here", "reports.json_writer", "report"),
]
"""The JSON report; reports that are features are added by `features/table.py`."""


def format_named(form: str) -> ReportFormat:
    """Return the report that has a form of this name."""
    return next(each for each in REPORTS if form in each.forms)


def asked_reports(spec: SessionSpec) -> Iterator[tuple[ReportFormat, Path]]:
    """Return the reports that a session was asked for, and where each goes."""
    return ((each, spec.reports[each.option]) for each in REPORTS if each.option in spec.reports)
