"""The calls of the API about submitted runs: evaluations and training runs alike.

Answers are given as they came; `answers` makes values of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from .answers import RunRecord, run_record, tables_of
from .client import Listing, PlatformClient, cli_path, new_key
from .run_kinds import RunKind

LOG_PAGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Some lines of a log, as they came, and where it continues."""

    lines: tuple[Mapping[str, Any], ...]
    next_cursor: str | None


class Runs:
    """The runs of one kind at a platform. A run is found by its name or its id."""

    def __init__(self, client: PlatformClient, kind: RunKind) -> None:
        self._client = client
        self.kind = kind

    def submit(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Submit a run, once however often it is tried, and return what was made."""
        path = cli_path(self.kind.segment)
        return self._client.post(path, payload, idempotency_key=new_key(), subject="such workspace")

    def begin_import(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Announce an evaluation that ran here; the answer says where its file goes."""
        path = cli_path(self.kind.segment, "import")
        return self._client.post(path, payload, subject="such call")

    def newest(self, limit: int | None) -> Listing:
        """Return the newest ones, all of them for None."""
        name = f"{self.kind.key}s"
        return self._client.collect(cli_path(self.kind.segment), name, limit=limit)

    def detail(self, name: str) -> dict[str, Any]:
        """Return everything about a run."""
        answer = self._client.get(self._path(name), subject=self.kind.subject(name))
        if self.kind.key not in answer and not answer.keys() & {"id", "name"}:
            raise self._client.bad_answer(f"has no {self.kind.key!r}")
        return answer

    def metrics(self, name: str) -> dict[str, Any]:
        """Return its figures."""
        return self._client.get(self._path(name, "metrics"), subject=self.kind.subject(name))

    def stop(self, name: str) -> dict[str, Any]:
        """End a run, and return it."""
        subject = self.kind.subject(name)
        return self._client.post(
            self._path(name, "stop"), {}, idempotency_key=new_key(), subject=subject
        )

    def logs(
        self, name: str, cursor: str | None, *, limit: int = LOG_PAGE, backward: bool = False
    ) -> LogPage:
        """Return some lines of its log from a cursor on: the oldest first, or the newest."""
        direction = "backward" if backward else "forward"
        asked: dict[str, str | int] = {"limit": limit, "direction": direction}
        if cursor:
            asked["cursor"] = cursor
        subject = self.kind.subject(name)
        answer = self._client.get(self._path(name, "logs"), asked, subject=subject)
        following = answer.get("next_cursor")
        return LogPage(
            lines=tuple(tables_of(answer, "logs")),
            next_cursor=str(following) if isinstance(following, str | int) else None,
        )

    def report(self, name: str, file: IO[bytes]) -> int:
        """Write its JSON report into a file, and return the size."""
        return self._download(name, "report", file)

    def conversations(self, name: str, file: IO[bytes]) -> int:
        """Write its conversations into a file, a line of JSON each, and return the size."""
        return self._download(name, "conversations", file)

    def record(self, answer: Mapping[str, Any]) -> RunRecord:
        """Return the run that an answer tells of."""
        return run_record(answer, self.kind.key)

    def _download(self, name: str, part: str, file: IO[bytes]) -> int:
        subject = f"{part} of {self.kind.subject(name)}"
        return self._client.download(self._path(name, part), file, subject=subject)

    def _path(self, *segments: str) -> str:
        return cli_path(self.kind.segment, *segments)
