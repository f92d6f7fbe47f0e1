"""The script of the process that runs tests against code; it needs the standard library alone.

The process itself runs the tests, and never a line of the code; a fork of it runs the code, and
never sees the tests. Tests call the code over two pipes. What comes back is plain data, or a handle
of an object that stays there, and which equals no plain value. So the code cannot end the tests,
change what they compare with, or read the marker: that is taken from standard input once the fork
and all that it has started are dead.

Standard input: a line with the length of a JSON object, the object, the marker. Standard output:
the marker where all tests held, else `{"reason": …}`.
"""

from __future__ import annotations

import builtins
import collections
import ctypes
import datetime
import decimal
import fractions
import importlib
import json
import linecache
import operator
import os
import resource
import select
import signal
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

MOST_BYTES = 64 << 20
"""Of one value that is passed."""
MEMORY_BYTES = 2 << 30
FILE_BYTES = 16 << 20
OPEN_FILES = 64
SHOWN = 200
_COROUTINE = 0x80
TESTS = "tests"
SOLUTION = "solution"
_PLAIN = frozenset((bool, int, float, str, type(None)))
_MUTABLE = (list, dict, set, bytearray)
_PARTS: dict[type, Callable[[Any], Any]] = {
    list: lambda value: (value,),
    tuple: lambda value: (list(value),),
    set: lambda value: (list(value),),
    frozenset: lambda value: (list(value),),
    dict: lambda value: ([*map(list, value.items())],),
    bytes: lambda value: (value.decode("latin-1"), "latin-1"),
    bytearray: lambda value: (value.decode("latin-1"), "latin-1"),
    complex: lambda value: (value.real, value.imag),
    range: lambda value: (value.start, value.stop, value.step),
    collections.deque: lambda value: (list(value), value.maxlen),
    collections.Counter: lambda value: (dict(value),),
    collections.OrderedDict: lambda value: ([*map(list, value.items())],),
    collections.defaultdict: lambda value: (None, dict(value)),
    fractions.Fraction: lambda value: (value.numerator, value.denominator),
    decimal.Decimal: lambda value: (str(value),),
    datetime.date: lambda value: (value.year, value.month, value.day),
    datetime.datetime: lambda value: (*value.timetuple()[:6], value.microsecond, value.tzinfo),
    datetime.timezone: lambda value: (value.utcoffset(None),),
    datetime.timedelta: lambda value: (value.days, value.seconds, value.microseconds),
}
"""Of what is passed as a value: the arguments that make it."""
_MAKERS = {kind.__name__: kind for kind in _PARTS}
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "call": lambda value, *args, **kwargs: value(*args, **kwargs),
    "get": getattr,
    "set": setattr,
    "bool": bool,
    "len": len,
    "iter": iter,
    "next": next,
    "str": str,
    "repr": repr,
    "hash": hash,
    "round": round,
    "int": int,
    "float": float,
    "index": operator.index,
    "isinstance": lambda kind, value: isinstance(value, kind),
    "exit": lambda value: value.__exit__(None, None, None),
    "enter": lambda value: value.__enter__(),
}
_BINARY = (
    "add", "and", "floordiv", "getitem", "lshift", "matmul", "mod", "mul", "or", "pow", "rshift",
    "sub", "truediv", "xor",
)  # fmt: skip
_COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
_FURTHER = ("abs", "delitem", "invert", "neg", "pos", "setitem")
_OPERATIONS |= {
    name: getattr(operator, f"__{name}__") for name in (*_BINARY, *_COMPARING, *_FURTHER)
}


class Ended(BaseException):
    """There will be no further answer of the code; no test can catch it as an Exception."""


# ---- what is passed


class Handle:
    """An object of the other process."""

    __slots__ = ("_channel", "_number")

    def __init__(self, channel: Channel, number: int) -> None:
        object.__setattr__(self, "_channel", channel)
        object.__setattr__(self, "_number", number)

    def __getattr__(self, name: str) -> Any:
        return _ask(self, "get", name)

    def __setattr__(self, name: str, value: Any) -> None:
        _ask(self, "set", name, value)

    def __exit__(self, *_: object) -> None:
        _ask(self, "exit")


def _ask(handle: Handle, operation: str, *args: Any, **kwargs: Any) -> Any:
    channel = object.__getattribute__(handle, "_channel")
    return channel.request(operation, handle, args, kwargs)


def _asking(operation: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: _ask(self, operation, *args, **kwargs)


def _swapped(operation: str) -> Callable[..., Any]:
    """Return what asks for `plain + handle`; the plain value stays on the left."""
    return lambda self, other: _ask(self, f"r{operation}", other)


def _comparing(operation: str) -> Callable[..., Any]:
    """Return a comparison of two objects of the code; one with a plain value is not its to make."""

    def compare(self: Handle, other: Any) -> Any:
        if type(other) is Handle:
            return _ask(self, operation, other)
        if operation in ("eq", "ne"):
            return operation == "ne"
        return NotImplemented

    return compare


_OPERATIONS |= {
    f"r{name}": lambda value, other, make=_OPERATIONS[name]: make(other, value)
    for name in _BINARY
    if name != "getitem"
}
for _name in ("call", "bool", "len", "iter", "next", "str", "repr", "hash", "round", "enter",
              "int", "float", "index"):  # fmt: skip
    setattr(Handle, f"__{_name}__", _asking(_name))
for _name in (*_BINARY, *_FURTHER):
    setattr(Handle, f"__{_name}__", _asking(_name))
for _name in _BINARY:
    if _name != "getitem":
        setattr(Handle, f"__r{_name}__", _swapped(_name))
for _name in _COMPARING:
    setattr(Handle, f"__{_name}__", _comparing(_name))
setattr(Handle, "__instancecheck__", _asking("isinstance"))  # noqa: B010


class Channel:
    """Asks the other process, and answers it meanwhile."""

    def __init__(self, read: int, write: int, *, is_of_code: bool, deadline: float = 0.0) -> None:
        self._read, self._write = read, write
        self._deadline = deadline
        self.is_of_code = is_of_code
        self.kept: list[Any] = []
        """What the other process has handles of."""
        self.ended: Ended | None = None
        """Why there is no further answer; a test may have caught it."""
        self.raised: dict[str, type[Exception]] = {}
        """Exceptions that the code defines, by name."""

    def request(self, operation: str, handle: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Return what an operation on an object of the other process gives, or raise its error."""
        self._send(operation, handle, list(args), kwargs or {})
        while True:
            kind, *rest = self.receive()
            if kind == "ok":
                result, changed = rest
                _take_over(args, changed or ())
                return result
            if kind == "error":
                error = self._error(*rest)
                raise self._end(error) if isinstance(error, Ended) else error
            self.answer(kind, *rest)

    def answer(self, operation: str, value: Any, args: Any, kwargs: Any) -> None:
        """Do what the other process asks for, and send it the result or the error."""
        try:
            self._may(operation, value, args)
            before = self._mutable(args)
            result = _OPERATIONS[operation](value, *args, **kwargs)
            changed = args if self._mutable(args) != before else None
            reply: tuple[Any, ...] = ("ok", result, changed)
        except Ended:
            raise
        except BaseException as error:  # noqa: BLE001  the other process raises it
            reply = _as_data(error)
        try:
            self._send(*reply)
        except (RecursionError, ValueError) as error:
            self._send(*_as_data(error))

    def _mutable(self, args: Any) -> str:
        return json.dumps([self.encode(arg) for arg in args if type(arg) in _MUTABLE])

    def _may(self, operation: str, value: Any, args: Any) -> None:
        """Refuse what would let the code reach into the process of the tests."""
        if self.is_of_code:
            return
        if not any(value is each for each in self.kept):
            raise AttributeError(f"{operation} is not for code")
        is_of_tests = type(value).__module__ == TESTS
        is_public = operation not in ("get", "set") or not str(args[0]).startswith("_")
        if is_of_tests and is_public and type(value) is not type:
            return
        if operation == "call" and callable(value) and not isinstance(value, types.ModuleType):
            return
        if operation in ("iter", "next") and hasattr(value, "__iter__"):
            return
        raise AttributeError(f"{operation} is not for code")

    def _end(self, error: Ended) -> Ended:
        self.ended = self.ended or error
        return error

    def _error(self, names: Any, own_name: Any, text: Any) -> BaseException:
        if own_name in self.raised:
            return self.raised[own_name](text)
        for name in names:
            kind = getattr(builtins, str(name), None)
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                continue
            if not issubclass(kind, Exception):
                return Ended(f"it raises {name}")
            try:
                return kind(text)
            except TypeError:  # UnicodeDecodeError takes five arguments
                continue
        return Ended("it ended with an error of no class")

    def _send(self, *message: Any) -> None:
        data = json.dumps([*map(self.encode, message)]).encode()
        if len(data) > MOST_BYTES:
            raise ValueError(f"a value of more than {MOST_BYTES >> 20} MiB")
        rest = memoryview(len(data).to_bytes(8, "big") + data)
        while rest:
            try:
                rest = rest[os.write(self._write, rest) :]
            except OSError:
                raise self._end(Ended("it ended before its tests did")) from None

    def receive(self) -> Any:
        """Return the next message, a list."""
        size = int.from_bytes(self._bytes(8), "big")
        if size > MOST_BYTES:
            raise self._end(Ended(f"it sent a value of more than {MOST_BYTES >> 20} MiB"))
        try:
            return [*map(self.decode, json.loads(self._bytes(size)))]
        except Exception:  # noqa: BLE001  whatever was sent in place of a value
            raise self._end(Ended("it sent what is no value")) from None

    def encode(self, value: Any) -> Any:
        """Return what JSON has for a value: a plain one, or `[kind, …]`."""
        kind: Any = type(value)
        if kind in _PLAIN:
            return value
        if kind in _PARTS:
            parts = _PARTS[kind](value)
            if kind is list:
                return ["list", [*map(self.encode, value)]]
            return [kind.__name__, *map(self.encode, parts)]
        if kind is Handle:
            return ["yours", object.__getattribute__(value, "_number")]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        if isinstance(value, type | types.BuiltinFunctionType):
            name: str = value.__name__
            if getattr(builtins, name, None) is value:
                return ["builtin", name]
        if kind.__module__ == "numpy" and hasattr(value, "tolist"):
            plain = self.encode(value.tolist())
            return ["array", plain, value.dtype.str] if isinstance(plain, list) else plain
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self.encode(tuple(value))
        self.kept.append(value)
        return ["mine", len(self.kept) - 1]

    def decode(self, data: Any) -> Any:
        """Return the value of what `encode` gives; nothing else of it is called."""
        if type(data) is not list:
            return data
        kind, first, *rest = data
        if kind == "list":
            return [*map(self.decode, first)]
        if kind in _MAKERS:
            return _MAKERS[kind](*map(self.decode, (first, *rest)))
        if kind == "mine":
            return Handle(self, int(first))
        if kind == "yours":
            return self.kept[first]
        if kind == "array":
            return importlib.import_module("numpy").array(self.decode(first), dtype=rest[0])
        if kind == "builtin":
            found = getattr(builtins, first)
            return found if self.is_of_code or isinstance(found, type) else None
        if kind == "module" and first.partition(".")[0] in (*sys.stdlib_module_names, "numpy"):
            return importlib.import_module(first)
        return None

    def _bytes(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            if self._deadline:
                left = self._deadline - time.monotonic()
                if left <= 0 or not select.select([self._read], [], [], left)[0]:
                    raise self._end(Ended("late"))
            piece = os.read(self._read, min(size - len(found), 1 << 20))
            if not piece:
                raise self._end(Ended("it ended before its tests did"))
            found += piece
        return bytes(found)


def _take_over(args: Any, changed: Any) -> None:
    """Change lists and their like as the other process has changed its copies."""
    for old, new in zip(args, changed, strict=False):
        if type(old) is not type(new) or type(old) not in _MUTABLE or old == new:
            continue
        if isinstance(old, list | bytearray):
            old[:] = new
        else:
            old.clear()
            old.update(new)


def _as_data(error: BaseException) -> tuple[Any, ...]:
    names = [kind.__name__ for kind in type(error).__mro__]
    try:
        text = str(error)[:SHOWN]
    except Exception:  # noqa: BLE001  its own `__str__`
        text = ""
    return "error", names, names[0], str.__str__(text)


# ---- the process of the code

_NO_PROCESS = (
    "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.exec", "os.startfile",
    "subprocess.Popen", "pty.spawn", "os.kill", "os.killpg", "signal.pthread_kill",
)  # fmt: skip
_CHANGES = (
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.chmod",
    "os.chown", "os.truncate", "os.utime", "shutil.rmtree", "shutil.move",
)  # fmt: skip
_NO_SYMBOL = (
    "open", "openat", "fopen", "fork", "vfork", "clone", "syscall", "execve", "system",
    "posix_spawn", "ptrace", "process_vm_readv", "process_vm_writev", "kill", "prctl",
)  # fmt: skip


def run_code(channel: Channel, folder: str, seconds: float) -> NoReturn:
    """Answer the tests until they have ended."""
    libc = ctypes.CDLL(None)
    if sys.platform == "linux":
        libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        libc.prctl(4, 1)  # PR_SET_DUMPABLE, for /proc/self
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        libc.capset(header, (ctypes.c_uint32 * 6)())  # not even as root: another's memory
    del libc
    os.setsid()
    _limit(seconds)
    _at_most(resource.RLIMIT_FSIZE, FILE_BYTES)
    _at_most(resource.RLIMIT_NOFILE, OPEN_FILES)
    module = types.ModuleType(SOLUTION)
    sys.modules[SOLUTION] = module
    channel.kept.append(_Code(module))
    sys.addaudithook(_guard(os.path.realpath(folder)))
    while True:
        channel.answer(*channel.receive())


class _Code:
    """What the tests ask first."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def run(self, text: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Return what the code defines, and its exceptions with the names of their bases."""
        linecache.cache[SOLUTION] = (len(text), None, text.splitlines(keepends=True), SOLUTION)
        names = vars(self._module)
        exec(compile(text, SOLUTION, "exec", dont_inherit=True), names)
        defined = {name: value for name, value in names.items() if not name.startswith("__")}
        errors = {
            name: [base.__name__ for base in value.__mro__]
            for name, value in defined.items()
            if isinstance(value, type)
            and issubclass(value, Exception)
            and value.__module__ == SOLUTION
        }
        return defined, errors


def _guard(folder: str) -> Callable[[str, tuple[Any, ...]], None]:
    """Return a hook that refuses further processes, and changes outside of the folder.

    That is against accidents: it is no sandbox.
    """
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

    def is_outside(path: Any) -> bool:
        try:
            real = os.path.realpath(os.fsdecode(path))
        except (TypeError, ValueError):
            return False  # a descriptor
        return real != "/dev/null" and not f"{real}/".startswith(f"{folder}/")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in _NO_PROCESS:
            raise PermissionError("code under test starts and ends no processes")
        if event == "open":
            path, _, flags = args
            is_of_others = str(path).startswith("/proc/") and not str(path).startswith("/proc/self")
            if is_of_others or (isinstance(flags, int) and flags & writing and is_outside(path)):
                raise PermissionError("code under test writes below its own folder alone")
        elif event in _CHANGES and any(is_outside(path) for path in args[:2] if path is not None):
            raise PermissionError("code under test writes below its own folder alone")
        elif event == "ctypes.dlsym" and args[1] in _NO_SYMBOL:
            raise PermissionError(f"code under test does not call {args[1]}")

    return hook


# ---- the process of the tests


def run_tests(channel: Channel, job: dict[str, Any]) -> None:
    """Run the code, then the tests; raise whatever keeps them from holding."""
    defined, errors = channel.request("get", Handle(channel, 0), ("run",))(job["code"])
    for name, bases in errors.items():
        known = (getattr(builtins, base, None) for base in bases)
        base = next(
            kind for kind in known if isinstance(kind, type) and issubclass(kind, Exception)
        )
        channel.raised[name] = defined[name] = type(name, (base,), {})
    code = compile(job["tests"], TESTS, "exec", dont_inherit=True)
    used = set(_names(code))
    own = {name for name in used & defined.keys() if not hasattr(builtins, name)}
    names: dict[str, Any] = {"__name__": TESTS}
    entry = job.get("entry_point")
    for name, value in defined.items():
        if not own or not hasattr(builtins, name) or name == entry:
            names[name] = value
    sys.modules[TESTS] = types.ModuleType(TESTS)
    sys.modules[SOLUTION] = solution = types.ModuleType(SOLUTION)
    vars(solution).update(defined)
    vars(sys.modules[TESTS]).update(names)
    names = vars(sys.modules[TESTS])
    linecache.cache[TESTS] = (1, None, job["tests"].splitlines(keepends=True), TESTS)
    before = dict(names)
    exec(code, names)
    made = {name: value for name, value in names.items() if value is not before.get(name)}
    if entry:
        if entry not in defined:
            raise Ended(f"it defines no {entry}")
        names["check"](defined[entry])
        return
    cases = sys.modules["unittest"].TestCase if "unittest" in sys.modules else ()
    for name, value in made.items():
        if isinstance(value, type) and issubclass(value, cases):
            _run_case(value)
        elif name.startswith("test") and isinstance(value, types.FunctionType):
            is_awaited = value.__code__.co_flags & _COROUTINE
            if not is_awaited and value.__code__.co_argcount == len(value.__defaults__ or ()):
                value()


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _run_case(case: Any) -> None:
    import unittest  # the tests have

    result = unittest.TestResult()
    result.failfast = True
    unittest.TestLoader().loadTestsFromTestCase(case).run(result)
    for test, text in [*result.errors, *result.failures]:
        raise AssertionError(f"{test}: {text.strip().splitlines()[-1]}")
    if result.unexpectedSuccesses or not result.testsRun:
        raise AssertionError(f"{case.__name__} has no test that ran")


def _limit(seconds: float) -> None:
    _at_most(resource.RLIMIT_CORE, 0)
    _at_most(resource.RLIMIT_CPU, int(seconds) + 2)
    if sys.platform == "linux":
        _at_most(resource.RLIMIT_AS, MEMORY_BYTES)


def _at_most(kind: int, limit: int) -> None:
    """Lower a limit; one that the session has, which may be lower, cannot be raised."""
    _, hard = resource.getrlimit(kind)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def _end_all(pid: int) -> None:
    """Kill the process of the code and whatever it has started, and wait until they are dead."""
    os.kill(pid, signal.SIGKILL)
    children = f"/proc/self/task/{os.getpid()}/children"
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
        if os.path.exists(children):
            with open(children) as file:
                for orphan in file.read().split():
                    os.kill(int(orphan), signal.SIGKILL)


def reason_of(error: BaseException, seconds: float) -> str:
    """Return why tests did not hold, with the line of the tests where that was."""
    if isinstance(error, Ended) and str(error) == "late":
        return f"did not end within {seconds:g} s"
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == TESTS and frame.line
    ]
    line = frames[-1].line if frames else ""
    where = f" in {line}" if line else ""
    if isinstance(error, Ended):
        return f"{error}{where}"
    text = str(error)
    if isinstance(error, AssertionError):
        return ": ".join(filter(None, ("fails", line, text)))
    return f"{type(error).__name__}: {text}{where}"


def _read(descriptor: int, size: int) -> bytes:
    found = b""
    while len(found) < size and (piece := os.read(descriptor, size - len(found))):
        found += piece
    return found


def _job(given: int) -> dict[str, Any]:
    """Return the job; what follows it is not read yet."""
    size = b""
    while not size.endswith(b"\n"):
        size += _read(given, 1) or b"\n"
    job: dict[str, Any] = json.loads(_read(given, int(size)))
    return job


def main() -> None:
    """Fork, read the job, run it, and write the marker or a reason."""
    given, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    sys.dont_write_bytecode = True
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    folder, seconds = sys.argv[1], float(sys.argv[2])
    if sys.platform == "linux":
        libc = ctypes.CDLL(None)
        libc.prctl(4, 0)  # PR_SET_DUMPABLE: closed to other processes
        libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: orphans of the code come here
    (code_reads, to_code), (tests_read, to_tests) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        for descriptor in (given, out, to_code, tests_read):
            os.close(descriptor)
        try:
            run_code(Channel(code_reads, to_tests, is_of_code=True), folder, seconds)
        finally:
            os._exit(0)
    os.close(code_reads)
    os.close(to_tests)
    job = _job(given)
    _limit(seconds)
    reason = None
    try:
        deadline = time.monotonic() + seconds
        channel = Channel(tests_read, to_code, is_of_code=False, deadline=deadline)
        run_tests(channel, job)
        reason = channel.ended and reason_of(channel.ended, seconds)
    except BaseException as error:  # noqa: BLE001  what ended the tests is what there is to say
        reason = reason_of(error, seconds)
    _end_all(pid)
    if reason is None:
        os.write(out, _read(given, 64))
    else:
        os.write(out, json.dumps({"reason": reason}).encode())


if __name__ == "__main__":
    main()
