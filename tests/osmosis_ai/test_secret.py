"""A secret shows itself nowhere, and a redactor finds it in every spelling (S1 to S10, E38)."""

from __future__ import annotations

import base64
import copy
import dataclasses
import html
import json
import pickle
import pprint
import re
import shlex
import threading
import traceback
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osmosis_ai import secret
from osmosis_ai.secret import (
    MASK,
    Redactor,
    Secret,
    check_api_key,
    is_maskable,
    mask_everywhere,
)

VALUE = "sk-proj-A/b+c=d&e<f>'g\"h é\\i-0123456789"


@dataclasses.dataclass
class Settings:
    key: Secret


@pytest.mark.fault("settings are printed, copied or pickled")
def test_a_secret_shows_its_name_and_never_its_value():
    secret = Secret(VALUE, "MY_KEY")
    shown = [
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>60}",
        f"{secret!r}",
        "%s" % secret,  # noqa: UP031
        repr([secret]),
        repr({secret: secret}),
        repr(Settings(secret)),
        repr(dataclasses.asdict(Settings(secret))),
        pprint.pformat({"key": secret}),
    ]
    assert all("sk-proj" not in text for text in shown)
    assert all("MY_KEY" in text for text in shown)
    assert repr(Secret("x")) == "Secret(****)"
    assert secret.reveal() == VALUE


def test_a_secret_has_nothing_to_look_into():
    secret = Secret(VALUE)
    assert not hasattr(secret, "__dict__")
    with pytest.raises(TypeError):
        vars(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(AttributeError):
        secret.other = 1  # type: ignore[attr-defined]


@pytest.mark.fault("settings are printed, copied or pickled")
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_secret_is_never_pickled(protocol: int):
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Secret(VALUE), protocol)


def test_copies_are_the_secret_itself():
    secret = Secret(VALUE, "MY_KEY")
    assert copy.copy(secret) is secret
    assert copy.deepcopy([secret])[0] is secret


def test_secrets_compare_by_value():
    assert Secret("ké", "A") == Secret("ké", "B")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
    assert Secret("a")
    assert not Secret("")


def test_a_traceback_with_locals_does_not_show_it():
    def fail(key: Secret) -> None:
        raise RuntimeError("no")

    try:
        fail(Secret(VALUE))
    except RuntimeError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True).format()
        assert "sk-proj" not in "".join(shown)


def spellings(value: str) -> dict[str, str]:
    raw = value.encode()
    found = {
        "plain": value,
        "JSON": json.dumps({"k": value}),
        "JSON, not ASCII": json.dumps({"k": value}, ensure_ascii=False),
        "JSON in JSON": json.dumps(json.dumps(value)),
        "Python": repr({"k": value}),
        "Python, ASCII": ascii([value]),
        "URL": quote(value),
        "URL, all": quote(value, safe=""),
        "form": quote_plus(value),
        "URL in lower case": re.sub("%..", lambda found: found[0].lower(), quote(value, safe="")),
        "XML": html.escape(value, quote=False),
        "XML attribute": html.escape(value),
        "shell": shlex.quote(value),
        "userinfo": f"http://user:{quote(value, safe='')}@host",
        "header": base64.b64encode(b"user:" + raw).decode(),
    }
    for phase in range(3):
        text = b"x" * phase + raw + b"yz"
        found[f"base64 {phase}"] = base64.b64encode(text).decode()
        found[f"base64, URL {phase}"] = base64.urlsafe_b64encode(text).decode()
    return found


@pytest.mark.fault("a key finds its way into an answer, an error, a log or the output")
@pytest.mark.parametrize("spelling", spellings(VALUE))
def test_every_spelling_is_masked(spelling: str):
    text = spellings(VALUE)[spelling]
    redacted = Redactor([Secret(VALUE)])(f"before {text} after")
    assert MASK in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert "0123456789" not in redacted
    assert redacted.count(MASK) == 1
    assert len(redacted) < len("before  after http://user:@host") + 18


@given(
    value=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=8, max_size=30)
    .map(str.strip)
    .filter(is_maskable),
    spelling=st.sampled_from(sorted(spellings(VALUE))),
)
def test_any_secret_is_masked_in_any_spelling(value: str, spelling: str):
    assert MASK in Redactor([Secret(value)])(f"<{spellings(value)[spelling]}>")


def test_masked_json_is_still_json():
    text = json.dumps({"echo": f"your key is {VALUE}!", "n": 1})
    assert json.loads(Redactor([Secret(VALUE)])(text)) == {"echo": "your key is ***!", "n": 1}


def test_a_secret_that_code_gives_later_is_masked_by_redactors_that_are_there():
    earlier = Redactor([Secret(VALUE)])
    later = "sk-given-later-Kd93jdQ2"
    mask_everywhere(Secret(later))
    for redact in (earlier, Redactor()):
        assert redact(f"{later} {quote(later)!r}") == f"{MASK} '{MASK}'"
        assert redact.beginning(f"is {later[:12]}") == "is "
        assert redact.end(f"{later[12:]} is") == " is"
    assert earlier(VALUE) == MASK
    assert Redactor([Secret(later[:12])])(later) == MASK  # the one is how the other begins
    own, last = "sk-its-own-8fK2mXq1", "sk-given-last-7Tn3wPz9"
    earlier.add(Secret(own))
    mask_everywhere(Secret(last))
    assert earlier(f"{VALUE} {later} {own} {last}") == " ".join([MASK] * 4)


def test_secrets_that_two_threads_add_at_once_are_both_masked_everywhere(
    monkeypatch: pytest.MonkeyPatch,
):
    keys, spellings = ["key-of-one-judge", "key-of-another-judge"], secret._spellings
    other = threading.Thread(target=mask_everywhere, args=[Secret(keys[1])])

    def meanwhile(value: str) -> set[str]:
        if value == keys[0]:
            other.start()
            other.join(0.05)  # it has to wait for this one, which it cannot do here
        return {*spellings(value)}

    monkeypatch.setattr(secret, "_spellings", meanwhile)
    mask_everywhere(Secret(keys[0]))
    other.join()
    assert Redactor()(" ".join(keys)) == f"{MASK} {MASK}"


@pytest.mark.fault("a secret is short, or a common word")
def test_short_and_common_secrets_are_not_masked_but_named():
    redactor = Redactor([Secret("test", "A"), Secret("Password", "B"), Secret("xxxxxxxxxx", "C")])
    redactor.add(Secret("", "D"))
    redactor.add(Secret("short", ""))
    assert redactor.unmaskable == ["A", "B", "C", "D", "(unnamed)"]
    assert redactor("a test with password") == "a test with password"


def test_each_line_of_a_secret_of_several_is_masked_alone():
    redact = Redactor([Secret("-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n  hkiG9w0BAQ==\n}\n")])
    assert redact("line: MIIEvQIBADANBgkq") == "line: ***"
    assert redact("hkiG9w0BAQ==\n}") == "***\n}"


def test_secrets_can_be_added_and_a_longer_one_is_masked_whole():
    redactor = Redactor()
    assert redactor("key-12345678-more") == "key-12345678-more"
    redactor.add(Secret("key-12345678"))
    redactor.add(Secret("key-12345678"))
    assert redactor("key-12345678-more") == "***-more"
    redactor.add(Secret("key-12345678-more"))
    assert redactor("key-12345678-more") == "***"
    assert "12345678" not in repr(redactor)


@pytest.mark.parametrize("value", ["sk-proj-0123", "EMPTY", "~!@#$%^&*()_+"])
def test_a_key_that_can_travel_is_accepted(value: str):
    secret = check_api_key(value, "MY_KEY")
    assert (secret.reveal(), secret.name) == (value, "MY_KEY")


@pytest.mark.fault("the key is empty, missing, or holds what no header can carry")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "MY_KEY is empty"),
        (" \n", "MY_KEY is empty"),
        ("sk-secret\n", "MY_KEY holds a line break"),
        ("sk-secret\r\nX-Evil: 1", "MY_KEY holds a line break"),
        ("sk secret", "MY_KEY holds a space or a control character at position 3"),
        ("sk-secret\x00", "MY_KEY holds a space or a control character at position 10"),
        ("sk–secret", "MY_KEY holds a non-ASCII character at position 3"),
        ("sk-\ud800secret", "MY_KEY holds a non-ASCII character at position 4"),
    ],
)
def test_a_key_that_cannot_travel_is_refused_by_name(value: str, words: str):
    with pytest.raises(ValueError) as caught:
        check_api_key(value, "MY_KEY")
    assert str(caught.value).startswith(words)
    assert "secret" not in str(caught.value)


def test_a_text_that_is_cut_ends_and_begins_with_no_piece_of_a_secret():
    redact = Redactor([Secret("sk-abc/def+0123456789")])
    for cut in range(1, 21):
        before, after = "said sk-abc/def+0123456789 twice"[: 5 + cut], "x/def+0123456789 said"[1:]
        assert redact.beginning(before) == "said "
        assert redact.end(after) == " said"
    assert redact.beginning("sk-abc/def+0123456789 and sk-abc%2Fde") == "*** and "
    assert redact.beginning("a key sk-osmosis-0123456789") == "a key "
    assert redact.end("qwertyuiop_asdfghjkl-ABC was it") == " was it"
    assert redact.beginning("nothing") == redact.end("nothing") == "nothing"
