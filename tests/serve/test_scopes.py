"""Which token may use which route: every route × every scope, and every other cell is refused.

A route that is new fails here until it is classified.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from memantics.serve.app import build_app
from memantics.serve.settings import SCOPES, DecisionSettings, ServeSettings, Token, digest

ANYBODY = ""
ROUTES: dict[str, str] = {
    "GET /healthz": ANYBODY,
    "GET /readyz": ANYBODY,
    "GET /docs": ANYBODY,
    "GET /openapi.json": ANYBODY,
    "GET /static/{name}": ANYBODY,
    "GET /login": ANYBODY,
    "POST /logout": ANYBODY,
    "GET /metrics": "metrics",
    "POST /v1/moderations": "moderate",
    "GET /v1/models": "moderate",
    "GET /v1/detectors": "moderate",
    "POST /v1/detectors/reload": "reload",
    "POST /v1/analyze": "analyze",
    "POST /v1/puns": "puns",
    "POST /v1/reappraise": "reappraise",
    "POST /v1/knowledge/query": "knowledge",
    "GET /v1/jobs/{job}": "analyze",
    "DELETE /v1/jobs/{job}": "analyze",
    "GET /v1/jobs/{job}/events": "analyze",
    "POST /v1/decisions": "decide",
    "GET /v1/decisions/{decision}": "read_decisions",
    "POST /v1/appeals": "appeal",
    "POST /v1alpha1/comments:analyze": "moderate",
    "GET /h/hash": "moderate",
    "POST /h/hash": "moderate",
    "GET /m/lookup": "moderate",
    "POST /m/lookup": "moderate",
    "GET /m/raw_lookup": "moderate",
    "GET /c/banks": "moderate",
    "GET /c/bank/{name}": "moderate",
    "GET /c/signal_type": "moderate",
    "POST /c/bank/{name}/content": "banks",
    "POST /c/bank/{name}/signal": "banks",
    "DELETE /c/bank/{name}/content/{number}": "banks",
    "GET /": "pages",
    "GET /studio/sample/{meme}.png": "pages",
    "POST /studio/sample/{meme}": "pages",
    "POST /studio/text": "pages",
    "POST /studio/sound": "pages",
    "POST /studio/harm": "pages",
    "POST /studio/kinder": "pages",
    "POST /studio/words": "pages",
    "POST /studio/choice": "pages",
    "POST /studio/meaning": "pages",
    "POST /studio/page": "pages",
    "GET /browse": "pages",
    "GET /browse/store": "pages",
    "GET /browse/store/query": "pages",
    "GET /browse/store/meme": "pages",
    "GET /browse/runs": "pages",
    "GET /browse/runs/progress": "pages",
    "GET /browse/runs/report": "pages",
    "GET /browse/runs/run": "pages",
    "GET /browse/runs/item": "pages",
}
# The form checks the token that it is given, and no scope.
LOGIN = "POST /login"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    """An app with one token for each scope; it is not started, since nobody gets further."""
    folder = tmp_path_factory.mktemp("scopes")
    tokens = tuple(Token(scope, digest(scope), (scope,), rate=1e6) for scope in SCOPES)
    log = DecisionSettings(str(folder / "decisions.db"))
    made = build_app(ServeSettings(tokens=tokens, state=folder / "state", decisions=log))
    yield made
    made.state.desk.log.close()
    made.state.service.jobs.close()


def list_routes(routes: Iterable[Any]) -> Iterator[str]:
    """All methods and paths, also those of routers inside, which some releases keep as routers."""
    for route in routes:
        inner = getattr(route, "effective_candidates", None)
        if inner is not None:
            yield from list_routes(inner())
        else:
            yield from (f"{method} {route.path}" for method in route.methods)


def test_every_route_is_in_the_table(app: FastAPI) -> None:
    found = {route for route in list_routes(app.router.routes) if not route.startswith("HEAD ")}
    assert found == {*ROUTES, LOGIN}


@pytest.mark.parametrize("route", [route for route, scope in ROUTES.items() if scope])
def test_a_token_opens_only_the_routes_of_its_scope(app: FastAPI, route: str) -> None:
    method, _, path = route.partition(" ")
    path = path.replace("{name}", "HARMFUL").replace("{meme}", "CN90001")
    browser = TestClient(app, base_url="http://127.0.0.1", follow_redirects=False)
    refused = (303, 401) if method == "GET" else (401,)
    assert browser.request(method, path).status_code in refused
    for scope in set(SCOPES) - {ROUTES[route]}:
        for head in ({"authorization": f"Bearer {scope}"}, {"cookie": f"memantics-serve={scope}"}):
            answer = browser.request(method, path, headers={"x-memantics": "studio", **head})
            assert answer.status_code == 403, (route, scope)
