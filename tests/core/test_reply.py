"""Replies as JSON: fields that nobody asked for are ignored, others are named."""

from __future__ import annotations

from typing import Literal

import pytest
from pydantic import BaseModel, Field, JsonValue

from memantics.core.records import Field as FormField
from memantics.core.records import Option
from memantics.core.reply import (
    MAX_DEPTH,
    MAX_REPLY,
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
        ({"mood": "glad", "part": []}, "the field 'part' must be a JSON object"),
        ({"mood": "glad", "parts": [7]}, r"the field 'parts\.0' must be a JSON object"),
        ([], "the reply must be a JSON object"),
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


def test_values_are_found_in_prose() -> None:
    text = 'See [1] and {x}: {"a": "}]"} then\n```json\n[ [1], {} ]\n``` and {} or [] or {"b": [2]}'
    assert find_values(text) == [{"a": "}]"}, [[1], {}], {}, [], {"b": [2]}]
    assert find_values("") == []
    assert find_values('["a"]') == [["a"]]
    assert find_values("[1, 2]") == [], "a list of numbers is a reference in prose"
    assert find_values('{"a": 1}</think>{"b": 1}</think>{"c": 1}') == [{"c": 1}]


def test_lengths_on_both_sides_of_the_limit() -> None:
    assert find_values("{}".ljust(MAX_REPLY)) == [{}]
    with pytest.raises(Unparsed) as caught:
        find_values("{}".ljust(MAX_REPLY + 1))
    assert str(caught.value) == ("the reply has 2,000,001 characters: write at most 2,000,000")


@pytest.mark.parametrize(("opened", "closed"), [('{"a":', "}"), ("[", "]")])
def test_depths_on_both_sides_of_the_limit(opened: str, closed: str) -> None:
    def nested(levels: int) -> str:
        return opened * (levels - 1) + "{}" + closed * (levels - 1)

    assert len(find_values(nested(MAX_DEPTH))) == 1
    with pytest.raises(Unparsed, match="the JSON is nested too deeply"):
        find_values(nested(MAX_DEPTH + 1))
    flat = "[" + ",".join(["{}"] * 500) + "]"
    assert find_values(flat) == [[{}] * 500], "many brackets are no depth"


def test_the_place_of_an_error_is_shown() -> None:
    with pytest.raises(Unparsed) as caught:
        find_values('{"before": "0123456789", "key" 1234567890123456789012345, "z": 1}')
    assert str(caught.value).startswith("not valid JSON: Expecting ':' delimiter near ")
    near = str(caught.value).partition(" near ")[2]
    assert "12345678901234567890" in near
    assert "before" not in near
    assert '"z"' not in near


def test_empty_values_and_repetitions_are_ignored() -> None:
    assert take_one([{"a": 1, "b": 2}, [], {"b": 2, "a": 1}]) == {"a": 1, "b": 2}
    assert take_one([{}]) == {}
    assert take_one([[], {"a": 1}, {}]) == {"a": 1}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"names": [], "sure": True}, "the field 'names' needs 2 entries at least"),
        ({"names": list("abcd"), "sure": True}, "the field 'names' may have 3 entries at most"),
        ({"names": ["a", "b"], "sure": 1}, "the field 'sure' must be true or false"),
        ({"names": [1, "b"], "sure": True}, "the field 'names.0' must be a text"),
        (
            {"names": ["a", "b"], "sure": True, "long": "x"},
            "the field 'long' needs 2 characters at least",
        ),
        (
            {"names": ["a", "b"], "sure": True, "share": 2},
            "the field 'share' input should be less than or equal to 1",
        ),
        ({"sure": 1}, "the field 'names' is missing; the field 'sure' must be true or false"),
    ],
)
def test_complaints_in_words_of_the_limit(value: dict[str, object], problem: str) -> None:
    class Listed(BaseModel):
        names: list[str] = Field(min_length=2, max_length=3)
        sure: bool
        long: str = Field(default="xx", min_length=2)
        share: int = Field(default=0, le=1)

    with pytest.raises(Unparsed) as caught:
        conform_value(Listed, value)  # type: ignore[arg-type]
    assert str(caught.value) == problem


def test_fields_of_every_kind() -> None:
    class Every(BaseModel):
        kind: Literal["a", "b"]
        sure: bool
        count: int
        why: str
        names: list[Literal["x", "y"]]
        later: str = ""
        extra: list[str] = []

    fields, schema = describe_reply(Every)
    text: JsonValue = {"type": "string"}
    properties: dict[str, JsonValue] = {
        "kind": {"type": "string", "enum": ["a", "b"]},
        "sure": {"type": "boolean"},
        "count": {"type": "integer"},
        "why": text,
        "names": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}},
    }
    assert schema == describe_object(**properties)
    options = tuple(Option(word, word) for word in ("true", "false"))
    assert [(one.name, one.kind) for one in fields] == [
        ("kind", "choice"), ("sure", "choice"), ("count", "text"), ("why", "text"),
        ("names", "text"),
    ]  # fmt: skip
    assert fields[1] == FormField("sure", "choice", options)
    # Narrower schemas add fields with a default, and replace those of others.
    narrow: dict[str, JsonValue] = {
        "later": describe_object(a=text, b=text),
        "extra": {"type": "array", "items": text},
        "why": {"type": "string", "enum": ["q"]},
    }
    fields, schema = describe_reply(Every, **narrow)
    assert list(schema["properties"]) == [*properties, "later", "extra"]  # type: ignore[arg-type]
    assert [one.name for one in fields] == [
        "kind", "sure", "count", "why", "names", "later.a", "later.b",
    ]  # fmt: skip
    assert fields[3] == FormField("why", "choice", (Option("q", "q"),))
    assert fields[5] == FormField("later.a", "text")


def test_fields_inside_of_lists_and_records_are_removed() -> None:
    class Leaf(BaseModel, extra="forbid"):
        n: int

    class Tree(BaseModel, extra="forbid"):
        leaves: list[list[Leaf]]

    value = {"leaves": [[{"n": 1}], [{"n": 2}, {"n": 3, "0": 1, "leaves": 2}]], "1": 0}
    found = conform_value(Tree, value)  # type: ignore[arg-type]
    assert [[leaf.n for leaf in row] for row in found.leaves] == [[1], [2, 3]]
