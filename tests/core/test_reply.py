"""Replies as JSON: fields that nobody asked for are ignored, others are named."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field

from memantics.core.records import Option
from memantics.core.reply import (
    conform_value,
    describe_object,
    describe_reply,
    find_values,
    read_object,
    take_one,
)
from memantics.core.task import Unparsed


class Part(BaseModel, extra="forbid"):
    name: str
    size: int = 0


class Whole(BaseModel, extra="forbid"):
    mood: Literal["glad", "sad"]
    parts: list[Part] = []
    part: Part | None = None
    title: str = Field(default="t", min_length=1, max_length=5)


def test_unknown_fields_are_removed_where_they_are() -> None:
    value = {
        "mood": "glad",
        "why": "extra",
        "name": "extra, too",
        "part": {"name": "a", "mood": "extra"},
        "parts": [{"name": "b"}, {"name": "c", "why": 1, "size": 2}],
    }
    assert conform_value(Whole, value) == Whole(  # type: ignore[arg-type]
        mood="glad", part=Part(name="a"), parts=[Part(name="b"), Part(name="c", size=2)]
    )
    assert value["parts"][1]["why"] == 1, "the value itself is unchanged"  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "the field 'mood' is missing"),
        ({"mood": "dull"}, "the field 'mood' must be one of 'glad' or 'sad'"),
        ({"mood": "glad", "title": ""}, "the field 'title' is empty"),
        ({"mood": "glad", "title": "123456"}, "the field 'title' may have 5 characters at most"),
        ({"mood": "glad", "parts": {}}, "the field 'parts' must be a list"),
        ({"mood": "glad", "parts": [{"name": 1}]}, r"the field 'parts\.0\.name' must be a text"),
        ({"mood": "glad", "parts": [{"name": "a", "size": "1"}]}, "must be a whole number"),
        ([], "the reply must be a JSON object|valid dictionary"),
    ],
)
def test_a_complaint_names_the_field(value: object, problem: str) -> None:
    with pytest.raises(Unparsed, match=problem):
        conform_value(Whole, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "more"), [(3, ""), (4, r" \(and 1 more\)"), (9, r" \(and 6 more")]
)
def test_three_complaints_are_named(count: int, more: str) -> None:
    with pytest.raises(Unparsed) as caught:
        conform_value(Whole, {"mood": "glad", "parts": [{}] * count})
    assert str(caught.value).count("is missing") == 3
    with pytest.raises(Unparsed, match=f"{more}" if more else r"is missing$"):
        conform_value(Whole, {"mood": "glad", "parts": [{}] * count})


def test_the_schema_of_an_object() -> None:
    fields, schema = describe_reply(Whole)
    assert schema == {
        "type": "object",
        "properties": {"mood": {"type": "string", "enum": ["glad", "sad"]}},
        "required": ["mood"],
        "additionalProperties": False,
    }
    assert [(field.name, field.kind) for field in fields] == [("mood", "choice")]
    assert fields[0].options == (Option("glad", "glad"), Option("sad", "sad"))
    assert describe_object() == {
        "type": "object", "properties": {}, "required": [], "additionalProperties": False,
    }  # fmt: skip


def test_one_value_is_taken() -> None:
    assert take_one([{}, {"a": 1}, {"a": 1}]) == {"a": 1}
    assert take_one([[], {}]) == []
    with pytest.raises(Unparsed, match="holds no JSON"):
        take_one([])
    with pytest.raises(Unparsed, match="holds 2 JSON values"):
        take_one([{"a": 1}, {"a": 2}])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1', "cut off before its end"),
        ('{"a": "b', "cut off before its end"),
        ('{"a": 1, "a": 2}', "the key 'a' comes twice"),
        ('{"a": NaN}', "NaN is not a valid JSON value"),
        ('{"a" 1} and more text behind it', "not valid JSON: .* near"),
        ('{"a":' * 2000 + "1" + "}" * 2000, "nested too deeply"),
    ],
)
def test_invalid_json_is_described(text: str, problem: str) -> None:
    with pytest.raises(Unparsed, match=problem):
        find_values(text)


def test_thoughts_are_skipped() -> None:
    assert read_object('<think>{"name": "x"}</think>{"name": "y"}', Part).name == "y"
