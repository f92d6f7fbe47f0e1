"""Programs as children of this machine: their environment, their limits, and their end."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from osmosis_executors.confinement import Confinement
from osmosis_executors.job import Job, JobLimits, RunAs
from osmosis_executors.local import LocalExecutor, LocalRun

PATIENCE_S = 60.0
VALUE = "sk-the-value-of-a-secret"


def start(
    folder: Path, code: str, environment: Mapping[str, str] | None = None, **values: Any
) -> LocalRun:
    """Start Python code, without the start-up files of the interpreter."""
    job = Job(
        [sys.executable, "-S", "-c", code], folder, environment or {}, folder / "out", **values
    )
    return LocalExecutor().start(job)


def wait_for(run: LocalRun, path: Path) -> str:
    """Return what the program has written into a file, as soon as that is there."""
    while not path.exists():
        assert run.wait(0.02) is None, (path.parent / "out").read_text()
    return path.read_text()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for_end(pid: int) -> None:
    """Return once a process has ended that was killed."""
    end = time.monotonic() + PATIENCE_S
    while is_alive(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_program_has_its_own_environment_alone_and_its_status_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OF_THE_PLATFORM", "x")
    code = (
        "import os, time; print(sorted(os.environ), os.getcwd())\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "raise SystemExit(7)"
    )
    with start(tmp_path, code, {"LC_ALL": "C", "KEY": VALUE}) as run:
        assert VALUE not in Path(f"/proc/{run.pid}/cmdline").read_text()
        assert VALUE not in Path(f"/proc/{run.pid}/environ").read_text()
        (tmp_path / "go").touch()
        assert run.wait(PATIENCE_S) == 7
    assert (tmp_path / "out").read_text() == f"['KEY', 'LC_ALL'] {tmp_path}\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_program_that_is_not_there_is_named_in_its_output(tmp_path: Path):
    job = Job(["/nowhere/at-all"], tmp_path, {}, tmp_path / "out")
    with LocalExecutor().start(job) as run:
        assert run.wait(PATIENCE_S) == 127
    assert (tmp_path / "out").read_text() == "cannot start /nowhere/at-all: " + (
        "No such file or directory\n"
    )


def test_stderr_can_be_apart_and_files_are_limited_in_size(tmp_path: Path):
    code = (
        "import os, sys; print('no', file=sys.stderr, flush=True)\n"
        "sys.stdout.write('x' * 2000); sys.stdout.flush()\n"
        "sys.stdout.write('x' * 2000); sys.stdout.flush()"
    )
    limits = JobLimits(file_bytes=2000)
    with start(tmp_path, code, errors=tmp_path / "err", limits=limits) as run:
        assert run.wait(PATIENCE_S) != 0
    assert (tmp_path / "out").stat().st_size == 2000
    assert (tmp_path / "err").read_text().startswith("no\n")


def test_stopping_asks_first(tmp_path: Path):
    code = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "pathlib.Path('ready').touch()\n"
        "while True: time.sleep(60)"
    )
    with start(tmp_path, code, grace_s=PATIENCE_S) as run:
        wait_for(run, tmp_path / "ready")
        run.stop()
        run.stop()
        assert run.wait(PATIENCE_S) == 5


def test_what_does_not_end_is_killed_with_all_that_it_has_started(tmp_path: Path):
    code = (
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        "if child: pathlib.Path('n').write_text(str(child)); os.rename('n', 'ready')\n"
        "while True: time.sleep(60)"
    )
    with start(tmp_path, code, grace_s=0.01) as run:
        child = int(wait_for(run, tmp_path / "ready"))
        run.stop()
        assert run.wait(PATIENCE_S) == 137
    wait_for_end(child)


STARTS = """
import sys, time
from pathlib import Path
from osmosis_executors.job import Job
from osmosis_executors.local import LocalExecutor

here = Path.cwd()
words = [sys.executable, "-S", "-c", sys.argv[1]]
run = LocalExecutor().start(Job(words, here, {}, here / "out", grace_s=600))
time.sleep(600)
"""


def test_a_program_that_does_not_end_is_killed_at_once_when_who_started_it_has_died(
    tmp_path: Path,
):
    code = (
        "import os, pathlib, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: pathlib.Path('asked').touch())\n"
        "pathlib.Path('n').write_text(str(os.getpid())); os.rename('n', 'ready')\n"
        "while True: time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", STARTS, code], cwd=tmp_path) as platform:
        end = time.monotonic() + PATIENCE_S
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        platform.kill()
    wait_for_end(int((tmp_path / "ready").read_text()))
    assert (tmp_path / "asked").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_program_ends_with_its_supervisor(tmp_path: Path):
    code = (
        "import os, pathlib, time\n"
        "pathlib.Path('n').write_text(str(os.getpid())); os.rename('n', 'ready')\n"
        "while True: time.sleep(60)"
    )
    with start(tmp_path, code) as run:
        child = int(wait_for(run, tmp_path / "ready"))
        os.kill(run.pid, signal.SIGKILL)
        assert run.wait(PATIENCE_S) == 137
    wait_for_end(child)


def test_a_second_program_waits_until_the_lock_is_free(tmp_path: Path):
    code = (
        "import pathlib, time\n"
        "pathlib.Path('ready').touch()\n"
        "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
        "print('first', flush=True)"
    )
    lock = tmp_path / "lock"
    with start(tmp_path, code, lock=lock) as first:
        wait_for(first, tmp_path / "ready")
        with start(tmp_path, "print('second')", lock=lock) as second:
            assert second.wait(0.05) is None
            (tmp_path / "go").touch()
            assert (first.wait(PATIENCE_S), second.wait(PATIENCE_S)) == (0, 0)
    assert (tmp_path / "out").read_text() == "first\nsecond\n"


@pytest.mark.fault("a run takes more memory, processor time or files than the operator allows")
@pytest.mark.parametrize(
    ("limits", "code", "status"),
    [
        pytest.param(
            JobLimits(cpu_s=1), "while True: pass", 128 + signal.SIGXCPU, marks=pytest.mark.slow
        ),
        (JobLimits(memory_bytes=256 * 1024**2), "bytearray(1024 ** 3)", 1),
        (JobLimits(open_files=64), "kept = [open('/dev/null') for _ in range(64)]", 1),
    ],
    ids=["cpu", "memory", "files"],
)
def test_a_program_that_takes_more_than_its_limits_is_ended(
    tmp_path: Path, limits: JobLimits, code: str, status: int
):
    with start(tmp_path, code, limits=limits) as run:
        assert run.wait(PATIENCE_S) == status


@pytest.mark.fault("a run's code looks into the platform's data, where the platform has `--run-as`")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as another user")
def test_a_program_can_run_as_another_user_with_a_limit_of_processes(tmp_path: Path):
    nobody = pwd.getpwnam("nobody")
    user = RunAs(nobody.pw_name, nobody.pw_uid, nobody.pw_gid)
    (tmp_path / "secret").touch(mode=0o600)
    code = 'id -u; id -G; grep -o "processes *77" /proc/self/limits; pwd; cat "$SECRET"; exit 3'
    job = Job(
        ["/bin/sh", "-c", code], Path("/"), {"SECRET": str(tmp_path / "secret")},
        tmp_path / "out", user=user, limits=JobLimits(processes=77),
    )  # fmt: skip
    with LocalExecutor().start(job) as run:
        assert run.wait(PATIENCE_S) == 3
    message = (tmp_path / "out").read_text().splitlines()
    assert message[:4] == [str(nobody.pw_uid), str(nobody.pw_gid), message[2], "/"]
    assert message[2].startswith("processes")
    assert "Permission denied" in message[4]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as another user")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_program_of_another_user_ends_with_its_supervisor_too(tmp_path: Path):
    nobody = pwd.getpwnam("nobody")
    user = RunAs(nobody.pw_name, nobody.pw_uid, nobody.pw_gid)
    words = ["/bin/sh", "-c", "echo $$; exec sleep 600"]
    with LocalExecutor().start(Job(words, Path("/"), {}, tmp_path / "out", user=user)) as run:
        while not (printed := (tmp_path / "out").read_text()).endswith("\n"):
            assert run.wait(0.02) is None, printed
        os.kill(run.pid, signal.SIGKILL)
        assert run.wait(PATIENCE_S) == 137
    wait_for_end(int(printed))


OF_THE_RUN = {
    **dict.fromkeys(("PATH", "HOME", "TMPDIR", "PYTHONPATH", "LD_LIBRARY_PATH"), "./tools"),
    **dict.fromkeys(("LD_PRELOAD", "LD_AUDIT", "GIT_EXEC_PATH", "PYTHONHOME"), "./evil.so"),
    **dict.fromkeys(("BASH_ENV", "ENV", "PYTHONSTARTUP", "GIT_SSH_COMMAND"), "./evil.sh"),
    **dict.fromkeys(("DOCKER_HOST", "CONTAINER_HOST", "SSH_AUTH_SOCK"), "unix:///evil"),
    **dict.fromkeys(("IFS", "PS4", "SHELLOPTS", "PYTHONWARNINGS", "MALLOC_CONF"), "x y\n$(evil)"),
    "BASH_FUNC_exec%%": "() { evil; }",
    "GCONV_PATH": ".",
    "KEY": VALUE,
    "\u00fc": "\u00fc",
}
"""What decides how programs start, and a secret."""
RECORDS = """\
#!{python} -IS
import os, sys
seen = [os.environ, sys.argv, open("/proc/self/environ").read(), os.getcwd(), os.listdir()]
open({seen!r}, "w").write(repr(seen))
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.fault("a run's variables would change the command of `--wrapper`")
@pytest.mark.parametrize("is_wrapped", [True, False])
def test_the_variables_of_a_program_reach_no_program_that_is_ours(
    tmp_path: Path, is_wrapped: bool, monkeypatch: pytest.MonkeyPatch
):
    tree, box = tmp_path / "tree", tmp_path / "box"
    (tree / "tools").mkdir(parents=True)
    for name in ("box", "python", "sh", "env"):
        (tree / "tools" / name).write_text("#!/bin/sh\ntouch evil\n")
        (tree / "tools" / name).chmod(0o755)
    box.write_text(RECORDS.format(python=sys.executable, seen=str(tmp_path / "seen")))
    box.chmod(0o755)
    monkeypatch.setenv("PATH", f"tools::{os.environ['PATH']}:.")
    wrapper = (str(box),) if is_wrapped else ()
    words = ["/usr/bin/env", "-0"]
    # The C library of the program itself reports the libraries that are not there.
    job = Job(words, tree, OF_THE_RUN, tmp_path / "out", errors=tmp_path / "err", wrapper=wrapper)
    with LocalExecutor().start(job) as run:
        environ = Path(f"/proc/{run.pid}/environ").read_text()
        assert run.wait(PATIENCE_S) == 0, (tmp_path / "err").read_text()
    seen = dict(each.split("=", 1) for each in (tmp_path / "out").read_text().split("\0")[:-1])
    assert seen == OF_THE_RUN
    recorded = (tmp_path / "seen").read_text() if is_wrapped else ""
    for text in (environ, recorded):
        for value in ("evil", "tools", VALUE, "BASH_", "LD_", "DOCKER", "\\xc3"):
            assert value not in text
    assert not (tree / "evil").exists()


def test_a_wrapper_runs_the_program_and_gets_the_places(tmp_path: Path):
    code = 'echo "$1 $2 $(pwd)" > "$0"; shift 2; exec "$@"'
    wrapper = ("/bin/sh", "-c", code, "{data}/seen", "--in={room}{environment}", "{folder}")
    job = Job(["/bin/sh", "-c", "pwd; cat"], tmp_path, {}, tmp_path / "out")
    held = Confinement(JobLimits(cpu_s=60), wrapper=wrapper)
    assert held.is_apart
    places = {"data": tmp_path, "room": Path("/{folder}"), "environment": Path("/b")}
    with LocalExecutor().start(held.applied(job, places)) as run:
        assert run.wait(PATIENCE_S) == 0
    assert (tmp_path / "out").read_text() == f"{tmp_path}\n"
    assert (tmp_path / "seen").read_text() == f"--in=/{{folder}}/b {tmp_path} /\n"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('cat > /dev/null; exec "$@"', "the command around it has taken its stdin"),
        ("exit 9", ""),
    ],
)
def test_a_wrapper_that_starts_nothing_ends_the_program(tmp_path: Path, code: str, message: str):
    wrapper = ("/bin/sh", "-c", code, "box")
    large = {f"A{number}": "x" * 100_000 for number in range(20)}  # more than a pipe takes
    job = Job(["/bin/true"], tmp_path, large, tmp_path / "out", wrapper=wrapper)
    with LocalExecutor().start(job) as run:
        assert run.wait(PATIENCE_S) == (127 if message else 9)
    assert message in (tmp_path / "out").read_text()


@pytest.mark.parametrize("wrapper", [(), ("/usr/bin/env",)])
def test_signals_are_as_by_default_whatever_is_ignored_here(
    tmp_path: Path, wrapper: tuple[str, ...]
):
    words = ["/bin/grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]
    job = Job(words, tmp_path, {}, tmp_path / "out", wrapper=wrapper)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        run = LocalExecutor().start(job)
    finally:
        signal.signal(signal.SIGTERM, before)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    with run:
        assert run.wait(PATIENCE_S) == 0
    assert {line.split()[1] for line in (tmp_path / "out").read_text().splitlines()} == {"0" * 16}


def test_a_program_that_writes_a_larger_file_is_ended_by_the_signal(tmp_path: Path):
    words = ["/bin/dd", "if=/dev/zero", "of=large", "bs=1000", "count=9"]
    job = Job(words, tmp_path, {}, tmp_path / "out", limits=JobLimits(file_bytes=2000))
    with LocalExecutor().start(job) as run:
        assert run.wait(PATIENCE_S) == 128 + signal.SIGXFSZ
