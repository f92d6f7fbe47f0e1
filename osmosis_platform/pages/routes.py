"""Every page."""

from __future__ import annotations

from starlette.routing import Route

from . import compare, datasets, login, members, run_list, run_page, secrets, tokens
from .context import done_by, shown_by
from .device import decide, show_device
from .login import log_in, log_out, show_login
from .rendering import Page
from .static_files import STATIC

_ALL = "/w/{workspace}"
_RUNS = f"{_ALL}/runs"
_RUN = f"{_RUNS}/{{name}}"
_DATASETS = f"{_ALL}/datasets"
_SECRETS = f"{_ALL}/secrets"
_MEMBERS = f"{_ALL}/members"
_TOKENS = f"{_ALL}/tokens"


def _get(path: str, respond: Page) -> Route:
    return Route(path, respond, methods=["GET"])


def _post(path: str, respond: Page) -> Route:
    return Route(path, respond, methods=["POST"])


PAGES = [
    _get("/", login.home),
    _get("/login", show_login),
    _post("/login", log_in),
    _post("/logout", log_out),
    _get("/device", show_device),
    _post("/device", decide),
    *STATIC,
    _get(_ALL, shown_by(login.enter)),
    _get(_RUNS, shown_by(run_list.show_runs)),
    _get(_RUN, shown_by(run_page.show_run)),
    _post(f"{_RUN}/stop", done_by(run_page.stop_run, run_page.show_run)),
    _post(f"{_RUN}/title", done_by(run_page.set_title, run_page.show_run)),
    _post(f"{_RUN}/again", done_by(run_page.run_again, run_page.show_run)),
    _post(f"{_RUN}/delete", done_by(run_page.delete_run, run_page.show_run)),
    _get(f"{_RUN}/report", shown_by(run_page.show_report)),
    _get(f"{_RUN}/report.html", shown_by(run_page.download_html)),
    _get(f"{_RUN}/report.json", shown_by(run_page.download_report)),
    _get(f"{_RUN}/log.txt", shown_by(run_page.download_log)),
    _get(f"{_ALL}/compare", shown_by(compare.show_comparison)),
    _get(_DATASETS, shown_by(datasets.show_datasets)),
    _get(f"{_DATASETS}/{{id}}", shown_by(datasets.show_dataset)),
    _post(f"{_DATASETS}/{{id}}/delete", done_by(datasets.delete_dataset, datasets.show_datasets)),
    _get(_SECRETS, shown_by(secrets.show_secrets)),
    _post(_SECRETS, done_by(secrets.set_secret, secrets.show_secrets)),
    _post(f"{_SECRETS}/delete", done_by(secrets.delete_secret, secrets.show_secrets)),
    _get(_MEMBERS, shown_by(members.show_members)),
    _post(_MEMBERS, done_by(members.add_member, members.show_members)),
    _post(f"{_MEMBERS}/{{id}}", done_by(members.change_role, members.show_members)),
    _post(f"{_MEMBERS}/{{id}}/remove", done_by(members.remove_member, members.show_members)),
    _get(_TOKENS, shown_by(tokens.show_tokens)),
    _post(_TOKENS, done_by(tokens.issue_token, tokens.show_tokens, viewers_may=True)),
    _post(
        f"{_TOKENS}/{{id}}/revoke",
        done_by(tokens.revoke_token, tokens.show_tokens, viewers_may=True),
    ),
]
