"""The OpenAPI document is valid, and a client that is generated from it talks to every interface.

The client is aiopenapi3's, which makes request and response models from the document when it is
read, so that every answer is checked against its schema.
"""

from __future__ import annotations

import json
import re
from typing import Any

import aiopenapi3
import httpx2
import pytest
from openapi_spec_validator import validate

from memantics.serve.inputs import AnalysisRecord, PunsRecord, RowsRecord
from tests.serve.site import MEME, Site, data_url

IMAGE = data_url(MEME.read_bytes())


class PatientClient(httpx2.Client):
    """Waits as long as a busy machine needs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "timeout": 120})


@pytest.fixture(scope="module")
def document(site: Site) -> str:
    with site.client() as client:
        return client.get("/openapi.json").text


@pytest.mark.slow
def test_the_document_is_valid(document: str) -> None:
    found = json.loads(document)
    validate(found)  # raises where the document breaks the specification
    assert "/v1/moderations" in found["paths"]


@pytest.mark.slow
def test_a_generated_client_talks_to_every_interface(site: Site, document: str) -> None:
    api = aiopenapi3.OpenAPI.loads(
        f"{site.address}/openapi.json", document, session_factory=PatientClient
    )
    called: set[str] = set()

    def call(name: str, body: object = None, **parameters: str) -> object:
        called.add(name)
        return api.createRequest(name)(data=body, parameters=parameters or None)

    moderated = call("create_moderation", {"input": "今天天气真好", "model": None})
    assert moderated.results[0].status == "scored"  # type: ignore[attr-defined]
    comment = {"comment": {"text": "今天天气真好"}, "requestedAttributes": {"TOXICITY": {}}}
    assert call("analyze_comment", comment).attributeScores  # type: ignore[attr-defined]
    assert call("list_models").data  # type: ignore[attr-defined]
    assert call("list_detectors").data  # type: ignore[attr-defined]
    assert call("analyze", {"image": IMAGE}).text == "最近有点键忘"  # type: ignore[attr-defined]
    assert call("read_homophones", {"caption": "压力山大"}).readings  # type: ignore[attr-defined]
    query = {"query": "SELECT ?s WHERE { ?s a mm:Scene }", "limit": 2}
    found = call("query_knowledge", query)
    assert len(found.rows) == 2  # type: ignore[attr-defined]
    assert found.cut  # type: ignore[attr-defined]
    job = call("reappraise", {"image": IMAGE})
    name = job.id  # type: ignore[attr-defined]
    assert call("get_job", job=name).id == name  # type: ignore[attr-defined]
    site.ended(f"/v1/jobs/{name}")
    assert "event: done" in str(call("follow_job", job=name))
    call("delete_job", job=name)
    given = {"verdict": "violates", "clause": "1"}
    decided = call("create_decision", {"text": "the old turnip", "decision": given})
    decision = decided.id  # type: ignore[attr-defined]
    appeal = call("create_appeal", {"decision": decision, "statement": "It is art."})
    assert appeal.decision == decision  # type: ignore[attr-defined]
    assert call("get_decision", decision=decision).state == "appealed"  # type: ignore[attr-defined]
    assert call("reload_detectors").detector  # type: ignore[attr-defined]
    assert call("live").status == "ok"  # type: ignore[attr-defined]
    assert call("ready").status == "ready"  # type: ignore[attr-defined]
    assert "memantics_requests_total" in str(call("metrics"))
    paths = json.loads(document)["paths"]
    assert called == {own["operationId"] for one in paths.values() for own in one.values()}


@pytest.mark.slow
def test_answers_are_the_records_of_the_python_functions(site: Site) -> None:
    with site.client() as client:
        seen = client.post("/v1/analyze", json={"image": IMAGE}).json()
        heard = client.post("/v1/puns", data={"caption": "压力山大", "limit": "1"}).json()
        rows = client.post("/v1/knowledge/query", json={"query": "ASK { ?s ?p ?o }"}).json()
    assert AnalysisRecord.model_validate(seen).model_dump(mode="json") == seen
    assert PunsRecord.model_validate(heard).model_dump(mode="json") == heard
    assert len(heard["readings"]) == 1
    assert RowsRecord.model_validate(rows).model_dump(mode="json") == rows


def test_knowledge_can_only_be_read(site: Site) -> None:
    with site.client() as client:
        for query in (
            "INSERT DATA { <a:a> <a:b> <a:c> }",
            "nonsense",
            "SELECT * { SERVICE <http://127.0.0.1/> {} }",
        ):
            answer = client.post("/v1/knowledge/query", json={"query": query})
            assert answer.status_code == 422, query
            assert answer.json()["error"]["message"]


def test_the_page_of_interfaces_needs_no_other_host_and_no_script(site: Site) -> None:
    with site.client(**{"accept-language": "zh"}) as client:
        page = client.get("/docs")
    assert "本服务的全部 API" in page.text
    assert "POST /v1/moderations" in page.text
    assert "<script" not in page.text
    assert not re.findall(r"""(?:src|href)=["']https?://""", page.text)
