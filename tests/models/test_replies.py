from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memantics.core.errors import Rejected
from memantics.core.records import Field, Form
from memantics.models.kinds import nest, render_reply

NAMES = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=2, max_size=2).map(".".join), unique=True, min_size=1
)


@given(NAMES, st.integers(-5, 5))
def test_every_value_stands_at_its_dotted_place(names: list[str], value: int) -> None:
    form = Form("?", tuple(Field(name, "integer") for name in names), reply="json")
    values: dict[str, JsonValue] = {name: value + i for i, name in enumerate(names)}
    tree = orjson.loads(render_reply(form, values))
    for name in names:
        first, second = name.split(".")
        assert tree[first][second] == values[name]


def test_plain_replies_are_bare() -> None:
    assert render_reply(Form("?", (Field("x", "boolean"),)), {"x": True}) == "true"
    assert render_reply(Form("?", (Field("x", "integer"),)), {"x": 4}) == "4"
    assert render_reply(Form("?", (Field("x", "text"),), reply="text"), {"x": "双关"}) == "双关"


def test_json_keeps_unicode_and_null() -> None:
    form = Form("?", (Field("情感", "text"), Field("other", "text")), reply="json")
    assert render_reply(form, {"情感": "好", "other": None}) == '{"情感":"好","other":null}'


@pytest.mark.parametrize("names", [("a", "a.b"), ("a.b", "a")])
def test_fields_that_clash_are_refused(names: tuple[str, str]) -> None:
    with pytest.raises(Rejected, match="field"):
        nest(dict.fromkeys(names, 1))


def test_a_missing_value_is_named() -> None:
    with pytest.raises(Rejected, match="no value for b"):
        render_reply(Form("?", (Field("a", "text"), Field("b", "text"))), {"a": "x"})
    with pytest.raises(Rejected, match="it has none"):
        render_reply(Form("?", ()), {})
