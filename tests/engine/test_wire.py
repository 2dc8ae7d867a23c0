from __future__ import annotations

import base64
import json
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memantics.core.errors import (
    ImageError,
    InputError,
    MemanticsError,
    Refused,
    Rejected,
    Transient,
    Unavailable,
)
from memantics.core.images import load_images
from memantics.core.records import Form, Image, Message, Reply, Request, Sampling
from memantics.models.cache import request_digest
from memantics.models.openai import judge_status, read_retry_after
from memantics.models.wire import WireSettings, decode_reply, encode_request, split_thought
from tests.engine.toy import draw_image, toy_request
from tests.faults import completion

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
almost = st.fixed_dictionaries(
    {
        "choices": st.lists(
            st.fixed_dictionaries(
                {
                    "message": values
                    | st.fixed_dictionaries(
                        {"content": values, "refusal": values, "reasoning": values}
                    )
                }
            )
            | values
        )
    },
    optional={"usage": values, "model": values, "error": values},
)


def encode(request: Request, settings: WireSettings | None = None) -> dict[str, object]:
    body: dict[str, object] = orjson.loads(encode_request("m", request, settings or WireSettings()))
    return body


def test_the_bytes_that_were_hashed_are_sent_though_the_file_changed_since(tmp_path: Path) -> None:
    path = draw_image(tmp_path, "a.png")
    before = path.read_bytes()
    asked = toy_request(0, Image(path))
    loaded = load_images(asked)
    path.write_bytes(before + b"more")
    assert request_digest(loaded) != request_digest(asked)
    assert base64.b64encode(before) + b'"' in encode_request("m", loaded, WireSettings())
    assert load_images(loaded) == loaded  # a second attempt reads nothing anew


def test_images_are_sent_untouched_and_in_order(tmp_path: Path) -> None:
    first, second = draw_image(tmp_path, "a.png"), tmp_path / "b.gif"
    second.write_bytes(
        b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"
        b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b"
    )
    body = encode(toy_request(3, Image(first), "and", Image(second)))
    parts = body["messages"][0]["content"]  # type: ignore[index]
    assert [part["type"] for part in parts] == ["image_url", "text", "image_url", "text"]
    for part, path, mime in ((parts[0], first, "png"), (parts[2], second, "gif")):
        head, data = part["image_url"]["url"].split(",")
        assert head == f"data:image/{mime};base64"
        assert base64.b64decode(data) == path.read_bytes()


def test_few_shot_turns_schema_and_sampling() -> None:
    request = Request(
        (
            Message("system", ("Be brief.",)),
            Message("user", ("1+1?",)),
            Message("assistant", ("2",)),
            Message("user", ("a", "b")),
        ),
        Form("", ()),
        Sampling(temperature=0.5, max_tokens=9, seed=4),
        schema={"type": "object"},
    )
    settings = WireSettings(
        token_field="max_completion_tokens",
        reasoning_effort="low",
        extra={"top_p": 0.5, "temperature": None},
    )
    body = encode(request, settings)
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
    }
    assert body["max_completion_tokens"] == 9
    assert (body["seed"], body["top_p"], body["reasoning_effort"]) == (4, 0.5, "low")
    assert "temperature" not in body
    assert "response_format" not in encode(request, WireSettings(structured="off"))
    plain = encode(request, WireSettings(structured="object"))
    assert plain["response_format"] == {"type": "json_object"}


def test_bounds_on_texts_stay_at_home() -> None:
    """Hosted servers refuse a strict schema with them; a property may still be called so."""
    text: JsonValue = {"type": "string", "minLength": 1, "maxLength": 9}
    listed: JsonValue = {"type": "array", "minItems": 1, "items": text}
    choice: JsonValue = {"type": "string", "enum": ["minLength"]}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "properties": {"maxLength": text, "list": listed, "choice": choice},
        "required": ["maxLength", "list", "choice"],
    }
    request = Request((Message("user", ("?",)),), Form("", ()), schema=schema)
    body = orjson.loads(encode_request("m", request, WireSettings()))
    sent = body["response_format"]["json_schema"]["schema"]
    assert sent["properties"] == {
        "maxLength": {"type": "string"},
        "list": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        "choice": choice,
    }
    assert sent["required"] == schema["required"]


def test_extra_may_not_take_the_place_of_ours() -> None:
    with pytest.raises(InputError, match="messages"):
        WireSettings(extra={"messages": []})


def test_hostile_images_are_refused_by_name(tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"<svg onload=alert(1)>")
    with pytest.raises(ImageError, match=r"bad\.png: format"):
        encode(toy_request(0, Image(bad)))
    bomb = tmp_path / "bomb.png"
    bomb.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + b"\x00\x01\x00\x00" * 2 + b"\0" * 60)
    with pytest.raises(ImageError, match="too many pixels"):
        encode(toy_request(0, Image(bomb)))
    with pytest.raises(ImageError, match="missing"):
        encode(toy_request(0, Image(tmp_path / "none.png")))


@given(st.text())
def test_any_text_survives_the_wire(text: str) -> None:
    request = Request((Message("user", (text,)),), Form("", ()))
    assert encode(request)["messages"] == [{"role": "user", "content": text}]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"content": "B"}, Reply("B")),
        ({"content": None}, Reply("")),
        (
            {"content": [{"type": "text", "text": "B"}, {"type": "thinking", "text": "x"}]},
            Reply("B"),
        ),
        ({"content": "B", "reasoning_content": "because"}, Reply("B", reasoning="because")),
        ({"content": "B", "reasoning": "because"}, Reply("B", reasoning="because")),
        ({"content": "B", "reasoning": {"a": 1}}, Reply("B")),
        ({"content": None, "refusal": "no"}, Reply("", refusal="no")),
        ({"content": "<think>a</think>\n\nB"}, Reply("B", reasoning="a")),
    ],
)
def test_accents_of_servers(message: dict[str, object], expected: Reply) -> None:
    body = orjson.dumps({"choices": [{"message": message}]})
    assert decode_reply(body) == expected


def test_usage_finish_and_filter() -> None:
    reply = decode_reply(orjson.dumps(completion("B", "length")))
    assert (reply.tokens_in, reply.tokens_out, reply.finish) == (10, 2, "length")
    assert reply.served_by == "served"
    assert decode_reply(orjson.dumps(completion("", "content_filter"))).refusal


def test_half_an_emoji_is_mended() -> None:
    reply = decode_reply(json.dumps(completion("B \ud83d")).encode())
    assert reply.text == "B \ufffd"


@given(values | almost)
def test_any_json_is_a_reply_or_one_of_our_errors(value: object) -> None:
    try:
        reply = decode_reply(json.dumps(value).encode())
    except Transient:
        return
    assert orjson.loads(orjson.dumps(reply))["text"] == reply.text


def test_counts_that_no_file_can_hold_are_bounded() -> None:
    body = {"choices": [{"message": {}}], "usage": {"prompt_tokens": 10**40}}
    assert decode_reply(json.dumps(body).encode()).tokens_in == 2**53


@given(st.binary(max_size=200))
def test_any_bytes_are_a_reply_or_one_of_our_errors(data: bytes) -> None:
    with pytest.raises(Transient):
        decode_reply(data)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(Transient):
        decode_reply(b'{"choices":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@given(st.text(), st.text())
def test_thought_and_answer_are_parted(thought: str, answer: str) -> None:
    if "think>" in thought or "think>" in answer:
        return
    parted = split_thought(f"<think>{thought}</think>{answer}")
    assert parted == (thought.strip(), answer.lstrip())
    assert split_thought(answer) == ("", answer)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, "", Unavailable),
        (403, "", Unavailable),
        (402, "", Unavailable),
        (404, '{"error": {"code": "model_not_found"}}', Unavailable),
        (405, "", Unavailable),
        (301, "", Unavailable),
        (429, '{"error": {"code": "insufficient_quota"}}', Unavailable),
        (400, '{"error": {"message": "API key not valid"}}', Unavailable),
        (400, '{"error": {"code": "content_filter"}}', Refused),
        (403, '{"error": {"message": "blocked by our content policy"}}', Refused),
        (400, '{"detail": "too long"}', Rejected),
        (413, "", Rejected),
        (422, '{"detail": [{"msg": "bad"}]}', Rejected),
        (418, "", Rejected),
        *[(status, "", Transient) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)],
    ],
)
def test_status_to_exception(status: int, body: str, kind: type[MemanticsError]) -> None:
    error = judge_status(status, {}, body.encode())
    assert type(error) is kind
    if isinstance(error, Transient):
        assert error.overloaded == (status in (429, 503, 504, 529))
    if kind is Unavailable:
        assert error.hint


@given(st.integers(300, 599), st.dictionaries(st.text(), st.text()), st.binary() | values)
def test_any_refusal_is_one_line(status: int, headers: dict[str, str], body: object) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert "\n" not in str(judge_status(status, headers, data))


def test_retry_after_in_all_its_forms() -> None:
    assert read_retry_after({"retry-after-ms": "250", "retry-after": "9"}) == 0.25
    assert read_retry_after({"Retry-After": "1.5"}) == 1.5
    assert read_retry_after({"Retry-After": "-3"}) == 0
    assert read_retry_after({"Retry-After": "nan"}) is None
    assert read_retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    later = read_retry_after({"Retry-After": "Fri, 21 Oct 2095 07:28:00 GMT"})
    assert later is not None
    assert later > 1e9
    assert read_retry_after({}) is None
