"""The archive: a manifest, the tables, then the files that these name.

manifest.json             versions, and whether the key is in it
database/<table>.jsonl    one row a line
files/datasets/…          the files of datasets
files/runs/<id>/…         journals and reports; neither outputs, work trees nor environments
files/secret.key          only when asked for

The tables come first: a file that they name and that was there is in the archive, and a journal may
have more than the tables, never less.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import stat
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any

from sqlalchemy import JSON, Column, Connection, MetaData, Table, func, insert, inspect, select
from sqlalchemy import text as sql

from ..database.connection import Database
from ..database.models import Base
from ..database.schema import NEWEST, prepare, revision, upgrade_within
from ..vault.cipher import FILE_NAME as KEY_FILE

FORMAT = 1
_OF_A_RUN = ("kept", "results", "build-output")
"""Not what its programs print, where secrets are masked only at their end: the log has it."""
_BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, KeyError, ValueError)
_BLOCK = 1024 * 1024
_MANIFEST, _DATABASE, _FILES = "manifest.json", "database", "files"


class BackupProblem(Exception):
    """What cannot be backed up or restored; a sentence."""


def write_backup(database: Database, data: Path, file: Path, *, with_key: bool) -> dict[str, Any]:
    """Write the archive; return its manifest.

    Raises:
        BackupProblem: where the file is there already, or the key is not in the folder.
        SchemaProblem: where the tables are a newer version's; an older one's are saved as they are.
        OSError: where it cannot be written.
    """
    if with_key and not (data / KEY_FILE).is_file():
        raise BackupProblem(f"{data} has no {KEY_FILE}: the key is in the environment, keep it")
    found = revision(database)
    if found is None or found >= NEWEST:
        prepare(database)
        found = NEWEST
    manifest = {
        "format": FORMAT,
        "revision": found,
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "has_key": with_key,
    }
    with _created(file) as target, tarfile.open(fileobj=target, mode="w:gz") as archive:
        _add(archive, _MANIFEST, json.dumps(manifest).encode())
        rows = 0
        for name, lines in dump(database):
            rows += _add_table(archive, f"{_DATABASE}/{name}.jsonl", lines)
        files = sum(_add_file(archive, place, found) for place, found in _files(data, with_key))
    return {**manifest, "rows": rows, "files": files}


def read_backup(database: Database, data: Path, file: Path) -> dict[str, Any]:
    """Restore an archive into an empty database and an empty folder; return its manifest.

    Raises:
        BackupProblem: where it is none, or where something is there already.
        OSError: where it cannot be read, or the files cannot be written.

    In each case what was made is removed.
    """
    if revision(database) is not None:
        raise BackupProblem("there is a platform already: restore into an empty place")
    try:
        with (
            gzip.open(file) as stream,
            tarfile.open(fileobj=stream, mode="r:") as archive,
            _removed_if_it_fails(data) as made,
            database.engine.connect().execution_options(osmosis_writes=True) as connection,
            connection.begin(),
        ):
            manifest = _restore(connection, data, archive, made)
            _check_end(stream)
            return manifest
    except _BROKEN as error:
        raise BackupProblem(f"{file} is no whole backup ({type(error).__name__})") from None


@contextmanager
def _removed_if_it_fails(data: Path) -> Iterator[list[Path]]:
    """Yield the list of the files that are made in a folder."""
    made: list[Path] = []
    try:
        yield made
    except BaseException:
        for path in made:
            path.unlink()
            for folder in path.parents:
                if folder == data or any(folder.iterdir()):
                    break
                folder.rmdir()
        raise


def _restore(
    connection: Connection, data: Path, archive: tarfile.TarFile, made: list[Path]
) -> dict[str, Any]:
    first = archive.next()
    if first is None or first.name != _MANIFEST:
        raise BackupProblem("this is no backup of a platform")
    manifest: dict[str, Any] = json.loads(_content(archive, first).read())
    if manifest["format"] != FORMAT or manifest["revision"] > NEWEST:
        raise BackupProblem("the backup is of a newer version of the platform; upgrade this one")
    upgrade_within(connection, manifest["revision"])
    rows = 0
    for member in archive:
        kind, _, place = member.name.partition("/")
        if kind == _DATABASE:
            name = PurePosixPath(place).stem
            rows += load(connection, name, _content(archive, member))
        elif kind == _FILES:
            _put(data, place, _content(archive, member), made)
    upgrade_within(connection)
    return {**manifest, "rows": rows, "files": len(made)}


def _check_end(stream: gzip.GzipFile) -> None:
    """Read what comes behind the last member; raise ValueError where it is not the end.

    tarfile takes a damaged header for the end. gzip compares its checksum when all was read.
    """
    while block := stream.read(_BLOCK):
        if block.strip(b"\0"):
            raise ValueError


@contextmanager
def _created(file: Path) -> Iterator[IO[bytes]]:
    """Create a file for its owner alone; it has its name once it is whole."""
    if file.exists():
        raise BackupProblem(f"{file} is there already")
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with open(handle, "wb") as target:
            yield target
            target.flush()
            os.fsync(target.fileno())
        os.link(name, file)
    except FileExistsError:
        raise BackupProblem(f"{file} is there already") from None
    finally:
        os.unlink(name)


def _files(data: Path, with_key: bool) -> Iterator[tuple[str, IO[bytes]]]:
    yield from _below(data, Path("datasets"))
    for folder in sorted(data.glob("runs/*")):
        for name in _OF_A_RUN:
            yield from _below(data, Path("runs") / folder.name / name)
    if with_key:
        yield from _below(data, Path(KEY_FILE))


def _below(data: Path, place: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the files at and below a place; what is removed meanwhile is left out.

    No link is followed: programs of users write there.
    """
    top = data / place
    if not top.is_dir():
        if found := _opened(str(top)):
            yield str(place), found
        return
    for folder, _, names, descriptor in os.fwalk(top):
        for name in sorted(names):
            if not name.startswith("incoming-") and (found := _opened(name, descriptor)):
                yield str(Path(folder).relative_to(data) / name), found


def _opened(name: str, descriptor: int | None = None) -> IO[bytes] | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        found = os.open(name, flags, dir_fd=descriptor)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(found).st_mode):
        return os.fdopen(found, "rb")
    os.close(found)
    return None


def _add_file(archive: tarfile.TarFile, place: str, found: IO[bytes]) -> int:
    with found:
        size = os.fstat(found.fileno()).st_size  # it may grow meanwhile
        archive.addfile(_member(f"{_FILES}/{place}", size), found)
    return 1


def _add_table(archive: tarfile.TarFile, name: str, lines: Iterator[bytes]) -> int:
    with tempfile.TemporaryFile() as spool:
        count = 0
        for line in lines:
            spool.write(line)
            count += 1
        size = spool.tell()
        spool.seek(0)
        archive.addfile(_member(name, size), spool)
    return count


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    archive.addfile(_member(name, len(content)), io.BytesIO(content))


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    found = archive.extractfile(member) if member.isreg() else None
    if found is None:
        raise BackupProblem("the archive holds something that is no file")
    return found


def _put(data: Path, place: str, content: IO[bytes], made: list[Path]) -> None:
    parts = PurePosixPath(place).parts
    if not parts or ".." in parts or PurePosixPath(place).is_absolute():
        raise BackupProblem("the archive holds a file that leads out of the folder")
    target = data.joinpath(*parts)
    for folder in reversed(target.parents):
        folder.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        handle = os.open(target, flags, 0o600)
    except FileExistsError:
        raise BackupProblem(f"{target} is there already: restore into an empty place") from None
    made.append(target)
    with open(handle, "wb") as file:
        while block := content.read(_BLOCK):
            file.write(block)


_ROWS_AT_ONCE = 20
_TIME, _BYTES, _JSON = "$time", "$bytes", "$json"


def dump(database: Database) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each table with its lines; all are of one moment.

    Those of an older version lack columns or tables; no version has dropped one.
    """
    # On SQLite a transaction that reads has one view anyway.
    options = {} if database.is_sqlite else {"isolation_level": "REPEATABLE READ"}
    with (
        database.engine.connect().execution_options(**options) as connection,
        connection.begin(),
    ):
        looked = inspect(connection)
        for table in Base.metadata.sorted_tables:
            if looked.has_table(table.name):
                there = {column["name"] for column in looked.get_columns(table.name)}
                yield table.name, _lines(connection, [c for c in table.columns if c.name in there])


def _lines(connection: Connection, columns: list[Column[Any]]) -> Iterator[bytes]:
    rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(*columns))
    for row in rows.mappings():
        found = {column.name: _encoded(column, row[column.name]) for column in columns}
        yield json.dumps(found).encode("ascii") + b"\n"


def load(connection: Connection, name: str, lines: Iterable[bytes]) -> int:
    """Add the rows of a table; return how many."""
    table = Table(name, MetaData(), autoload_with=connection)
    for column in table.columns:
        if isinstance(column.type, JSON):
            column.type = JSON(none_as_null=True)
    rows = ({key: _decoded(value) for key, value in json.loads(line).items()} for line in lines)
    count = 0
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        connection.execute(insert(table), some)
        count += len(some)
    _go_on_counting(connection, table)
    return count


def _go_on_counting(connection: Connection, table: Table) -> None:
    """Let PostgreSQL number the next row behind the last one; SQLite does by itself."""
    (key, *more) = table.primary_key.columns
    if more or connection.dialect.name != "postgresql" or key.type.python_type is not int:
        return
    last = connection.scalar(select(func.max(key)))
    if last is not None:
        numbering = "SELECT setval(pg_get_serial_sequence(:table, :key), :last)"
        connection.execute(sql(numbering), {"table": table.name, "key": key.name, "last": last})


def _encoded(column: Column[Any], value: Any) -> Any:
    if value is None:
        return None
    if isinstance(column.type, JSON):
        return {_JSON: value}
    if isinstance(value, datetime):
        return {_TIME: value.astimezone(timezone.utc).isoformat()}
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return value


def _decoded(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == _JSON:
        return content
    return datetime.fromisoformat(content) if kind == _TIME else base64.b64decode(content)
