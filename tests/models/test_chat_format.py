"""The chat-completions format: every setting in a body, and every oddity of a reply."""

from __future__ import annotations

import base64
import io
import math
from pathlib import Path

import orjson
import pytest
from PIL import Image as Pillow
from pydantic import JsonValue, ValidationError

from memantics.core.errors import ImageError, InputError, Transient
from memantics.core.images import ImageBounds
from memantics.core.records import Form, Image, Message, Reply, Request, Sampling
from memantics.models.wire import (
    NO_LOGPROBS,
    WireSettings,
    bound_tokens,
    count_thought,
    decode_reply,
    describe_format,
    encode_request,
    match_key,
    read_masses,
    repair,
)
from tests.models.forms import draw

HELLO = Request((Message("user", ("Hello",)),), Form("", ()))


def encode(request: Request = HELLO, **settings: object) -> dict[str, JsonValue]:
    data = encode_request("m", request, WireSettings.model_validate(settings))
    body: dict[str, JsonValue] = orjson.loads(data)
    return body


def test_a_body_has_what_is_set_and_nothing_else() -> None:
    plain = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hello"}],
        "temperature": 0.0,
    }
    assert encode() == plain
    assert encode(thinking_tokens=5) == {**plain, "max_tokens": 5}
    assert encode(thinking_field="budget", thinking_tokens=5, answer_tokens=2) == {
        **plain, "max_tokens": 7, "budget": 5,
    }  # fmt: skip
    assert encode(thinking_field="budget") == {**plain, "budget": 0}
    assert encode(top_logprobs=3) == {**plain, "logprobs": True, "top_logprobs": 3}
    assert encode(extra={"top_p": 0.5, "temperature": 1}) == {
        **plain, "top_p": 0.5, "temperature": 1,
    }  # fmt: skip
    assert (
        encode(token_field="max_completion_tokens", answer_tokens=3)["max_completion_tokens"] == 3
    )
    sampled = Request(HELLO.messages, HELLO.form, Sampling(max_tokens=9, seed=0))
    assert encode(sampled) == {**plain, "max_tokens": 9, "seed": 0}
    assert encode(sampled, answer_tokens=4)["max_tokens"] == 4


def test_a_value_that_is_no_json_is_refused() -> None:
    asked = Request(HELLO.messages, HELLO.form, Sampling(seed=1 << 70))
    with pytest.raises(InputError, match=r"^a request cannot be written as JSON: "):
        encode(asked)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "n"])
def test_our_fields_cannot_be_set(name: str) -> None:
    with pytest.raises(InputError) as caught:
        WireSettings(extra={name: 1})
    assert str(caught.value) == (
        f"extra field {name} cannot be set; remove it: the engine sets this field"
    )
    with pytest.raises(InputError, match="extra field model, n cannot be set"):
        WireSettings(extra={"n": 1, "model": "x", "top_p": 1})


def test_settings_have_limits() -> None:
    for name in ("answer_tokens", "thinking_tokens", "top_logprobs"):
        assert WireSettings.model_validate({name: 9_999_999}).describe()[name] == 9_999_999
        for wrong in (-1, 10_000_000):
            with pytest.raises(ValidationError, match=name):
                WireSettings.model_validate({name: wrong})


def test_an_identity_names_the_settings_that_are_not_usual() -> None:
    usual: dict[str, JsonValue] = {
        "token_field": "max_tokens",
        "reasoning_effort": None,
        "structured": "strict",
        "image_detail": None,
        "extra": {},
    }
    assert WireSettings().describe() == usual
    other: dict[str, JsonValue] = {
        "api": "responses",
        "image_orientation": "upright",
        "answer_tokens": 1,
        "thinking_tokens": 2,
        "thinking_field": "budget",
        "top_logprobs": 3,
    }
    for name, value in other.items():
        assert WireSettings.model_validate({name: value}).describe() == usual | {name: value}


def test_details_and_orientation_of_images(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    exif = Pillow.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    Pillow.new("RGB", (8, 4), "teal").save(path, exif=exif)
    asked = Request((Message("user", (Image(path),)),), Form("", ()))

    def send(**settings: object) -> tuple[dict[str, str], tuple[int, int]]:
        data = encode_request("m", asked, WireSettings.model_validate(settings))
        url: dict[str, str] = orjson.loads(data)["messages"][0]["content"][0]["image_url"]
        with Pillow.open(io.BytesIO(base64.b64decode(url["url"].partition(",")[2]))) as image:
            return url, image.size

    url, size = send()
    assert (list(url), size) == (["url"], (8, 4))
    assert url["url"].startswith("data:image/jpeg;base64,")
    assert base64.b64decode(url["url"].partition(",")[2]) == path.read_bytes()
    url, size = send(image_detail="low", image_orientation="upright")
    assert (url["detail"], size) == ("low", (4, 8))
    assert url["url"].startswith("data:image/png;base64,")
    # An upright one is sent as it is.
    plain = draw(tmp_path / "b.png", "B")
    straight = Request((Message("user", (Image(plain),)),), Form("", ()))
    data = encode_request("m", straight, WireSettings(image_orientation="upright"))
    assert base64.b64encode(plain.read_bytes()) in data
    with pytest.raises(ImageError, match=r"a\.jpg: too many pixels"):
        encode_request("m", asked, WireSettings(), ImageBounds(max_pixels=31))
    upright = WireSettings(image_orientation="upright")
    with pytest.raises(ImageError, match=r"a\.jpg: too many pixels"):
        encode_request("m", asked, upright, ImageBounds(max_pixels=31))


def test_formats_of_a_schema() -> None:
    schema: dict[str, JsonValue] = {
        "type": "object",
        "anyOf": [{"type": "string", "minLength": 1, "const": "maxLength"}, {"maxLength": 3}, 7],
        "required": ["minLength"],
    }
    asked = Request(HELLO.messages, HELLO.form, schema=schema)
    assert describe_format(HELLO, WireSettings()) is None
    assert describe_format(asked, WireSettings(structured="off")) is None
    assert describe_format(asked, WireSettings(structured="object")) == {"type": "json_object"}
    assert describe_format(asked, WireSettings()) == {
        "type": "json_schema",
        "json_schema": {
            "name": "answer",
            "strict": True,
            "schema": {
                "type": "object",
                # Only a string has a length.
                "anyOf": [{"type": "string", "const": "maxLength"}, {"maxLength": 3}, 7],
                "required": ["minLength"],
            },
        },
    }
    assert schema["anyOf"][0]["minLength"] == 1, "the schema itself is unchanged"  # type: ignore[index,call-overload]


@pytest.mark.parametrize(
    ("token", "key"),
    [
        (" (b).", "B"),
        ("「B」", "B"),
        ("BB", "BB"),
        ("", None),
        (" .", None),
        ("x", None),
        ("harm", None),
        ("harmf", "harmful"),
        ("HARMLESS", "harmless"),
        ("harmlessly", None),
    ],
)
def test_tokens_match_an_option_or_the_beginning_of_one_alone(token: str, key: str | None) -> None:
    assert match_key(token, ["A", "B", "BB", "harmful", "harmless"]) == key


def step(token: str, logprob: float = -1.0, **top: float) -> JsonValue:
    listed: list[JsonValue] = [{"token": name, "logprob": value} for name, value in top.items()]
    return {"token": token, "logprob": logprob, "top_logprobs": listed}


@pytest.mark.parametrize(
    ("steps", "masses"),
    [
        ([step("A", -0.5)], {"A": math.exp(-0.5)}),
        # Spellings of one option count together; a positive value counts as certain.
        ([step("A", A=-1.0, a=-2.0, B=0.5, C=-9.0)], {"A": math.exp(-1) + math.exp(-2), "B": 1.0}),
        # A first token that matches is the answer, white space before it does not count.
        ([step(" \n"), step("B", B=-0.5), step("A", A=-0.1)], {"B": math.exp(-0.5)}),
        # A model that reasons decides at the last one.
        ([step("So"), step("B", B=-0.5), step("A", A=-0.1)], {"A": math.exp(-0.1)}),
        ([step("A", C=-1.0)], None),
        ([step("So"), step("C")], None),
        ([step(" ")], None),
        ([], None),
    ],
)
def test_probabilities_of_options(steps: list[JsonValue], masses: dict[str, float] | None) -> None:
    found = read_masses({"content": steps}, ["A", "B"])
    assert found == (masses and {key: round(mass, 6) for key, mass in masses.items()})


@pytest.mark.parametrize("logprobs", [None, 7, {}, {"content": None}, {"content": [{"token": 1}]}])
def test_other_forms_of_probabilities_are_none(logprobs: JsonValue) -> None:
    assert read_masses(logprobs, ["A"]) is None


def complete(choice: dict[str, JsonValue], **more: JsonValue) -> bytes:
    return orjson.dumps({"choices": [choice], **more})


def test_every_field_of_a_reply() -> None:
    data = complete(
        {
            "message": {"content": "B", "reasoning": "second", "reasoning_content": "first"},
            "finish_reason": "stop",
            "logprobs": {"content": [step("B", B=0.0)]},
        },
        usage={
            "prompt_tokens": 7,
            "completion_tokens": 5,
            "completion_tokens_details": {"reasoning_tokens": 3},
        },
        model="served",
    )
    whole = Reply("B", "first", "", "stop", 7, 5, "served", "", 3, {"B": 1.0})
    assert decode_reply(data, ["A", "B"]) == whole
    # Probabilities are read for the options that were asked for, and their absence is noted.
    bare = decode_reply(data)
    assert (bare.masses, bare.adapted) == (None, "")
    none = decode_reply(data, ["X"])
    assert (none.masses, none.adapted) == (None, NO_LOGPROBS)


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": "B", "reasoning_content": "", "reasoning": "why"}, None, Reply("B", "why")),
        ({"content": "<think>a</think>B", "reasoning": "b"}, None, Reply("B", "b")),
        ({"content": "x", "refusal": "no"}, "content_filter",
         Reply("x", refusal="no", finish="content_filter")),
        ({"content": ""}, "content_filter",
         Reply("", refusal="a content filter stopped the answer", finish="content_filter")),
        ({"content": [{"type": "refusal", "refusal": "no"}, {"refusal": "later"}]}, None,
         Reply("", refusal="no")),
        ({"content": [{"text": "a"}, {"type": "output_text", "text": "b"},
                      {"type": "x", "text": "c"}, {"type": "text", "text": None}]}, None,
         Reply("ab")),
        ({"content": [], "refusal": "first"}, None, Reply("", refusal="first")),
    ],
)  # fmt: skip
def test_messages_of_servers(
    message: dict[str, JsonValue], finish: str | None, expected: Reply
) -> None:
    assert decode_reply(complete({"message": message, "finish_reason": finish})) == expected


def test_only_the_first_choice_counts() -> None:
    data = orjson.dumps({"choices": [{"message": {"content": one}} for one in "AB"]})
    assert decode_reply(data).text == "A"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"choices": []}', "the response contains no choices"),
        (b"", "the response is not JSON: it is empty"),
        (b" \n ", "the response is not JSON: it is empty"),
        (b"x" * 81, f"the response is not JSON: it starts with '{'x' * 80}'"),
        (b"<html>\xff", "the response is not JSON: it starts with '<html>\ufffd'"),
        (b'{"choices": 7}', "the response is not a chat completion: choices: Input should be a "),
        (b'{"error": NaN}', "the response is not a chat completion: choices: Field required"),
    ],
)
def test_other_responses_are_described(data: bytes, problem: str) -> None:
    with pytest.raises(Transient) as caught:
        decode_reply(data)
    assert str(caught.value).startswith(problem)
    if len(problem) < 60:
        assert str(caught.value) == problem


def test_common_faults_of_json_are_repaired() -> None:
    data = b'{"choices": [{"message": {"content": "a\\ud800"}, "score": NaN}], "usage": {}}'
    assert decode_reply(data).text == "a\ufffd"
    assert repair({"\ud800": ["\ud800", 1, None, True]}) == {"\ud800": ["\ufffd", 1, None, True]}


def test_counts_of_tokens() -> None:
    assert [bound_tokens(n) for n in (None, -1, 0, 5, 2**53, 2**53 + 1)] == [
        0, 0, 0, 5, 2**53, 2**53,
    ]  # fmt: skip
    for details, count in (
        ({"reasoning_tokens": 4}, 4),
        ({"reasoning_tokens": "4"}, 0),
        ({}, 0),
        ([4], 0),
        (None, 0),
    ):
        assert count_thought(details) == count  # type: ignore[arg-type]
