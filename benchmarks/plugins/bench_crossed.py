"""In a measured session: the calls of our functions, in every thread, and the values that we make.

A call is a frame that begins, of any function, method, lambda or generator expression whose globals
are those of a module of ours; what is generated for a dataclass or a named tuple belongs to the
module of the class. A coroutine or a generator is one call, however often it is resumed.
Comprehensions are none: they have no frames since Python 3.12.

A value is what a dataclass, a named tuple or a pydantic model of ours makes with its constructor,
or as pydantic makes it of a dict.
"""

from __future__ import annotations

import dataclasses
import dis
import json
import sys
import threading
from collections import Counter
from functools import cache
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from types import CodeType, FrameType

PACKAGES = ("osmosis_ai", "osmosis_cli", "osmosis_executors", "osmosis_platform", "pytest_osmosis")
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
CONSTRUCTORS = ("__init__", "__new__", "model_construct", "model_validate")
NAMED_TUPLE = "namedtuple_"
"""How the name of the module begins that a named tuple's constructor says it is of."""
RESUMABLE = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR

calls: list[tuple[str, CodeType]] = []
values: list[type] = []


def note(frame: FrameType, event: str, _: object) -> None:
    """Keep each call; an append is atomic, so that threads need no lock."""
    if event != "call" or frame.f_lasti >= first_yield(frame.f_code):
        return
    code, module = frame.f_code, frame.f_globals.get("__name__", "")
    is_constructor = code.co_name in CONSTRUCTORS or module.startswith(NAMED_TUPLE)
    if is_constructor and code.co_argcount:
        made = frame.f_locals[code.co_varnames[0]]
        kind = made if isinstance(made, type) else type(made)
        values.append(kind)
        module = kind.__module__ if module.startswith(NAMED_TUPLE) else module
    if is_ours(module) and code.co_name not in COMPREHENSIONS:
        calls.append((module, code))


@cache
def first_yield(code: CodeType) -> float:
    """Return the place from which on a frame is resumed; infinity where none is."""
    if code.co_flags & RESUMABLE and sys.version_info < (3, 11):
        return 0  # a frame that begins is at -1
    instructions = dis.get_instructions(code) if code.co_flags & RESUMABLE else ()
    places = (each.offset for each in instructions if "YIELD" in each.opname)
    return min(places, default=float("inf"))


def is_ours(module: str) -> bool:
    """Return whether a module is one of our packages'."""
    return module.partition(".")[0] in PACKAGES


def is_value(kind: type) -> bool:
    """Return whether a class of ours makes values."""
    fields = ("model_fields", "_fields")
    is_made = dataclasses.is_dataclass(kind) or any(hasattr(kind, name) for name in fields)
    return is_ours(kind.__module__) and is_made


def name_of(module: str, code: CodeType) -> str:
    """Return what tells functions of one module apart, generated ones too."""
    name = getattr(code, "co_qualname", code.co_name)
    return f"{module}:{name}:{code.co_firstlineno}:{','.join(code.co_varnames[:4])}"


def pytest_unconfigure() -> None:
    """Write how often each was called."""
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]
    functions = Counter(name_of(*call) for call in list(calls))
    made = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in values if is_value(kind))
    with open("bench_crossed.json", "w") as file:
        json.dump({"calls": functions, "values": made}, file)


threading.setprofile(note)
sys.setprofile(note)
