"""An endpoint of the JSON API as a value, and how one request of it is answered.

In this order: token, client, workspace, query, body; then the handler, in a thread and within one
transaction, which is rolled back when the handler refuses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..accounts.tokens import Caller, CallerWorkspace, note_use
from ..database.connection import Database
from ..datasets.checks import DatasetChecks
from ..errors import Refused
from ..settings import Settings
from ..vault.cipher import Vault
from .bodies import parse_json, read_body
from .identity import authenticate, bearer_token, check_client, client_address, workspace_of
from .validation import refusal


class Needs(Enum):
    """What a caller must show."""

    NOTHING = "nothing"
    TOKEN = "token"
    WORKSPACE = "token and repository"
    """X-Osmosis-Git, of the token's workspace."""
    WRITE = "token and repository, of a member that may change things"


B = TypeVar("B", bound=BaseModel | None)
Q = TypeVar("Q", bound=BaseModel | None)


@dataclass(frozen=True, slots=True)
class ApiCall(Generic[B, Q]):
    """One request, as far as a handler is concerned."""

    database: Database
    vault: Vault
    settings: Settings
    base_url: str
    path: Mapping[str, str]
    headers: Mapping[str, str]
    body: B
    query: Q
    client: str
    """The address that stands for who asks; empty where that is not known."""
    checks: DatasetChecks
    known_caller: Caller | None = None
    known_workspace: CallerWorkspace | None = None
    open_session: Session | None = None

    @property
    def session(self) -> Session:
        """The transaction; only where the endpoint has one around its handler."""
        assert self.open_session is not None
        return self.open_session

    @property
    def caller(self) -> Caller:
        """Who asks; only where the endpoint needs a token."""
        assert self.known_caller is not None
        return self.known_caller

    @property
    def workspace(self) -> CallerWorkspace:
        """Where; only where the endpoint needs a workspace."""
        assert self.known_workspace is not None
        return self.known_workspace


@dataclass(frozen=True, slots=True)
class ApiAnswer:
    """What is sent back."""

    document: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A file, sent back line by line as it is."""

    lines: Iterator[bytes]
    media_type: str = "application/x-ndjson"


Handler = Callable[[Any], ApiAnswer | FileAnswer]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    needs: Needs = Needs.WORKSPACE
    body: type[BaseModel] | None = None
    query: type[BaseModel] | None = None
    in_transaction: bool = True
    """False where the handler takes long and opens its own."""

    def route(self) -> Route:
        """Return it as Starlette wants it."""
        return Route(self.path, self._respond(), methods=[self.method])

    def _respond(self) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            caller = workspace = None
            if self.needs is not Needs.NOTHING:
                caller, workspace = await run_in_threadpool(self._identify, request)
            else:
                check_client(request, request.app.state.settings.oldest_client)
            query = self._query(request)
            body = await self._body(request)
            answer = await run_in_threadpool(
                self._handle, request, body=body, query=query, caller=caller, workspace=workspace
            )
            if isinstance(answer, FileAnswer):
                return StreamingResponse(answer.lines, media_type=answer.media_type)
            return JSONResponse(answer.document, status_code=answer.status)

        return respond

    def _identify(self, request: Request) -> tuple[Caller, CallerWorkspace | None]:
        settings: Settings = request.app.state.settings
        database: Database = request.app.state.database
        with database.reading() as session:
            caller = authenticate(session, bearer_token(request))
            request.state.user = caller.user_name  # for the log
            check_client(request, settings.oldest_client)
            is_anywhere = self.needs is Needs.TOKEN
            workspace = caller.workspace if is_anywhere else workspace_of(session, caller, request)
        note_use(database, caller)
        if self.needs is Needs.WRITE and workspace is not None and not workspace.may_write:
            message = f"your role in the workspace {workspace.name} is viewer: you can only look"
            raise Refused(403, "forbidden", message)
        return caller, workspace

    def _query(self, request: Request) -> BaseModel | None:
        given = request.query_params.multi_items()
        if len(dict(given)) != len(given):
            raise Refused(422, "invalid_query", "a parameter of the query is given twice")
        if self.query is None:
            if given:
                raise Refused(422, "invalid_query", "this call takes no query")
            return None
        try:
            return self.query.model_validate_strings(dict(given))
        except ValidationError as error:
            raise refusal(error, code="invalid_query") from None

    async def _body(self, request: Request) -> BaseModel | None:
        limits = request.app.state.settings.limits
        raw = await read_body(request, limit=limits.body_bytes, timeout_s=limits.body_timeout_s)
        document = parse_json(raw, request.headers.get("content-type", ""))
        if self.body is None:
            if document:
                raise Refused(422, "invalid", "this call takes no body")
            return None
        try:
            return self.body.model_validate(document)
        except ValidationError as error:
            raise refusal(error) from None

    def _handle(
        self,
        request: Request,
        *,
        body: BaseModel | None,
        query: BaseModel | None,
        caller: Caller | None,
        workspace: CallerWorkspace | None,
    ) -> ApiAnswer | FileAnswer:
        state = request.app.state
        call = ApiCall(
            database=state.database,
            vault=state.vault,
            settings=state.settings,
            base_url=base_url(request),
            path=request.path_params,
            headers=request.headers,
            body=body,
            query=query,
            client=client_address(request),
            checks=state.checks,
            known_caller=caller,
            known_workspace=workspace,
        )
        if not self.in_transaction:
            return self.handler(call)
        opened = state.database.reading if self.method == "GET" else state.database.writing
        with opened() as session:
            return self.handler(replace(call, open_session=session))


def base_url(request: Request) -> str:
    """Return the platform's own URL, as the operator set it or as the client reached it."""
    settings: Settings = request.app.state.settings
    return (settings.public_url or f"{request.url.scheme}://{request.url.netloc}").rstrip("/")
