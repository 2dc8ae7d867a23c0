"""Spans of calls, runs and requests, in the collector of OpenTelemetry's own SDK."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import memantics as mm
from memantics.core.errors import Transient
from memantics.core.records import Form, Image, Message, Reply, Request
from memantics.core.tracing import CONTENT, trace_call, trace_request
from tests.commands import Shell

SECRET = "a caption that nobody should see"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    made = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(made))
    return made


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


def ask() -> None:
    parts = (Image(Path("folder/secret-name.png")), SECRET)
    request = Request((Message("user", parts),), Form("", ()))
    with trace_call("openai/qwen", request) as call:
        call.add(Reply("B", finish="stop", tokens_in=7, tokens_out=2, served_by="qwen-2026"))


def test_a_call_has_the_conventions_and_no_content(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(CONTENT, raising=False)
    ask()
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("chat qwen", trace.SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "qwen",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.response.model": "qwen-2026",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 7,
        "gen_ai.usage.output_tokens": 2,
    }
    assert SECRET not in span.to_json()


def test_content_is_recorded_if_asked_and_images_are_named(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CONTENT, "true")
    ask()
    (span,) = spans.get_finished_spans()
    attributes = span.attributes or {}
    (message,) = json.loads(str(attributes["gen_ai.input.messages"]))
    assert message["parts"] == [
        {"type": "image", "name": "secret-name.png"},
        {"type": "text", "content": SECRET},
    ]
    assert json.loads(str(attributes["gen_ai.output.messages"]))[0]["parts"][0]["content"] == "B"


def test_an_error_is_named_by_its_type_only(spans: InMemorySpanExporter) -> None:
    request = Request((Message("user", ("a",)),), Form("", ()))
    with pytest.raises(Transient), trace_call("openai/m", request):
        raise Transient(SECRET)
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["error.type"] == "Transient"
    assert not span.events


def test_a_request_has_its_route(spans: InMemorySpanExporter) -> None:
    with trace_request("GET") as request:
        request.add("GET", "/v1/jobs/{job}", 404)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("GET /v1/jobs/{job}", trace.SpanKind.SERVER)
    assert (span.attributes or {})["http.response.status_code"] == 404


def test_a_run_has_calls_and_evaluation_results(
    spans: InMemorySpanExporter, tmp_path: Path
) -> None:
    settings = mm.EvaluationSettings(limit=4)
    run = mm.evaluate("mquest/qa", "fake/keys", settings=settings, out=tmp_path / "runs")
    found = spans.get_finished_spans()
    (whole,) = [span for span in found if span.name.startswith("evaluate ")]
    calls = [span for span in found if span.name == "chat keys"]
    assert len(calls) == 4
    assert whole.context is not None
    assert {call.parent.span_id for call in calls if call.parent} == {whole.context.span_id}
    results = {
        str((event.attributes or {})["gen_ai.evaluation.name"]): event.attributes or {}
        for event in whole.events
        if event.name == "gen_ai.evaluation.result"
    }
    assert results["accuracy"]["gen_ai.evaluation.score.value"] == run.scores["accuracy"].value
    assert results["accuracy"]["memantics.evaluation.items"] == 4


@pytest.mark.slow
def test_a_command_sends_spans_to_a_collector(tmp_path: Path) -> None:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    names: list[str] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            told: Any = ExportTraceServiceRequest.FromString(body)
            names.extend(
                span.name
                for resource in told.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            )
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
    try:
        shell = Shell(tmp_path).apart
        shell.done("run", "mquest/qa", "--model", "fake/keys", "--limit", "2")
    finally:
        del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
        server.shutdown()
        server.server_close()
    assert sorted(name.partition(" ")[0] for name in names) == ["chat", "chat", "evaluate"]
