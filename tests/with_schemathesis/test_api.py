"""Requests that Schemathesis makes of the API's OpenAPI document: no answer is a failure of ours.

They are sent to a platform on loopback, by a member of a workspace with one of everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("schemathesis", reason="Schemathesis needs Python 3.11")

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from osmosis_platform.api.description import description
from tests.support.platform_server import PlatformServer, serving

EXAMPLES = 8
"""Of each call, valid and not."""
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformServer]:
    with serving(tmp_path_factory.mktemp("platform")) as server:
        yield server


@pytest.fixture(scope="session")
def objects(platform: PlatformServer) -> dict[str, str]:
    """What is there, by the segment of the path."""
    run_id = platform.add_run(name="one", status="running")
    platform.add_log(run_id, "a line")
    return {
        "eval-runs": run_id,
        "training-runs": platform.add_run("training"),
        "datasets": platform.add_dataset("uploading", status="uploading"),
        "uploads": platform.add_dataset("other", status="uploading"),
    }


schema = schemathesis.openapi.from_dict(description())
OPERATIONS = [found.ok() for found in schema.get_all_operations()]


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.label)
def test_no_request_makes_the_platform_fail(
    operation: Any, mode: GenerationMode, platform: PlatformServer, objects: dict[str, str]
) -> None:
    segment = (operation.path.split("/") + [""] * 4)[3]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.booleans())
    def ask(case: schemathesis.Case, is_known: bool) -> None:
        for name in {"id", "name"} & set(case.path_parameters):
            if is_known and segment in objects:
                case.path_parameters[name] = objects[segment]
        response = case.call(base_url=platform.url, headers=platform.account.headers)
        case.validate_response(response, checks=CHECKS)

    ask()
