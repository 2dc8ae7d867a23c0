"""``fake/builder`` answers any schema, always the same way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from memantics.core.records import Field, Form, Message, Option, Request
from memantics.models.fake import build_reply, open_fake

TREE = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 30, "maxLength": 40},
        "kind": {"enum": ["a", "b"]},
        "fixed": {"const": 7},
        "score": {"type": "integer", "minimum": 3, "maximum": 5},
        "sure": {"type": "boolean"},
        "empty": {"type": "null"},
        "either": {"anyOf": [{"$ref": "#/$defs/leaf"}, {"type": "null"}]},
        "leaves": {
            "type": "array",
            "minItems": 2,
            "maxItems": 2,
            "items": {"$ref": "#/$defs/leaf"},
        },
    },
    "$defs": {"leaf": {"type": "object", "properties": {"name": {"type": ["string", "null"]}}}},
}


def ask(text: str, schema: dict[str, Any] | None, form: Form | None = None) -> str:
    return build_reply(Request((Message("user", (text,)),), form or Form("", ()), schema=schema))


@pytest.mark.parametrize("text", ["one", "two", "three", "four"])
def test_a_reply_obeys_its_schema(text: str) -> None:
    made = json.loads(ask(text, TREE))
    assert list(made) == list(TREE["properties"])
    assert 30 <= len(made["title"]) <= 40
    assert made["kind"] in ("a", "b")
    assert made["fixed"] == 7
    assert 3 <= made["score"] <= 5
    assert isinstance(made["sure"], bool)
    assert made["empty"] is None
    assert len(made["leaves"]) == 2
    assert all(isinstance(leaf["name"], str) for leaf in made["leaves"])
    assert ask(text, TREE) == ask(text, TREE)


def test_replies_differ_with_the_request_and_use_its_material() -> None:
    schema = {"type": "object", "properties": {"label": {"type": "string"}}}
    assert ask("one", schema) != ask("two", schema)
    text = "<printed text 12345678>\nzebra crossing ahead\n</printed text 12345678>"
    said = " ".join(ask(f"{n} {text}", schema) for n in range(60)).lower()
    assert "zebra" in said


def test_forms_are_answered_too() -> None:
    form = Form("Which?", (Field("answer", "choice", (Option("A", "x"), Option("B", "y"))),))
    assert ask("pick", None, form) in ("A", "B")
    assert open_fake("fake/builder").name == "fake/builder"


def test_a_schema_that_never_ends_is_cut() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    said = ask("loop", endless)
    assert isinstance(json.loads(said), dict)
    assert len(said) < 10_000
