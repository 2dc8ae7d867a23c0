"""What models say in the studio: one, two side by side, one that fails, one that is hostile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from playwright.sync_api import Browser, Route, expect

from memantics.models.client import CallSettings
from memantics.serve.settings import ServedModels
from tests.browser import launch
from tests.inspect_tasks.server import serve
from tests.serve.visiting import assert_at_home, fits, serve_pages, visit, without_kinder

pytestmark = pytest.mark.slow

EVIL = "</script><img src=x onerror=alert(1)><svg onload=alert(2)>"


def fill(schema: dict[str, Any], harmful: bool) -> Any:
    """A value that fits a schema; every text in it is hostile."""
    if "$ref" in schema or "anyOf" in schema:
        return None if "anyOf" in schema else EVIL
    if "enum" in schema:
        return schema["enum"][0 if harmful else -1]
    kind = schema.get("type")
    if kind == "object":
        return {name: fill(own, harmful) for name, own in schema.get("properties", {}).items()}
    if kind == "array":
        return [fill(schema.get("items", {}), harmful)]
    return {"boolean": harmful, "integer": 1, "number": 1.0}.get(str(kind), EVIL)


def answer(body: dict[str, Any]) -> str:
    """``kind`` and ``stern`` answer by the schema, any other model babbles."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if body["model"] not in ("kind", "stern"):
        return "…"
    return orjson.dumps(fill(schema, body["model"] == "stern")).decode()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as opened:
        yield opened


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serve(answer) as url:
        calls = CallSettings(base_url=url, timeout=20.0)
        names = ("openai/kind", "openai/stern", "fake/decline")
        with serve_pages(ServedModels(models=names, calls=calls)) as served:
            yield served


def test_two_models_stand_side_by_side_and_their_words_stay_words(
    browser: Browser, address: str
) -> None:
    with visit(browser) as watched:
        page = watched.page
        without_kinder(page)
        page.goto(f"{address}/#CN90001")
        expect(page.locator("#part-meaning .by")).to_contain_text("the authors of the sample data")
        assert page.locator("#no-model").count() == 0
        page.get_by_label("Model").select_option("openai/kind")
        page.get_by_label("Compare with").select_option("openai/stern")
        page.get_by_role("button", name="Analyse", exact=True).click()
        columns = page.locator(".columns .meaning")
        expect(columns).to_have_count(2)
        expect(page.locator("#part-meaning .note.mind")).to_contain_text("disagree on: Harm")
        assert page.locator(".columns .meaning > h3").all_inner_texts() == [
            "openai/kind",
            "openai/stern",
        ]
        assert columns.nth(0).locator(".verdict").inner_text() == "not harmful"
        assert columns.nth(1).locator(".verdict").inner_text() == "harmful"
        assert "openai/stern" in columns.nth(1).locator("> .by").inner_text()
        assert EVIL in page.locator("#part-meaning").inner_text()
        expect(page.locator("body")).to_have_class("veil")  # one of them calls it harmful
        assert page.locator("#part-meaning img").count() == 0
        page.set_viewport_size({"width": 390, "height": 900})
        assert fits(page)
        watched.errors[:] = [text for text in watched.errors if "ERR_FAILED" not in text]
        assert_at_home(watched, address)


def test_a_model_that_fails_does_not_hide_the_other(browser: Browser, address: str) -> None:
    with visit(browser) as watched:
        page = watched.page
        without_kinder(page)
        late: list[Route] = []
        page.route("**/studio/sample/CN90001", lambda route: late.insert(0, route))
        page.goto(f"{address}/#CN90001")
        page.get_by_label("Model").select_option("openai/kind")
        page.get_by_label("Compare with").select_option("fake/decline")
        page.get_by_role("button", name="Analyse", exact=True).click()
        expect(page.locator(".columns .note.bad")).to_contain_text("returned no answer: refused")
        expect(page.locator(".columns .verdict")).to_have_text("not harmful")
        # What the sample data says comes later than the models, and does not take their place.
        with page.expect_response("**/studio/sample/CN90001") as told:
            late[0].continue_()
        told.value.finished()
        expect(page.locator("#part-text .said")).to_contain_text("最近有点键忘")
        assert page.locator(".columns .verdict").count() == 1
        watched.errors[:] = [text for text in watched.errors if "ERR_FAILED" not in text]
        assert_at_home(watched, address)
