"""`module:attribute` or `path/to/file.py:attribute` to the object that it names.

Knows sys.path, files and modules; does not know what the object is for.
"""

from __future__ import annotations

import abc
import contextlib
import importlib
import importlib.util
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from importlib.machinery import PathFinder
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from ..escaping import escape_control_chars

DEADLINE_S = 60.0
GRACE_S = 10.0
OPTION = "--osmosis-import-timeout"
_limit: ContextVar[tuple[float, str]] = ContextVar("osmosis_import_limit", default=(DEADLINE_S, ""))
"""The deadline of a session or a command, and the option that gives it, where there is one."""
IMPORT_SYSTEM = "<frozen importlib._bootstrap>"
"""An exception that a handler raises there may leave the lock of all imports held for good."""
AGAIN_S = 0.01
"""After which a handler that was called there is called again."""
_USAGE = 4
_FILES = threading.RLock()
"""Held while a file is imported under a name of ours: nothing else imports that name."""


@contextlib.contextmanager
def imports_within(seconds: float, option: str = OPTION) -> Iterator[None]:
    """Give each import in the block so many seconds, as the option says; 0: all it takes."""
    token = _limit.set((seconds, option))
    try:
        yield
    finally:
        _limit.reset(token)


def load_object(spec: str, *, option: str, roots: Sequence[Path]) -> Any:
    """The object that `spec` names; `roots` are put in front of sys.path, once each, and stay."""
    prefix = f"{option} {spec!r}"
    _, attribute = _split(spec, prefix)
    module = load_module(spec, option=option, roots=roots)
    return _attribute(module, attribute, prefix)


def load_module(
    spec: str,
    *,
    option: str,
    roots: Sequence[Path],
    prefix: str | None = None,
) -> ModuleType:
    """The module in which `spec` names an object, or that of a .py file; `roots` as above.

    Messages begin with `prefix`; by default they name the option and `spec`.
    """
    prefix = prefix or f"{option} {spec!r}"
    source = spec.strip() if names_file_alone(spec) else _split(spec, prefix)[0]
    for root in reversed(roots):
        put_on_path(root)
    name, file, shown, wanted = source, None, source, None
    if source.endswith(".py"):
        wanted = _found_file(source, roots, prefix)
        name, file = _name_of(wanted)
        shown = Path(source).name
    module = _imported(name, file, shown, prefix=prefix, roots=roots)
    _refuse_namesake(module, name, wanted, prefix=prefix, roots=roots)
    return module


def _refuse_namesake(
    module: ModuleType, name: str, wanted: Path | None, *, prefix: str, roots: Sequence[Path]
) -> None:
    """Raise ImportingError where another file's module had the name before."""
    if wanted is None:
        name = name.partition(".")[0]
        from osmosis_ai.loaded_modules import loaded_module  # only where one is loaded already

        module = loaded_module(name) or module
        found = PathFinder.find_spec(name, [str(root) for root in roots])
        wanted = None if found is None or found.origin is None else Path(found.origin)
    loaded = getattr(module, "__file__", None)
    if wanted is None or loaded is None or wanted.resolve() == Path(loaded).resolve():
        return
    raise ImportingError(
        f"{prefix}: {wanted} is meant, but another module {name!r} was imported before, from "
        f"{loaded}; rename one, or name the file by its path (path/to/file.py:attribute)"
    )


def names_file_alone(spec: str) -> bool:
    """Whether `spec` is the path of a .py file, without an attribute."""
    return spec.strip().endswith(".py")


def put_on_path(folder: Path) -> None:
    """Make a folder the first place where modules are looked for."""
    entry = str(folder.resolve())
    if sys.path[:1] != [entry]:
        with_entry = [path for path in sys.path if path != entry]
        sys.path[:] = [entry, *with_entry]


def _import(name: str, file: Path | None) -> ModuleType:
    """Import a module by its name, or a file under a name that no other module has."""
    if file is None:
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    with _FILES:
        if name in sys.modules:
            return sys.modules[name]
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        return module


def _split(spec: str, prefix: str) -> tuple[str, str]:
    source, colon, attribute = spec.strip().rpartition(":")
    names = attribute.split(".")
    if not (colon and source and ":" not in source and all(name.isidentifier() for name in names)):
        called, bracket, given = attribute.partition("(")
        if bracket and given != ")" and "agent" in prefix:
            raise ImportingError(
                f"{prefix}: a function that makes an agent is called without arguments: write "
                f"{source}:{called}()"
            )
        source = spec.strip() if spec.strip().endswith(".py") else "server"
        raise ImportingError(f"{prefix}: expected module:attribute, such as {source}:agent_loop")
    if not source.endswith(".py") and not all(part.isidentifier() for part in source.split(".")):
        raise ImportingError(
            f"{prefix}: {source!r} is neither a module's name nor a .py file; "
            "expected module:attribute or path/to/file.py:attribute"
        )
    return source, attribute


def _found_file(source: str, roots: Sequence[Path], prefix: str) -> Path:
    for folder in (Path.cwd(), *roots):
        file = folder / source
        if file.is_file():
            return file.resolve()
    searched = ", ".join(dict.fromkeys(str(folder) for folder in (Path.cwd(), *roots)))
    near = closest(Path(source).name, _siblings(Path(source).parent, Path.cwd()))
    raise ImportingError(f"{prefix}: no file {source!r} (looked in {searched}).{near}")


def _siblings(parent: Path, folder: Path) -> list[str]:
    return [file.name for file in (folder / parent).glob("*.py")]


def _name_of(file: Path) -> tuple[str, Path | None]:
    """By its own name where that finds this file, so that it pickles; else by a name of its own."""
    top, name = file.parent, file.stem
    while (top / "__init__.py").is_file():
        top, name = top.parent, f"{top.name}.{name}"
    put_on_path(top)
    if _finds(name, file):
        return name, None
    import hashlib

    mark = hashlib.sha256(str(file).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return f"{file.stem}_{mark}", file


def _finds(name: str, file: Path) -> bool:
    loaded = sys.modules.get(name)
    if loaded is not None:
        origin = getattr(loaded, "__file__", None)
    elif "." in name:
        return True  # a look for it would import its package; the import itself will tell
    else:
        importlib.invalidate_caches()
        try:
            found = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return False
        origin = found.origin if found is not None else None
    return origin is not None and Path(origin).resolve() == file


def _imported(
    name: str,
    file: Path | None,
    shown: str,
    *,
    prefix: str,
    roots: Sequence[Path],
) -> ModuleType:
    try:
        with watched(prefix, shown, _limit.get()[0]):
            return _import(name, file)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except ImportDeadline as error:
        raise ImportingError(str(error)) from None
    except ModuleNotFoundError as error:
        message = f"{prefix}: {_not_found(error, name, shown, roots)}"
        raise MissingModuleError(message, error.name or "") from None
    except SystemExit as error:
        called = f"{shown!r} called sys.exit({error.code!r}) while it was imported"
        message = f"{called}\n{user_traceback(error)}"
    except BaseException as error:  # noqa: BLE001 - what the user's module raises is the message
        message = f"{shown!r} cannot be imported\n{user_traceback(error)}"
    finally:
        _STREAMS.update({id(stream): stream for stream in (sys.stdout, sys.stderr)})
    raise ImportingError(f"{prefix}: {message}") from None


class ImportDeadline(Exception):
    """The watched code was not done in time; `stack` is where it was, and `str()` says all."""

    def __init__(self, message: str, stack: list[traceback.FrameSummary]) -> None:
        super().__init__(message)
        self.stack = stack


@contextlib.contextmanager
def watched(
    prefix: str, module: str, deadline_s: float = DEADLINE_S, grace_s: float = GRACE_S
) -> Iterator[None]:
    """Raise ImportDeadline in the calling thread when the block takes longer than the deadline.

    A deadline of 0 is none. `prefix` is what the message begins with.
    """
    watch = _Watch(prefix, module, deadline_s, grace_s)
    watch.start()
    try:
        yield
        watch.finish()  # an interrupt that comes at the last moment arrives here
    except KeyboardInterrupt:
        if not watch.expired:
            raise
        raise ImportDeadline(watch.message, watch.stack) from None
    finally:
        watch.finish()


class _Watch(threading.Thread):
    """Notes where the import hangs when time is up, and interrupts the main thread as Ctrl-C does.

    Whatever a session does at Ctrl-C: its handler is in force again once the import is over. Code
    that does not react even then ends the process, with the message on stderr and the status of a
    usage error.
    """

    def __init__(self, prefix: str, module: str, deadline_s: float, grace_s: float) -> None:
        # Not in the thread: what is watched may hold the locks of imports.
        from osmosis_ai.running.loop_thread import frame_of

        super().__init__(name=f"osmosis-import-{module}", daemon=True)
        self._frame_of = frame_of
        self.expired = False
        self.message = ""
        self.stack: list[traceback.FrameSummary] = []
        self._prefix, self._module = prefix, module
        self._deadline_s, self._grace_s = deadline_s, grace_s
        option = _limit.get()[1]
        self._hint = f" ({option} gives it more, 0 all it takes)" if option else ""
        self._watched = threading.get_ident()
        self._is_main = threading.current_thread() is threading.main_thread()
        self._before: Any = None
        """The handler of SIGINT until the import is over."""
        self._done = threading.Event()
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        if not self._deadline_s:
            return
        if self._is_main:
            self._before = signal.signal(signal.SIGINT, self._on_sigint)
        super().start()

    def finish(self) -> None:
        with self._one_at_a_time:
            self._done.set()
        if self._before is not None and signal.getsignal(signal.SIGINT) == self._on_sigint:
            signal.signal(signal.SIGINT, self._before)
        self._before = None

    def run(self) -> None:
        if self._done.wait(min(self._deadline_s, threading.TIMEOUT_MAX)):
            return
        with self._one_at_a_time:
            if self._done.is_set():
                return
            frame = self._frame_of(self._watched)
            self.stack = list(traceback.extract_stack(frame))
            self.message = self._say(_without_libraries(user_frames(self.stack)))
            self.expired = True
            self._interrupt()
        if not self._done.wait(self._grace_s):
            os.write(2, f"ERROR: {self.message}\n".encode("utf-8", "backslashreplace"))
            os._exit(_USAGE)

    def _say(self, frames: list[traceback.FrameSummary]) -> str:
        where = "".join(traceback.format_list(frames)).rstrip()
        return (
            f"{self._prefix}: the import of {self._module!r} was not done after "
            f"{self._deadline_s:g} s{self._hint}; it was at:\n{where}"
        )

    def _interrupt(self) -> None:
        if self._is_main:
            signal.pthread_kill(self._watched, signal.SIGINT)

    def _interrupt_again(self) -> None:
        with self._one_at_a_time:
            if not self._done.is_set():
                self._interrupt()

    def _on_sigint(self, number: int, frame: FrameType | None) -> None:
        """Raise the interrupt of the deadline; leave every other to the handler before."""
        if not self.expired:
            if callable(self._before):
                self._before(number, frame)
        elif frame is not None and frame.f_code.co_filename == IMPORT_SYSTEM:
            again = threading.Timer(AGAIN_S, self._interrupt_again)
            again.daemon = True
            again.start()
        else:
            raise KeyboardInterrupt


def _without_libraries(frames: list[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """Return the frames up to the last that is of no library, where there is one."""
    import sysconfig  # only where an import hangs

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    libraries = tuple(os.path.join(sysconfig.get_path(name), "") for name in names)
    own = [at for at, each in enumerate(frames, 1) if not each.filename.startswith(libraries)]
    return frames[: own[-1]] if own else frames


def _not_found(error: ModuleNotFoundError, name: str, shown: str, roots: Sequence[Path]) -> str:
    missing = error.name or ""
    if missing == name or name.startswith(f"{missing}."):
        searched = ", ".join(dict.fromkeys(str(root) for root in roots)) or sys.path[0]
        names = {file.stem for root in roots for file in root.glob("*.py")}
        names |= {folder.parent.name for root in roots for folder in root.glob("*/__init__.py")}
        return f"no module {missing!r} (searched {searched} and sys.path).{closest(missing, names)}"
    frames = user_frames(traceback.extract_tb(error.__traceback__))
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    own = str(error).removeprefix(f"No module named {missing!r}")
    if own.strip(". ") and not own.startswith("; "):  # Python's: that something is no package
        return f"{shown!r} imports {missing!r}, which is missing{where}: {_safe(own.strip('. '))}"
    return f"{shown!r} imports {missing!r}, which is missing{where}; install it or correct the name"


def _attribute(module: ModuleType, attribute: str, prefix: str) -> Any:
    value: Any = module
    path = f"module {module.__name__!r}"
    for name in attribute.split("."):
        try:
            value = getattr(value, name)
        except AttributeError:
            names = [other for other in dir(value) if not other.startswith("_")]
            raise ImportingError(
                f"{prefix}: {path} has no {name!r}.{closest(name, names)}"
            ) from None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - of the user's `__getattr__`
            message = f"{prefix}: {path} gives no {name!r}\n{user_traceback(error)}"
            raise ImportingError(message) from None
        path = f"{name!r}"
    return value


_STREAMS: dict[int, Any] = {}
"""What imports have left as `sys.stdout` and `sys.stderr`, kept.

A module that sets `io.TextIOWrapper(sys.stdout.buffer, "utf-8")` there has a stream that closes
pytest's own once pytest puts another in its place and nothing refers to it any more.
"""
_OUR_FOLDER = str(Path(__file__).parents[1]) + os.sep
_SDK_FOLDER = str(Path(__file__).parents[2] / "osmosis_ai") + os.sep
_LINES_SHOWN = 60
_TRACEBACK = "Traceback (most recent call last):\n"
FrameFilter = Callable[[Iterable[traceback.FrameSummary]], list[traceback.FrameSummary]]


class ImportingError(Exception):
    """What was named cannot be imported or used; `str()` is the whole message."""


class MissingModuleError(ImportingError):
    """A module that is imported is not there."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name
        """Of the missing module, with its package."""


def closest(name: str, names: Iterable[str]) -> str:
    """A ` Did you mean …?` for a name that is not among `names`, or nothing."""
    from difflib import get_close_matches  # only for a mistake

    public = [other for other in names if not other.startswith("__")]
    matches = get_close_matches(name, public, n=2, cutoff=0.5)  # `agnet` is meant for `agent_loop`
    return f" Did you mean {' or '.join(map(repr, matches))}?" if matches else ""


def kind_of(value: object) -> str:
    """What a value is, for a message: `the class Loop`, `the function run`, `an int`."""
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if inspect.isfunction(value):
        return f"the function {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def user_traceback(error: BaseException) -> str:
    """The traceback of an error and its causes: the user's frames alone, at most 60 lines.

    Variables that are named like keys are masked, control characters escaped.
    """
    return _safe(filtered_traceback(error, user_frames, most=_LINES_SHOWN))


def _safe(text: str) -> str:
    from osmosis_ai.secret_variables import masking  # only for a mistake

    return escape_control_chars(masking()(text))


def filtered_traceback(error: BaseException, frames: FrameFilter, *, most: int) -> str:
    """The traceback of an error and its causes: some frames, at most so many lines."""
    try:
        shown = _with_causes(error, frames)
    except (Exception, SystemExit):  # noqa: BLE001 - the error's own code, or odd attributes of it
        from osmosis_ai.error_text import named_error  # only for this

        stack = frames(traceback.extract_tb(error.__traceback__, limit=-60))
        named = named_error(error)
        shown = "".join([_TRACEBACK, *traceback.StackSummary.from_list(stack).format(), named])
    lines = shown.rstrip().splitlines()
    if len(lines) > most:
        lines = [*lines[:15], "  ...", *lines[16 - most :]]
    return "\n".join(lines)


def _with_causes(error: BaseException, frames: FrameFilter) -> str:
    shown = traceback.TracebackException.from_exception(error, limit=-60, compact=True)
    seen: traceback.TracebackException | None = shown
    while seen is not None:
        seen.stack = traceback.StackSummary.from_list(frames(seen.stack))
        seen = seen.__cause__ or seen.__context__
    return "".join(shown.format())


def user_frames(frames: Iterable[traceback.FrameSummary]) -> list[traceback.FrameSummary]:
    """The frames below ours, without those of the SDK and of the import system."""
    kept: list[traceback.FrameSummary] = []
    for frame in frames:
        if frame.filename.startswith(_OUR_FOLDER):
            kept.clear()
        elif not frame.filename.startswith(_SDK_FOLDER) and not _is_machinery(frame.filename):
            kept.append(frame)
    return kept


def _is_machinery(filename: str) -> bool:
    return (
        filename.startswith("<frozen ")
        or filename in (importlib.__file__, abc.__file__)
        or filename.endswith("/_pytest/assertion/rewrite.py")
    )
