"""What an evaluation depends on, by name and digest."""

from __future__ import annotations

from pathlib import Path

from pytest_osmosis.storage.source_digest import digests, input_digests


def test_modules_that_are_imported_by_a_call_are_sources_too(tmp_path: Path):
    main = tmp_path / "main.py"
    main.write_text(
        "import importlib\nfrom importlib import import_module\n\n"
        "one = importlib.import_module('one')\ntwo = import_module('two', None)\n"
        "name = 'three'\nthree = import_module(name)\nfour = import_module('.four', 'x')\n"
    )
    for name in ("one", "two", "three", "four"):
        (tmp_path / f"{name}.py").write_text("VALUE = 1\n")
    assert list(digests([main], [tmp_path])) == ["main.py", "one.py", "two.py"]


def test_a_change_is_noticed_in_files_outside_of_the_project_that_share_a_name(
    tmp_path: Path,
):
    files = [tmp_path / folder / "conf.py" for folder in ("a", "b")]
    for file in files:
        file.parent.mkdir()
        file.write_text(f"NAME = {file.parent.name!r}\n")
    roots = [tmp_path / "project"]
    pattern = [str(tmp_path / "*" / "conf.py")]
    seen = [(digests(files, roots), input_digests(pattern, roots))]
    for file in files:
        file.write_text("NAME = None\n")
        seen.append((digests(files, roots), input_digests(pattern, roots)))
    for found in zip(*seen, strict=True):
        assert [list(each) for each in found] == [["conf.py"]] * 3
        assert len({each["conf.py"] for each in found}) == 3
    one = digests(files[:1], roots)
    assert one == digests(files[:1], [*roots, tmp_path / "elsewhere"])
