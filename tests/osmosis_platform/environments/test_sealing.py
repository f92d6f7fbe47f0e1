"""Environments that what runs in them cannot change, or not without notice."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from osmosis_platform.environments.project import EnvironmentProblem
from osmosis_platform.environments.sealing import digest_of, remove, seal


@pytest.fixture
def built() -> Iterator[Path]:
    """An environment as a build leaves it, in a folder that every user can enter."""
    above = Path(tempfile.mkdtemp(prefix="environment-", dir="/tmp"))
    above.chmod(0o711)
    site = above / "built" / "lib" / "site-packages"
    site.mkdir(parents=True, mode=0o777)
    (site / "lib.py").write_text("VALUE = 1\n")
    (site / "tool").touch()
    (site / "tool").chmod(0o6777)
    (site / "hidden.py").touch(mode=0o600)
    (site / "link").symlink_to("/etc/hostname")
    yield above / "built"
    remove(above)


def modes(home: Path) -> set[int]:
    return {
        stat.S_IMODE(path.lstat().st_mode)
        for path in (home, *home.rglob("*"))
        if not path.is_symlink()
    }


@pytest.mark.fault("a run writes into the environment that it shares with others")
def test_nothing_in_a_sealed_environment_can_be_written(built: Path):
    home = built.with_name("home")
    outside = Path("/etc/hostname").stat().st_mode
    seal(built, home)
    assert not built.exists()
    assert modes(home) == {0o555, 0o444}
    assert stat.S_IMODE((home / "lib/site-packages/tool").stat().st_mode) == 0o555
    assert Path("/etc/hostname").stat().st_mode == outside
    remove(home)
    assert not home.exists()


@pytest.mark.fault("a run writes into the environment that it shares with others")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can run programs as another user")
def test_the_user_who_has_built_an_environment_cannot_change_it(built: Path):
    nobody = pwd.getpwnam("nobody")
    for path in (built, *built.rglob("*")):
        os.chown(path, nobody.pw_uid, nobody.pw_gid, follow_symlinks=False)
    home = built.with_name("home")
    seal(built, home)
    site = home / "lib" / "site-packages"
    before = digest_of(home)
    for words in (
        f"echo 'import evil' > {site}/evil.pth",
        f"echo 'VALUE = 2' >> {site}/lib.py",
        f"chmod u+w {site}",
        f"mv {site}/lib.py /tmp",
        f"mv {site} {home}/old",
        f"rm -f {site}/link",
        f"ln -s /tmp {home}/lib/python",
        f"mkdir -p {site}/__pycache__",
    ):
        done = subprocess.run(
            ["/bin/sh", "-c", words], user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[],
            capture_output=True, check=False,
        )  # fmt: skip
        assert done.returncode != 0, words
    assert digest_of(home) == before
    read = ["/bin/cat", str(site / "lib.py"), str(site / "hidden.py")]
    assert subprocess.check_output(read, user=nobody.pw_uid) == b"VALUE = 1\n"


def _in_place(site: Path) -> None:
    """Change a file, and hide it as well as a program can."""
    path = site / "lib.py"
    before = path.stat()
    path.write_text("VALUE = 2\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    path.chmod(stat.S_IMODE(before.st_mode))


def _replaced(site: Path) -> None:
    (site / "new").write_text("VALUE = 2\n")
    (site / "new").replace(site / "lib.py")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a path file": lambda site: (site / "evil.pth").write_text("import evil"),
    "a file in place": _in_place,
    "a file replaced": _replaced,
    "a file removed": lambda site: (site / "lib.py").unlink(),
    "bytecode": lambda site: (site / "__pycache__").mkdir(),
    "a link": lambda site: (site / "link").unlink() or (site / "link").symlink_to("/etc/hosts"),
    "permissions": lambda site: (site / "lib.py").chmod(0o666),
    "a folder moved": lambda site: site.rename(site.with_name("moved")),
    "a folder hidden": lambda site: site.chmod(0),
    "everything": lambda site: remove(site.parents[1]),
}


@pytest.mark.fault("a run writes into the environment that it shares with others")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_of_an_environment_is_noticed(built: Path, change: Callable[[Path], object]):
    home = built.with_name("home")
    seal(built, home)
    assert digest_of(home) == digest_of(home)
    for path in (home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755)
    before = digest_of(home)
    change(home / "lib" / "site-packages")
    assert digest_of(home) != before


def _linked(built: Path) -> None:
    os.link(built / "lib/site-packages/lib.py", built / "other")


def _swapped(built: Path) -> None:
    built.rename(built.with_name("moved"))
    built.symlink_to("/etc")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda built: os.mkfifo(built / "pipe"), "pipe"),
        (_linked, "other"),
        (_swapped, "home"),
    ],
    ids=["pipe", "hard link", "link"],
)
def test_an_environment_that_holds_something_else_is_not_kept(
    built: Path, change: Callable[[Path], None], name: str
):
    change(built)
    etc = Path("/etc").stat().st_mode
    with pytest.raises(EnvironmentProblem, match=f"{name}|lib.py") as raised:
        seal(built, built.with_name("home"))
    assert "is no folder, no link and no file of one name" in str(raised.value)
    assert Path("/etc").stat().st_mode == etc
