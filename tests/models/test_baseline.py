from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.core.model import Model
from memantics.core.records import Field, Form, Image, Message, Option, Request
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


def test_identities_and_replies_name_the_baseline() -> None:
    model = open_baseline("baseline/random?seed=3")
    assert model.identity == {"name": "baseline/random?seed=3", "fallback": "constant", "seed": 3}
    assert open_baseline("baseline/random", seed=0).identity["seed"] == 0
    assert open_baseline("baseline/longest", seed=4).identity == {
        "name": "baseline/longest", "fallback": "constant",
    }  # fmt: skip
    given = asyncio.run(model.answer(ask(PUN)))
    assert (given.finish, given.served_by) == ("stop", "baseline/random?seed=3")


def test_random_answers_are_the_same_on_every_machine() -> None:
    """Published scores of the baseline rest on these draws."""
    form = Form("Which?", (Field("n", "integer", low=0, high=999),), context={"b": "2", "a": "1"})
    request = Request((Message("user", (Image(Path("x/m.png")), "?")),), form)
    assert reply("baseline/random", request) == "841"
    turned = replace(form, context={"a": "1", "b": "2"})
    assert reply("baseline/random", replace(request, form=turned)) == "841"


def test_what_a_random_answer_depends_on() -> None:
    def pose(
        question: str = "?", text: str = "one", image: str = "", name: str = "n", **context: str
    ) -> Request:
        shown = Image(Path(image)) if image else None
        options = Field("o", "choice", (Option("a", text, shown), Option("b", "two")))
        number = Field(name, "integer", low=0, high=10**9)
        return Request((), Form(question, (options, number), reply="json", context=context))

    asked = [
        pose(),
        pose("Which?"),
        pose(text="three"),
        pose(image="a.png"),
        pose(image="b.png"),
        pose(caption="x"),
        pose(caption="y"),
        pose(title="x"),
    ]
    drawn = {orjson.loads(reply("baseline/random", request))["n"] for request in asked}
    assert len(drawn) == len(asked)
    moved = [reply("baseline/random", pose(image=image)) for image in ("a.png", "c/d/a.png")]
    assert moved[0] == moved[1]


def test_random_values_of_every_kind() -> None:
    fields = (
        Field("flag", "boolean"),
        Field("fixed", "integer", low=3, high=2),
        Field("words", "text"),
    )
    form = Form("?", fields, reply="json", language="zh")
    drawn = [orjson.loads(reply("baseline/random", ask(form, Path(f"{n}.png")))) for n in range(40)]
    assert {one["flag"] for one in drawn} == {True, False}
    assert {one["fixed"] for one in drawn} == {3}
    assert {one["words"] for one in drawn} == {"这张表情包在开玩笑"}
    assert 10 < sum(one["flag"] for one in drawn) < 30


@pytest.mark.parametrize(
    ("kind", "majority", "value"),
    [
        ("integer", "-3", -3),
        ("integer", "3.5", 1),
        ("integer", "", 1),
        ("boolean", "False", False),
        ("boolean", "yes", False),
        ("text", "a text", "a text"),
    ],
)
def test_majorities_are_read_by_kind(kind: str, majority: str, value: object) -> None:
    field = Field("x", kind, low=1, majority=majority)  # type: ignore[arg-type]
    given = orjson.loads(reply("baseline/majority", ask(Form("?", (field,), reply="json"))))
    assert given == {"x": value}


@pytest.mark.parametrize(("seed", "valid"), [("9" * 18, True), ("9" * 19, False), ("٣", False)])
def test_seeds_have_eighteen_digits_at_most(seed: str, valid: bool) -> None:
    name = f"baseline/random?seed={seed}"
    if valid:
        assert open_baseline(name).seed == int(seed)
        return
    with pytest.raises(InputError) as caught:
        open_baseline(name)
    assert str(caught.value) == (
        f"model {name!r}: seed {seed!r} is not a whole number; for example 0 or 1"
    )
