"""OpenTelemetry spans of runs, model calls and service requests; none unless tracing is on.

Tracing is on if the program that imports Memantics has loaded ``opentelemetry``, or if a standard
variable names a collector (:func:`start_traces`). Names follow the conventions for generative AI.
Spans have no prompts and no replies, unless ``OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT``
is ``true``; images are named, never sent.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from memantics.core.errors import need_packages
from memantics.core.files import hide
from memantics.core.records import Message, Reply, Request, Score

ADDRESSES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
EVALUATION = "gen_ai.evaluation.result"
_NAME = "memantics"


def start_traces() -> None:
    """Send spans to the collector that a standard variable names; do nothing without one.

    Raises:
        MissingExtra: If the extra ``otel`` is not installed.
    """
    if os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return
    if not any(map(os.environ.get, ADDRESSES)):
        return
    need_packages("traces", "otel", "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or _NAME})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)


@contextmanager
def _span(name: str, kind: str, attributes: Mapping[str, Any]) -> Iterator[Any]:
    """Open a span; yield None, at almost no cost, if nobody has loaded OpenTelemetry."""
    if "opentelemetry.trace" not in sys.modules:
        yield None
        return
    from opentelemetry import trace

    known = {key: value for key, value in attributes.items() if value is not None}
    tracer = trace.get_tracer(_NAME)
    with tracer.start_as_current_span(
        name, kind=trace.SpanKind[kind], attributes=known, record_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            # The message may quote a caption, so only the type is recorded.
            span.set_attribute("error.type", type(error).__name__)
            raise


@contextmanager
def trace_call(model: str, request: Request) -> Iterator[CallTrace]:
    """Trace one call of a model; the caller adds the reply."""
    kind, _, name = model.partition("/")
    sampling = request.sampling
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": kind,
        "gen_ai.request.model": hide(name),
        "gen_ai.request.temperature": sampling.temperature,
        "gen_ai.request.max_tokens": sampling.max_tokens,
        "gen_ai.request.seed": sampling.seed,
    }
    with _span(f"chat {hide(name)}", "CLIENT", attributes) as span:
        if span is not None and _wants_content():
            span.set_attribute("gen_ai.input.messages", _show_messages(request.messages))
        yield CallTrace(span)


class CallTrace:
    """The span of one model call."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def add(self, reply: Reply) -> None:
        """Add the facts of a reply: the model that served it, tokens and finish reason."""
        if self._span is None:
            return
        found: dict[str, Any] = {
            "gen_ai.response.model": reply.served_by,
            "gen_ai.response.finish_reasons": [reply.finish] if reply.finish else None,
            "gen_ai.usage.input_tokens": reply.tokens_in,
            "gen_ai.usage.output_tokens": reply.tokens_out,
            "gen_ai.usage.reasoning.output_tokens": reply.tokens_thought,
        }
        if _wants_content():
            said = [{"role": "assistant", "parts": [{"type": "text", "content": reply.text}]}]
            found["gen_ai.output.messages"] = json.dumps(said, ensure_ascii=False)
        self._span.set_attributes({key: value for key, value in found.items() if value})


@contextmanager
def trace_run(task: str, model: str, folder: str) -> Iterator[RunTrace]:
    """Trace one run: a task with a model; the caller adds the scores."""
    kind, _, name = model.partition("/")
    attributes = {
        "gen_ai.provider.name": kind,
        "gen_ai.request.model": hide(name),
        "memantics.task": task,
        "memantics.run": folder,
    }
    with _span(f"evaluate {task}", "INTERNAL", attributes) as span:
        yield RunTrace(span)


class RunTrace:
    """The span of one run."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def add(self, scores: Iterable[Score]) -> None:
        """Add an event for each metric over all items, with its confidence interval."""
        if self._span is None:
            return
        for score in scores:
            if score.by or score.value is None:
                continue
            facts = {
                "gen_ai.evaluation.name": score.key,
                "gen_ai.evaluation.score.value": score.value,
                "memantics.evaluation.items": score.n,
                "memantics.evaluation.low": score.low,
                "memantics.evaluation.high": score.high,
            }
            known = {key: value for key, value in facts.items() if value is not None}
            self._span.add_event(EVALUATION, known)


@contextmanager
def trace_request(method: str) -> Iterator[RequestTrace]:
    """Trace one request to a web app; the caller adds its route and status."""
    with _span(method, "SERVER", {"http.request.method": method}) as span:
        yield RequestTrace(span)


class RequestTrace:
    """The span of one request; it has the route and never the path, which may name a meme."""

    def __init__(self, span: Any) -> None:
        self._span = span

    def add(self, method: str, route: str, status: int) -> None:
        """Add the route and the status of the response."""
        if self._span is None:
            return
        self._span.update_name(f"{method} {route}")
        self._span.set_attributes({"http.route": route, "http.response.status_code": status})


def _wants_content() -> bool:
    return os.environ.get(CONTENT, "").strip().lower() in (
        "true",
        "1",
        "span_only",
        "span_and_event",
    )


def _show_messages(messages: Iterable[Message]) -> str:
    shown = [
        {
            "role": message.role,
            "parts": [
                {"type": "text", "content": part}
                if isinstance(part, str)
                else {"type": "image", "name": part.path.name}
                for part in message.parts
            ],
        }
        for message in messages
    ]
    return json.dumps(shown, ensure_ascii=False)
