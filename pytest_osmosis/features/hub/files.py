"""Files of a dataset of the Hugging Face Hub, through `huggingface_hub`: its cache, its settings.

`hf://datasets/OWNER/NAME[@REVISION]/PATH-OR-GLOB`. What was read is named by its commit. Files of
one commit never change: a copy of them has the commit in its path. Several files are one, in the
order of their names.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from ...dataset.errors import DatasetError, Problems, quote
from ...dataset.formats import SUFFIXES, SUFFIXES_SHOWN
from ...dataset.opening import open_dataset
from ...escaping import counted
from ...storage.run_directory import make_private, with_mark
from . import SCHEME

if TYPE_CHECKING:
    from types import ModuleType

_FORM = "hf://datasets/OWNER/NAME[@REVISION]/PATH"
_URI = re.compile(
    r"hf:/{1,2}datasets/(?P<repo>[^/@]+/[^/@]+)(?:@(?P<revision>refs/[^/]+/[^/]+|[^/]+))?/(?P<path>.+)"
)
_GLOB = re.compile(r"[*?\[]")
_CONVERTED = {"~parquet": "refs/convert/parquet", "~duckdb": "refs/convert/duckdb"}
_SHOWN = 6
_COMMIT = 12
"""Characters of a commit that are shown."""


class Fetched(NamedTuple):
    """Rows of a dataset in a file of this machine."""

    text: str
    """As it was given."""
    path: str
    source: str
    """The same with the commit as the revision."""
    line: str
    """What the header says of it."""


def fetch(text: str, folder: Path) -> Fetched:
    """Return the file that a text names, copied below the folder, unless it is there.

    Raises:
        DatasetError: where there is none; what is wrong in one sentence.
    """
    found = _URI.fullmatch(text)
    if found is None:
        raise DatasetError(f"{quote(text)}: expected {_FORM}, such as hf://datasets/a/b/test.jsonl")
    text = text if text.startswith("hf://") else text.replace("hf:/", "hf://", 1)
    hub = _library(text)
    repo, pattern = found["repo"], unquote(found["path"])
    revision = unquote(found["revision"] or "main")
    revision = _CONVERTED.get(revision, revision)
    with _explained(hub, text, repo, revision):
        commit, names = _listed(hub, repo, revision)
        is_offline = commit is None
        if is_offline:
            commit, names = _cached(hub, text, repo, revision)
        wanted = _matching(text, pattern, names)
        at = str(commit) if is_offline else revision
        local = [_file(hub, repo, name, at, is_offline=is_offline) for name in wanted]
    if any(commit not in path.parts for path in local):
        raise DatasetError(f"{quote(text)}: {repo} has changed meanwhile; run it again")
    path = _in_folder(text, folder / repo / str(commit)[:_COMMIT], pattern, wanted, local)
    source = f"hf://datasets/{repo}@{commit}/{found['path']}"
    line = f"{text}: revision {str(commit)[:_COMMIT]}"
    if len(wanted) > 1:
        line += f", {len(wanted)} files: {_some(wanted)}"
    if is_offline:
        line += "; the hub is not asked, this is what the cache has"
    return Fetched(text, str(path), source, line)


def local_file(path: Path) -> Path:
    """Return the path of a file, fetched beside the cache of the library where it is of the hub.

    Raises:
        DatasetError: as `fetch`.
    """
    text = str(path)
    if not text.startswith("hf:"):
        return path
    _library(text)
    from huggingface_hub import constants

    return Path(fetch(text, Path(constants.HF_HOME) / "osmosis" / "hub").path)


def as_typed(path: Path) -> str:
    """Return a path as it was typed: two slashes of a URI are one to a path."""
    return re.sub(r"^hf:/(?!/)", SCHEME, str(path))


def _library(text: str) -> ModuleType:
    try:
        import huggingface_hub
    except ImportError:
        raise DatasetError(f"{quote(text)}: needs `pip install huggingface_hub`") from None
    return huggingface_hub


def _listed(hub: ModuleType, repo: str, revision: str) -> tuple[str | None, Sequence[str]]:
    """Return the commit of a revision and the names of its files; None where none is asked."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return None, ()
    try:
        info = hub.HfApi().dataset_info(repo, revision=revision, timeout=20)
    except Exception as error:
        if _is_unreachable(error):
            return None, ()
        raise
    return str(info.sha), [each.rfilename for each in info.siblings or ()]


def _cached(hub: ModuleType, text: str, repo: str, revision: str) -> tuple[str, Sequence[str]]:
    """Return the commit of a revision in the cache, and the names of its files there."""
    from huggingface_hub import constants

    try:
        repos = hub.scan_cache_dir(constants.HF_HUB_CACHE).repos
    except hub.CacheNotFound:
        repos = ()
    for each in repos:
        if (each.repo_type, each.repo_id) == ("dataset", repo):
            for found in each.revisions:
                if revision == found.commit_hash or revision in found.refs:
                    names = (one.file_path.relative_to(found.snapshot_path) for one in found.files)
                    return found.commit_hash, [name.as_posix() for name in names]
    raise DatasetError(
        f"{quote(text)}: {constants.ENDPOINT} is not reached, and the cache has no {revision!r} of "
        f"{repo}"
    )


def _matching(text: str, pattern: str, names: Sequence[str]) -> list[str]:
    """Return the files that a path or a pattern names, in the order of their names."""
    if _GLOB.search(pattern) is None or pattern in names:
        found = [name for name in names if name == pattern]
    else:
        found = [name for name in names if _fits(name.split("/"), pattern.split("/"))]
    found = [name for name in found if name.lower().removesuffix(".gz").endswith(SUFFIXES)]
    if found:
        return sorted(found, key=_natural)
    there = [name for name in names if name.lower().removesuffix(".gz").endswith(SUFFIXES)]
    what = f"no {SUFFIXES_SHOWN} file is named {pattern!r}" if there else f"no {SUFFIXES_SHOWN}"
    raise DatasetError(f"{quote(text)}: {what} there; files: {_some(there or names) or 'none'}")


def _fits(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a path is of a pattern, in which `**` stands for folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name)]


def _file(hub: ModuleType, repo: str, name: str, revision: str, *, is_offline: bool) -> Path:
    hub.utils.disable_progress_bars()
    return Path(
        hub.hf_hub_download(
            repo,
            name,
            repo_type="dataset",
            revision=revision,
            local_files_only=is_offline,
        )
    )


def _in_folder(
    text: str, folder: Path, pattern: str, names: Sequence[str], files: Sequence[Path]
) -> Path:
    """Return the one file that holds the rows of all, written unless it is there."""
    if len(files) == 1:
        target = folder / names[0]
    else:
        slug = re.sub(r"[^A-Za-z0-9_-]+", "-", pattern).strip("-")
        target = folder / f"{with_mark(slug, ' '.join(names))}.jsonl"
    if target.is_file():
        return target
    try:
        make_private(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent) as place:
            spare = Path(place, target.name)
            if len(files) == 1:
                shutil.copyfile(files[0], spare)
            else:
                with spare.open("wb") as file:
                    file.writelines(raw + b"\n" for raw in _rows(files))
            os.replace(spare, target)
    except OSError as error:
        raise DatasetError(f"{quote(text)}: cannot be copied to {quote(folder)}: {error}") from None
    return target


def _rows(files: Sequence[Path]) -> Iterator[bytes]:
    """Yield the rows of several files as JSON."""
    for path in files:
        file, kind = open_dataset(path)
        with file, closing(kind.open(file, path)) as source:
            problems = Problems(path, source.unit)
            for _, _, raw in source.scan(None, 0, None, problems):
                yield raw
            if (error := problems.error()) is not None:
                raise error


@contextmanager
def _explained(hub: ModuleType, text: str, repo: str, revision: str) -> Iterator[None]:
    """Turn what the library raises into a sentence, without its URLs."""
    from huggingface_hub import constants, errors

    shown = quote(text)
    try:
        yield
    except errors.GatedRepoError:
        raise DatasetError(
            f"{shown}: {repo} is gated: accept its terms on its page, and set HF_TOKEN"
        ) from None
    except errors.RepositoryNotFoundError:
        raise DatasetError(
            f"{shown}: there is no dataset {repo}, or it is private: then set HF_TOKEN to a token "
            "that may read it"
        ) from None
    except errors.RevisionNotFoundError:
        raise DatasetError(f"{shown}: {repo} has no revision {revision!r}") from None
    except errors.HFValidationError:
        raise DatasetError(f"{shown}: {repo!r} cannot be a dataset; expected {_FORM}") from None
    except errors.LocalEntryNotFoundError:
        raise DatasetError(
            f"{shown}: {constants.ENDPOINT} cannot be reached, and the cache does not have it"
        ) from None
    except errors.EntryNotFoundError:
        raise DatasetError(f"{shown}: no such file in {repo} at {revision!r}") from None
    except errors.HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "an error")
        hint = ": is HF_TOKEN right?" if status in (401, 403) else "; try again later"
        raise DatasetError(f"{shown}: {constants.ENDPOINT} answered {status}{hint}") from None


def _is_unreachable(error: Exception) -> bool:
    """Return whether a request got no answer, by either client that the library has had."""
    names = {each.__name__ for each in type(error).__mro__}
    return not hasattr(error, "server_message") and bool(
        names & {"ConnectionError", "TransportError", "Timeout", "OfflineModeIsEnabled"}
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_SHOWN])
    more = len(names) - _SHOWN
    return f"{shown} and {counted(more, 'other')}" if more > 0 else shown
