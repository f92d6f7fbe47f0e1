from __future__ import annotations

import contextlib
import gc
import io
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from osmosis_ai.running import loop_thread
from pytest_osmosis.user_code.classify_agent import as_agent_loop, classify_agent, instantiated
from pytest_osmosis.user_code.import_object import (
    ImportDeadline,
    ImportingError,
    imports_within,
    load_object,
    watched,
)

OPTION = "--osmosis-agent"


@pytest.fixture(autouse=True)
def imports_undone() -> Iterator[None]:
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    monkeypatch.chdir(tmp_path)

    def write(**modules: str) -> Path:
        for name, code in modules.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(code))
        return tmp_path

    return write


def look_once(
    is_inside: Callable[[int], bool], monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], FrameType | None]:
    """Look where a thread is no earlier than it is there, however late that is."""
    frame_of = loop_thread.frame_of

    def patient(thread: int) -> FrameType | None:
        give_up = time.monotonic() + 60.0
        while not is_inside(thread) and time.monotonic() < give_up:
            time.sleep(0.001)
        return frame_of(thread)

    monkeypatch.setattr(loop_thread, "frame_of", patient)
    return frame_of


def load(spec: str, **options: Any) -> Any:
    return load_object(spec, option=OPTION, roots=[Path.cwd()], **options)


def refusal(spec: str, **options: Any) -> str:
    with pytest.raises(ImportingError) as caught:
        load(spec, **options)
    message = str(caught.value)
    prefix = f"{OPTION} {spec!r}: "
    assert message.startswith(prefix)
    return message.removeprefix(prefix)


LOOP = """
    class Loop:
        name = "loop"

        def get_tools(self, request):
            return []

        async def run(self, ctx):
            return None

    agent_loop = Loop()
"""


class TestNames:
    def test_a_module_is_found_in_the_roots(self, project):
        project(server=LOOP)
        assert load("server:agent_loop").name == "loop"

    def test_an_attribute_may_be_dotted(self, project):
        project(server=LOOP)
        assert load("server:agent_loop.name") == "loop"

    def test_a_submodule_is_found(self, project):
        project(**{"agents/__init__": "", "agents/math": "answer = 42"})
        assert load("agents.math:answer") == 42

    def test_the_roots_come_first_on_the_path_in_their_order_and_once(self, project, tmp_path):
        project(**{"a/chosen": "where = 'a'", "b/chosen": "where = 'b'"})
        roots = [tmp_path / "a", tmp_path / "b"]
        assert load_object("chosen:where", option=OPTION, roots=roots) == "a"
        load_object("chosen:where", option=OPTION, roots=roots)
        assert sys.path[:2] == [str(root) for root in roots]
        assert sys.path.count(str(roots[0])) == 1

    @pytest.mark.parametrize("then", ["agent = 1", "raise ValueError"])
    def test_a_stream_that_a_module_wraps_anew_stays_open(self, project, monkeypatch, then):
        wraps = "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')"
        project(wrapping=f"import io, sys\n{wraps}\n{then}")
        ours = io.TextIOWrapper(io.BytesIO())
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", ours)
            with contextlib.suppress(ImportingError):
                load("wrapping:agent")
        gc.collect()
        assert not ours.buffer.closed

    @pytest.mark.fault("a name is not `module:attribute`")
    @pytest.mark.parametrize(
        "spec",
        ["server", "server:", ":loop", "a:b:c", "", ":", "server:agent_loop()", "server:a-b"],
    )
    def test_another_form_is_refused(self, spec):
        assert refusal(spec) == "expected module:attribute, such as server:agent_loop"
        expected = "expected module:attribute, such as agents/one.py:agent_loop"
        assert refusal("agents/one.py") == expected

    @pytest.mark.parametrize("spec", ["my server:loop", "agents/server:loop", "..server:loop"])
    def test_what_is_neither_a_module_nor_a_file_is_refused(self, spec):
        assert "is neither a module's name nor a .py file" in refusal(spec)

    @pytest.mark.fault("an attribute is missing")
    def test_a_missing_attribute_is_reported_with_close_ones(self, project):
        project(server="agent_loop = 1\nother = 2")
        assert refusal("server:agnet_loop") == (
            "module 'server' has no 'agnet_loop'. Did you mean 'agent_loop'?"
        )
        assert refusal("server:agnet").endswith("Did you mean 'agent_loop'?")
        assert refusal("server:zzz") == "module 'server' has no 'zzz'."
        assert (
            refusal("server:agent_loop.rael") == "'agent_loop' has no 'rael'. Did you mean 'real'?"
        )

    @pytest.mark.fault("a module is missing, or imports one that is")
    def test_a_missing_module_is_reported_with_the_folders_and_close_ones(self, project, tmp_path):
        project(server="")
        assert refusal("servr:loop") == (
            f"no module 'servr' (searched {tmp_path} and sys.path). Did you mean 'server'?"
        )
        assert refusal("server.agents:x").startswith("no module 'server.agents' (searched")


class TestFiles:
    def test_a_file_is_imported_by_its_path(self, project, tmp_path):
        project(
            **{
                "agents/server": "import tools\nanswer = tools.answer",
                "agents/tools": "answer = 42",
            }
        )
        assert load("agents/server.py:answer") == 42
        assert load(f"{tmp_path}/agents/server.py:answer") == 42

    def test_the_same_file_is_the_same_module(self, project):
        project(server="value = object()", json="value = object()")
        for name in ("server", "json"):
            assert load(f"{name}.py:value") is load(f"./{name}.py:value")
        assert load("server.py:value") is load("server:value")

    def test_files_of_one_name_are_two_modules(self, project):
        project(**{"a/agent": "where = 'a'", "b/agent": "where = 'b'"})
        assert [load(f"{folder}/agent.py:where") for folder in "ab"] == ["a", "b"]

    @pytest.mark.parametrize(
        ("first", "then"),
        [
            ("a/agent.py:where", "agent:where"),
            ("a/json.py:where", "json:where"),
            ("a/pkg/one.py:where", "pkg.one:where"),
            ("a/pkg/one.py:where", "b/pkg/two.py:where"),
        ],
    )
    def test_another_module_of_its_name_is_never_taken_for_it(self, project, first, then):
        for file in ("agent", "json", "pkg/__init__", "pkg/one", "pkg/two"):
            project(**{f"{top}{file}": f"where = {top!r}" for top in ("", "a/", "b/")})
        assert load(first) == "a/"
        assert "is meant, but another module" in refusal(then)

    def test_a_file_named_like_a_loaded_module_leaves_that_alone(self, project):
        import json

        project(json="class Thing: pass\nthing = Thing()")
        thing = load("json.py:thing")
        assert type(pickle.loads(pickle.dumps(thing))) is type(thing)
        assert sys.modules["json"] is json

    def test_a_file_inside_a_package_may_import_its_neighbours(self, project):
        project(
            **{
                "pkg/__init__": "",
                "pkg/server": "from .tools import answer",
                "pkg/tools": "answer = 42",
            }
        )
        assert load("pkg/server.py:answer") == 42
        assert sys.modules["pkg.server"]

    def test_a_missing_file_is_reported_with_close_ones(self, project, tmp_path):
        project(server="")
        assert refusal("srver.py:loop") == (
            f"no file 'srver.py' (looked in {tmp_path}). Did you mean 'server.py'?"
        )


class TestMistakesInModules:
    def test_a_missing_import_is_distinguished_from_a_missing_module(self, project, tmp_path):
        project(agent="import tools", tools="\nimport nunpy.linalg")
        assert refusal("agent:loop") == (
            f"'agent' imports 'nunpy', which is missing ({tmp_path}/tools.py:2); "
            "install it or correct the name"
        )

    def test_what_a_removed_module_says_of_its_successor_is_shown(
        self, project, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("TOOLS_API_KEY", "sk-hidden-value")
        text = "No module named 'old'. It is new since 2.0: sk-hidden-value\\x1b"
        project(agent="import old", old=f'raise ModuleNotFoundError("{text}", name="old")')
        assert refusal("agent:loop") == (
            f"'agent' imports 'old', which is missing ({tmp_path}/old.py:1): "
            r"It is new since 2.0: ***\x1b"
        )

    def test_a_part_of_what_is_no_package_is_missing(self, project, tmp_path):
        project(agent="import tools.more", tools="")
        assert refusal("agent:loop").endswith("agent.py:1); install it or correct the name")

    @pytest.mark.parametrize("spec", ["broken:x", "broken.py:x"])
    def test_a_syntax_error_shows_the_line_and_nothing_of_ours(self, project, tmp_path, spec):
        project(broken="def f(:\n    pass\n")
        message = refusal(spec)
        assert f'File "{tmp_path}/broken.py", line 1' in message
        assert "SyntaxError" in message
        assert "Traceback" not in message
        assert "importlib" not in message and "pytest_osmosis" not in message

    @pytest.mark.fault("a module has a syntax error, raises or exits while it is imported")
    @pytest.mark.parametrize("spec", ["broken:x", "broken.py:x", "json.py:x"])
    def test_an_exception_shows_the_users_frames_and_its_causes_alone(
        self, project, tmp_path, spec
    ):
        code = """
            def inner():
                raise ValueError("deep")

            def outer():
                try:
                    inner()
                except ValueError as error:
                    raise RuntimeError("at the top") from error

            outer()
        """
        project(broken=code, json=code)
        message = refusal(spec)
        assert "cannot be imported" in message
        assert "ValueError: deep" in message and "RuntimeError: at the top" in message
        files = {line.split('"')[1] for line in message.splitlines() if "File " in line}
        assert {Path(file).parent for file in files} == {tmp_path}

    def test_a_class_that_the_sdk_refuses_is_shown_without_frames_of_the_sdk(
        self, project, tmp_path
    ):
        project(
            nameless="from osmosis_ai.rollout import RolloutAgentLoop as Loop\nclass A(Loop): ..."
        )
        message = refusal("nameless:A")
        assert "A needs a class attribute `name`" in message
        files = [line.split('"')[1] for line in message.splitlines() if "File " in line]
        assert files == [str(tmp_path / "nameless.py")]

    def test_a_long_traceback_is_cut_in_its_middle(self, project):
        project(broken="def f(n):\n    f(n + 1)\nf(0)")
        message = refusal("broken:x")
        assert len(message.splitlines()) < 70
        assert message.endswith("maximum recursion depth exceeded")

    def test_an_exit_of_an_attribute_is_caught(self, project):
        project(attribute="def __getattr__(name):\n    raise SystemExit(7)\n")
        message = refusal("attribute:f")
        assert message.startswith("module 'attribute' gives no 'f'\n")
        assert "SystemExit: 7" in message

    @pytest.mark.parametrize("code", ["import sys; sys.exit(3)", "raise SystemExit(3)", "exit(3)"])
    def test_an_exit_is_caught(self, project, code):
        project(leaving=code)
        assert refusal("leaving:x").startswith("'leaving' called sys.exit(3) while it was imported")

    def test_a_skip_raised_by_pytest_is_caught(self, project):
        project(skipping="import pytest\npytest.skip('not here', allow_module_level=True)")
        assert "Skipped: not here" in refusal("skipping:x")

    def test_ctrl_c_is_not(self, project):
        project(stopping="raise KeyboardInterrupt")
        with pytest.raises(KeyboardInterrupt):
            load("stopping:x")

    def test_a_module_that_failed_can_be_corrected_and_named_again(self, project):
        project(server="1 / 0", json="1 / 0")
        for name in ("server.py", "json.py"):
            assert "ZeroDivisionError" in refusal(f"{name}:x")
        project(server="x = 'right'  # and longer", json="x = 'right'  # and longer")
        for name in ("server.py", "json.py"):
            assert load(f"{name}:x") == "right"

    @pytest.mark.fault("an import never ends")
    @pytest.mark.parametrize(
        "code", ["import threading; threading.Event().wait()", "while True: 1"]
    )
    def test_an_import_that_hangs_is_ended_and_reported_with_the_line(
        self, project, tmp_path, code, monkeypatch
    ):
        def is_inside(thread: int) -> bool:
            stack = traceback.extract_stack(frame_of(thread))
            return any(frame.filename == f"{tmp_path}/hanging.py" for frame in stack)

        frame_of = look_once(is_inside, monkeypatch)
        project(hanging=f"\n{code}\n")
        with imports_within(0.05):
            message = refusal("hanging:x")
        assert message.startswith(
            "the import of 'hanging' was not done after 0.05 s (--osmosis-import-timeout gives it "
            "more, 0 all it takes); it was at:\n"
        )
        assert f'File "{tmp_path}/hanging.py", line 2' in message
        assert "pytest_osmosis" not in message

    @pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda number, frame: None])
    def test_whatever_an_interrupt_does_the_deadline_holds_and_the_handler_is_back(
        self, project, handler, monkeypatch
    ):
        frame_of = look_once(lambda thread: "hanging" in sys.modules, monkeypatch)
        assert frame_of is not None
        project(hanging="import threading; threading.Event().wait()")
        before = signal.signal(signal.SIGINT, handler)
        try:
            with imports_within(0.05):
                assert "was not done after 0.05 s" in refusal("hanging:x")
            assert signal.getsignal(signal.SIGINT) == handler
        finally:
            signal.signal(signal.SIGINT, before)

    def test_an_import_that_cannot_be_interrupted_ends_the_process(self, project):
        code = """
            import threading
            from pytest_osmosis.user_code.import_object import watched

            def deaf():
                while True:
                    try:
                        threading.Event().wait()
                    except KeyboardInterrupt:
                        pass

            with watched("--osmosis-agent 'a:b'", "a", deadline_s=0.05, grace_s=0.05):
                deaf()
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
        )
        assert done.returncode == 4
        assert done.stderr.startswith(
            "ERROR: --osmosis-agent 'a:b': the import of 'a' was not done after 0.05 s; it was at:"
        )

    def test_an_interrupt_by_the_user_stays_one(self):
        with pytest.raises(KeyboardInterrupt), watched("x", "slow"):
            signal.raise_signal(signal.SIGINT)

    def test_the_deadline_names_where_the_code_was(self, monkeypatch):
        inside: list[bool] = []
        look_once(lambda thread: bool(inside), monkeypatch)
        with pytest.raises(ImportDeadline) as caught, watched("x", "slow", deadline_s=0.02):
            inside.append(True)
            while True:
                pass
        assert caught.value.stack[-1].filename == __file__


class TestAgents:
    def as_loop(self, spec: str) -> Any:
        return as_agent_loop(load(spec), spec=spec, option=OPTION)

    def refusal(self, spec: str) -> str:
        with pytest.raises(ImportingError) as caught:
            self.as_loop(spec)
        return str(caught.value).removeprefix(f"{OPTION} {spec!r}: ")

    def test_an_instance_is_taken_as_it_is(self, project):
        project(server=LOOP)
        assert self.as_loop("server:agent_loop") is load("server:agent_loop")

    @pytest.mark.fault("a class is named where an instance is needed")
    def test_a_class_without_arguments_is_instantiated(self, project):
        project(server=LOOP)
        assert isinstance(self.as_loop("server:Loop"), load("server:Loop"))

    def test_a_loop_of_the_sdk_is_recognised(self, project):
        project(
            server="""
            from osmosis_ai.rollout import RolloutAgentLoop

            class Loop(RolloutAgentLoop):
                name = "sdk"
                def get_tools(self, request): return []
                async def run(self, ctx): ...

            class Half(RolloutAgentLoop):
                name = "half"
                def get_tools(self, request): return []
        """
        )
        assert self.as_loop("server:Loop").name == "sdk"
        assert self.refusal("server:Half") == "the class Half does not define 'run'"

    def test_a_class_that_needs_arguments_is_refused_with_their_names(self, project):
        project(
            server=LOOP
            + """
    class Needy(Loop):
        def __init__(self, model, *rest, temperature, seed=0, **more): ...
"""
        )
        assert self.refusal("server:Needy") == (
            "the class Needy needs 'model', 'temperature' to be made; make an instance in the "
            "module and name that, or give them a default"
        )

    def test_a_constructor_that_raises_shows_the_users_frames(self, project, tmp_path):
        project(
            server=LOOP
            + """
    class Failing(Loop):
        def __init__(self):
            raise OSError("no socket")
"""
        )
        message = self.refusal("server:Failing")
        assert message.startswith("Failing() cannot be made\nTraceback")
        assert message.endswith("OSError: no socket")
        assert "pytest_osmosis" not in message

    @pytest.mark.parametrize(
        ("name", "kind"),
        [("app", "an object"), ("Other", "the class Other")],
    )
    def test_something_else_is_refused(self, project, name, kind):
        project(server=LOOP + "\n    app = object()\n    class Other: ...\n")
        assert self.refusal(f"server:{name}") == (
            f"is {kind}; expected a function, another callable, or a RolloutAgentLoop as an "
            "instance or a class"
        )

    def test_workflows_are_distinguished_from_loops(self, project):
        project(
            flow="""
            class AgentWorkflow:
                async def run(self, ctx): ...

            class Mine(AgentWorkflow): ...
            """,
            server=LOOP,
        )
        assert classify_agent(load("flow:Mine")) == "workflow"
        assert classify_agent(load("server:Loop")) == "loop"
        assert classify_agent(load("server:agent_loop")) == "loop"
        assert classify_agent(3) is None

    def test_a_class_without_a_readable_signature_is_just_called(self):
        assert instantiated(dict, spec="x:dict", option=OPTION) == {}


def test_nothing_heavy_is_imported():
    code = (
        "import sys; from pytest_osmosis.user_code import import_object, eval_function;"
        "print({'pyarrow', 'numpy', 'pydantic', 'asyncio', 'osmosis_ai'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
