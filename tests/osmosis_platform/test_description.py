"""The API's OpenAPI document has every call of the API, and nothing else."""

from __future__ import annotations

import json

import httpx

from osmosis_platform.api.description import description
from osmosis_platform.app import create_app
from osmosis_platform.pages.routes import PAGES
from tests.support.platform_server import PlatformServer

OF_THE_OPERATOR = {"/health", "/health/ready", "/metrics", "/api/openapi.json"}


def test_every_route_that_is_no_page_is_described_and_no_other(
    platform_server: PlatformServer,
) -> None:
    app = create_app(platform_server.settings, platform_server.database, platform_server.vault)
    pages = {route.path for route in PAGES}
    routes = {
        (method.lower(), route.path)
        for route in app.routes
        for method in route.methods - {"HEAD"}
        if route.path not in pages | OF_THE_OPERATOR
    }
    paths = description()["paths"]
    assert {(method, path) for path, found in paths.items() for method in found} == routes


def test_the_document_is_served_whole_and_its_references_lead_somewhere(
    connection: httpx.Client,
) -> None:
    answer = connection.get("/api/openapi.json")
    document = answer.json()
    assert (answer.status_code, document) == (200, json.loads(json.dumps(description())))
    schemas = document["components"]["schemas"]
    text = json.dumps(document)
    references = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
    assert references <= set(schemas)
    assert {"EvalSubmission", "TrainingSubmission", "NewSecret", "Error"} <= set(schemas)


def test_conversations_are_described_as_lines() -> None:
    call = description()["paths"]["/api/cli/eval-runs/{name}/conversations"]["get"]
    assert call["responses"]["200"]["content"] == {
        "application/x-ndjson": {"schema": {"type": "string"}}
    }


def test_what_a_call_needs_is_in_the_document() -> None:
    calls = description()["paths"]
    submit = calls["/api/cli/eval-runs"]["post"]
    names = [parameter["name"] for parameter in submit["parameters"]]
    assert names == ["X-Osmosis-CLI-Version", "X-Osmosis-Git"]
    assert submit["security"] == [{"token": []}]
    assert "security" not in calls["/api/cli/device/token"]["post"]
    logs = calls["/api/cli/eval-runs/{name}/logs"]["get"]["parameters"]
    assert {"name", "limit", "cursor", "direction"} <= {parameter["name"] for parameter in logs}
