"""Code of a model that is run against tests: what passes, and what only seems to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from osmosis_ai import code_tests
from osmosis_ai.scorers import code

ADD = ["assert add(1, 2) == 3", "assert add(-1, 1) == 0"]
CHECK = "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n"
CASE = "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        "
DOUBLE = 'def double(x):\n    """Return twice x."""\n'


def run(program: str, tests: Any, **row: Any) -> str:
    """Return the reason, or "passed"."""
    verdict = code(timeout=20)(program, None, {"test": tests, "user_prompt": DOUBLE, **row})
    assert verdict["score"] == (0 if "reason" in verdict else 1)
    return verdict.get("reason", "passed")


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("def add(a, b):\n    return a + b", ADD),
        ("```python\n1 / 0\n```\n\n```py\ndef add(a, b): return a + b\n```\n```sh\nls\n```", ADD),
        ("```python\ndef add(a, b): return a + b\n```\nUsage:\n```python\nprint(add(1, 2))\n```\n"
         "gives\n```\n3\n```", ADD),
        ("1. Write:\n\n   ```python\n   def add(a, b):\n       return a + b\n   ```", ADD),
        ("if __name__ == '__main__':\n    input()\ndef add(a, b): return a + b", "\n".join(ADD)),
        ("def add(a, b): return a + b", "from solution import add\ndef test_it():\n    " + ADD[0]),
        ("def add(a, b): return a + b", CASE + "self.assertEqual(add(1, 2), 3)"),
        ("def sum(a, b): return a + b", "assert sum(10, 15) == 25"),
        (
            "from collections import Counter, namedtuple\nimport math\nP = namedtuple('P', 'x y')\n"
            "def count(s): return Counter(s)\ndef p(): return P(1, 2)\n"
            "def gen(n): yield from range(n)\n"
            "def all_of(): return {1: (2, 3), 'a': {1, 2}, b'x': frozenset([1]), None: 1 + 2j}\n"
            "def each(f, xs): return [f(x) for x in xs]\nclass Odd(Exception): pass\n"
            "def odd(x):\n    if x % 2: raise Odd(x)\n    x / 0\n"
            "class Pair:\n    def __init__(self, a): self.a = a\n"
            "    def __eq__(self, other): return self.a == other.a\n"
            "def change(xs, d): xs.sort(); d['x'] = 1\ndef power(): return 2 ** 50_000\n",
            "assert count('aab') == {'a': 2, 'b': 1} and p() == (1, 2) and sum(gen(4)) == 6\n"
            "assert all_of() == {1: (2, 3), 'a': {1, 2}, b'x': frozenset([1]), None: 1 + 2j}\n"
            "assert each(lambda x: x * 2, [1]) == each(int, ['2']) == each(len, ['ab']) == [2]\n"
            "try:\n    odd(1)\n    assert False\nexcept Odd as error:\n"
            "    assert str(error) == '1'\n"
            "try:\n    odd(2)\n    assert False\nexcept ZeroDivisionError:\n    pass\n"
            "assert Pair(3).a == 3 and Pair(3) == Pair(3) and isinstance(Pair(1), Pair)\n"
            "xs, d = [3, 1], {}\nchange(xs, d)\nassert (xs, d) == ([1, 3], {'x': 1})\n"
            "assert power() == 2 ** 50_000\n"
            "class Node:\n    def __init__(self, value): self.value = value\n"
            "assert each(lambda node: node.value, [Node(7)]) == [7]\n",
        ),
        ("import os\nassert not [n for n in os.environ if n.endswith('_KEY')]\n"
         "open('f', 'w').write('x')\ndef add(a, b): return a + b", ADD),
    ],
)  # fmt: skip
def test_right_code_passes(program: str, tests: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    assert run(program, tests) == "passed"


LOOK = """
import gc, os, sys
def add(a, b):
    found, frame = [gc.get_objects()], sys._getframe()
    while frame:
        found += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    for name in ("mem", "environ", "fd/0", "cmdline"):
        try:
            found.append(open(f"/proc/{os.getppid()}/{name}", "rb").read(1000))
        except OSError:
            pass
    texts = [text for each in found for text in each if isinstance(text, (str, bytes))]
    for text in texts[:5000]:
        for descriptor in (1, 2):
            os.write(descriptor, text if isinstance(text, bytes) else text.encode())
    return 9
"""
FORGE = """
import json, os, sys
def add(a, b):
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "_write"):
        frame = frame.f_back
    channel = frame.f_locals["self"]
    for message in (["call", ["builtin", "type"], ["list", ["X"]], ["dict", ["list", []]]],
                    ["ok", ["yours", 0], None]):
        data = json.dumps(message).encode()
        os.write(channel._write, len(data).to_bytes(8, "big") + data)
        if message[0] == "call":
            assert channel.receive()[0] == "error"
    return 1
"""


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("def add(a, b): return a - b", "fails: assert add(1, 2) == 3"),
        ("import sys; sys.exit(0)", "it raises SystemExit"),
        ("import os; os._exit(0)", "it ended before its tests did"),
        ("def add(a, b): raise SystemExit(0)", "it raises SystemExit in assert add(1, 2) == 3"),
        ("class E(int):\n    __eq__ = lambda *a: True\n    __hash__ = int.__hash__\n"
         "def add(a, b): return E(7)", "fails: assert add(1, 2) == 3"),
        ("import builtins\nbuiltins.AssertionError = Exception\nbuiltins.print = builtins.exec = "
         "builtins.compile = lambda *a, **k: None\ndef add(a, b): return 1", "fails: assert"),
        ("import os\nwhile True: os.fork()", "PermissionError: code under test starts and ends no"),
        ("open('../evil', 'w')\ndef add(a, b): return 3", "PermissionError: code under test w"),
        ("def add(a, b): return bytearray(3 << 30)", "MemoryError:  in assert add(1, 2) == 3"),
        ("def add(a, b): return 'x' * (80 << 20)", "ValueError: a value of more than 64 MiB"),
        ("def add(a, b): return add(a, b)", "RecursionError: maximum recursion depth exceeded"),
        ("```\ndef add(a, b:\n```", "SyntaxError: '(' was never closed"),
        ("def sub(a, b): return 1", "NameError: name 'add' is not defined in assert"),
        (LOOK, "fails: assert add(1, 2) == 3"), (FORGE, "it sent what is no value"),
        ("I cannot do that.", "no Python in 'I cannot do that.'"),
        ("```js\nlet add\n```", "no Python in "),
    ],
)  # fmt: skip
def test_code_that_does_not_pass_says_why(program: str, reason: str):
    assert run(program, ADD).startswith(reason)


def test_code_cannot_turn_the_tests_into_others():
    patches = "import unittest, math\nunittest.TestCase.assertEqual = lambda *a: None\n"
    program = patches + "math.isclose = lambda *a: True\ndef add(a, b): return 1\n"
    assert run(program, CASE + "self.assertEqual(add(1, 2), 3)").endswith("1 != 3")
    assert "fails" in run(program, "assert math.isclose(add(1, 2), 3)")
    program = "def all(x): return True\ndef values(): return [1, 5]"
    assert "fails" in run(program, "assert all(x < 3 for x in values())")
    caught = "try:\n    add(1, 2)\nexcept:\n    pass\nassert True or add"
    assert run("import os\ndef add(a, b): os._exit(0)", caught).startswith("it ended before")


@pytest.mark.parametrize("program", ["while True: pass", "while True: print('x' * 1000)"])
def test_code_that_does_not_end_is_stopped(program: str):
    verdict = code(timeout=0.5)(program, None, {"test": ADD})
    assert verdict == {"score": 0.0, "reason": "did not end within 0.5 s"}


LIMITED = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS: no program that is started gets them back
libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48))
from osmosis_ai import scorers
print(scorers.code()("def one(): return 1", None, {"test": "assert one() == 1"})["score"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="capabilities are Linux's")
def test_code_runs_in_a_session_whose_own_limits_are_lower():
    ran = subprocess.run(
        [sys.executable, "-c", LIMITED], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "1.0"


def test_a_process_of_tests_that_cannot_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(code_tests, "PROCESS", tmp_path / "missing.py")
    with pytest.raises(RuntimeError, match="the tests cannot be run here"):
        code()("def one(): return 1", None, {"test": "assert one() == 1"})


def test_check_gets_the_function_that_the_row_names():
    row = {"entry_point": "double"}
    assert run("def double(x): return 2 * x", CHECK, **row) == "passed"
    assert run("    return 2 * x\n", CHECK, **row) == "passed"  # behind the prompt
    assert run("    return 3 * x\n", CHECK, **row) == "fails: assert candidate(2) == 4"
    other = {**row, "user_prompt": "Write double."}
    assert run("def triple(x): return 3 * x", CHECK, **other) == "it defines no double"
    row |= {"test_imports": ["import math"], "test_setup_code": "two = 2"}
    assert (
        run(DOUBLE + "    return 2 * x", "assert double(two) == math.sqrt(16)", **row) == "passed"
    )


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ({}, "the row has no 'test'"), ({"test_list": ["x"]}, "try code('test_list')"),
        ({"test": 3}, "holds neither text nor a list of asserts"),
        ({"test": [1]}, "holds neither text nor a list of asserts"),
        ({"test": "assert ("}, "are no Python: "), ({"test": "x = 1"}, "assert nothing"),
        ({"test": []}, "assert nothing"), ({"test": "assert True"}, "assert nothing"),
        ({"test": "assert (1, 'no')"}, "assert nothing"),
        ({"test": "def helper():\n    assert add(1, 2) == 3"}, "assert nothing"),
        ({"test": "async def test_it():\n    assert add(1, 2) == 3"}, "assert nothing"),
        ({"test": "def check(f):\n    pass", "entry_point": "f"}, "assert nothing"),
        ({"test": CHECK}, "define check, and 'entry_point' names no function"),
    ],
)  # fmt: skip
def test_tests_that_cannot_decide_are_refused(row: dict[str, Any], fault: str):
    scorer: Any = code()
    assert fault in scorer.refuse_row(None, row)
    with pytest.raises(ValueError, match="code: "):
        scorer("x = 1", None, row)


def test_tests_that_call_their_own_functions_do_assert():
    scorer: Any = code()
    for text in (
        "def helper():\n    assert f() == 3\nhelper()",
        "def helper(x):\n    assert f() == x\ndef check(c):\n    helper(1)\ncheck(f)",
        "def test_it():\n    with pytest.raises(ValueError):\n        f()",
        "if f() != 3:\n    raise AssertionError",
    ):
        assert scorer.refuse_row(None, {"test": text}) is None
