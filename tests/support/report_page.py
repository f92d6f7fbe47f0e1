"""What an HTML report holds: its elements, its text, and what is compressed in it."""

from __future__ import annotations

import base64
import json
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any


class ReportPage(HTMLParser):
    """A page, read as a browser would."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.islands: dict[str, str] = {}
        """The text of each element of its own with an id, such as the compressed data."""
        self._inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.islands[self._inside] = data
        else:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(found == tag for found, _ in self.elements)

    @property
    def suites(self) -> list[dict[str, Any]]:
        """The suites with their rows and runs, each with the place of its conversation."""
        suites = json.loads(_inflated(self.islands["data"]))
        places = iter(json.loads(_inflated(self.islands["places"])))
        for run in (run for suite in suites for row in suite["rows"] for run in row["runs"]):
            run["at"] = next(places)
        return suites

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs of all rows."""
        return [run for suite in self.suites for row in suite["rows"] for run in row["runs"]]

    @property
    def conversations(self) -> list[list[dict[str, Any]]]:
        """What was said, by part and place."""
        return [
            json.loads(_inflated(part)) for part in self.islands.get("conversations", "").split()
        ]

    def read(self, row: int, run: int) -> dict[str, Any]:
        """What was said in a run of the first suite."""
        place = next(r for r in self.runs if (r["row_index"], r["run_index"]) == (row, run))["at"]
        return self.conversations[place[0]][place[1]]

    @property
    def everything(self) -> str:
        """All texts of the page, in the open and compressed."""
        texts = [self.text, *_texts(self.suites), *_texts(self.conversations)]
        return "\n".join(texts)


def _inflated(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode("ascii")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, each in value.items() for text in [name, *_texts(each)]]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def page_of(path: Path) -> ReportPage:
    """Read a page from its file."""
    return ReportPage(path.read_text("utf-8"))


def text_of(path: Path) -> str:
    """Return what a report holds as text, whatever it is: of an HTML report all that is in it."""
    return page_of(path).everything if path.suffix == ".html" else path.read_text("utf-8")
