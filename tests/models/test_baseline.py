from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.core.model import Model
from memantics.core.records import Field, Form, Option, Request
from memantics.models.baseline import NAMES, STRATEGIES, Baseline, open_baseline
from tests.models.forms import HARM, INTENT, JUDGE, LETTERED, PUN, SENTIMENT, ask

MIXED = Form(
    "?",
    (
        Field(
            "label",
            "choice",
            (Option("x", "one"), Option("y", "longest text"), Option("z", "same length!")),
            majority="z",
            positive="y",
        ),
        Field("score", "integer", low=2, high=6, majority="5", positive="6"),
        Field("flag", "boolean", majority="true", positive="TRUE"),
        Field("words", "text"),
    ),
    reply="json",
)
SENTENCE = "the meme makes fun of something"


def reply(name: str, request: Request) -> str:
    return asyncio.run(open_baseline(name).answer(request)).text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("constant", ["x", 2, False, SENTENCE]),
        ("longest", ["y", 2, False, SENTENCE]),
        ("majority", ["z", 5, True, SENTENCE]),
        ("positive", ["y", 6, True, SENTENCE]),
    ],
)
def test_values_per_kind_of_field(name: str, expected: list[object]) -> None:
    values = orjson.loads(reply(f"baseline/{name}", ask(MIXED)))
    assert list(values.values()) == expected


def test_a_field_without_majority_gets_the_constant_and_identity_says_so() -> None:
    assert reply("baseline/majority", ask(PUN)) == "双关"
    assert open_baseline("baseline/majority").identity["fallback"] == "constant"
    bad = Form("?", (Field("n", "integer", low=1, high=5, majority="many"),))
    assert reply("baseline/majority", ask(bad)) == "1"


def test_chinese_forms_get_a_chinese_sentence() -> None:
    form = Form("?", (Field("x", "text"),), language="zh", reply="text")
    assert reply("baseline/constant", ask(form)) == "这张表情包在开玩笑"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", [LETTERED, PUN, HARM, SENTIMENT, INTENT, JUDGE])
def test_every_form_gets_a_valid_reply(name: str, form: Form) -> None:
    text = reply(name, ask(form))
    if form.reply == "json":
        assert set(orjson.loads(text)) == {field.name.split(".")[0] for field in form.fields}
    elif form.fields[0].options:
        assert text in {option.key for option in form.fields[0].options}
    else:
        assert text


def test_random_depends_on_form_images_and_seed_but_not_on_order_or_folder() -> None:
    requests = [ask(PUN, Path(f"/a/{i}.png")) for i in range(60)]
    moved = [ask(PUN, Path(f"/b/c/{i}.png")) for i in range(60)]
    first = [reply("baseline/random", request) for request in requests]
    assert [reply("baseline/random", request) for request in reversed(requests)] == first[::-1]
    assert [reply("baseline/random", request) for request in moved] == first
    assert [reply("baseline/random?seed=1", request) for request in requests] != first
    assert 15 < first.count("双关") < 45


def test_random_numbers_stay_on_the_scale() -> None:
    form = Form("?", (Field("n", "integer", low=1, high=5),))
    drawn = {reply("baseline/random", ask(form, Path(f"{i}.png"))) for i in range(80)}
    assert drawn == {"1", "2", "3", "4", "5"}


def test_names_and_protocol() -> None:
    for strategy in STRATEGIES:
        model: Model = Baseline(strategy)
        assert isinstance(model, Model)
        assert (model.name, model.cacheable) == (f"baseline/{strategy}", False)
        assert "baseline" in model.note
        asyncio.run(model.close())
    assert open_baseline("baseline/random", seed=4).name == "baseline/random?seed=4"
    assert open_baseline("baseline/random?seed=4").identity["seed"] == 4


@pytest.mark.parametrize(
    "name",
    [
        "baseline/random?seed=x",
        "baseline/random?seed=",
        "baseline/longest?seed=1",
        "baseline/random?s=1",
    ],
)
def test_bad_settings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="baseline/"):
        open_baseline(name)


def test_unknown_names_suggest() -> None:
    with pytest.raises(UnknownName, match="baseline/longst") as error:
        open_baseline("baseline/longst")
    assert "did you mean baseline/longest?" in str(error.value)
