"""Recordings: which lines are replayed, in which order, and what a damaged file costs."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from pydantic import JsonValue

from memantics.core.errors import DataError, Rejected
from memantics.core.records import Form, Image, Message, Request
from memantics.core.waiting import run_sync
from memantics.models.cache import picture_digest, request_digest
from memantics.models.recorded import RecordedModel
from tests.models.forms import draw

ASKED = Request((Message("user", ("What?",)),), Form("", ()))
OTHER = Request((Message("user", ("Who?",)),), Form("", ()))
KEY = request_digest(ASKED)


def write(path: Path, *lines: object) -> Path:
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def replay(path: Path, count: int) -> list[str]:
    async def ask() -> list[str]:
        model = RecordedModel(path)
        try:
            return [(await model.answer(ASKED)).text for _ in range(count)]
        finally:
            await model.close()

    return run_sync(ask())


def test_answers_come_in_their_order_and_the_last_repeats(tmp_path: Path) -> None:
    path = write(
        tmp_path / "answers.jsonl",
        {"prompt": KEY, "reply": {"text": "one", "tokens_in": 3}},
        {"prompt": KEY, "reply": {"text": "lost"}, "status": "failed"},
        {"prompt": "", "text": "no request"},
        {"prompt": "f" * 64, "text": "another"},
        # The fields of the reply may be beside the request.
        {"prompt": KEY, "text": "two", "tokens_in": 5, "model": "x"},
        {"prompt": KEY, "reply": "not an object", "text": "three"},
    )
    assert replay(path, 5) == ["one", "two", "three", "three", "three"]
    assert replay(tmp_path, 1) == ["one"], "a run directory"


def test_fields_beside_the_request_are_those_of_the_reply(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": KEY, "reasoning": "hm", "tokens_out": 4})

    async def ask() -> tuple[str, str, int]:
        model = RecordedModel(path)
        reply = await model.answer(ASKED)
        await model.close()
        return reply.text, reply.reasoning, reply.tokens_out

    assert run_sync(ask()) == ("", "hm", 4)


def test_the_identity_is_the_content(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", {"prompt": KEY, "text": "x"})
    model = RecordedModel(one)
    assert model.name == f"recorded/{one}"
    assert model.identity == {
        "name": "recorded",
        "sha256": hashlib.sha256(one.read_bytes()).hexdigest(),
    }
    run_sync(model.close())


def test_an_unknown_request_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": KEY, "text": "x"})

    async def ask() -> None:
        model = RecordedModel(path)
        try:
            await model.answer(OTHER)
        finally:
            await model.close()

    with pytest.raises(
        Rejected, match=rf"no answer to this request \({request_digest(OTHER)[:12]}"
    ):
        run_sync(ask())


def test_damaged_recordings_name_the_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": KEY, "text": "x"}, {"text": "y"})
    with pytest.raises(DataError, match=r"a\.jsonl: row 2: prompt"):
        RecordedModel(path)
    path.write_bytes(b"\n{\n")
    with pytest.raises(DataError, match=r"a\.jsonl: row 2: not valid JSON"):
        RecordedModel(path)
    path.write_bytes(b"[1]\n")
    with pytest.raises(DataError, match="row 1"):
        RecordedModel(path)
    write(path, {"prompt": KEY, "text": "x", "status": "failed"})
    with pytest.raises(DataError, match="contains no answers"):
        RecordedModel(path)
    with pytest.raises(DataError, match="cannot be read: No such file"):
        RecordedModel(tmp_path / "gone.jsonl")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="cannot be read: not a regular file"):
        RecordedModel(tmp_path / "pipe")


def test_an_incomplete_last_line_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"prompt": KEY, "text": "x"}, {"prompt": KEY, "text": "y"})
    path.write_bytes(path.read_bytes()[:-1])
    assert replay(path, 2) == ["x", "x"]


def test_a_line_for_an_image_answers_other_texts_about_it(tmp_path: Path) -> None:
    """Texts of a prompt may depend on the machine; a line that is exact comes first."""
    picture = Image(draw(tmp_path / "meme.png", "AN IMAGE"))
    other = Image(draw(tmp_path / "other.png", "ANOTHER"))

    def pose(text: str, image: Image, schema: dict[str, JsonValue] | None = None) -> Request:
        return replace(ASKED, messages=(Message("user", (text, image)),), schema=schema)

    exact, hinted = pose("a hint", picture), pose("another hint", picture)
    path = write(
        tmp_path / "a.jsonl",
        {"prompt": "f" * 64, "picture": picture_digest(exact), "text": "of the image"},
        {"prompt": request_digest(exact), "text": "of the prompt"},
    )

    async def ask() -> list[str]:
        model = RecordedModel(path)
        try:
            texts = [(await model.answer(asked)).text for asked in (exact, hinted, hinted)]
            for strange in (pose("a hint", other), pose("hm", picture, {"type": "object"}), ASKED):
                with pytest.raises(Rejected, match="contains no answer to this request"):
                    await model.answer(strange)
            return texts
        finally:
            await model.close()

    assert run_sync(ask()) == ["of the prompt", "of the image", "of the image"]
