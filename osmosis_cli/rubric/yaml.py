"""A YAML file to plain values, strictly, or one sentence naming file, line and cure.

A key given twice is an error, no tag makes an object, and aliases must not blow a small file up.
Knows nothing of what the file is about.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osmosis_ai.escaping import printable

MAX_BYTES = 1_000_000
MAX_NODES = 100_000
"""Values in a file, each alias counted as often as it is used."""


class YAMLFileError(Exception):
    """The file cannot be used; `str()` is the whole message."""


def load_yaml(path: Path) -> Any:
    """Return the file's document, of plain types only; raise YAMLFileError."""
    import yaml  # 25 ms: only for the two commands that read such files

    text = _text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _refuse_expansion(path, root)
        return yaml.load(text, Loader=_strict_loader())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise YAMLFileError(f"{path}:{line}: not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise YAMLFileError(f"{path}: not YAML: {printable(reason)}") from None
    except RecursionError:
        raise YAMLFileError(f"{path}: nested too deeply") from None


def _text(path: Path) -> str:
    if not path.exists():
        raise YAMLFileError(f"{path}: no such file (looked in {Path.cwd()})")
    if not path.is_file():
        what = "a directory" if path.is_dir() else "no regular file"
        raise YAMLFileError(f"{path}: is {what}; give a YAML file")
    try:
        raw = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise YAMLFileError(f"{path}: {reason}") from None
    if len(raw) > MAX_BYTES:
        raise YAMLFileError(f"{path}: is larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise YAMLFileError(
            f"{path}:{line}: is not UTF-8 (byte 0x{raw[error.start]:02x}): save it as UTF-8"
        ) from None


def _strict_loader() -> Any:
    import yaml

    class Strict(yaml.SafeLoader):
        """Refuses a key that is given twice, where YAML lets the last one win."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[Any] = set()
            for key_node, _ in node.value:
                key = key_node.value if isinstance(key_node.value, str) else None
                if key is not None and key != "<<" and key in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key!r} is given twice", key_node.start_mark
                    )
                seen.add(key)
            return super().construct_mapping(node, deep)

    return Strict


def _refuse_expansion(path: Path, root: Any) -> None:
    """Refuse a document whose aliases multiply, or hold themselves."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        known = sizes.get(id(node))
        if known is not None:
            return known
        sizes[id(node)] = MAX_NODES + 1  # met again below itself: without end
        below = node.value if isinstance(node.value, list) else []
        parts = [part for item in below for part in (item if isinstance(item, tuple) else (item,))]
        sizes[id(node)] = min(1 + sum(size(part) for part in parts), MAX_NODES + 1)
        return sizes[id(node)]

    if root is not None and size(root) > MAX_NODES:
        raise YAMLFileError(f"{path}: its aliases make more than {MAX_NODES} values of it")
