"""The OpenAPI document, and a page that shows it without any script or other host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.responses import JSONResponse, Response

from memantics.serve.moderations import ModerationBody
from memantics.serve.pages import Pages

router = APIRouter(include_in_schema=False)
OPEN = ("/healthz", "/readyz")


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the service, with the bodies that routes read by themselves."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, summary=app.summary, routes=app.routes
        )
        made = _plain_tuples(made)
        made["servers"] = [{"url": "/"}]
        schemas = made["components"]["schemas"]
        _, bodies = models_json_schema(
            [(ModerationBody, "validation")], ref_template="#/components/schemas/{model}"
        )
        schemas.update(bodies["$defs"])
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in made["paths"].items():
            for operation in methods.values():
                operation["security"] = [{}] if path in OPEN else [{"token": []}, {}]
        app.openapi_schema = made
    return app.openapi_schema


def _plain_tuples(schema: Any) -> Any:
    """Tuples of one type as lists of so many: generators of clients know no other."""
    if isinstance(schema, list):
        return [_plain_tuples(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = schema.get("prefixItems", [])
    if kinds and all(kind == kinds[0] for kind in kinds):
        schema = {key: part for key, part in schema.items() if key != "prefixItems"}
        schema["items"] = kinds[0]
    return {key: _plain_tuples(part) for key, part in schema.items()}


@router.get("/openapi.json")
def show_document(request: Request) -> Response:
    """The OpenAPI document."""
    return JSONResponse(describe(request.app))


@router.get("/docs")
def show_page(request: Request) -> Response:
    """The document as a page."""
    pages: Pages = request.app.state.pages
    document = describe(request.app)
    context = {
        "operations": [
            (method.upper(), path, operation, list(_list_bodies(document, operation)))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ],
        "schemas": document["components"]["schemas"],
        "kind": show_kind,
        "address": request.app.state.settings.reach.address,
        "guarded": request.app.state.gate.guarded,
    }
    return pages.show(request, "docs.html", context)


def _list_bodies(document: Mapping[str, Any], operation: Mapping[str, Any]) -> Any:
    for media, body in operation.get("requestBody", {}).get("content", {}).items():
        schema = body["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        yield media, schema


def show_kind(schema: Mapping[str, Any]) -> str:
    """A type in words.

    >>> show_kind({"type": "array", "items": {"$ref": "#/components/schemas/Harm"}})
    'list of Harm'
    >>> show_kind({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string or null'
    """
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return repr(schema["const"])
    if "enum" in schema:
        return " or ".join(map(repr, schema["enum"]))
    for word in ("anyOf", "oneOf"):
        if word in schema:
            return " or ".join(map(show_kind, schema[word]))
    if schema.get("type") == "array":
        return f"list of {show_kind(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "anything"))
