"""Datasets, secrets, members and tokens, as their pages show and change them."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
from sqlalchemy import select

from osmosis_platform.database.models import Member, StoredSecret, now
from osmosis_platform.datasets.files import DatasetFiles
from tests.support.platform_server import Account, PlatformServer

from .conftest import Browser

VALUE = "sk-never-to-be-seen-again-<b>"
LogIn = Callable[[Account], Browser]


def test_a_secret_is_set_replaced_and_deleted_and_its_value_never_shown(
    browser: Browser, platform_server: PlatformServer
):
    answers = [browser.post("secrets", name="SOME_KEY", scope="user", value=VALUE)]
    assert answers[0].status_code == 303
    answers.append(browser.post("secrets", name="SOME_KEY", scope="workspace", value="a\r\nb"))
    answers.append(browser.get("secrets?done=saved"))
    assert answers[-1].text.count("<code>SOME_KEY</code>") == 2
    assert "Saved." in answers[-1].text
    with platform_server.database.reading() as session:
        is_ours = StoredSecret.workspace_id == browser.account.workspace_id
        stored = session.scalars(select(StoredSecret).where(is_ours)).all()
    decrypted = {platform_server.vault.decrypt(each.encrypted) for each in stored}
    assert decrypted == {VALUE, "a\nb"}
    for fields, message in (
        ({"name": "small", "scope": "user"}, "capital letters"),
        ({"name": "OK", "scope": "world"}, "for whom"),
    ):
        answers.append(browser.post("secrets", value=VALUE, **fields))
        assert (answers[-1].status_code, message in answers[-1].text) == (422, True)
    answers.append(browser.post("secrets", name="SOME_KEY", scope="user", value=""))
    assert "Value: is empty." in answers[-1].text
    long = browser.post("secrets", name="SOME_KEY", scope="user", value=VALUE + "+" * 60_000)
    assert long.status_code == 303  # each of these is three characters of a form
    longer = browser.post("secrets", name="SOME_KEY", scope="user", value=VALUE * 10_000)
    assert longer.status_code == 413
    for text in ("The body is larger than", "A value has at most 65,536 bytes.", "Set a secret"):
        assert text in longer.text
    answers += [long, longer]
    browser.post("secrets/delete", name="SOME_KEY", scope="user")
    answers.append(browser.get("secrets"))
    assert answers[-1].text.count("<code>SOME_KEY</code>") == 1
    assert not any("sk-never" in answer.text for answer in answers)


def test_a_token_is_shown_once_serves_and_is_revoked_by_who_may(
    browser: Browser, viewer: Browser, connection: httpx.Client
):
    issued = browser.post("tokens", label="<b>nightly", days="7")
    assert issued.status_code == 200
    found = re.search(r'value="(osm_[\w-]+)"', issued.text)
    assert found is not None
    token = found[1]
    assert issued.headers["cache-control"] == "no-store"
    page = browser.get("tokens").text
    assert token not in page
    assert "&lt;b&gt;nightly" in page
    headers = {"Authorization": f"Bearer {token}", "X-Osmosis-CLI-Version": "0.1.0"}
    verified = connection.get("/api/cli/verify", headers=headers)
    assert verified.json()["workspace"]["name"] == browser.account.workspace
    assert browser.post(f"tokens/{verified.json()['token_id']}/revoke").status_code == 303
    assert connection.get("/api/cli/verify", headers=headers).status_code == 401
    assert "&lt;b&gt;nightly" not in browser.get("tokens").text
    for fields in ({"label": " ", "days": "7"}, {"label": "x", "days": "4000"}):
        assert browser.post("tokens", **fields).status_code == 422
    # An owner revokes those of members, and they none of others.
    assert viewer.account.user in browser.get("tokens").text
    assert browser.account.user not in viewer.get("tokens").text
    assert viewer.post(f"tokens/{browser.account.token_id}/revoke").status_code == 404
    assert viewer.post("tokens", label="mine", days="7").status_code == 200
    assert browser.post(f"tokens/{viewer.account.token_id}/revoke").status_code == 303
    verified = connection.get("/api/cli/verify", headers=viewer.account.headers)
    assert verified.status_code == 401


def test_a_viewer_looks_and_changes_nothing(
    browser: Browser, viewer: Browser, platform_server: PlatformServer
):
    for page in ("datasets", "secrets", "members"):
        shown = viewer.get(page)
        assert shown.status_code == 200
        assert f'action="/w/{browser.account.workspace}/{page}' not in shown.text
    assert viewer.post("secrets", name="A", scope="user", value="b").status_code == 403
    assert viewer.post("members", name="owner", role="owner").status_code == 403
    member = platform_server.add_user(
        f"member-in-{browser.account.workspace}",
        workspace=browser.account.workspace,
        role="member",
    )
    assert member.user in viewer.get("members").text


def test_owners_add_members_change_roles_and_keep_one_owner(
    browser: Browser, viewer: Browser, platform_server: PlatformServer, log_in: LogIn
):
    other = platform_server.add_workspace()
    assert browser.post("members", name=other.user, role="member").status_code == 303
    assert browser.post("members", name=other.user, role="member").status_code == 409
    assert "no account of this name" in browser.post("members", name="x", role="member").text
    assert browser.post(f"members/{other.user_id}", role="king").status_code == 422
    joined = log_in(other)
    there = f"/w/{browser.account.workspace}/members"
    assert joined.get(there).status_code == 200
    mine = browser.account.user_id
    assert joined.post(f"{there}/{mine}/remove").status_code == 403
    for path, fields in ((f"members/{mine}", {"role": "viewer"}), (f"members/{mine}/remove", {})):
        refused = browser.post(path, **fields)
        assert (refused.status_code, "keeps one owner" in refused.text) == (409, True)
    assert browser.post(f"members/{other.user_id}", role="owner").status_code == 303
    assert browser.post(f"members/{mine}/remove").headers["location"] == "/"
    assert browser.get("members").status_code == 404
    with platform_server.database.reading() as session:
        key = (browser.account.workspace_id, other.user_id)
        assert session.get_one(Member, key).role == "owner"


def test_a_dataset_is_deleted_once_its_runs_have_ended(
    browser: Browser, viewer: Browser, platform_server: PlatformServer
):
    account = browser.account
    dataset = platform_server.add_dataset("<b>sums", account=account)
    run = platform_server.add_run(account=account, name="my-run", dataset_id=dataset)
    path = f"datasets/{dataset}/delete"
    assert browser.get("datasets").text.count("Delete this dataset") == 2
    refused = browser.post(path)
    assert refused.status_code == 409
    assert "&lt;b&gt;sums.jsonl is used by runs that have not ended (my-run)" in refused.text
    assert viewer.post(path).status_code == 403
    platform_server.set_run(run, status="finished", completed_at=now())
    deleted = browser.post(path)
    assert (deleted.status_code, deleted.headers["location"].rpartition("?")[2]) == (
        303, "done=deleted"
    )  # fmt: skip
    page = browser.get("datasets?done=deleted").text
    assert ("sums.jsonl" in page, "Deleted." in page) == (False, True)
    assert browser.get("runs/my-run").status_code == 200
    assert browser.post(path).status_code == 404


def test_the_first_rows_of_a_dataset_are_in_its_page(
    browser: Browser, platform_server: PlatformServer
):
    for extension, text, shown in (
        ("jsonl", '{"user_prompt": "<script>alert", "tags": ["a"]}\n{"extra": 7}\n', 2),
        ("jsonl", '{"user_prompt": "x"}\n' * 30 + "y" * 300_000, 20),
        ("jsonl", "[" * 100_000, 0),
        ("csv", 'user_prompt,n\n"two\nlines <script>alert",7,more\n', 1),
        ("parquet", "PAR1", 0),
    ):
        dataset = platform_server.add_dataset(account=browser.account, extension=extension)
        files = DatasetFiles(platform_server.settings.data, dataset, extension)
        files.make()
        files.rows.write_text(text)
        page = browser.get(f"datasets/{dataset}").text
        assert page.count('<th scope="row" class="num">') == shown, text[:20]
        assert ("no preview" in page, "<script>alert" in page) == (shown == 0, False)
    platform_server.add_run(account=browser.account, name="its-run", dataset_id=dataset)
    assert ">its-run</a>" in browser.get(f"datasets/{dataset}").text
