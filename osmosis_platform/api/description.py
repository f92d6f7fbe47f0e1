"""The API in OpenAPI's words, made of the same table that answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..datasets import upload_urls
from ..http.endpoints import Endpoint, Needs
from .table import ENDPOINTS

PATH = "/api/openapi.json"
_REFERENCE = "#/components/schemas/{model}"
_MODE: JsonSchemaMode = "validation"
_TEXT = {"type": "string", "minLength": 1}
_ERROR = {
    "type": "object",
    "required": ["error", "code"],
    "properties": {
        "error": {"type": "string", "description": "One sentence."},
        "code": {"type": "string", "description": "For programs."},
        "field": {"type": "string", "description": "The path of the field that is wrong."},
        "details": {"type": "object"},
    },
}
_VERSION = {
    "name": "X-Osmosis-CLI-Version",
    "in": "header",
    "required": True,
    "schema": {"type": "string", "examples": ["0.1.0"]},
    "description": "The version of the client.",
}
_GIT = {
    "name": "X-Osmosis-Git",
    "in": "header",
    "required": True,
    "schema": {"type": "string", "examples": ["owner/repo"]},
    "description": "The repository of the workspace: OWNER/REPO in lower case.",
}


async def show_description(request: Request) -> Response:
    """Answer with the document; it says nothing that is not in the documentation."""
    return JSONResponse(description())


DESCRIPTION = [Route(PATH, show_description, methods=["GET"])]


@cache
def description() -> dict[str, Any]:
    """Return the document."""
    models = {each for endpoint in ENDPOINTS for each in (endpoint.body, endpoint.query) if each}
    wanted = [(model, _MODE) for model in sorted(models, key=lambda model: model.__qualname__)]
    schemas, definitions = models_json_schema(wanted, ref_template=_REFERENCE)
    by_model: dict[Any, Any] = {model: found for (model, _), found in schemas.items()}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        operation = _operation(endpoint, by_model, definitions["$defs"])
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    paths[f"{upload_urls.PATH}/{{id}}/{{number}}"] = {"put": _upload()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "osmosis platform",
            "version": "1",
            "description": "What `osmosis` speaks with a platform.",
        },
        "paths": paths,
        "components": {
            "schemas": {**definitions["$defs"], "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(
    endpoint: Endpoint,
    schemas: Mapping[type[BaseModel], Mapping[str, Any]],
    definitions: Mapping[str, Any],
) -> dict[str, Any]:
    parameters = [*_path_parameters(endpoint.path), _VERSION]
    if endpoint.needs in (Needs.WORKSPACE, Needs.WRITE):
        parameters.append(_GIT)
    if endpoint.query is not None:
        name = schemas[endpoint.query]["$ref"].rpartition("/")[2]
        parameters += _query_parameters(definitions[name])
    statuses = ("200", "201") if endpoint.method == "POST" else ("200",)
    responses = _responses(*statuses, media_type=endpoint.media_type)
    found: dict[str, Any] = {"parameters": parameters, "responses": responses}
    if endpoint.needs is not Needs.NOTHING:
        found["security"] = [{"token": []}]
    if endpoint.body is not None:
        content = {"application/json": {"schema": schemas[endpoint.body]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": _TEXT}
        for name in re.findall(r"\{(\w+)\}", path)
    ]


def _query_parameters(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = model.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": schema}
        for name, schema in model.get("properties", {}).items()
    ]


def _responses(*statuses: str, media_type: str = "application/json") -> dict[str, Any]:
    kind = "object" if media_type == "application/json" else "string"
    done = {media_type: {"schema": {"type": kind}}}
    error = {"application/json": {"schema": {"$ref": _REFERENCE.format(model="Error")}}}
    return {
        **{status: {"description": "Done.", "content": done} for status in statuses},
        "default": {"description": "Refused.", "content": error},
    }


def _upload() -> dict[str, Any]:
    path = f"{upload_urls.PATH}/{{id}}/{{number}}"
    signed = [
        {"name": name, "in": "query", "required": True, "schema": {"type": "string"}}
        for name in ("expires", "signature")
    ]
    content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "parameters": [*_path_parameters(path), *signed],
        "requestBody": {"required": True, "content": content},
        "responses": _responses("200"),
    }
