"""`.env` files: which is found, what is read of it, and what it may set."""

from __future__ import annotations

from pathlib import Path

import pytest

from osmosis_ai.platform import env_file
from osmosis_ai.platform.env_file import EnvFileError, find, load, read

SECRET = "not-to-be-seen-anywhere"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_nearest_file_up_to_the_top_of_the_work_tree_is_found(folder: Path):
    deep = folder / "tree" / "a" / "b"
    deep.mkdir(parents=True)
    (folder / ".env").write_text("")
    assert find(deep) is None  # outside of Git: no parent is looked at
    assert find(folder) == folder / ".env"
    (folder / "tree" / ".git").mkdir()
    assert find(deep) is None
    (folder / "tree" / ".env").write_text("")
    assert find(deep) == folder / "tree" / ".env"
    (folder / "tree" / "a" / ".env").mkdir()  # a virtual environment
    assert find(deep) == folder / "tree" / ".env"
    (deep / ".env").write_text("")
    assert find(deep) == deep / ".env"


def test_what_is_set_is_not_overridden(folder: Path):
    (folder / ".env").write_text("A=file\nB='file # no comment'\nEMPTY=\nNOTHING\n")
    environment = {"A": "before"}
    loaded = load(read(folder / ".env"), environment, named=False)
    assert environment == {"A": "before", "B": "file # no comment", "EMPTY": ""}
    assert loaded.names == ("B", "EMPTY")
    assert str(loaded) == ".env sets B, EMPTY"


@pytest.mark.fault("a `.env` of the repository sets logins, proxies, `PYTHONPATH`, or an address")
@pytest.mark.parametrize(
    "name",
    [
        "OSMOSIS_TOKEN",
        "OSMOSIS_PLATFORM_URL",
        "OSMOSIS_TOKEN_PLATFORM_URL",
        "HTTP_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "LD_PRELOAD",
        "DYLD_INSERT_LIBRARIES",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "GIT_SSH_COMMAND",
        "VERTEXAI_API_BASE",
        "GITHUB_COPILOT_ACCESS_TOKEN_URL",
        "WX_URL",
    ],
)
def test_a_file_that_was_found_sets_nothing_that_moves_logins_traffic_or_code(
    folder: Path, name: str
):
    (folder / ".env").write_text(f"{name}={SECRET}\nOTHER={SECRET}\n")
    file = read(folder / ".env")
    environment: dict[str, str] = {}
    message = str(load(file, environment, named=False))
    assert environment == {"OTHER": SECRET}
    assert message == (
        f".env sets OTHER, ignores {name}, which only a file that is named sets "
        "(--osmosis-env-file .env)"
    )
    assert str(load(file, environment, named=False)).startswith(f".env ignores {name}")
    named: dict[str, str] = {}
    assert str(load(file, named, named=True)) == f".env sets {name}, OTHER"
    assert named == {name: SECRET, "OTHER": SECRET}
    assert str(load(file, named, named=False)) == ""  # what is set is no news


@pytest.mark.fault("a `.env` of the repository sets logins, proxies, `PYTHONPATH`, or an address")
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("AZURE_API_BASE", "AZURE_API_KEY"),
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "AWS_BEARER_TOKEN_BEDROCK"),
        ("AWS_BEDROCK_RUNTIME_ENDPOINT", "AWS_SESSION_TOKEN"),
        ("DATABRICKS_HOST", "DATABRICKS_TOKEN"),
        ("GEMINI_API_BASE", "GOOGLE_API_KEY"),
        ("HUGGINGFACE_API_BASE", "HF_TOKEN"),
        ("HF_API_BASE", "HUGGINGFACE_API_KEY"),
        ("PERPLEXITY_API_BASE", "PERPLEXITYAI_API_KEY"),
    ],
)
def test_a_file_that_was_found_sends_no_key_elsewhere_but_its_own(
    folder: Path, name: str, key: str
):
    (folder / ".env").write_text(f"{name}=http://elsewhere\n{key}={SECRET}\n")
    file = read(folder / ".env")
    environment = {key: "of the user"}
    assert str(load(file, environment, named=False)).startswith(f".env ignores {name}, which")
    assert environment == {key: "of the user"}
    environment = {"OTHER_API_KEY": "of the user"}
    load(file, environment, named=False)
    assert environment == {"OTHER_API_KEY": "of the user", **file.values}


def test_wrong_lines_are_left_out_and_reported(folder: Path):
    (folder / ".env").write_text(f'A=1\n\nit is\nB=${{A}}2\n={SECRET}\nC="{SECRET}\n')
    file = read(folder / ".env")
    assert (file.values, file.wrong_lines) == ({"A": "1", "B": "12"}, (3, 5, 6))
    summary = str(load(file, {}, named=True))
    assert summary == ".env sets A, B, leaves out what is no NAME=value (line 3, 5, 6)"
    assert SECRET not in f"{file!r}{summary}"


def test_many_names_are_counted_and_odd_ones_escaped(folder: Path):
    (folder / ".env").write_text("'A\x1b[0m'=1\n" + "".join(f"B{n}=1\n" for n in range(10)))
    message = str(load(read(folder / ".env"), {}, named=True))
    assert message == r".env sets A\x1b[0m, B0, B1, B2, B3, B4, B5, B6 and 3 more"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (None, "x.env cannot be read: No such file or directory"),
        (b"A=\xff", "x.env is not UTF-8"),
        ("A=1".encode("utf-16"), "x.env is not UTF-8"),
        (b"A=1\0", "x.env holds a NUL character: is it a file of NAME=value lines?"),
        (b"#" * (env_file.MAX_BYTES + 1), "x.env is larger than 1 MiB: is it a file of"),
    ],
)
def test_a_file_that_cannot_be_used_is_reported(folder: Path, raw: bytes | None, message: str):
    if raw is not None:
        (folder / "x.env").write_bytes(raw)
    with pytest.raises(EnvFileError) as raised:
        read(folder / "x.env")
    assert str(raised.value).startswith(message)


def test_a_byte_order_mark_and_windows_lines_are_read(folder: Path):
    (folder / ".env").write_bytes(b"\xef\xbb\xbfA=1\r\nexport B=2\r\n")
    assert read(folder / ".env").values == {"A": "1", "B": "2"}
